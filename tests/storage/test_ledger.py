"""The ledger notices every change; a killed writer costs at most its own step; two writers do not mix."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.seals import mode, posix
from tytoalba.errors import (
    LedgerChangedError,
    LedgerError,
    LockedError,
    MissingExtraError,
    RolledBackError,
    TytoError,
    UnfinishedStepError,
    UntrustedSignerError,
)
from tytoalba.storage import ledger as ledger_module
from tytoalba.storage.files import locked
from tytoalba.storage.ledger import Ledger, keyed_id, ledger_path
from tytoalba.storage.signatures import SigningKey, TrustStore
from tytoalba.storage.steps import FORMAT, START, Entry
from tytoalba.storage.writing import write_whole

pytest.importorskip("cryptography")
OURS, THEIRS = SigningKey.generate(), SigningKey.generate()
STEPS = ["created", "learned", "learned", "forgot", "merged"]


def digest(step: int) -> str:
    """SHA-256 of the state after a step (1, 2, ...); of none for 0."""
    return hashlib.sha256(b"state %d" % step).hexdigest() if step else ""


def write(path: Path, steps: int = 5, key: SigningKey = OURS) -> Ledger:
    ledger = Ledger.open(path, key)
    for number in range(1, steps + 1):
        data = b"recording %d" % number
        ledger.append(STEPS[(number - 1) % 5], digest(number), 10 * number, keyed_id(key, data))
    return ledger


@pytest.fixture
def path(tmp_path: Path, home: Path) -> Path:  # noqa: ARG001 - nobody is trusted there
    return ledger_path(tmp_path / "den.state")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Content of a ledger of five steps."""
    path = tmp_path_factory.mktemp("good") / "den.ledger"
    write(path)
    return path.read_bytes()


def with_last(good: bytes, last: Entry) -> Ledger:
    """The ledger of five steps with another fifth one."""
    return opened(b"".join(good.splitlines(keepends=True)[:4]) + last.line() + b"\n")


def signed(entry: Entry, key: SigningKey = OURS, purpose: str = "ledger entry", **changes: Any) -> Entry:
    """A step with other fields, signed for a purpose."""
    bare = replace(entry, signer=key.fingerprint, signature="", **changes)
    return replace(bare, signature=key.sign(bare.line(), purpose))


def opened(content: bytes) -> Ledger:
    return Ledger(Path("den.ledger"), OURS, content, None)


def notices(content: bytes) -> bool:
    """Whether opening, verifying or comparing with the state of the last step refuses or reports it."""
    try:
        ledger = opened(content)
        notes = ledger.verify()
        ledger.check_state(digest(5))
    except LedgerError:
        return True
    return bool(notes)


# ---- what is written


def test_steps_come_back(path: Path) -> None:
    written = write(path)
    ledger = Ledger.open(path, OURS)
    assert ledger.verify() == []
    assert ledger.entries == written.entries
    assert [entry.what for entry in ledger.entries] == STEPS
    assert [entry.sequence for entry in ledger.entries] == [1, 2, 3, 4, 5]
    assert [entry.n_frames for entry in ledger.entries] == [10, 20, 30, 40, 50]
    assert ledger.entries[0].previous == START
    lines = path.read_bytes().splitlines()
    assert ledger.entries[1].previous == hashlib.sha256(lines[0]).hexdigest()
    assert ledger.head == written.head == hashlib.sha256(lines[-1]).hexdigest()
    assert all(abs(entry.time - time.time()) < 60 for entry in ledger.entries)
    assert all(json.loads(line)["format"] == f"{FORMAT} 2" for line in lines)
    assert [file.name for file in path.parent.iterdir()] == ["den.state.ledger"]


def of_version_1(entries: tuple[Entry, ...], key: SigningKey = OURS) -> bytes:
    """The same steps as a ledger of the first format."""
    content, previous = b"", START
    for entry in entries:
        old = signed(entry, key, version=1, about={}, previous=previous)
        content, previous = content + old.line() + b"\n", old.digest()
    return content


