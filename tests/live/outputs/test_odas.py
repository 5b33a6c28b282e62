from __future__ import annotations

import json
import socket
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.updates import (
    HOST,
    TcpReader,
    frame,
    free_port,
    hand_over,
    hand_over_until,
    track,
    updates,
    wait_until,
)
from tytoalba.live.outputs import peer
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.odas import Odas, Slots, potential_text, tracked_text
from tytoalba.live.update import Update


def split_as_odas_web(stream: str) -> list[dict[str, Any]]:
    """Objects of a stream, apart where odas_web takes them apart; the last may be incomplete and is left."""
    parts = stream.split("}\n{")
    whole = [part if part.startswith("{") else "{" + part for part in parts[:-1]]
    return [json.loads(part + "}") for part in whole]


def split_by_depth(stream: str) -> list[dict[str, Any]]:
    """Objects of a stream, apart where all brackets are closed, as odas_ros does it."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(stream):
        if letter == "{":
            start = place if not depth else start
            depth += 1
        elif letter == "}":
            depth -= 1
            if not depth:
                found.append(json.loads(stream[start : place + 1]))
    return found


def has(said: list[str], n: int) -> bool:
    return len(said) >= n


def test_a_client_of_odaslive_reads_tracks_and_potential_sources() -> None:
    tracks, potentials = TcpReader(), TcpReader()
    output = Odas(Address(HOST, tracks.port), Address(HOST, potentials.port), pytest.fail)
    hand_over(output, 20, track(3, 90.0), track(5, 270.0, speaking=False))
    output.close()
    wait_until(lambda: (tracks.text + potentials.text).count("\n}\n") == 40)
    tracks.close()
    potentials.close()

    objects = split_by_depth(tracks.text)
    assert split_as_odas_web(tracks.text) == objects[:-1]
    assert [one["timeStamp"] for one in objects] == list(range(1, 21))
    empty = {"id": 0, "tag": "", "x": 0.0, "y": 0.0, "z": 0.0, "activity": 0.0}
    assert objects[-1]["src"] == [
        {"id": 3, "tag": "dynamic", "x": 0.0, "y": 1.0, "z": 0.0, "activity": 0.9},
        {"id": 5, "tag": "dynamic", "x": 0.0, "y": -1.0, "z": 0.0, "activity": 0.0},
        empty,
        empty,
    ]
    objects = split_by_depth(potentials.text)
    assert split_as_odas_web(potentials.text) == objects[:-1]
    assert len(objects) == 20
    nothing = {"x": 0.0, "y": 0.0, "z": 0.0, "E": 0.0}
    found = sorted(objects[-1]["src"], key=lambda one: one["y"])
    assert found == [
        {"x": 0.0, "y": -1.0, "z": 0.0, "E": 0.9},
        nothing,
        nothing,
        {"x": 0.0, "y": 1.0, "z": 0.0, "E": 0.9},
    ]


def test_a_client_that_comes_late_and_goes_is_reconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("FIRST_PAUSE", 0.02), ("LONGEST_PAUSE", 0.05), ("STEADY", 0.02)):
        monkeypatch.setattr(peer, name, seconds)
    port, said = free_port(), list[str]()
    output = Odas(Address(HOST, port), None, said.append)
    wait_until(lambda: said)
    assert said[0].startswith(f"the reader of ODAS's tracks at {HOST}:{port} is gone (")
    for n_said in (2, 4):
        is_back, is_gone = partial(has, said, n_said), partial(has, said, n_said + 1)
        reader = TcpReader(port)
        hand_over_until(is_back, output, track(1))
        assert said[-1].endswith("is back")
        reader.close()
        assert reader.text.startswith("{")
        assert split_by_depth(reader.text)  # whole objects from the first letter on
        hand_over_until(is_gone, output)
    output.close()


@pytest.mark.end_to_end
def test_a_client_that_never_reads_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "STUCK", 0.2)
    with socket.create_server((HOST, 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        said = list[str]()
        output = Odas(Address(*server.getsockname()), None, said.append)
        hand_over_until(lambda: said, output, track(1), n_frames=100)
        output.close()
    assert "timed out" in said[0]


@settings(max_examples=25)
@given(updates())
def test_whatever_the_update_its_text_is_read_back(update: Update) -> None:
    placed = Slots().placed(update.tracks)
    read = split_by_depth(tracked_text(7, placed) + tracked_text(8, placed))
    assert [one["timeStamp"] for one in read] == [7, 8]
    assert len(read[0]["src"]) == 4
    for source, one in zip(read[0]["src"], update.tracks, strict=False):
        assert source["id"] == one.id
        assert source["activity"] == pytest.approx(one.probability if one.speaking else 0.0, abs=6e-4)
        angle = np.rad2deg(np.arctan2(source["y"], source["x"]))
        assert abs((angle - one.azimuth + 180) % 360 - 180) < 0.1  # of three digits


@given(st.lists(st.floats(-3, 3, width=32) | st.just(float("-inf")), min_size=8, max_size=8))
def test_whatever_the_scores_four_potential_sources_are_read_back(values: list[float]) -> None:
    scores = np.repeat(np.array(values, np.float32), 45)
    scores[0] = 0.5
    (read,) = split_by_depth(potential_text(1, scores))
    assert len(read["src"]) == 4
    assert all(set(one) == {"x", "y", "z", "E"} and 0 <= one["E"] <= 1 for one in read["src"])


def test_silence_has_four_empty_sources() -> None:
    (read,) = split_by_depth(potential_text(1, None))
    assert read["src"] == [{"x": 0.0, "y": 0.0, "z": 0.0, "E": 0.0}] * 4


def test_a_track_keeps_its_place_and_a_fifth_waits() -> None:
    slots = Slots()
    five = [track(n) for n in range(1, 6)]

    def ids(*tracks: Any) -> list[int]:
        return [one.id if one else 0 for one in slots.placed(tracks)]

    assert ids(*five) == [1, 2, 3, 4]
    assert ids(five[0], *five[2:]) == [1, 5, 3, 4]
    assert ids(five[4]) == [0, 5, 0, 0]
    assert ids(five[0], five[4]) == [1, 5, 0, 0]


def test_the_scores_of_a_frame_come_with_it() -> None:
    (read,) = split_by_depth(potential_text(1, frame(0, track(1, 180.0, probability=0.5)).scores))
    assert read["src"][0] == {"x": -1.0, "y": 0.0, "z": 0.0, "E": 0.5}
