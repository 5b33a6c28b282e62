"""Whatever is put back, removed or swapped is noticed; what did not finish is taken back by a line."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.helpers.states import Kit, contents, edit, ledger_says, read, wave
from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import (
    FileError,
    LedgerError,
    RolledBackError,
    TytoError,
    TytoWarning,
    UnfinishedStepError,
)
from tytoalba.localizer import store
from tytoalba.localizer.history import History, accept, acceptance
from tytoalba.localizer.localizer import Localizer
from tytoalba.storage import ledger as ledger_module
from tytoalba.storage.age import seal_bytes
from tytoalba.storage.keys import default_recipients
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import recall, remembered_path
from tytoalba.storage.signatures import SigningKey, find_signing_key, signing_key_path

pytest.importorskip("cryptography")
BOTH = pytest.mark.parametrize("name", ["k.tyto", "s.age"])


def copied(*files: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in files}


def put_back(files: dict[Path, bytes]) -> None:
    for file, data in files.items():
        file.write_bytes(data)


def forget(path: Path) -> None:
    with edit(path) as localizer:
        localizer.forget(wave(95.0, 0.4, 2), 95.0)


def refused(kit: Kit, path: Path, match: str, error: type[TytoError] = RolledBackError) -> None:
    """A state that neither reads, changes nor is merged; nothing is touched."""
    before = contents(kit.folder)
    attempts: list[Callable[[], object]] = [
        lambda: read(path),
        lambda: kit.add(path, 2),
        lambda: store.incoming(path, keys_at_hand()),
        lambda: store.incoming(path, keys_at_hand(), unsigned=True),
        lambda: store.read(path, keys_at_hand(), unsigned=True),
    ]
    for attempt in attempts:
        with pytest.raises(error, match=match):
            attempt()
    assert contents(kit.folder) == before


def restored(path: Path) -> dict[str, object]:
    return store.restore(path, lambda _: True, keys_at_hand())


# ---- forgetting cannot be undone ----


@BOTH
def test_a_state_from_before_it_forgot_is_refused_and_the_ledger_stays(kit: Kit, name: str) -> None:
    """The attack: teach, forget, put the old state back, teach again."""
    path = kit.folder / name
    kit.add(path, 2)
    old = copied(path)
    forget(path)
    put_back(old)
    lines = ledger_path(path).read_bytes()
    refused(kit, path, rf"from before step 5, which forgot 3 frames.*`tyto restore {name}`")
    assert ledger_path(path).read_bytes() == lines
    assert [step["what"] for step in steps(path)][-1] == "forgot"


def steps(path: Path) -> list[dict[str, object]]:
    return [{**entry.about, "what": entry.what} for entry in Ledger.open(ledger_path(path)).entries]


@BOTH
def test_state_and_ledger_put_back_together_are_refused(kit: Kit, name: str) -> None:
    path = kit.folder / name
    kit.add(path, 2)
    old = copied(path, ledger_path(path))
    forget(path)
    put_back(old)
    refused(kit, path, "is from before step 5, which forgot 3 frames: it was put back, with the state or")


def test_a_ledger_that_was_put_back_and_went_on_is_refused(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    kit.add(path, 2)
    old = copied(path, ledger_path(path), remembered_path())
    forget(path)
    newest = remembered_path().read_bytes()
    put_back(old)
    with edit(path) as localizer:
        localizer.teach(wave(200.0, 0.4, 7), 200.0)
    remembered_path().write_bytes(newest)
    refused(kit, path, "has another step 5 than when it was last seen")


def test_a_moved_folder_is_the_same_ledger(kit: Kit, tmp_path: Path) -> None:
    path = kit.folder / "k.tyto"
    old = copied(path, ledger_path(path))
    kit.add(path, 2)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in old:
        file.rename(elsewhere / file.name)
    assert read(elsewhere / "k.tyto").n_frames == 9
    put_back({elsewhere / file.name: data for file, data in old.items()})
    refused(kit, elsewhere / "k.tyto", "is from before step 4, which merged 3 frames")


# ---- what was removed or swapped is missed ----


@BOTH
def test_a_deleted_ledger_is_missed(kit: Kit, name: str) -> None:
    path = kit.folder / name
    ledger_path(path).unlink()
    before = contents(kit.folder)
    for attempt in (lambda: read(path), lambda: kit.add(path, 2)):
        with pytest.raises(FileError, match=r"\(it had 3 steps when it was last seen\).*`tyto restore"):
            attempt()
    for unsigned in (False, True):
        with pytest.raises(FileError, match="was a state with a ledger when it was last seen"):
            store.incoming(path, keys_at_hand(), unsigned)
    assert contents(kit.folder) == before


@BOTH
@pytest.mark.parametrize("kind", ["state", "model"])
def test_a_state_without_owner_and_ledger_cannot_take_the_place_of_one(
    kit: Kit, name: str, kind: str
) -> None:
    """Anybody can seal for a public key: what a sealed file says of its owner is not enough."""
    path = kit.folder / name
    forged = read(path).owned_by("") if kind == "state" else Localizer(read(path).model)
    data = forged.to_bytes()
    path.write_bytes(data if name == "k.tyto" else seal_bytes(data, default_recipients()))
    ledger_path(path).unlink()
    for unsigned in (False, True):
        with pytest.raises(FileError, match=r"is not beside it|was a state with a ledger"):
            store.read(path, keys_at_hand(), unsigned)
        with (
            pytest.raises(TytoError, match=r"is not beside it|was a state with a ledger"),
            store.edit(path, keys_at_hand(), unsigned),
        ):
            pass


def test_another_ledger_at_the_same_path_is_noticed(kit: Kit) -> None:
    path, other = kit.folder / "k.tyto", kit.folder / "o.tyto"
    store.create(other, kit.start())
    kit.add(other, 2)
    other.replace(path)
    ledger_path(other).replace(ledger_path(path))
    refused(kit, path, "had another ledger when it was last seen")
    assert restored(path)["restored"] == "state"
    kit.add(path, 0)
    assert ledger_says(path) == (["created", "merged", "restored", "merged"], "verified")


def test_states_without_owner_need_unsigned_and_then_work(kit: Kit) -> None:
    path = kit.folder / "mine.tyto"
    kit.start().save(path)
    for attempt in (lambda: read(path), lambda: kit.add(path, 0)):
        with pytest.raises(
            FileError, match=r"nobody signed .*--unsigned \(unsigned=True\) takes it as it is"
        ):
            attempt()
    found = store.open_store(path, unsigned=True)
    with found.edit() as localizer:
        localizer.merge(kit.lessons[0])
    assert store.read(path, unsigned=True).n_frames == 3
    assert not ledger_path(path).exists()


def test_a_copy_is_changed_only_as_a_state_of_its_own(kit: Kit) -> None:
    path, copy = kit.folder / "k.tyto", kit.folder / "copy.tyto"
    shutil.copy(path, copy)
    shutil.copy(ledger_path(path), ledger_path(copy))
    assert read(copy).n_frames == 6
    with pytest.raises(LedgerError, match=r"copy\.tyto is a copy of .*k\.tyto, ledger and all"):
        kit.add(copy, 2)
    restored(copy)
    kit.add(copy, 2)
    forget(path) if read(path).n_frames > 6 else kit.add(path, 2)
    assert ledger_says(path)[1] == ledger_says(copy)[1] == "verified"
    assert steps(copy)[3] == {"what": "restored", "copy": 1, "step": 3, "spent": -1}
    assert Ledger.open(ledger_path(path)).identity != Ledger.open(ledger_path(copy)).identity


def test_who_reads_a_copy_can_still_change_the_original(kit: Kit) -> None:
    path, copy = kit.folder / "k.tyto", kit.folder / "backup" / "k.tyto"
    copy.parent.mkdir()
    shutil.copy(path, copy)
    shutil.copy(ledger_path(path), ledger_path(copy))
    assert read(copy).n_frames == 6
    kit.add(path, 2)
    assert ledger_says(path)[1] == "verified"
    refused(kit, copy, "is from before step 4")


# ---- accepted on purpose ----


def test_restore_says_what_is_undone_asks_and_writes_a_line(kit: Kit) -> None:
    path, said = kit.folder / "k.tyto", list[str]()
    kit.add(path, 2)
    old = copied(path)
    forget(path)
    put_back(old)
    before = contents(kit.folder)

    def disagrees(words: str) -> bool:
        said.append(words)
        return False

    with pytest.raises(TytoError, match="nothing was changed"):
        store.restore(path, disagrees, keys_at_hand())
    assert contents(kit.folder) == before
    assert said == [
        "k.tyto is the state of step 4 of 5; it is from before step 5, which forgot 3 frames; "
        "3 frames that were forgotten since would be there again"
    ]
    facts = restored(path)
    assert facts["sequence"] == 6
    assert steps(path)[4:] == [
        {"what": "forgot"},
        {"what": "restored", "step": 4, "undone": 1, "lost": 0, "forgotten": 3},
    ]
    forget(path)
    assert ledger_says(path)[1] == "verified"
    with pytest.raises(TytoError, match="is what its ledger says: there is nothing to restore"):
        restored(path)


def test_restore_of_both_remembers_the_new_head(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    old = copied(path, ledger_path(path))
    kit.add(path, 2)
    forget(path)
    newest = copied(path, ledger_path(path))
    put_back(old)
    facts = restored(path)
    assert (facts["lost"], facts["forgotten"]) == (2, 3)
    kit.add(path, 2)
    put_back(newest)  # which is another branch now
    refused(kit, path, "than when it was last seen|is from before")


def test_restore_without_a_ledger_begins_one_and_spends_the_budget(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    ledger_path(path).unlink()
    assert restored(path)["lost"] == 3
    kit.add(path, 2)
    assert ledger_says(path) == (["restored", "merged"], "verified")
    assert steps(path)[0]["spent"] == -1


def test_restore_of_exports_that_were_lost_spends_the_budget(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    old = copied(path, ledger_path(path))
    history = History.open(path, read(path).owner, recall(), find_signing_key())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    history.begin("exported", digest, about={"noise": 1.0})
    history.finish(digest)
    put_back(old)
    refused(kit, path, "is from before step 4, which exported a model")
    assert restored(path)["spent"] == -1


def test_a_state_in_no_line_is_called_that(kit: Kit) -> None:
    path, said = kit.folder / "k.tyto", list[str]()
    path.write_bytes(kit.start().owned_by(read(path).owner).to_bytes()[:-1] + b"\0")

    def agrees(words: str) -> bool:
        said.append(words)
        return True

    with pytest.raises(TytoError):  # damaged: not even read
        store.restore(path, agrees, keys_at_hand())
    lesson = kit.lessons[2].owned_by(find_signing_key().fingerprint)
    path.write_bytes(lesson.to_bytes())
    store.restore(path, agrees, keys_at_hand())
    assert said == ["k.tyto is in no line of its ledger: nobody can say what it is"]


# ---- a full ledger ----


def test_a_full_ledger_forgets_and_its_archive_cannot_take_its_place(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kit.folder / "k.tyto"
    monkeypatch.setattr(ledger_module, "FULL", 2500)
    kit.add(path, 2)
    kept = copied(path)
    forget(path)
    kit.add(path, 2)
    assert steps(path)[0]["what"] == "summary"
    assert read(path).n_frames == 9
    assert ledger_says(path)[1] == "verified"
    forget(path)
    kit.add(path, 2)
    archive = ledger_path(path).with_name("k.tyto.ledger.1")
    put_back({ledger_path(path): archive.read_bytes(), **kept})
    refused(kit, path, "is from before step .*, which")
    assert restored(path)["restored"] == "state"


# ---- nothing remembered ----


def test_without_memory_a_forgotten_step_is_done_again_or_asked(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    kit.add(path, 2)
    old = copied(path)
    forget(path)
    put_back(old)
    lines = ledger_path(path).read_bytes()
    remembered_path().unlink()
    with (
        pytest.warns(TytoWarning, match="is missing: whether"),
        pytest.raises(RolledBackError, match="forget the same again, or accept"),
    ):
        read(path)
    with (
        pytest.raises(RolledBackError, match="forget the same again, or accept"),
        edit(path) as localizer,
    ):
        localizer.teach(wave(200.0, 0.4, 7), 200.0)
    assert copied(path) == old
    forget(path)
    assert ledger_path(path).read_bytes() == lines  # the line was there already
    assert ledger_says(path)[1] == "verified"
    kit.add(path, 2)


def test_without_memory_another_step_is_taken_back_by_a_line(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    old = copied(path)
    kit.add(path, 2)
    put_back(old)
    remembered_path().unlink()
    with pytest.warns(TytoWarning, match="is missing: whether"):
        kit.add(path, 2)
    assert ledger_says(path) == (["created", *["merged"] * 3, "recovered", "merged"], "verified")


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_where_nothing_can_be_remembered_work_and_forgetting_go_on(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TYTO_SIGNING_KEY", str(signing_key_path()))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    path = kit.folder / "k.tyto"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with store.edit(path) as localizer:
            localizer.merge(kit.lessons[2])
        with store.edit(path) as localizer:
            localizer.forget(wave(95.0, 0.4, 2), 95.0)
        assert store.read(path).n_frames == 6
    assert len([one for one in said if "cannot be written" in str(one.message)]) == 1


def test_a_forget_that_was_killed_is_taken_back_with_a_warning(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kit.folder / "k.tyto"
    kit.add(path, 2)

    def killed(*_: object) -> None:
        os._exit(9)

    if (child := os.fork()) == 0:
        monkeypatch.setattr(store, "_write", killed)
        forget(path)
    os.waitpid(child, 0)
    assert read(path).n_frames == 9
    with pytest.warns(
        TytoWarning, match=r"step 5, which forgot 3 frames, did not finish: .* forget it again"
    ):
        forget(path)
    assert [step["what"] for step in steps(path)][4:] == ["forgot", "recovered", "forgot"]
    assert ledger_says(path)[1] == "verified"


# ---- any order of all of this ----

KEY = SigningKey.generate()


class Machine(RuleBasedStateMachine):
    """One state that is taught, forgets, crashes and is put back; the rules say what must happen next.

    The state's file is its digest. `newest` is the digest that the last finished step left, and `is_true`
    whether state and ledger are what they should be.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        where = Path(self.folder.name)
        self.path = where / "k.tyto"
        key = where / "key.pem"
        KEY.save(key)
        told = {
            "XDG_DATA_HOME": str(where / "home"),
            "TYTO_SIGNING_KEY": str(key),
            "TYTO_TRUSTED": str(where / "t"),
        }
        self.patched = patch.dict(os.environ, told)
        self.patched.start()
        self.number = 0
        ledger = Ledger.open(ledger_path(self.path), KEY)
        history = History(self.path, ledger, None)
        history.begin("created", self.next_digest(), 0, "ab")
        self.write(self.digest(self.number))
        history.finish(self.state())
        self.kept: list[tuple[bytes, bytes]] = []  # copies of state and ledger, as an attacker keeps them
        self.is_true, self.pending = True, ""
        self.keep()

    def teardown(self) -> None:
        self.patched.stop()
        self.folder.cleanup()

    def digest(self, number: int) -> str:
        return hashlib.sha256(b"state %d" % number).hexdigest()

    def next_digest(self) -> str:
        self.number += 1
        return self.digest(self.number)

    def state(self) -> str:
        return self.path.read_text()

    def write(self, digest: str) -> None:
        self.path.write_text(digest)

    def keep(self) -> None:
        self.kept.append((self.path.read_bytes(), ledger_path(self.path).read_bytes()))

    def history(self) -> History:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TytoWarning)
            return History.to_change(self.path, KEY.fingerprint, self.state(), recall(), KEY)

    @precondition(lambda self: self.is_true)
    @rule(
        what=st.sampled_from(["learned", "forgot", "merged"]),
        crash=st.sampled_from(["", "", "line", "state"]),
    )
    def step(self, what: str, crash: str) -> None:
        """A step, or one that ends after its line, or after its state."""
        history, before = self.history(), self.state()
        history.begin(what, self.next_digest(), 5)
        self.pending = what if crash == "line" else ""
        if crash != "line":
            self.write(self.digest(self.number))
            if crash != "state":
                history.finish(self.state())
                self.keep()
            else:
                read_by_anybody(self)
        else:
            assert self.state() == before

    @precondition(lambda self: self.is_true and not self.pending and len(self.kept) > 1)
    @rule(data=st.data(), part=st.sampled_from(["state", "ledger", "both"]))
    def roll_back(self, data: st.DataObject, part: str) -> None:
        state, lines = self.kept[data.draw(st.integers(0, len(self.kept) - 2))]
        before = (self.path.read_bytes(), ledger_path(self.path).read_bytes())
        if part != "ledger":
            self.path.write_bytes(state)
        if part != "state":
            ledger_path(self.path).write_bytes(lines)
        if (self.path.read_bytes(), ledger_path(self.path).read_bytes()) != before:
            self.is_true = False

    @precondition(lambda self: self.is_true and not self.pending)
    @rule()
    def delete_ledger(self) -> None:
        ledger_path(self.path).unlink()
        self.is_true = False

    @precondition(lambda self: not self.is_true)
    @rule()
    def refuse_then_accept(self) -> None:
        """Nothing that is not true is taken, until it is accepted on purpose; that is a line."""
        with pytest.raises((RolledBackError, LedgerError, FileError)) as caught:
            self.history()
        assert not isinstance(caught.value, UnfinishedStepError)
        found = acceptance(self.path, KEY.fingerprint, self.state(), recall(), KEY)
        assert accept(self.path, self.state(), found).what == "restored"
        self.is_true, self.kept = True, []
        self.keep()

    @precondition(lambda self: self.is_true and not self.pending)
    @rule()
    def lose_memory(self) -> None:
        remembered_path().unlink(missing_ok=True)
        read_by_anybody(self)  # with what is there now, it begins anew

    @invariant()
    def ledger_only_grows(self) -> None:
        """Every line that was ever there is still there, but for what an attacker removed."""
        if self.is_true:
            ledger = Ledger.open(ledger_path(self.path), KEY)
            assert ledger.verify() == []
            if self.pending:
                assert ledger.entries[-1].state != self.state()
            else:
                assert ledger.entries[-1].state == self.state()
            assert ledger_path(self.path).read_bytes().startswith(self.kept[-1][1])


def read_by_anybody(machine: Machine) -> None:
    """Any command that reads the state, and so remembers it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TytoWarning)
        History.open(machine.path, KEY.fingerprint, recall()).check(machine.state())


TestAnyOrder = Machine.TestCase
TestAnyOrder.settings = settings(max_examples=12, stateful_step_count=10, deadline=None)
