"""A signature that is gone is missed, an older one refused, and no clock decides which is newer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.helpers.kills import kill_points
from tests.helpers.seals import posix
from tests.helpers.states import Kit, contents, edit, read
from tytoalba.errors import FileError, SignatureError, TytoError
from tytoalba.localizer import store
from tytoalba.localizer.signed import FIRST, sign
from tytoalba.storage import signatures
from tytoalba.storage.remembered import remembered_path
from tytoalba.storage.signatures import (
    TrustStore,
    find_signing_key,
    read_manifest,
    sign_file,
    signature_path,
    signing_key_path,
)

pytest.importorskip("cryptography")


@pytest.fixture
def model(kit: Kit) -> Path:
    """A signed model."""
    path = kit.folder / "m.model"
    path.write_bytes(read(kit.folder / "k.tyto").model.coarse().to_bytes())
    sign(path, "model")
    return path


def sequence(path: Path) -> int:
    return read_manifest(signature_path(path).read_bytes()).sequence


def test_a_deleted_signature_is_missed(kit: Kit, model: Path) -> None:
    assert read(model).n_frames == 6
    signature_path(model).unlink()
    before = contents(kit.folder)
    for unsigned in (False, True):
        with pytest.raises(
            SignatureError, match=r"was signed by .* m\.model\.sig is not there now: put it back"
        ):
            store.read(model, unsigned=unsigned)
    assert contents(kit.folder) == before
    store.restore(model, lambda words: "lost the ledger or signature" in words)
    with pytest.raises(FileError, match=r"nobody signed .*A file of this name was signed by tyto-ed25519:"):
        read(model)
    assert store.read(model, unsigned=True).n_frames == 6


def test_a_model_that_nobody_signed_needs_unsigned(kit: Kit, model: Path) -> None:
    other = model.rename(kit.folder / "other.model")
    with pytest.raises(FileError, match=r"nobody signed .*other\.model.*--unsigned"):
        read(other)
    assert store.read(other, unsigned=True).n_frames == 6
    with pytest.raises(TytoError, match="never had a ledger or signature"):
        store.restore(other, lambda _: True)


def test_a_deleted_signature_of_a_state_from_elsewhere_is_missed(kit: Kit) -> None:
    path = kit.folder / "theirs.tyto"
    path.write_bytes(kit.lessons[0].to_bytes())
    sign(path, "state")
    assert store.incoming(path).n_frames == 3
    signature_path(path).unlink()
    for unsigned in (False, True):
        with pytest.raises(SignatureError, match="was signed by"):
            store.incoming(path, unsigned=unsigned)


def test_a_signed_state_without_a_ledger_is_signed_again_when_it_changes(kit: Kit) -> None:
    path = kit.folder / "theirs.tyto"
    path.write_bytes(kit.lessons[0].to_bytes())
    sign(path, "state")
    first = sequence(path)
    with edit(path) as localizer:
        localizer.merge(kit.lessons[1])
    assert sequence(path) == first + 1
    assert read(path).n_frames == 6
    path.write_bytes(kit.lessons[0].to_bytes())
    with pytest.raises(SignatureError, match=r"is not what was signed|cut short"):
        kit.add(path, 2)


def test_an_older_model_by_the_same_name_is_refused(model: Path) -> None:
    read(model)
    old = signature_path(model).read_bytes()
    sign(model, "model")
    read(model)
    read(model)  # the same again is no older one
    signature_path(model).write_bytes(old)
    with pytest.raises(SignatureError, match=f"version {FIRST}, but version {FIRST + 1} was seen before"):
        read(model)


# ---- a counter, not the clock ----


def test_a_future_clock_does_not_block_later_signatures(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack: one export while the clock says 2099."""
    now = time.time()
    for seconds in (2e9, 0.0, -1e9):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds)
        before = sequence(model)
        sign(model, "model")
        assert sequence(model) == before + 1
        assert read(model).n_frames == 6


@pytest.mark.parametrize("where", ["beside it", "in memory"])
def test_what_an_earlier_version_signed_by_the_clock_is_followed_by_larger_numbers(
    model: Path, where: str
) -> None:
    key, future = find_signing_key(), 4_000_000_000  # signed in 2096, as that clock said
    sign_file(model, key, "model", future)
    if where == "in memory":
        read(model)
        signature_path(model).unlink()
    else:
        remembered_path().unlink()
    sign(model, "model")
    assert sequence(model) == future + 1


def test_first_numbers_are_larger_than_any_second_of_an_earlier_version(model: Path) -> None:
    assert sequence(model) == FIRST > time.time()
    seen = TrustStore().path.with_name("seen.json")
    seen.write_text(f'{{"{find_signing_key().fingerprint} model m.model": 1700000000}}')
    remembered_path().unlink()
    assert read(model).n_frames == 6  # newer than what an earlier version remembered
    sign(model, "model")
    assert sequence(model) == FIRST + 1


def test_the_ledger_counts_on_where_memory_was_lost(kit: Kit) -> None:
    path = kit.folder / "k.tyto"
    sign(path, "state")
    first = sequence(path)
    kit.add(path, 2)
    signature_path(path).unlink()
    remembered_path().unlink()
    sign(path, "state")
    assert sequence(path) > first


def test_the_largest_number_is_the_last(model: Path) -> None:
    sign_file(model, find_signing_key(), "model", signatures.LARGEST_WHOLE)
    with pytest.raises(SignatureError, match="the largest number there is; rename it"):
        sign(model, "model")


# ---- killed, and a full disk ----


@posix
def test_signing_that_is_killed_anywhere_is_done_again(model: Path) -> None:
    before, n_kills = sequence(model), 0
    for n_kills in kill_points(lambda: sign(model, "model")):  # noqa: B007
        assert sequence(model) >= before
        assert read(model).n_frames == 6
        before = sequence(model)
    assert n_kills > 5
    folders = (model.parent, remembered_path().parent)
    assert [file.name for folder in folders for file in folder.glob(".*") if file.suffix != ".lock"] == []


@posix
def test_a_key_that_is_made_by_who_is_killed_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TYTO_TRUSTED", raising=False)
    monkeypatch.delenv("TYTO_SIGNING_KEY", raising=False)
    found = set()
    for _ in kill_points(find_signing_key):
        if signing_key_path().exists():
            found.add(find_signing_key().fingerprint)
            signing_key_path().unlink()
        secret = [
            file for file in tmp_path.rglob("*") if file.is_file() and b"PRIVATE KEY" in file.read_bytes()
        ]
        assert secret == []
        TrustStore().path.unlink(missing_ok=True)
    assert found  # some were killed after the key was there
    assert find_signing_key().fingerprint in TrustStore()


def test_signing_that_fails_leaves_what_was_there(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signature_path(model).read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(signatures, "write_whole", full)
        with pytest.raises(OSError, match="No space"):
            sign(model, "model")
    assert signature_path(model).read_bytes() == before
    assert read(model).n_frames == 6
    sign(model, "model")
    assert read(model).n_frames == 6
