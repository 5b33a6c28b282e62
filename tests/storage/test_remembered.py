"""What was seen is remembered, within bounds; without it work goes on, with a warning."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.seals import mode, posix
from tytoalba.errors import TytoWarning
from tytoalba.storage import remembered
from tytoalba.storage.files import locked
from tytoalba.storage.remembered import FORMAT, Memory, Seen, recall, remembered_path, remembering
from tytoalba.storage.signatures import TrustStore

pytestmark = pytest.mark.usefixtures("home")
SEEN = Seen(3, "a" * 64, 2, "b" * 64, "c" * 64, 1, ((2, "learned", 10), (3, "forgot", 12)))


def remember() -> None:
    with remembering() as memory:
        memory.put(memory.ledgers, "1" * 64, SEEN)
        memory.put(memory.paths, "/home/k.tyto", "1" * 64)
        memory.put(memory.signed, "tyto-ed25519:x model k.model", 7)
        memory.put(memory.places, "/home/k.model", "tyto-ed25519:x model")


def test_what_was_seen_comes_back() -> None:
    assert recall().is_new
    remember()
    memory = recall()
    assert not memory.is_new
    assert memory.ledgers == {"1" * 64: SEEN}
    assert memory.paths == {"/home/k.tyto": "1" * 64}
    assert memory.signed == {"tyto-ed25519:x model k.model": 7}
    assert memory.places == {"/home/k.model": "tyto-ed25519:x model"}
    assert json.loads(remembered_path().read_bytes())["format"] == FORMAT


@posix
def test_is_for_its_owner_only_and_leaves_nothing_beside_it() -> None:
    remember()
    assert mode(remembered_path()) == 0o600
    assert [file.name for file in remembered_path().parent.iterdir()] == ["remembered.json"]


def test_an_error_in_the_block_remembers_nothing() -> None:
    remember()
    before = remembered_path().read_bytes()

    def fail() -> None:
        with remembering() as memory:
            memory.paths.clear()
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert remembered_path().read_bytes() == before


def test_it_stays_small_and_drops_what_was_not_used_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", 20)
    monkeypatch.setattr(remembered, "LARGEST", 4000)
    for number in range(40):
        with remembering() as memory:
            memory.put(memory.ledgers, f"{number:064x}", SEEN)
            memory.put(memory.paths, f"/home/{number}" + "x" * 100, f"{number:064x}")
            if f"{0:064x}" in memory.ledgers:
                memory.put(memory.ledgers, f"{0:064x}", SEEN)  # used again and again
    assert remembered_path().stat().st_size <= 4000
    kept = recall().ledgers
    assert f"{39:064x}" in kept
    assert f"{0:064x}" in kept
    assert f"{1:064x}" not in kept


DAMAGED = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff",
    b"{}",
    b'{"format": "tytoalba remembered 2"}',
    b'{"format": "tytoalba remembered 1"}',
    b'{"format": "tytoalba remembered 1", "ledgers": [], "paths": {}, "signed": {}, "places": {}}',
    b'{"format": "tytoalba remembered 1", "ledgers": {"a": 1}, "paths": {}, "signed": {}, "places": {}}',
    b'{"format": "tytoalba remembered 1", "ledgers": {}, "paths": {"a": 1}, "signed": {}, "places": {}}',
    b'{"format": "tytoalba remembered 1", "ledgers": {}, "paths": {}, "signed": {"a": -1}, "places": {}}',
    b'{"format": "tytoalba remembered 1", "ledgers": {}, "paths": {}, "signed": {}, "places": {}, "x": {}}',
    b'{"format": "tytoalba remembered 1", "ledgers": {}, "paths": {}, "signed": {}, "is_new": {}}',
    b'{"signed": {"a": ' + b"9" * 5000 + b"}}",
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_warned_about_once_kept_and_begun_anew(content: bytes) -> None:
    remember()
    remembered_path().write_bytes(content)
    with pytest.warns(TytoWarning, match=r"remembered\.json is damaged: .*What was seen before is not known"):
        assert recall() == Memory()
    assert recall() == Memory()  # said once
    remember()
    assert recall().ledgers == {"1" * 64: SEEN}
    assert remembered_path().with_name("remembered.json.damaged").read_bytes() == content


@settings(max_examples=30)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda x: st.dictionaries(st.text(), x)))
def test_whatever_json_is_read_or_refused(fields: object) -> None:
    for content in (
        fields,
        {"format": FORMAT, "ledgers": fields},
        {"format": FORMAT, "ledgers": {"a": fields}},
    ):
        try:
            Memory.from_bytes(json.dumps(content).encode())
        except ValueError:
            continue


@pytest.mark.parametrize(
    "changes", [{"length": -1}, {"head": "x"}, {"state": 1}, {"recent": ((1, 2, 3),)}, {"done": True}]
)
def test_what_cannot_have_been_seen_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Seen(**{**vars(SEEN), **changes})


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_home_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "closed"))
    with pytest.warns(TytoWarning, match="cannot be written"):
        remember()


def test_a_home_that_cannot_be_made_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.warns(TytoWarning, match="cannot be written .*a state or ledger that is put back will not"):
        remember()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        remember()  # said once


@posix
def test_a_full_disk_is_warned_about_and_what_was_there_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    remember()
    before = remembered_path().read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with (
            pytest.warns(TytoWarning, match=r"cannot be written \(No space left on device\)"),
            remembering() as memory,
        ):
            memory.paths.clear()
    assert remembered_path().read_bytes() == before


def test_another_who_writes_is_waited_for_and_then_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    remember()
    monkeypatch.setattr(remembered, "WAIT", 0.05)
    with locked(remembered_path()), pytest.warns(TytoWarning, match="another tyto is writing"):
        remember()


@posix
def test_a_file_that_others_may_write_is_not_believed() -> None:
    remember()
    remembered_path().chmod(0o666)
    with pytest.warns(TytoWarning, match="is open to others"):
        assert recall() == Memory()


@posix
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(remembered.Memory().to_bytes())
    victim.chmod(0o600)
    remembered_path().parent.mkdir(parents=True)
    remembered_path().symlink_to(victim)
    before = victim.read_bytes()
    with pytest.warns(TytoWarning, match="link"):
        remember()
    assert victim.read_bytes() == before


def test_sequences_of_an_earlier_version_are_taken_over() -> None:
    old = TrustStore().path.with_name("seen.json")
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_text('{"tyto-ed25519:y model m": 1700000000}')
    remember()
    assert recall().signed == {"tyto-ed25519:y model m": 1700000000, "tyto-ed25519:x model k.model": 7}


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": "b"}', '{"a": ' + "9" * 5000 + "}", "[" * 100_000])
def test_damaged_ones_of_an_earlier_version_are_warned_about(content: str) -> None:
    old = TrustStore().path.with_name("seen.json")
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_text(content)
    with pytest.warns(TytoWarning, match=r"seen\.json is damaged .*; remove it"):
        assert recall().signed == {}