def test_a_step_says_more_in_about(path: Path) -> None:
    facts: dict[str, str | int | float] = {"unit": "lesson", "epsilon": 1.5, "features": 500}
    write(path, 2).append("exported", digest(2), about=facts)
    ledger = Ledger.open(path, OURS)
    assert ledger.verify() == []
    assert [entry.about for entry in ledger.entries] == [{}, {}, facts]
    ledger.check_state(digest(2))
    with pytest.raises(LedgerError, match="say less in `about`"):
        ledger.append("exported", digest(2), about={str(n): "x" * 1000 for n in range(9)})
    with pytest.raises(LedgerError, match="the signature does not hold"):
        opened(path.read_bytes().replace(b"1.5", b"0.5")).verify()


def test_a_ledger_of_the_first_format_goes_on_in_the_second(path: Path) -> None:
    path.write_bytes(of_version_1(write(path.with_name("other")).entries))
    old = path.read_bytes()
    ledger = Ledger.open(path, OURS)
    assert ledger.verify() == []
    assert b"about" not in old
    assert {entry.version for entry in ledger.entries} == {1}
    ledger.check_state(digest(5))
    ledger.append("exported", digest(5), about={"epsilon": 1.0})
    assert path.read_bytes().startswith(old)
    again = Ledger.open(path, OURS)
    assert again.verify(head=opened(old).head) == []
    assert [entry.version for entry in again.entries] == [1] * 5 + [2]
    with pytest.raises(LedgerError, match="cannot be a step"):  # the first format knew no exports
        replace(again.entries[-1], version=1, about={})


@posix
def test_is_for_its_owner_only(path: Path) -> None:
    write(path, 1)
    assert mode(path) == 0o600
    path.chmod(0o644)
    Ledger.open(path, OURS).append("learned", digest(2))
    assert mode(path) == 0o600


def test_empty_and_missing(path: Path) -> None:
    ledger = Ledger.open(path, OURS)
    assert (ledger.entries, ledger.head, ledger.verify()) == ((), START, [])
    ledger.check_state("")
    with pytest.raises(LedgerError, match=r"there is a state, but .* has no step"):
        ledger.check_state(digest(1))
    assert not path.exists()


def test_ids_need_the_key() -> None:
    name = keyed_id(OURS, b"recording")
    assert name == keyed_id(OURS, b"recording")
    assert len(name) == 64
    plain = hashlib.sha256(b"recording").hexdigest()
    assert len({name, plain, keyed_id(OURS, b"another"), keyed_id(THEIRS, b"recording")}) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("burnt", digest(6)),
        ("learned", ""),
        ("learned", "A" * 64),
        ("learned", digest(6), -1),
        ("learned", digest(6), 1.5),
        ("learned", digest(6), True),
        ("learned", digest(6), 1, "not hex"),
        ("learned", digest(6), 1, "a" * 129),
        ("learned", digest(6), 1, None),
        ("learned", digest(6), 1, "", {"a": None}),
        ("learned", digest(6), 1, "", {"a": float("nan")}),
        ("learned", digest(6), 1, "", {str(n): n for n in range(33)}),
    ],
)
def test_wrong_steps_are_refused_and_nothing_is_written(path: Path, arguments: Any) -> None:
    ledger = write(path, 2)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="cannot be a step"):
        ledger.append(*arguments)
    assert path.read_bytes() == before
    assert len(ledger.entries) == 2


def test_reading_needs_neither_key_nor_cryptography(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    ledger = Ledger.open(path)
    assert [entry.what for entry in ledger.entries] == STEPS
    for call in (ledger.verify, lambda: ledger.check_state(digest(5))):
        with pytest.raises(MissingExtraError, match="privacy"):
            call()


def test_without_a_key_nothing_is_written(path: Path) -> None:
    write(path, 1)
    TrustStore().add(OURS.fingerprint)
    ledger = Ledger.open(path)
    with pytest.raises(LedgerError, match="opened for reading"):
        ledger.append("learned", digest(2))
    with pytest.raises(LedgerError, match="opened for reading"):
        ledger.repair("")
    assert len(Ledger.open(path).entries) == 1


# ---- what is noticed


@given(st.data())
def test_every_changed_byte_is_noticed(good: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != good[position]))
    assert not notices(good)
    assert notices(good[:position] + bytes([byte]) + good[position + 1 :])


