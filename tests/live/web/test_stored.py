from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.states import Kit, opened, wave
from tests.helpers.states import kit as kit
from tests.helpers.states import made_kit as made_kit
from tytoalba.live.web.refusals import Refusal, status_of, told
from tytoalba.live.web.stored import Stored, digest_of
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.store import edit
from tytoalba.storage.files import locked

SOUND = np.asarray(wave(135.0, 1.0), np.float32)


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_forgetting_gives_the_bytes_back(state: Path) -> None:
    stored, before = Stored(state, unsigned=True), sha(state)
    taken_over = list[Localizer]()
    stored.on_change = taken_over.append
    first = stored.teach(SOUND, 135.0, "anna")
    second = stored.teach(np.asarray(wave(20.0, 1.0), np.float32), 20.0, "ben")
    assert first.before == before != first.digest == second.before != second.digest == sha(state)
    assert [one.n_frames for one in taken_over] == [10, 20]
    facts = stored.facts()
    assert [(one["who"], one["azimuth"], one["n_frames"]) for one in facts["lessons"]] == [
        ("anna", [135.0], 10),
        ("ben", [20.0], 10),
    ]
    assert facts["evidence"][27] == facts["evidence"][4] == 10
    assert sum(facts["evidence"]) == facts["n_frames"] == 20
    assert facts["digest"] == sha(state)
    assert stored.forget(who="anna").n_frames == 10
    last = stored.forget(lesson=second.lessons[0])
    assert (last.digest, sha(state)) == (before, before)
    assert stored.facts()["lessons"] == []


def test_every_change_is_a_step_of_the_ledger(kit: Kit) -> None:
    stored = Stored(kit.folder / "k.tyto")
    stored.teach(SOUND, 135.0, "anna")
    stored.forget(who="anna")
    facts = stored.facts()
    assert [step["what"] for step in facts["steps"]] == ["created", "merged", "merged", "learned", "forgot"]
    assert [step["frames"] for step in facts["steps"]][-2:] == [10, 10]
    assert facts["ledger"] == "verified"
    assert facts["budget"]["budget"] == 10.0
    assert facts["n_lessons"] == 2  # of the kit, not kept
    assert json.dumps(facts)
    assert opened(kit.folder / "k.tyto").steps()[1] == "verified"


def test_nothing_is_changed_by_what_fails(state: Path) -> None:
    stored, before = Stored(state, unsigned=True), sha(state)
    stored.on_change = lambda _: pytest.fail("nothing changed")
    with pytest.raises(Refusal, match="cancelled"):
        stored.teach(SOUND, 135.0, "anna", lambda: True)
    for meant in ({"who": "anna"}, {"lesson": "00"}):
        with pytest.raises(Refusal, match="no lesson") as refused:
            stored.forget(**meant)
        assert status_of(refused.value) == 404
    assert sha(state) == before
    assert not list(state.parent.glob(".*"))


def test_one_writer_at_a_time(state: Path) -> None:
    stored = Stored(state, unsigned=True)
    with locked(state), pytest.raises(Exception, match="another tyto is writing") as refused:
        stored.teach(SOUND, 135.0, "")
    assert status_of(refused.value) == 409
    assert str(state.parent) not in told(refused.value)
    with stored._writing, pytest.raises(Refusal, match="being changed") as refused:
        stored.forget(who="anna")
    assert status_of(refused.value) == 409


def test_what_another_program_teaches_is_taken_over(state: Path) -> None:
    stored, heard = Stored(state, unsigned=True), list[Localizer]()
    stored.on_change = heard.append
    assert stored.facts()["n_frames"] == 0
    with edit(state, unsigned=True) as other:
        other.teach(SOUND, 135.0)
    facts = stored.facts()
    assert (facts["n_frames"], facts["digest"], facts["lessons"]) == (10, sha(state), [])
    assert [one.n_frames for one in heard] == [10]
    assert stored.facts() is facts  # read once


@pytest.mark.parametrize("content", [None, b"", b"nonsense" * 100])
def test_a_file_that_is_gone_or_damaged_is_said_without_its_folder(
    state: Path, content: bytes | None
) -> None:
    stored, whole = Stored(state, unsigned=True), state.read_bytes()
    state.unlink()
    if content is not None:
        state.write_bytes(content)
    for do in (stored.facts, lambda: stored.teach(SOUND, 135.0, "")):
        with pytest.raises(Refusal) as refused:
            do()
        assert status_of(refused.value) == 503
        assert str(state.parent) not in told(refused.value)
    state.write_bytes(whole)
    assert stored.teach(SOUND, 135.0, "").n_frames == 10


def test_a_model_is_shown_and_not_taught(state: Path, tmp_path: Path) -> None:
    model = tmp_path / "kitchen.model"
    known = Localizer(Localizer.load(state).model)
    model.write_bytes(known.to_bytes())
    stored = Stored(model, unsigned=True)
    facts = stored.facts()
    assert (facts["kind"], facts["lessons"], facts["budget"], facts["steps"]) == ("model", [], None, [])
    assert facts["digest"] == digest_of(known) == sha(model)
    with pytest.raises(Refusal, match="is a model") as refused:
        stored.teach(SOUND, 135.0, "")
    assert status_of(refused.value) == 409
