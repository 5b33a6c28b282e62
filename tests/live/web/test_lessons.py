"""Lessons by speaking, from the first sample to the bytes of the state."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.states import wave
from tests.helpers.updates import wait_until
from tests.live.web.conftest import Page
from tytoalba.live.update import Fault
from tytoalba.live.web.stored import Stored
from tytoalba.localizer.localizer import Localizer
from tytoalba.storage.files import locked


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def written(state: Path) -> set[Path]:
    return {path for path in state.parent.rglob("*") if path.is_file()}


def begin(page: Page, **more: Any) -> str:
    body = {"azimuth": 135, "seconds": 1.5, "who": "anna", **more}
    return str(page.post("/api/lessons", 202, json=body)["id"])


def ended(page: Page) -> Any:
    wait_until(lambda: page.get("/api/lessons/last")["state"] not in ("recording", "learning"), pause=0.03)
    return page.get("/api/lessons/last")


def test_teach_by_speaking_and_forget_to_the_byte(page: Page, state: Path) -> None:
    before, files = sha(state), written(state)
    with page.live() as socket:
        name = begin(page)
        assert page.get("/api/lessons/current")["state"] == "recording"
        page.fed.give(wave(135.0, 1.7))
        lesson = ended(page)
        states, kinds = list[str](), list[str]()
        while not states or states[-1] != "done":
            message = socket.receive_json()
            kinds.append(message["type"])
            if message["type"] == "lesson":
                states.append(message["state"])
                assert message["id"] == name
    assert (lesson["state"], lesson["error"], lesson["frames"]) == ("done", None, 16)
    assert (lesson["before"], lesson["digest"]) == (before, sha(state))
    assert lesson["heard"] == pytest.approx(1.5, abs=0.2)
    stored = page.get("/api/localizer")
    assert [(one["id"], one["who"], one["azimuth"]) for one in stored["lessons"]] == [
        (lesson["lesson"], "anna", [135.0])
    ]
    assert page.get("/api/lessons/current", 404)
    # what was heard is what was learned: the same as teaching these two seconds from a file
    twin = Localizer.load(state)
    twin.forget(who="anna")
    twin.teach(np.asarray(wave(135.0, 1.7)[:, :24000], np.float32), 135.0, who="anna", keep=True)
    assert set(twin.state.lessons) == {lesson["lesson"]}
    forgotten = page.delete(f"/api/lessons?id={lesson['lesson']}")
    assert forgotten == {"frames": 16, "lessons": 1, "before": lesson["digest"], "digest": before}
    assert sha(state) == before
    assert page.delete("/api/lessons?who=anna", 404)
    assert written(state) == files  # nothing of the sound, anywhere
    recording = page.station.sound._recording
    assert recording
    assert not recording._blocks


def test_what_was_taught_is_heard_at_once(page: Page) -> None:
    finder = page.station.parts.following._stream.finder
    begin(page)
    page.fed.give(wave(135.0, 1.7))
    assert ended(page)["state"] == "done"
    taught = page.station.parts.following._stream.finder
    assert taught is not finder
    assert taught.localizer.n_frames == 16  # type: ignore[attr-defined]
    page.fed.give(wave(135.0, 1.0))
    wait_until(lambda: page.get("/api/update")["time"] > 2.2)
    assert page.get("/api/state")["input"]["state"] == "listening"


@pytest.mark.parametrize(
    ("sound", "why"),
    [
        (np.zeros((4, 40000)), "is the microphone muted"),
        (np.pad(wave(135.0, 0.4), ((0, 0), (0, 40000))), "0.4 s of sound"),
        (np.clip(9 * wave(135.0, 1.7), -1, 1), "clipped"),
    ],
)
def test_a_lesson_that_fails_says_why_and_changes_nothing(
    page: Page, state: Path, sound: np.ndarray, why: str
) -> None:
    before = sha(state)
    begin(page)
    page.fed.give(sound)
    lesson = ended(page)
    assert (lesson["state"], lesson["frames"], lesson["digest"]) == ("failed", 0, None)
    assert why in lesson["error"]
    assert sha(state) == before


def test_sound_that_stops_ends_a_lesson(page: Page, state: Path) -> None:
    before = sha(state)
    begin(page)
    page.fed.give(wave(135.0, 0.5))
    page.fed.give(wave(135.0, 0.5)[:, :0], faults=(Fault("unplugged", (), "plug it in again"),))
    assert "plug it in again" in ended(page)["error"]
    begin(page)
    page.fed.close()
    assert "sound ended" in ended(page)["error"]
    assert sha(state) == before


def test_one_at_a_time_and_cancelled_while_recording(page: Page, state: Path) -> None:
    before = sha(state)
    name = begin(page)
    assert "runs already" in page.post("/api/lessons", 409, json={"azimuth": 1})
    assert "recorded already" in page.post("/api/takes", 409, json={})
    assert page.delete("/api/lessons/current") == {"id": name}
    assert ended(page)["state"] == "cancelled"
    assert page.delete("/api/lessons/current", 404)
    page.fed.give(wave(135.0, 1.7))
    assert sha(state) == before
    begin(page)
    page.fed.give(wave(135.0, 1.7))
    assert ended(page)["state"] == "done"


def test_cancelled_while_learning(page: Page, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, teach = sha(state), Localizer.teach

    def slow(*given: Any, **options: Any) -> Any:
        change = teach(*given, **options)
        wait_until(lambda: page.client.delete("/api/lessons/current").status_code == 200)
        return change

    monkeypatch.setattr(Localizer, "teach", slow)
    begin(page)
    page.fed.give(wave(135.0, 1.7))
    assert ended(page)["state"] == "cancelled"
    assert sha(state) == before


def test_the_server_may_stop_in_the_middle(page: Page, state: Path) -> None:
    before = sha(state)
    begin(page)
    page.fed.give(wave(135.0, 0.5))
    page.client.__exit__()
    assert sha(state) == before
    assert Stored(state, unsigned=True).facts()["n_lessons"] == 0


def test_while_another_program_writes_a_lesson_fails(page: Page, state: Path) -> None:
    with locked(state):
        begin(page)
        page.fed.give(wave(135.0, 1.5))
        assert "another tyto is writing kitchen.tyto" in ended(page)["error"]
        assert "another tyto is writing kitchen.tyto" in page.delete("/api/lessons?who=anna", 409)


def test_the_same_sound_is_not_learned_twice(page: Page) -> None:
    for expected in ("done", "failed"):
        begin(page)
        page.fed.give(wave(135.0, 1.5))
        assert ended(page)["state"] == expected
    assert "taught already" in page.get("/api/lessons/last")["error"]