@given(st.data())
def test_every_removed_or_added_byte_is_noticed(good: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(good) - 1))
    assert notices(good[:position] + good[position + 1 :])
    byte = data.draw(st.integers(0, 255))
    assert notices(good[:position] + bytes([byte]) + good[position:])


@given(st.lists(st.integers(0, 4), max_size=7).filter(lambda order: order != [0, 1, 2, 3, 4]))
def test_reordered_removed_and_repeated_lines_are_noticed(good: bytes, order: list[int]) -> None:
    lines = good.splitlines(keepends=True)
    content = b"".join(lines[number] for number in order)
    assert notices(content)
    if order != list(range(len(order))):  # all but a cut end show without the state
        with pytest.raises(LedgerError, match="does not follow"):
            opened(content).verify()


def test_cut_end_shows_with_an_anchor(good: bytes) -> None:
    whole = opened(good)
    cut = opened(b"".join(good.splitlines(keepends=True)[:3]))
    assert cut.verify() == []  # nothing inside can tell
    assert cut.verify(at_least=3, head=whole.entries[1].digest()) == []
    with pytest.raises(LedgerError, match=r"ends at step 3 .* rolled back"):
        cut.verify(at_least=4)
    with pytest.raises(LedgerError, match="rolled back"):
        cut.verify(head=whole.head)
    assert whole.verify(at_least=5, head=cut.head) == []


def test_line_that_a_stranger_signed(path: Path, good: bytes) -> None:
    forged = signed(opened(good).entries[-1], THEIRS, n_frames=1)
    with pytest.raises(UntrustedSignerError, match="not among the keys"):
        with_last(good, forged).verify()
    content = b"".join(good.splitlines(keepends=True)[:4]) + forged.line() + b"\n"
    path.write_bytes(content)
    ledger = Ledger.open(path, OURS)
    with pytest.raises(UntrustedSignerError):
        ledger.append("learned", digest(6))
    with pytest.raises(UntrustedSignerError):
        ledger.check_state(digest(5))
    assert path.read_bytes() == content
    with pytest.raises(LedgerError, match="line 5: the signature does not hold"):
        with_last(good, replace(forged, signer=OURS.fingerprint)).verify()


def test_line_of_another_ledger_of_the_same_owner(path: Path, good: bytes) -> None:
    other = Ledger.open(path, OURS)
    for number in (11, 12, 13, 14, 5):
        other.append("learned", digest(number))
    with pytest.raises(LedgerError, match="line 5: it does not follow"):
        with_last(good, other.entries[4]).verify()


def test_number_that_the_owner_left_out_and_signature_for_another_purpose(good: bytes) -> None:
    last = opened(good).entries[-1]
    with pytest.raises(LedgerError, match="line 5: it does not follow"):
        with_last(good, signed(last, sequence=6)).verify()
    with pytest.raises(LedgerError, match="does not hold"):
        with_last(good, signed(last, purpose="manifest")).verify()
    assert with_last(good, signed(last)).verify() == []


def test_who_is_trusted(path: Path) -> None:
    write(path, 2)
    with pytest.raises(UntrustedSignerError):
        Ledger.open(path, THEIRS).verify()
    with pytest.raises(UntrustedSignerError, match="tyto trust"):
        Ledger.open(path).verify()
    stranger = Ledger.open(path, THEIRS)
    assert stranger.verify(trusted=[OURS.fingerprint]) == []
    with pytest.raises(UntrustedSignerError):  # one look with wider trust does not open it for writing
        stranger.append("learned", digest(3))
    renewed = Ledger.open(path, THEIRS, trusted=OURS.fingerprint)  # the owner's key before this one
    renewed.append("learned", digest(3))
    assert Ledger.open(path, THEIRS, trusted=[OURS.fingerprint]).verify() == []
    TrustStore().add(OURS.fingerprint)
    TrustStore().add(THEIRS.fingerprint)
    assert Ledger.open(path).verify() == []


