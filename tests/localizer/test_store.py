"""How states are kept: whole, by one writer, as the ledger says; altered and old ones are refused."""

from __future__ import annotations

import errno
import os
import shutil
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.kills import start_child
from tests.helpers.localizers import phase
from tests.helpers.states import (
    ARRAY,
    Kit,
    contents,
    edit,
    ledger_says,
    opened,
    read,
    settle,
    wave,
    write_wave,
)
from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import (
    FileError,
    LedgerError,
    LockedError,
    MissingExtraError,
    RolledBackError,
    SealError,
    TytoError,
    TytoWarning,
    UntrustedSignerError,
)
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.storage.age import seal_bytes
from tytoalba.storage.keys import (
    add_default_recipients,
    identity_path,
    make_identity,
    make_key_folder,
    recipients_path,
)
from tytoalba.storage.ledger import Ledger, keyed_id, ledger_path
from tytoalba.storage.remembered import remembered_path
from tytoalba.storage.sealed import read_secret, seal_file
from tytoalba.storage.signatures import SigningKey, TrustStore, find_signing_key, sign_file, signature_path

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks, and limits of POSIX")


@pytest.fixture
def path(kit: Kit) -> Path:
    """The plain state of the kit."""
    return kit.folder / "k.tyto"


def plain(path: Path) -> bytes:
    return read_secret(path, keys_at_hand())


def refused(path: Path, error: type[TytoError] = TytoError) -> str:
    """A state that neither reads nor changes, for the same reason; nothing is touched."""
    before, said = contents(path.parent), []
    attempts: list[Callable[[], object]] = [
        lambda: read(path),
        lambda: ExitStack().enter_context(edit(path)),
    ]
    for attempt in attempts:
        with pytest.raises(error) as caught:
            attempt()
        said.append(str(caught.value))
    assert contents(path.parent) == before
    assert said[0].replace(str(path), path.name) == said[1].replace(str(path), path.name)
    return said[0]


