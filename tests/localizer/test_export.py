"""Models in files: spent before they are there, within the budget, sealed where they are exact."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.states import (
    Kit,
    contents,
    edit,
    exports_of,
    ledger_says,
    opened,
    read,
    wave,
)
from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import (
    FileError,
    LedgerError,
    MissingExtraError,
    RolledBackError,
    TytoError,
    TytoWarning,
)
from tytoalba.localizer import export, store
from tytoalba.localizer.budget import epsilon_of, needed_noise, spent_in
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import Model
from tytoalba.localizer.signed import FIRST, sign
from tytoalba.localizer.store import export_exact, export_private
from tytoalba.storage.age import is_sealed
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import remembered_path, remembering
from tytoalba.storage.signatures import (
    TrustStore,
    find_signing_key,
    read_manifest,
    sign_file,
    signature_path,
    signing_key_path,
)

pytest.importorskip("pyrage")
pytest.importorskip("dp_accounting")


pytestmark = pytest.mark.usefixtures("nothing_simulated")


def released(path: Path, output: str | Path, **promise: Any) -> export.Exported:
    return export_private(path, output, keys=keys_at_hand(), **promise)


@pytest.mark.parametrize("name", ["k.tyto", "s.age"])
def test_a_private_model_is_written_signed_and_in_the_ledger(kit: Kit, name: str) -> None:
    state, before = kit.folder / name, (kit.folder / name).read_bytes()
    written = released(state, kit.folder / "m.model", unit="lesson", epsilon=2.0)
    assert state.read_bytes() == before
    model = Model.from_bytes((kit.folder / "m.model").read_bytes())
    assert model.private
    assert (model.private["unit"], model.private["epsilon"], model.private["delta"]) == ("lesson", 2.0, 1e-6)
    (line,) = exports_of(state)
    assert line == dict(model.private)
    assert ledger_says(state)[0][-1] == "exported"
    assert ledger_says(state)[1].startswith("verified")
    assert written.spent == pytest.approx(epsilon_of(line["noise"] ** -2, 1e-6))
    assert (written.budget, written.signature) == (10.0, signature_path(kit.folder / "m.model"))
    assert (kit.folder / "m.model").stat().st_mode & 0o777 == 0o644
    assert read(kit.folder / "m.model").n_frames == 0


def test_releases_that_hid_less_are_named(kit: Kit) -> None:
    state = kit.folder / "k.tyto"
    assert released(state, "1.model", unit="frame", epsilon=1.0).weaker == ()
    assert released(state, "2.model", unit="person", epsilon=1.0).weaker == ("frame",)
    assert released(state, "3.model", unit="frame", epsilon=1.0).weaker == ()


def test_its_signature_tells_nothing_of_what_was_taught(kit: Kit) -> None:
    released(kit.folder / "k.tyto", kit.folder / "m.model")
    manifest = read_manifest(signature_path(kit.folder / "m.model").read_bytes())
    assert dict(manifest.about) == {"unit": "lesson", "epsilon": 3.0, "delta": 1e-6}


@pytest.mark.parametrize("forgotten", [False, True])
def test_nor_does_its_number_tell_how_much_was_taught(kit: Kit, forgotten: bool) -> None:
    """The attack: the number came from the length of the ledger, a line for each lesson."""
    numbers = []
    for number in range(3):
        written = released(kit.folder / "k.tyto", kit.folder / f"{number}.model", epsilon=1.0).signature
        assert written
        numbers.append(read_manifest(written.read_bytes()).sequence)
        if forgotten:
            remembered_path().unlink()
            with remembering():
                pass
        kit.add(kit.folder / "k.tyto", 2)
        with edit(kit.folder / "k.tyto") as localizer:
            localizer.forget(wave(95.0, 0.4, 2), 95.0)
    assert numbers == [FIRST + 1, FIRST + 2, FIRST + 3]


def test_spending_adds_up_and_ends_with_the_budget(kit: Kit) -> None:
    state = kit.folder / "b.tyto"
    store.create(state, kit.start(), budget=4.0)
    first = released(state, "1.model", epsilon=2.0)
    second = released(state, "2.model", epsilon=2.0)
    assert first.spent < second.spent < 4.0
    assert (first.weaker, second.weaker) == ((), ())
    before = contents(kit.folder)
    with pytest.raises(TytoError, match=r"beyond the budget.* of 4 .*--epsilon \d\.\d+ still fits"):
        released(state, "3.model", epsilon=3.5)
    assert contents(kit.folder) == before
    noise = [needed_noise(2.0, 1e-6)] * 2
    assert second.spent == pytest.approx(epsilon_of(sum(m**-2 for m in noise), 1e-6), rel=1e-3)


def test_it_is_spent_before_the_model_is_there(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed, or finds the disk full, in between: spent, and no model."""

    class KilledError(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise KilledError

    state = kit.folder / "k.tyto"
    with monkeypatch.context() as patch:
        patch.setattr(export, "write_whole", killed)
        with pytest.raises(KilledError):
            released(state, kit.folder / "m.model")
    assert not (kit.folder / "m.model").exists()
    (line,) = exports_of(state)
    assert ledger_says(state)[1].startswith("verified")
    again = released(state, kit.folder / "m.model")
    assert len(exports_of(state)) == 2
    assert again.spent > epsilon_of(line["noise"] ** -2, 1e-6)
    kit.add(state, 2)  # and the state can still be taught
    assert ledger_says(state)[0][-3:] == ["exported", "exported", "merged"]


def test_nothing_is_spent_where_it_cannot_be_written(kit: Kit) -> None:
    state = kit.folder / "k.tyto"
    (kit.folder / "notes.txt").write_text("mine")
    (kit.folder / "link").symlink_to("elsewhere")
    os.mkfifo(kit.folder / "pipe")
    for taken in ("k.tyto", "s.age", "notes.txt", "home", "link", "pipe"):
        with pytest.raises(FileError, match="is not a model and stays as it is"):
            released(state, kit.folder / taken)
    (kit.folder / "planted.model.sig").symlink_to("notes.txt")
    with pytest.raises(FileError, match="nothing is written through links"):
        released(state, kit.folder / "planted.model")
    assert not (kit.folder / "planted.model").exists()
    with pytest.raises(TytoError, match="unit must be one of"):
        released(state, kit.folder / "m.model", unit="house")
    with pytest.raises(TytoError, match="epsilon must be"):
        released(state, kit.folder / "m.model", epsilon=0)
    assert exports_of(state) == []
    released(state, kit.folder / "m.model")
    released(state, kit.folder / "m.model")  # an older model is replaced


def test_a_state_without_a_ledger_cannot_be_released_privately(kit: Kit) -> None:
    kit.lessons[0].owned_by("").save(kit.folder / "free.tyto")
    with pytest.raises(TytoError, match=r"has no ledger.*tyto new NEW --like free\.tyto"):
        released(kit.folder / "free.tyto", kit.folder / "m.model")
    released(kit.folder / "k.tyto", kit.folder / "m.model")
    with pytest.raises(TytoError, match="this is a model"):
        released(kit.folder / "m.model", kit.folder / "n.model")


@pytest.mark.parametrize(("module", "name"), [(store, "has_extra"), (export, "has_accounting")])
def test_without_the_extra_there_are_no_private_releases(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    monkeypatch.setattr(module, name, lambda: False)
    with pytest.raises(MissingExtraError, match=r"tytoalba\[privacy\]"):
        released(kit.folder / "k.tyto", kit.folder / "m.model")


def test_an_exact_model_is_sealed_unless_asked_otherwise(kit: Kit) -> None:
    localizer, keys = read(kit.folder / "k.tyto"), keys_at_hand()
    sealed = export_exact(localizer, kit.folder / "m.model", keys=keys)
    assert sealed.path == kit.folder / "m.model.age"
    assert is_sealed(sealed.path.read_bytes())
    assert sealed.path.stat().st_mode & 0o777 == 0o600
    assert read(sealed.path).n_frames == localizer.n_frames
    assert export_exact(localizer, sealed.path, keys=keys).path == sealed.path  # and is replaced
    plain = export_exact(localizer, kit.folder / "p.model", plain=True, keys=keys)
    assert Model.from_bytes(plain.path.read_bytes()).private is None
    assert plain.path.stat().st_mode & 0o777 == 0o600
    assert plain.advice
    assert plain.worth is None
    assert exports_of(kit.folder / "k.tyto") == []
    with pytest.raises(TytoError, match="would not be sealed"):
        export_exact(localizer, kit.folder / "q.age", plain=True, keys=keys)
    for taken in ("k.tyto", "s.age"):
        with pytest.raises(FileError, match="is not a model and stays as it is"):
            export_exact(localizer, kit.folder / taken, plain=not taken.endswith("age"), keys=keys)


def test_a_store_exports_both(kit: Kit) -> None:
    kept = opened(kit.folder / "k.tyto")
    assert kept.export("m.model", epsilon=1.0).worth is not None
    assert kept.export("m.model", exact=True).path == Path("m.model.age")
    assert kept.export("n.model", exact=True, plain=True).path == Path("n.model")


def test_what_a_merged_state_had_spent_counts(kit: Kit) -> None:
    state, other = kit.folder / "a.tyto", kit.folder / "b.tyto"
    for path in (state, other):
        store.create(path, kit.start())
    kit.add(other, 0)
    spent = released(other, "1.model", epsilon=5.0).spent
    released(state, "2.model", epsilon=2.0)
    with store.edit(state) as localizer:
        localizer.merge(store.incoming(other))
    assert epsilon_of(spent_in(Ledger.open(ledger_path(state)).entries), 1e-6) == pytest.approx(spent)
    with store.edit(other) as localizer:  # whose own was more
        localizer.merge(kit.lessons[1])
    assert epsilon_of(spent_in(Ledger.open(ledger_path(other)).entries), 1e-6) == pytest.approx(spent)


@pytest.mark.parametrize(
    "how",
    [
        *("copied", "empty ledger", "whole", "a stranger's"),
        *("signed", "signed by an earlier version", "no owner"),
    ],
)
def test_a_state_that_lost_its_ledger_does_not_get_its_budget_back(
    kit: Kit, tmp_path: Path, how: str
) -> None:
    """The attack: a copy of a state without its ledger, merged into a new one whose budget is whole."""
    state, other = kit.folder / "a.tyto", kit.folder / "b.tyto"
    store.create(state, kit.start())
    released(kit.folder / "k.tyto", "1.model", epsilon=5.0)
    (other if how != "no owner" else tmp_path / "c.tyto").write_bytes((kit.folder / "k.tyto").read_bytes())
    if how == "no owner":
        kit.lessons[0].owned_by("").save(other)
    elif how in LEDGERS:
        ledger_path(other).write_bytes(LEDGERS[how](ledger_path(kit.folder / "k.tyto").read_bytes()))
    elif how == "signed":  # where its ledger is, and sent without it
        signature_path(other).write_bytes(signed(kit.folder / "k.tyto", other.name))
    elif how != "copied":
        sign_file(other, find_signing_key(), "state", FIRST)
    if how == "a stranger's":
        for own in (signing_key_path(), TrustStore().path):
            own.unlink()
        state = kit.folder / "mine.tyto"
        store.create(state, kit.start())
    with store.edit(state) as localizer:
        localizer.merge(store.incoming(other, unsigned=not how.startswith("signed")))
    spent = spent_in(Ledger.open(ledger_path(state)).entries)
    told = needed_noise(5.0, 1e-6) ** -2
    expected = {"signed": told, "whole": told, "a stranger's": told, "no owner": 0.0}
    assert spent == pytest.approx(expected.get(how, math.inf), rel=1e-3)


@pytest.mark.parametrize("n_cut", [1, 2])
@pytest.mark.parametrize("unsigned", [True, False])
def test_a_copy_whose_ledger_ends_before_a_release_is_refused(kit: Kit, n_cut: int, unsigned: bool) -> None:
    """The attack: a release changes no state, so a ledger without its line fits the state as well."""
    state, other = kit.folder / "a.tyto", kit.folder / "b.tyto"
    store.create(state, kit.start())
    released(kit.folder / "k.tyto", "1.model", epsilon=5.0)
    other.write_bytes((kit.folder / "k.tyto").read_bytes())
    whole = ledger_path(kit.folder / "k.tyto").read_bytes().splitlines(keepends=True)
    ledger_path(other).write_bytes(b"".join(whole[:-n_cut]))
    if not unsigned:
        signature_path(other).write_bytes(signed(kit.folder / "k.tyto", other.name))
    with pytest.raises(RolledBackError, match=r"b\.tyto is from before step"):
        store.incoming(other, unsigned=unsigned)
    if unsigned:
        with pytest.raises(RolledBackError, match="is from before step"):
            store.read(other, unsigned=True)


def test_what_was_spent_is_the_more_of_what_ledger_and_signature_say(kit: Kit) -> None:
    """The same attack where nobody remembers that ledger: the signature was made after the release."""
    other = kit.folder / "b.tyto"
    before = ledger_path(kit.folder / "k.tyto").read_bytes()
    released(kit.folder / "k.tyto", "1.model", epsilon=5.0)
    other.write_bytes((kit.folder / "k.tyto").read_bytes())
    signature_path(other).write_bytes(signed(kit.folder / "k.tyto", other.name))
    ledger_path(other).write_bytes(before)
    remembered_path().unlink()
    assert store.incoming(other).spent == pytest.approx(needed_noise(5.0, 1e-6) ** -2, rel=1e-3)


@pytest.mark.parametrize("how", ["its ledger", "no ledger", "no extra"])
def test_what_was_spent_is_not_lost_in_a_state_without_a_ledger(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The attack: merged into a state without a ledger, and that into a new one whose budget is whole."""
    spent_up, free, new = (kit.folder / f"{name}.tyto" for name in ("k", "free", "new"))
    released(spent_up, "1.model", epsilon=5.0)
    Localizer.like(read(spent_up)).owned_by("").save(free)
    before = free.read_bytes()
    if how == "no ledger":
        ledger_path(spent_up).rename(kit.folder / "elsewhere")
        remembered_path().unlink()
    with monkeypatch.context() as patch:
        if how == "no extra":
            patch.setattr(store, "has_extra", lambda: False)
            with pytest.warns(TytoWarning, match="nobody looked at it"):
                other = store.incoming(spent_up, unsigned=True)
        else:
            other = store.incoming(spent_up, unsigned=how == "no ledger")
        with pytest.raises(LedgerError, match=r"tyto new NEW --like free\.tyto") as said:
            merge_into(free, other)
    assert ("were released" in str(said.value)) == (how == "its ledger")
    assert free.read_bytes() == before
    store.create(new, kit.start())  # the remedy, in a state that remembers
    with store.edit(new) as localizer:
        localizer.merge(store.incoming(free, unsigned=True))
        localizer.merge(store.incoming(spent_up, unsigned=how == "no ledger"))
    told = math.inf if how == "no ledger" else needed_noise(5.0, 1e-6) ** -2
    assert spent_in(Ledger.open(ledger_path(new)).entries) == pytest.approx(told, rel=1e-3)


def merge_into(state: Path, other: Localizer) -> None:
    with store.edit(state, unsigned=True) as localizer:
        localizer.merge(other)


def test_a_merge_in_memory_does_not_lose_what_was_spent_either(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    released(kit.folder / "k.tyto", "1.model", epsilon=5.0)
    other = store.incoming(kit.folder / "k.tyto")
    mine = Localizer.like(other)
    mine.merge(other)
    for again in (mine, mine.owned_by("")):
        with pytest.raises(TytoError, match="only a state with a ledger can remember"):
            again.save(kit.folder / "free.tyto")
    with monkeypatch.context() as patch:
        patch.setattr(store, "has_extra", lambda: False)
        with pytest.raises(MissingExtraError, match=r"tytoalba\[privacy\]"):
            store.create(kit.folder / "free.tyto", mine)
    assert not (kit.folder / "free.tyto").exists()
    store.create(kit.folder / "new.tyto", mine)
    told = spent_in(Ledger.open(ledger_path(kit.folder / "new.tyto")).entries)
    assert told == pytest.approx(needed_noise(5.0, 1e-6) ** -2, rel=1e-3)
    assert ledger_says(kit.folder / "new.tyto")[1].startswith("verified")


def test_states_that_nobody_released_are_merged_without_a_ledger(kit: Kit) -> None:
    free = kit.folder / "free.tyto"
    Localizer.like(read(kit.folder / "k.tyto")).save(free)
    with store.edit(free, unsigned=True) as localizer:
        change = localizer.merge(store.incoming(kit.folder / "k.tyto"))
    assert change.spent == 0.0
    assert Localizer.load(free).n_frames == read(kit.folder / "k.tyto").n_frames


LEDGERS: dict[str, Callable[[bytes], bytes]] = {
    "empty ledger": lambda _: b"",
    "whole": lambda whole: whole,
    "a stranger's": lambda whole: whole,
}


def signed(state: Path, name: str) -> bytes:
    """A signature of a state that lies beside its ledger, for a copy of another name."""
    folder = state.parent / "elsewhere"
    folder.mkdir()
    copy = folder / name
    copy.write_bytes(state.read_bytes())
    ledger_path(copy).write_bytes(ledger_path(state).read_bytes())
    return sign(copy, "state").read_bytes()


def test_a_signature_says_what_was_spent_also_when_the_ledger_is_gone(kit: Kit) -> None:
    state = kit.folder / "k.tyto"
    released(state, "1.model", epsilon=5.0)
    first = read_manifest(sign(state, "state").read_bytes())
    assert first.about["spent"] == pytest.approx(needed_noise(5.0, 1e-6) ** -2, rel=1e-3)
    ledger_path(state).unlink()
    assert read_manifest(sign(state, "state").read_bytes()).about == first.about