def test_clock_that_goes_back_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = write(path, 1)
    now = time.time()
    for number, seconds in [(2, 0), (3, -250), (4, -7200), (5, -7000)]:
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds)
        ledger.append("learned", digest(number))
    notes = Ledger.open(path, OURS).verify()
    assert len(notes) == 1
    assert notes[0].startswith("step 4 is dated 69")
    assert "before step 3: was the clock set back?" in notes[0]


def wrong_lines() -> list[bytes]:
    key = OURS.fingerprint
    line = Entry(1, 1, "created", 0, "", digest(1), START, key, OURS.sign(b"", "x")).line()
    wrong: dict[str, list[Any]] = {
        "sequence": [True, 1.0, -1, 2**60],
        "id": [1, [], "XY", "a" * 130],
        "what": [[], "x"],
        "format": ["tytoalba ledger 3", "tytoalba ledger 1", {}, "\x1b[2J"],
        "\x1b[2J": [1],
        "signature": ["x" * 9000],
        "about": [[], {"a": None}, {"a": [1]}, {"a\n": 1}, {"a": 2**60}, {str(n): n for n in range(33)}],
    }
    fields: list[dict[str, Any]] = [{name: None} for name in json.loads(line)]
    fields += [{name: bad} for name, bads in wrong.items() for bad in bads]
    spelt = [
        json.dumps({**json.loads(line), **change}, sort_keys=True, separators=(",", ":")) for change in fields
    ]
    raw = [b"", b"{}", b"null", b"[" * 2000, b"[" * 100_000, b"\xff", line[:-1] + b',"id":""}', line + b" "]
    return [*(text.encode() for text in spelt), *raw, line.replace(b":1,", b":NaN,")]


@pytest.mark.parametrize("line", wrong_lines(), ids=range(len(wrong_lines())))
def test_lines_that_are_no_steps(path: Path, line: bytes) -> None:
    path.write_bytes(line + b"\n")
    with pytest.raises(LedgerError, match=r"line 1: not a step .* put back a copy") as caught:
        Ledger.open(path)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@given(st.binary(max_size=200))
def test_anything_at_all_is_refused_without_a_crash(content: bytes) -> None:
    with pytest.raises(LedgerError):
        opened(content + b"\n")


def test_too_large_or_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = write(path, 1)
    before = path.read_bytes()
    for limit in ("FULL", "LARGEST"):
        monkeypatch.setattr(ledger_module, limit, len(before) + 10)
    with pytest.raises(LedgerError, match="is full"):
        ledger.append("learned", digest(3))
    assert path.read_bytes() == before  # a summary of one line is no shorter
    monkeypatch.setattr(ledger_module, "LARGEST", len(before) - 1)
    with pytest.raises(LedgerError, match="larger than"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="not a file"):
        Ledger.open(path.parent)


# ---- the state


def test_state_must_be_the_last_steps(path: Path) -> None:
    ledger = write(path)
    ledger.check_state(digest(5))
    with pytest.raises(UnfinishedStepError, match=r"number 5, merged, 50 frames.*the next change takes it"):
        ledger.check_state(digest(4))
    with pytest.raises(
        RolledBackError,
        match=r"of step 2 of 5, before step 4, which forgot 40 frames: .*`tyto restore den\.state`",
    ):
        ledger.check_state(digest(2))
    with pytest.raises(LedgerError, match=r"not what .* says: it was altered"):
        ledger.check_state(digest(6))
    with pytest.raises(LedgerError, match="there is no state, but"):
        ledger.check_state("")


def test_unfinished_step_is_taken_back_by_a_line_of_its_own(path: Path) -> None:
    ledger = write(path)
    last, before = ledger.entries[-1], path.read_bytes()
    for other in (digest(5), digest(2), digest(6), ""):
        with pytest.raises(LedgerError):
            ledger.repair(other)
        assert path.read_bytes() == before
    assert ledger.repair(digest(4)) == last
    assert path.read_bytes().startswith(before)  # nothing was replaced
    for seen in (ledger, Ledger.open(path, OURS)):
        assert seen.verify(at_least=6, head=last.digest()) == []
        seen.check_state(digest(4))
        assert [entry.what for entry in seen.entries] == [*STEPS, "recovered"]
        recovered = seen.entries[-1]
        assert (recovered.id, recovered.about) == (last.id, {"step": 5, "what": "merged"})
    with pytest.raises(RolledBackError, match="before step 4, which forgot 40 frames"):  # not twice
        ledger.check_state(digest(3))
    with pytest.raises(LedgerError, match=r"of step 5 of .*, which was taken back"):  # nor forward again
        ledger.check_state(digest(5))
    ledger.append("learned", digest(6))
    assert Ledger.open(path, OURS).verify() == []


