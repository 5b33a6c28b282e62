"""The routes, with real sound and a real state."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from tests.helpers.serving import demo
from tests.helpers.states import wave
from tests.helpers.updates import wait_until
from tests.live.web.conftest import Open, Page
from tytoalba.live.update import Fault
from tytoalba.live.web.app import routes_of
from tytoalba.live.web.fanout import TOO_TALKATIVE
from tytoalba.live.web.openapi import described


def next_of(socket: Any, kind: str) -> Any:
    while (message := socket.receive_json())["type"] != kind:
        pass
    return message


def test_what_is_here(page: Page, state: Path) -> None:
    told = page.get("/api/state")
    assert told["array"]["name"] == "respeaker-usb-4"
    assert len(told["array"]["positions"]) == told["array"]["n_mics"] == 4
    assert told["input"] == {"name": "a test", "live": True, "state": "waiting", "faults": []}
    assert (told["localizer"], told["can_teach"], told["why_not_teach"]) == ("kitchen.tyto", True, None)
    assert str(state.parent) not in page.client.get("/api/state").text


def test_an_array_alone_listens_and_is_not_taught(open_page: Open) -> None:
    page = open_page(sound=False)
    told = page.get("/api/state")
    assert (told["can_teach"], told["input"]["state"], told["localizer"]) == (False, "none", None)
    assert "only an array" in told["why_not_teach"]
    assert "only an array" in page.get("/api/localizer", 404)
    assert "only an array" in page.post("/api/lessons", 404, json={"azimuth": 1})
    assert "no live sound" in page.post("/api/takes", 409, json={})
    assert "nothing was heard" in page.get("/api/update", 503)
    assert "nobody spoke" in page.get("/api/state/doa", 503)


def test_frames_are_told_on_the_live_channel_and_to_who_asks(page: Page) -> None:
    with page.live() as socket:
        assert next_of(socket, "state")["input"]["state"] == "waiting"
        page.fed.give(demo()[:, :40000])
        wait_until(lambda: page.station.sound.state == "listening")
        wait_until(lambda: page.station.newest is not None)
        told = next_of(socket, "update")
        assert len(told["scores"] or [0] * 360) == 360
        wait_until(lambda: page.client.get("/api/update").json()["time"] > 2.3)
        newest = page.get("/api/update")
        assert newest["type"] == "update"
        (one,) = (track for track in newest["tracks"] if track["speaking"])
        assert one["azimuth"] == pytest.approx(40.0, abs=6)
        doa = page.get("/api/state/doa")
        assert doa == {"angle": pytest.approx(math.radians(50.0), abs=0.12), "speech_detected": True}


def test_faults_and_the_end_of_the_sound_are_told(page: Page) -> None:
    fault = Fault("unplugged", (), "the device is gone; plug it in again")
    page.fed.give(wave(40.0, 0.3))
    wait_until(lambda: page.get("/api/state")["input"]["state"] == "listening")
    page.fed.give(wave(40.0, 0.3)[:, :0], faults=(fault,))
    wait_until(lambda: page.get("/api/state")["input"]["state"] == "waiting")
    assert page.get("/api/state")["input"]["faults"] == [
        {"kind": "unplugged", "channels": [], "text": fault.text}
    ]
    page.fed.give(wave(40.0, 0.3))
    wait_until(lambda: page.get("/api/state")["input"]["state"] == "listening")
    wait_until(lambda: page.get("/api/state")["input"]["faults"] == [])
    page.fed.close()
    wait_until(lambda: page.get("/api/state")["input"]["state"] == "ended")
    assert "has ended" in page.post("/api/lessons", 409, json={"azimuth": 1})


def test_sound_that_cannot_be_used_is_a_fault_and_the_server_goes_on(page: Page) -> None:
    page.fed.give(wave(40.0, 0.3)[:3])
    wait_until(lambda: page.get("/api/state")["input"]["state"] == "ended")
    (fault,) = page.get("/api/state")["input"]["faults"]
    assert fault["kind"] == "stopped"
    assert page.get("/api/localizer")["n_frames"] == 0


def test_who_talks_much_on_the_live_channel_is_let_go(page: Page) -> None:
    with page.live() as socket:
        next_of(socket, "state")
        for _ in range(30):
            socket.send_text("hello")
        with pytest.raises(WebSocketDisconnect) as gone:
            next_of(socket, "never")
        assert gone.value.code == TOO_TALKATIVE
    wait_until(lambda: not len(page.station.fanout))


def test_there_is_room_for_so_many_clients(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tytoalba.live.web.fanout.MOST_CLIENTS", 1)
    with page.live() as socket:
        next_of(socket, "state")
        assert page.refused_live() == 503
    wait_until(lambda: not len(page.station.fanout))
    with page.live() as socket:
        next_of(socket, "state")


@pytest.mark.end_to_end
def test_a_file_that_is_no_sound_is_refused_and_nothing_happens(page: Page, state: Path) -> None:
    before = state.read_bytes()
    headers = {"Content-Type": "application/octet-stream"}
    for path in ("/api/locate", "/api/lessons/upload?azimuth=10"):
        why = page.post(path, 400, content=b"no sound at all", headers=headers)
        assert re.match("the recording is text, not sound", why)
        assert "object at" not in why
        assert "empty" in page.post(path, 400, content=b"", headers=headers)
        assert "Content-Type" in page.post(path, 415, content=b"x")
    assert "azimuth" in page.post("/api/lessons/upload", 400, content=b"x", headers=headers)
    assert state.read_bytes() == before


def test_the_description_has_every_route_and_no_other(page: Page) -> None:
    told = page.get("/api/openapi.json")
    assert told == described()
    from tytoalba.live.web.app import Api
    from tytoalba.live.web.sessions import Sessions

    routes = routes_of(Api(page.station, Sessions(None)))
    described_routes = {path: {method.upper() for method in item} for path, item in told["paths"].items()}
    assert described_routes == {path: set(answers) for path, answers in routes.items()}
    for path, answers in routes.items():
        answer = page.client.request("PATCH", path)
        assert answer.status_code == 405
        allowed = set(answer.headers["allow"].split(", ")) - {"HEAD"}
        assert allowed == set(answers)


def test_the_server_stops_with_its_clients(page: Page) -> None:
    thread = page.station.sound._thread
    assert thread
    page.client.__exit__()
    assert not thread.is_alive()