def flipped(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 4
    path.write_bytes(data)


# ---- sealed and plain ----


def test_sealed_and_plain_hold_the_same_bytes(kit: Kit) -> None:
    sealed, state = kit.folder / "s.age", kit.folder / "k.tyto"
    assert sealed.read_bytes().startswith(b"age-encryption.org/")
    assert plain(sealed) == state.read_bytes()
    for path in (sealed, state):
        kit.add(path, 2)
        assert ledger_says(path) == (["created", *["merged"] * 3], "verified")
        assert path.stat().st_mode & 0o777 == 0o600
    assert plain(sealed) == state.read_bytes()
    assert sealed.read_bytes().startswith(b"age-encryption.org/")
    sound = wave(55.0, 0.4)
    assert read(sealed).locate(sound) == read(state).locate(sound)


def test_a_block_that_changes_nothing_or_fails_writes_nothing(kit: Kit) -> None:
    before = contents(kit.folder)
    with edit(kit.folder / "k.tyto"):
        pass

    def fail() -> None:
        with edit(kit.folder / "k.tyto") as localizer:
            localizer.merge(kit.lessons[2])
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert contents(kit.folder) == before


def test_a_link_is_the_state_that_it_points_to(kit: Kit) -> None:
    link = kit.folder / "elsewhere.tyto"
    link.symlink_to(kit.folder / "k.tyto")
    before = (kit.folder / "k.tyto").read_bytes()
    kit.add(link, 2)
    assert link.is_symlink()
    assert (kit.folder / "k.tyto").read_bytes() != before
    assert not ledger_path(link).exists()
    assert read(link).n_frames == read(kit.folder / "k.tyto").n_frames
    assert ledger_says(link) == ledger_says(kit.folder / "k.tyto")
    new = kit.folder / "new.tyto"
    new.symlink_to(kit.folder / "nowhere.tyto")
    with pytest.raises(FileError, match=r"new\.tyto is there already"):
        store.create(new, kit.start())
    assert not (kit.folder / "nowhere.tyto").exists()


def test_new_states_are_never_written_over_old_ones(kit: Kit) -> None:
    before = contents(kit.folder)
    with pytest.raises(FileError, match=r"k\.tyto is there already .* choose another name"):
        store.create(kit.folder / "k.tyto", kit.start())
    (kit.folder / "k.tyto").rename(kit.folder / "moved")
    with pytest.raises(FileError, match=r"k\.tyto\.ledger is there already"):
        store.create(kit.folder / "k.tyto", kit.start())
    (kit.folder / "moved").rename(kit.folder / "k.tyto")
    assert contents(kit.folder) == before


def test_a_new_state_has_a_budget_for_releases(kit: Kit) -> None:
    assert Ledger.open(ledger_path(kit.folder / "k.tyto")).entries[0].about == {"budget": 10.0}
    store.create(kit.folder / "n.tyto", kit.start(), budget=3)
    assert Ledger.open(ledger_path(kit.folder / "n.tyto")).entries[0].about == {"budget": 3.0}
    for wrong in (-1, float("nan"), float("inf"), "10"):
        with pytest.raises(TytoError, match="a budget is an epsilon from 0 to 1000"):
            store.create(kit.folder / "o.tyto", kit.start(), budget=wrong)  # type: ignore[arg-type]
    assert not (kit.folder / "o.tyto").exists()


def test_what_a_killed_new_left_does_not_stand_in_the_way(kit: Kit) -> None:
    path = kit.folder / "n.tyto"
    Ledger.open(ledger_path(path), find_signing_key()).append("created", "1" * 64)
    store.create(path, kit.start(), budget=2.0)
    kit.add(path, 0)
    assert ledger_says(path) == (["created", "recovered", "created", "merged"], "verified")
    assert Ledger.open(ledger_path(path)).budget == 2.0
    torn = kit.folder / "t.tyto"
    ledger_path(torn).write_bytes(ledger_path(path).read_bytes()[:50])
    store.create(torn, kit.start())
    assert ledger_says(torn) == (["created"], "verified")


@pytest.mark.parametrize("sealed", [False, True])
def test_an_interruption_after_the_state_was_written_keeps_both(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    write = store._write

    def interrupted(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    path, new = (kit.folder / name for name in (("s.age", "n.age") if sealed else ("k.tyto", "n.tyto")))
    monkeypatch.setattr(store, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kit.add(path, 2)
    with pytest.raises(KeyboardInterrupt):
        store.create(new, kit.start(), sealed=sealed)
    monkeypatch.undo()
    settle(monkeypatch, kit.folder)
    assert ledger_says(path) == (["created", *["merged"] * 3], "verified")
    assert ledger_says(new) == (["created"], "verified")


# ---- what the ledger says is what was done ----


def steps_of(path: Path) -> list[tuple[str, int]]:
    rows, verdict = opened(path).steps()
    assert verdict == "verified"
    return [(row["what"], row["n_frames"]) for row in rows]


def test_teaching_ten_frames_is_recorded_as_that(kit: Kit) -> None:
    """As the refusal of `Localizer.save` says it: nothing but the localizer is asked for."""
    store_of = opened(kit.folder / "k.tyto")
    with pytest.raises(TytoError, match=r"with open_store\(path\)\.edit\(\) as localizer"):
        store_of.localizer.save(store_of.path)
    sound, before = wave(200.0, 1.0, 9), store_of.path.read_bytes()
    with store_of.edit() as localizer:
        change = localizer.teach(sound, 200.0)
    assert (change.what, change.n_frames, len(change.lessons)) == ("learned", 10, 1)
    assert steps_of(store_of.path)[-1] == ("learned", 10)
    assert store_of.localizer.n_frames == read(store_of.path).n_frames
    with store_of.edit() as localizer:
        assert localizer.forget(sound, 200.0).what == "forgot"
    assert steps_of(store_of.path)[-2:] == [("learned", 10), ("forgot", 10)]
    assert store_of.path.read_bytes() == before


@pytest.mark.parametrize("name", ["k.tyto", "s.age"])
def test_changes_of_one_kind_are_one_step_and_others_steps_of_their_own(kit: Kit, name: str) -> None:
    path, second, third = kit.folder / name, *kit.lessons[1:]
    n, sounds = second.n_frames, [wave(200.0, 0.4, 8), wave(300.0, 0.4, 9)]
    start = steps_of(path)
    with edit(path) as localizer:
        ids = [localizer.teach(sound, 200.0).lessons[0] for sound in sounds]
        localizer.forget(wave(55.0, 0.4, 1), 55.0)
        localizer.merge(third)
        localizer.merge(second)
    assert steps_of(path) == [*start, ("learned", 2 * n), ("forgot", n), ("merged", 2 * n)]
    entry = Ledger.open(ledger_path(path)).entries[len(start)]
    assert entry.id == keyed_id(find_signing_key(), "".join(ids).encode())
    assert read(path).n_frames == 5 * n


@pytest.mark.parametrize("name", ["k.tyto", "s.age"])
def test_a_disk_that_fails_between_two_steps_keeps_the_first(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, write, written = kit.folder / name, store._write, list[bytes]()

    def failing(*arguments: Any) -> bytes:
        if written:
            raise OSError(errno.ENOSPC, "full")
        written.append(write(*arguments))
        return written[0]

    monkeypatch.setattr(store, "_write", failing)

    def change() -> None:
        with edit(path) as localizer:
            localizer.merge(kit.lessons[2])
            localizer.forget(wave(15.0, 0.4, 0), 15.0)

    with pytest.raises(OSError, match="full"):
        change()
    monkeypatch.undo()
    settle(monkeypatch, kit.folder)
    assert path.read_bytes() == written[0]
    assert ledger_says(path) == (["created", *["merged"] * 3, "forgot", "recovered"], "verified")


OTHERWISE: dict[str, dict[str, Any]] = {
    "another kind": {"what": "forgot"},
    "fewer frames": {"n_frames": 1},
    "other lessons": {"lessons": ("0" * 32,)},
}
"""Changes that are recorded otherwise."""


def lie(localizer: Localizer, how: str) -> None:
    """Change a state in a way that is not what its localizer records."""
    change, state = Change("learned", 4, ("0" * 32,)), localizer.state
    record = localizer.on_change
    assert record
    if how == "nothing happened":
        record(change, state)
    elif how == "past the localizer":
        state.teach(phase(0))
    elif how == "unrecorded":
        localizer.on_change = None
        localizer.teach(wave(1.0), 1.0)
    elif how in OTHERWISE:
        localizer.on_change = lambda change, state: record(replace(change, **OTHERWISE[how]), state)
        localizer.teach(wave(1.0), 1.0)
    else:
        localizer.teach(wave(1.0), 1.0)
        if how == "another owner":
            localizer.state.owner = ""
        elif how == "sums":
            localizer.state.learner.add(localizer.state.learner.lesson(phase(0)))
        else:
            localizer.state.lessons["0" * 32] = 4


LIES = ["nothing happened", "past the localizer", "unrecorded", "another owner", "sums", "lessons"]


@pytest.mark.parametrize("how", [*LIES, *OTHERWISE])
def test_nothing_is_written_of_what_is_not_what_happened(kit: Kit, how: str) -> None:
    before = contents(kit.folder)
    with (
        pytest.raises(LedgerError, match="is not what its localizer recorded, so nothing was written"),
        edit(kit.folder / "k.tyto") as localizer,
    ):
        lie(localizer, how)
    assert contents(kit.folder) == before


# ---- altered, swapped, old ----


@pytest.mark.parametrize("name", ["k.tyto", "s.age"])
def test_every_changed_byte_and_every_cut_is_noticed(kit: Kit, name: str) -> None:
    path = kit.folder / name
    for victim in (path, ledger_path(path)):
        whole = victim.read_bytes()
        for place in (0.0, 0.001, 0.03, 0.2, 0.41, 0.6, 0.78, 0.9, 0.999, 1.0):
            flipped(victim, place)
            refused(path)
            victim.write_bytes(whole)
        for size in (0, 7, len(whole) // 2, len(whole) - 1):
            victim.write_bytes(whole[:size])
            refused(path)
        victim.write_bytes(whole)
    read(path)


def test_lines_of_a_ledger_cannot_be_dropped_or_moved(path: Path) -> None:
    first, second, third = ledger_path(path).read_bytes().splitlines(keepends=True)
    for lines, why in (
        ([first, third], "does not follow"),
        ([first, third, second], "does not follow"),
        ([second, third], "does not follow"),
        ([first, second], r"is from before step 3, which merged 3 frames: it was put back"),
        ([first, second, third, third], "does not follow"),
    ):
        ledger_path(path).write_bytes(b"".join(lines))
        message = refused(path, LedgerError)
        assert why in message
        assert "put back" in message
    remembered_path().unlink()
    ledger_path(path).write_bytes(first + second)
    with pytest.warns(TytoWarning, match=r"is missing: whether k\.tyto was put back cannot be told"):
        assert "the ledger was rolled back" in refused(path, LedgerError)


def test_another_valid_state_or_ledger_of_the_same_owner_is_refused(kit: Kit) -> None:
    path, other = kit.folder / "k.tyto", kit.folder / "other.tyto"
    store.create(other, kit.start())
    kit.add(other, 2)
    mine = path.read_bytes()
    path.write_bytes(other.read_bytes())
    assert "is not what" in refused(path, LedgerError)
    path.write_bytes(mine)
    ledger_path(path).write_bytes(ledger_path(other).read_bytes())
    assert "had another ledger when it was last seen" in refused(path, RolledBackError)


def test_an_old_copy_is_refused(kit: Kit, path: Path) -> None:
    old = path.read_bytes()
    kit.add(path, 2)
    with edit(path) as localizer:
        localizer.forget(wave(95.0, 0.4, 2), 95.0)
    assert path.read_bytes() == old  # forgotten to the byte: this is no rollback
    kit.add(path, 2)
    path.write_bytes(kit.start().owned_by(read(path).owner).to_bytes())
    message = refused(path, RolledBackError)
    assert "older" in message
    assert "before step 5, which forgot 3 frames: it was put back" in message
    assert "`tyto restore k.tyto`" in message


def test_a_missing_ledger_is_missed(kit: Kit, path: Path) -> None:
    ledger_path(path).unlink()
    assert "k.tyto.ledger is not beside it: put it back" in refused(path, FileError)
    sealed = kit.folder / "k.tyto.age"  # as after `tyto seal --remove`
    ledger_path(path).write_bytes(b"")
    path.rename(sealed)
    assert "k.tyto.age.ledger is not beside it: put it back (is it k.tyto.ledger?)" in refused(sealed)


def test_a_state_without_an_owner_cannot_take_the_place_of_one_with_a_ledger(path: Path) -> None:
    for impostor in (read(path).owned_by(""), Localizer(read(path).model)):
        path.write_bytes(impostor.to_bytes())
        assert "is not what" in refused(path, LedgerError)


def test_a_state_and_ledger_of_a_stranger_are_refused_until_he_is_trusted(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kit.folder / "theirs.tyto"
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger"))
        store.create(path, kit.start())
        stranger = find_signing_key().fingerprint
    message = refused(path, UntrustedSignerError)
    assert f"`tyto trust {stranger}`" in message
    TrustStore().add(stranger, "no stranger")
    kit.add(path, 0)
    assert ledger_says(path) == (["created", "merged"], "verified")


def test_a_key_of_ones_own_need_not_be_in_the_list(kit: Kit) -> None:
    TrustStore().remove(find_signing_key().fingerprint)
    kit.add(kit.folder / "k.tyto", 2)
    assert store.incoming(kit.folder / "s.age", keys_at_hand()).n_frames


# ---- from elsewhere, and for others ----


def test_what_comes_from_elsewhere_must_be_signed_and_as_it_was(kit: Kit, path: Path) -> None:
    assert store.incoming(path).n_frames
    whole = path.read_bytes()
    ledger_path(path).unlink()
    for unsigned in (False, True):
        with pytest.raises(FileError, match="was a state with a ledger when it was last seen"):
            store.incoming(path, unsigned=unsigned)
    path = path.rename(kit.folder / "other.tyto")
    with pytest.raises(FileError, match=r"nobody signed .*tyto sign other\.tyto.*--unsigned .* as it is"):
        store.incoming(path)
    assert store.incoming(path, unsigned=True).n_frames
    sign_file(path, find_signing_key(), "state")
    assert store.incoming(path).n_frames
    signature = signature_path(path).read_bytes()
    signature_path(path).write_bytes(signature[:-20])
    with pytest.raises(TytoError, match="damaged"):
        store.incoming(path)
    signature_path(path).write_bytes(signature)
    path.write_bytes(kit.start().to_bytes())
    with pytest.raises(TytoError, match=r"is not what was signed|was cut short"):
        store.incoming(path)
    path.write_bytes(whole)
    sign_file(path, find_signing_key(), "model")
    with pytest.raises(TytoError, match="as a model"):
        store.incoming(path)


def test_an_export_replaces_an_older_model_and_nothing_else(kit: Kit) -> None:
    localizer, model = read(kit.folder / "k.tyto"), kit.folder / "m.model"
    for _ in range(2):
        assert store.export_exact(localizer, model, plain=True).signature == signature_path(model)
    assert model.stat().st_mode & 0o777 == 0o600
    (kit.folder / "notes.txt").write_text("mine")
    before = contents(kit.folder)
    for taken in ("k.tyto", "notes.txt", "home"):
        with pytest.raises(FileError, match="is not a model and stays as it is"):
            store.export_exact(localizer, kit.folder / taken, plain=True)
    assert contents(kit.folder) == before


def test_a_model_with_a_signature_is_as_it_was_signed(kit: Kit) -> None:
    localizer, model = read(kit.folder / "k.tyto"), kit.folder / "m.model"
    store.export_exact(localizer, model, plain=True)
    assert read(model).n_frames == localizer.n_frames
    other = Localizer(kit.start().model).to_bytes()
    mine = model.read_bytes()
    model.write_bytes(other)
    with pytest.raises(TytoError, match=r"m\.model is not what was signed|cut short"):
        read(model)
    model.write_bytes(mine)
    sign_file(model, SigningKey.generate(), "model")
    with pytest.raises(UntrustedSignerError, match="tyto trust tyto-ed25519:"):
        read(model)


# ---- keys ----


def test_without_a_key_nothing_is_sealed_or_opened(kit: Kit) -> None:
    identity_path().unlink()
    before = contents(kit.folder)
    with pytest.raises(SealError, match=r"no key was given: pass keys=\.\.\., or .* --identity FILE"):
        read(kit.folder / "s.age")
    with pytest.raises(SealError, match="no key was given"):
        kit.add(kit.folder / "s.age", 2)
    recipients_path().unlink()
    with pytest.raises(TytoError, match="make one with `tyto keygen`"):
        store.create(kit.folder / "n.age", kit.start(), sealed=True)
    before.pop("home/tytoalba/keys/recipients.txt")
    assert contents(kit.folder) == before


def test_nobody_is_locked_out_of_a_state_by_changing_it(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives import serialization as to
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(to.Encoding.OpenSSH, to.PublicFormat.OpenSSH).decode()
    secret = key.private_bytes(to.Encoding.PEM, to.PrivateFormat.OpenSSH, to.NoEncryption())
    ssh, path = kit.folder / "id_ed25519", kit.folder / "s.age"
    ssh.write_bytes(secret)
    ssh.chmod(0o600)
    path.write_bytes(seal_bytes(plain(path), [public]))
    monkeypatch.setenv("TYTO_IDENTITY", str(ssh))
    before = contents(kit.folder)
    with pytest.raises(TytoError, match=r"add its public key to recipients\.txt"):
        kit.add(path, 2)
    assert contents(kit.folder) == before
    with recipients_path().open("a") as file:
        file.write(public + "\n")
    kit.add(path, 2)
    assert read(path).n_frames > kit.lessons[2].n_frames


def test_without_the_extra_states_have_no_ledger_and_no_seal(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "has_extra", lambda: False)
    path = kit.folder / "bare.tyto"
    assert store.create(path, kit.start()).owner == ""
    kit.add(path, 0)
    assert not ledger_path(path).exists()
    assert opened(path).steps() == ([], "there is no ledger")
    with pytest.warns(TytoWarning, match="nobody looked at it: that needs pip install"):
        steps, verdict = opened(kit.folder / "k.tyto").steps()
    assert (len(steps), verdict) == (3, "not verified: that needs the extra 'privacy'")
    before = contents(kit.folder)
    with pytest.raises(MissingExtraError, match=r"pip install 'tytoalba\[privacy\]'"):
        kit.add(kit.folder / "k.tyto", 2)
    with pytest.raises(MissingExtraError, match="seals need"):
        store.create(kit.folder / "n.age", kit.start(), sealed=True)
    assert contents(kit.folder) == before
    assert store.export_exact(read(path), kit.folder / "m.model", plain=True).signature is None


# ---- full and read-only disks ----


WRITING = os.O_CREAT | getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0)


class Disk:
    """Fails at one of the operations that write: the first, the second, ..."""

    def __init__(self, patch: pytest.MonkeyPatch, code: int) -> None:
        self.code, self.fails_at, self.n_done = code, 0, 0
        for name in ("open", "fsync", "replace", "link"):
            patch.setattr(os, name, self._watched(getattr(os, name), name))

    def _watched(self, act: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            if name != "open" or arguments[1] & WRITING:
                self.n_done += 1
                if self.n_done == self.fails_at:
                    raise OSError(self.code, os.strerror(self.code), str(arguments[0]))
            return act(*arguments, **options)

        return watched


@posix
@pytest.mark.parametrize(("name", "code"), [("k.tyto", errno.ENOSPC), ("s.age", errno.EROFS)])
def test_a_disk_that_fails_at_any_write_leaves_state_and_ledger(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    path = kit.folder / name
    old, said = {file: file.read_bytes() for file in (path, ledger_path(path), remembered_path())}, []
    for number in range(1, 60):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", TytoWarning)  # nothing can be remembered there
            disk = Disk(patch, code)
            disk.fails_at = number
            try:
                kit.add(path, 2)
            except (OSError, LockedError) as error:
                said.append(str(error))
            else:
                if disk.n_done < number:
                    break
                for file, data in old.items():  # all went well, but what was to be remembered
                    file.write_bytes(data)
        assert path.read_bytes() == old[path]
        steps, verdict = ledger_says(path)
        assert verdict.startswith("verified")
        assert steps[:3] == ["created", "merged", "merged"]
        assert not list(kit.folder.glob(".*"))
    assert len(said) >= 5  # two locks, the ledger, the state, its move
    assert all(os.strerror(code) in message for message in said)
    assert ledger_says(path)[1] == "verified"
    assert read(path).n_frames == sum(lesson.n_frames for lesson in kit.lessons)


@posix
@pytest.mark.parametrize("n_bytes", [0, 1500, 200_000])
def test_a_file_that_cannot_grow_leaves_state_and_ledger(kit: Kit, path: Path, n_bytes: int) -> None:
    old = contents(kit.folder)

    def limited() -> None:
        import resource
        import signal

        warnings.simplefilter("ignore")  # nothing can be remembered

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        try:
            kit.add(path, 2)
        except OSError as error:
            os._exit(3 if error.errno in (errno.EFBIG, None) else 4)

    assert os.waitstatus_to_exitcode(os.waitpid(start_child(limited), 0)[1]) == 3
    new = contents(kit.folder)
    assert new["k.tyto"] == old["k.tyto"]
    assert new.keys() == old.keys()
    assert ledger_says(path)[1].startswith("verified")
    kit.add(path, 2)
    assert ledger_says(path)[1] == "verified"


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_named(kit: Kit) -> None:
    folder = kit.folder / "closed"
    folder.mkdir()
    for file in (kit.folder / "k.tyto", ledger_path(kit.folder / "k.tyto")):
        shutil.copy(file, folder)
    folder.chmod(0o500)
    try:
        with pytest.raises(LockedError, match="a folder that you may write to"):
            kit.add(folder / "k.tyto", 2)
        assert read(folder / "k.tyto").n_frames
    finally:
        folder.chmod(0o700)


# ---- several at once ----


@posix
@pytest.mark.parametrize("name", ["two.tyto", "two.age"])
def test_two_processes_at_once_leave_both_lessons_or_one(kit: Kit, name: str) -> None:
    path, lessons = kit.folder / name, kit.lessons[:2]
    store.create(path, kit.start(), sealed=path.suffix == ".age")
    owner = read(path).owner
    begin = time.time() + 0.1

    def teach(number: int) -> Callable[[], None]:
        def do() -> None:
            time.sleep(max(0.0, begin - time.time()))
            try:
                kit.add(path, number)
            except LockedError as error:
                os._exit(7 if "another tyto is writing" in str(error) else 1)

        return do

    children = [start_child(teach(number)) for number in (0, 1)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert set(codes) <= {0, 7}
    assert 0 in codes
    wanted = kit.start().owned_by(owner)
    for code, lesson in zip(codes, lessons, strict=True):
        if code == 0:
            wanted.merge(lesson)
    assert plain(path) == wanted.to_bytes()
    assert ledger_says(path) == (["created", *["merged"] * codes.count(0)], "verified")


@posix
def test_who_reads_while_another_writes_gets_a_whole_state(kit: Kit) -> None:
    path, lesson = kit.folder / "k.tyto", kit.lessons[2]
    fewer = read(path).n_frames

    def write() -> None:
        for _ in range(5):
            kit.add(path, 2)
            with edit(path) as localizer:
                localizer.forget(wave(95.0, 0.4, 2), 95.0)

    child, n_reads = start_child(write), 0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        assert read(path).n_frames in (fewer, fewer + lesson.n_frames)
        n_reads += 1
    assert n_reads > 3
    assert len(ledger_says(path)[0]) == 13


def test_who_reads_slowly_reads_again(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tyto does two steps between a reading of the state and one of the ledger."""
    path, contents_of, n_reads = kit.folder / "k.tyto", store._contents, 0

    def slowly(*arguments: Any) -> tuple[bytes, bytes]:
        nonlocal n_reads
        found, n_reads = contents_of(*arguments), n_reads + 1
        if n_reads == 1:
            kit.add(path, 2)
            with edit(path) as localizer:
                localizer.forget(wave(15.0, 0.4, 0), 15.0)
        return found

    monkeypatch.setattr(store, "_contents", slowly)
    assert read(path).to_bytes() == path.read_bytes()


# ---- what a seal costs ----


@pytest.mark.slow
def test_sealed_work_takes_hardly_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Teaching and locating half a minute of sound, 2000 features; the bound is wide for busy machines."""
    settle(monkeypatch, tmp_path)
    make_key_folder()
    add_default_recipients([public := make_identity(identity_path())])
    sound = write_wave(tmp_path / "a.wav", 135.0, 30.0)
    seal_file(sound, tmp_path / "a.wav.age", [public])
    localizer = Localizer.new(ARRAY, n_features=2000, seed=1)
    for name, sealed in (("k.tyto", False), ("s.age", True)):
        store.create(tmp_path / name, localizer, sealed=sealed)
    before = {file: file.read_bytes() for file in tmp_path.glob("[ks].*")}

    def work(state: str, recording: str) -> tuple[float, float]:
        for file, data in before.items():
            file.write_bytes(data)
        started, busy = time.perf_counter(), time.process_time()
        with edit(tmp_path / state) as localizer:
            localizer.teach(tmp_path / recording, 135.0, keys=keys_at_hand())
        read(tmp_path / state).locate(tmp_path / recording, keys=keys_at_hand())
        return time.perf_counter() - started, time.process_time() - busy

    with threadpool_limits(1):
        pairs = [(work("k.tyto", "a.wav"), work("s.age", "a.wav.age")) for _ in range(9)]
    ratio, effort = (statistics.median(sealed[k] / bare[k] for bare, sealed in pairs) for k in (0, 1))
    print(f"sealed against plain: {ratio:.3f} in seconds, {effort:.3f} in seconds of the processor")
    assert ratio < 1.25