def test_unfinished_first_step(path: Path) -> None:
    ledger = write(path, 1)
    with pytest.raises(UnfinishedStepError):
        ledger.check_state("")
    ledger.repair("")
    ledger.check_state("")
    ledger.append("created", digest(1))
    again = Ledger.open(path, OURS)
    again.check_state(digest(1))
    assert [entry.what for entry in again.entries] == ["created", "recovered", "created"]


# ---- one step behind: the rules at the top of the module


def one_behind(path: Path, what: str) -> Ledger:
    ledger = write(path, 2)
    ledger.append(what, digest(3), 7)
    return ledger


@pytest.mark.parametrize("what", ["learned", "forgot", "merged"])
def test_a_step_that_was_seen_in_place_is_not_taken_back(path: Path, what: str) -> None:
    ledger = one_behind(path, what)
    seen = ledger.seen(done=3, state=digest(3), begun=ledger.head)
    with pytest.raises(RolledBackError, match=rf"from before step 3, which {what} 7 frames.*was finished"):
        ledger.check_state(digest(2), seen)
    with pytest.raises(RolledBackError):
        ledger.repair(digest(2), seen)
    ledger.check_state(digest(3), seen)


@pytest.mark.parametrize("what", ["learned", "forgot", "merged"])
def test_a_step_that_this_user_began_and_nobody_saw_in_place_is_taken_back(path: Path, what: str) -> None:
    ledger = one_behind(path, what)
    assert ledger.repair(digest(2), ledger.seen(done=2, begun=ledger.head)).what == what


def test_a_forgotten_step_of_which_nothing_is_known_is_not_taken_back(path: Path) -> None:
    ledger = one_behind(path, "forgot")
    for seen in (None, ledger.seen(done=2), ledger.seen(done=2, begun=digest(9))):
        with pytest.raises(RolledBackError, match="did not finish, or an older state was put back") as caught:
            ledger.check_state(digest(2), seen)
        assert caught.value.again == ledger.entries[-1]
    learned = one_behind(path.with_name("other.ledger"), "learned")
    for seen in (None, learned.seen(done=2), learned.seen(done=2, begun=digest(9))):
        with pytest.raises(UnfinishedStepError):
            learned.check_state(digest(2), seen)


@pytest.mark.parametrize("what", ["exported", "recovered", "restored"])
def test_steps_that_write_no_state_cannot_be_unfinished(path: Path, what: str) -> None:
    ledger = write(path, 2)
    ledger.append(what, digest(1))
    with pytest.raises(LedgerError) as caught:
        ledger.check_state(digest(2))
    assert not isinstance(caught.value, UnfinishedStepError)
    ledger.check_state(digest(1))


def test_step_that_changed_nothing_is_finished(path: Path) -> None:
    ledger = write(path, 2)
    ledger.append("forgot", digest(2))
    ledger.check_state(digest(2))
    with pytest.raises(LedgerError, match="nothing to repair"):
        ledger.repair(digest(2))


# ---- full: compacted


def filled(path: Path, monkeypatch: pytest.MonkeyPatch, limit: int = 6000) -> Ledger:
    """A ledger that has just been compacted, and what it says still fits."""
    monkeypatch.setattr(ledger_module, "FULL", limit)
    ledger = write(path, 2)
    ledger.append("exported", digest(2), about={"noise": 2.0, "unit": "lesson"})
    ledger.append("merged", digest(3), 4, about={"spent": 0.1})
    number = 3
    while ledger.entries[0].what != "summary":
        number += 1
        ledger.append("forgot" if number % 2 else "learned", digest(number), 1)
    return ledger


def test_a_full_ledger_is_compacted_and_still_forgets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled(path, monkeypatch)
    archive = path.with_name(path.name + ".1")
    old = Ledger(archive, OURS, archive.read_bytes(), None)
    summary, last = ledger.entries
    assert old.verify() == []
    assert (summary.previous, summary.sequence) == (old.head, old.length + 1)
    assert (summary.about["first"], summary.about["lines"]) == (ledger.identity, old.length)
    assert summary.about["spent"] == 0.25
    assert summary.about["exported"] == 1
    assert summary.about["forgot"] == sum(entry.what == "forgot" for entry in old.entries)
    again = Ledger.open(path, OURS)
    assert again.verify() == []
    again.check_state(last.state)
    assert again.length == old.length + 2
    with pytest.raises(RolledBackError, match=f"from before step {last.sequence}, which forgot 1 frame,"):
        again.check_state(summary.state)
    again.append("forgot", digest(99), 3)
    assert Ledger.open(path, OURS).verify(at_least=last.sequence, head=last.digest()) == []
    if os.name == "posix":
        assert mode(archive) == 0o600


def test_a_summary_names_what_was_remembered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled(path, monkeypatch)
    archive = path.with_name(path.name + ".1")
    old = Ledger(archive, OURS, archive.read_bytes(), None)
    middle = old.entries[3]
    for length, head in ((old.length, old.head), (middle.sequence, middle.digest()), (0, middle.digest())):
        assert ledger.verify(at_least=length, head=head) == []
    for length, head in (
        (ledger.length + 1, digest(1)),
        (old.length, digest(1)),
        (2, digest(1)),
        (0, digest(1)),
    ):
        with pytest.raises(RolledBackError):
            ledger.verify(at_least=length, head=head)
    archive.unlink()  # then only the last archived line can be told, and that there were as many
    assert ledger.verify(at_least=old.length, head=old.head) == []
    assert ledger.verify(at_least=middle.sequence, head=middle.digest()) == []
    with pytest.raises(RolledBackError):
        ledger.verify(head=middle.digest())


def test_a_ledger_is_compacted_again_and_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled(path, monkeypatch)
    identity = ledger.identity
    for number in range(100, 130):
        ledger.append("learned", digest(number), 1)
    n_archives = len(list(path.parent.glob("*.ledger.*")))
    assert n_archives > 2
    assert path.stat().st_size <= 6000
    assert (ledger.verify(), ledger.identity) == ([], identity)
    n_lines = ledger.entries[0].about
    kinds = ("created", "learned", "forgot", "merged", "exported")
    assert sum(int(n_lines.get(what, 0)) for what in kinds) == int(n_lines["lines"]) - (n_archives - 1)
    assert n_lines["spent"] == 0.25


def test_a_summary_elsewhere_than_first_or_of_nothing_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = filled(path, monkeypatch)
    summary, last = ledger.entries
    moved = signed(summary, sequence=last.sequence + 1, previous=last.digest())
    with pytest.raises(LedgerError, match="line 3: it does not follow"):
        opened(path.read_bytes() + moved.line() + b"\n").verify()
    with pytest.raises(LedgerError, match="names the first line"):
        replace(summary, about={})


def test_killed_between_archive_and_summary(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = write(path, 5)
    whole, real = path.read_bytes(), write_whole

    def failing(target: Path, *arguments: Any, **options: Any) -> None:
        if target == path:
            raise OSError(28, "No space left on device")
        real(target, *arguments, **options)

    monkeypatch.setattr(ledger_module, "write_whole", failing)
    with pytest.raises(OSError, match="No space"):
        ledger.compact()
    assert path.read_bytes() == path.with_name(path.name + ".1").read_bytes() == whole
    monkeypatch.setattr(ledger_module, "write_whole", real)
    Ledger.open(path, OURS).compact()
    assert not path.with_name(path.name + ".2").exists()
    assert Ledger.open(path, OURS).verify(at_least=5) == []


# ---- killed, full, together


@posix
def test_a_link_is_not_written_through(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(b"")
    path.symlink_to(victim)
    with pytest.raises(LedgerError, match="is a link, and is not written through"):
        Ledger.open(path, OURS).append("created", digest(1))
    assert victim.read_bytes() == b""
    assert mode(victim) != 0o600


def test_torn_last_line_is_dropped_wherever_it_was_torn(path: Path) -> None:
    whole = write(path, 3)
    content = path.read_bytes()
    begins = content.rfind(b"\n", 0, -1) + 1
    for end in range(begins, len(content)):
        path.write_bytes(content[:end])
        ledger = Ledger.open(path, OURS)
        assert ledger.entries == whole.entries[:2]
        assert ledger.torn == (end > begins)
        assert bool(ledger.verify()) == ledger.torn
        assert path.stat().st_size == end  # opening does not write
        ledger.check_state(digest(2))
        if end % 40 == 0 or end == len(content) - 1:
            ledger.append("forgot", digest(4))
            assert not ledger.torn
            again = Ledger.open(path, OURS)
            assert (again.verify(), [entry.what for entry in again.entries[2:]]) == ([], ["forgot"])


@pytest.mark.parametrize("n_written", [0, 100])
def test_full_disk_leaves_the_ledger_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    ledger = write(path, 2)
    before = path.read_bytes()

    def fail(handle: int) -> None:
        os.ftruncate(handle, len(before) + n_written)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        ledger.append("learned", digest(3))
    monkeypatch.undo()
    assert path.read_bytes() == before
    ledger.append("learned", digest(3))
    assert len(Ledger.open(path, OURS).entries) == 3


def test_second_writer_is_kept_out(path: Path) -> None:
    first, second = write(path, 1), Ledger.open(path, OURS)
    with locked(path), pytest.raises(LockedError, match="another tyto is writing"):
        first.append("learned", digest(2))
    first.append("learned", digest(2))
    before = path.read_bytes()
    with pytest.raises(LedgerChangedError, match="open it and do the step again"):
        second.append("learned", digest(3))
    with pytest.raises(LedgerChangedError):
        second.repair("")
    assert path.read_bytes() == before
    assert len(second.entries) == 1


APPEND = """
import sys, time
from tytoalba.storage.ledger import Ledger
from tytoalba.errors import LedgerChangedError, LockedError
from tytoalba.storage.signatures import SigningKey
path, key, n_steps = sys.argv[1], SigningKey.load(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
done = 0
while done < n_steps:
    try:
        Ledger.open(path, key).append("learned", "0" * 64, done)
        done += 1
    except (LockedError, LedgerChangedError):
        time.sleep(0.002)
"""


def writer(path: Path, n_steps: int) -> subprocess.Popen[str]:
    key = path.with_name("key.pem")
    if not key.exists():
        OURS.save(key)
    command = [sys.executable, "-c", APPEND, str(path), str(key), str(n_steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_together_lose_no_step(path: Path) -> None:
    with writer(path, 15) as one, writer(path, 15) as two:
        assert [one.wait(), two.wait()] == [0, 0]
    ledger = Ledger.open(path, OURS)
    assert ledger.verify() == []
    counts = [entry.n_frames for entry in ledger.entries]
    assert sorted(counts) == sorted([*range(15), *range(15)])


@posix
def test_killed_writer_leaves_a_ledger_that_verifies(path: Path) -> None:
    for delay in (0.003, 0.01, 0.03):
        with writer(path, 10**6) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            time.sleep(delay)
            os.kill(other.pid, signal.SIGKILL)
        ledger = Ledger.open(path, OURS)
        ledger.verify()
        ledger.append("learned", digest(1))
    assert Ledger.open(path, OURS).verify() == []


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="folder that you may write to"):
        Ledger.open(tmp_path / "none" / "den.ledger", OURS).append("created", digest(1))


def test_a_thousand_steps_verify_in_well_under_a_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    write(path, 1000)
    took = []
    for _ in range(3):  # the best of three: other work on the machine makes every single one slower
        began = time.process_time()
        assert Ledger.open(path, OURS).verify(at_least=1000) == []
        took.append(time.process_time() - began)
    assert min(took) < 1.0
