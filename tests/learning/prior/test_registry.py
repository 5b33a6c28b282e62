"""Which prior an array gets, and those that are shipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.arrays import moved
from tests.helpers.networks import MINE, altered, prior_of_mine
from tests.helpers.waves import plane_waves
from tytoalba.errors import PriorError, TytoError
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.prior import Prior, array_of
from tytoalba.learning.prior.registry import (
    PriorMaps,
    find_prior,
    fitting_prior,
    prior_folder,
    shipped_priors,
)
from tytoalba.signal.alignment import same_places
from tytoalba.signal.angles import Float, decode, distance
from tytoalba.signal.array import MicArray, builtin_arrays, load_array

torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module")
def prior() -> Prior:
    return prior_of_mine()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where priors of one's own are looked for; not there yet."""
    monkeypatch.setenv("TYTO_PRIORS", str(tmp_path / "priors"))
    return tmp_path / "priors"


@pytest.mark.parametrize("name", sorted(shipped_priors()))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_prior_fits_in_any_order_turn_and_shift(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    built = load_array(name)
    order, turn, shift = rng.permutation(built.n_mics), rng.uniform(0, 360), rng.uniform(-0.5, 0.5, 3)
    mine = moved(built, order.tolist(), turn, shift)
    prior, how = fitting_prior(mine)
    assert prior.array == Prior.load(shipped_priors()[name]).array
    assert sorted(how.order) == list(range(built.n_mics))
    azimuth = np.arange(0.0, 360.0, 15.0)
    found = mine.fold(decode(PriorMaps(mine, mine.frame_length)(plane_waves(mine, azimuth, noise=0.3))))
    assert near(found, mine.fold(azimuth), mine).all()
    # every microphone hears what the one at its place in the prior's array would hear from there
    late = mine.arrival_times(azimuth + how.turn)[:, how.order] - prior.array.arrival_times(azimuth)
    assert np.abs(late - late.mean(axis=1, keepdims=True)).max() < 1e-8


def near(found: Float, wanted: Float, array: MicArray) -> NDArray[np.bool_]:
    """Within 5 degrees; a line hears only how far along it a wave comes: three degrees at its side."""
    if array.mirror_axis is None:
        return np.asarray(distance(found, wanted) <= 5)
    along = [np.cos(np.deg2rad(angle - array.mirror_axis)) for angle in (found, wanted)]
    return np.asarray(np.abs(along[0] - along[1]) <= 0.05)


def test_a_prior_of_ones_own_is_found(prior: Prior, folder: Path) -> None:
    assert prior_folder() == folder
    assert find_prior(MINE) is None  # no such folder yet
    folder.mkdir()
    assert find_prior(MINE) is None
    prior.save(folder / "any-name.safetensors")
    found = find_prior(replace(MINE, name="by another name"))
    assert found is not None
    assert found.array == MINE
    assert find_prior(MINE) is found  # read once
    assert find_prior(replace(MINE, yaw=9.0)) is None
    replace(prior, about={"n_frames": 2}).save(folder / "any-name.safetensors")
    changed = find_prior(MINE)
    assert changed is not None
    assert changed.about == {"n_frames": 2}


def test_a_prior_of_ones_own_goes_before_a_shipped_one(
    prior: Prior, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    shipped = folder.with_name("shipped.safetensors")
    prior.save(shipped)
    replace(prior, about={"made": "by me"}).save(folder / "mine.safetensors")
    monkeypatch.setattr("tytoalba.learning.prior.registry.shipped_priors", lambda: {"mine": shipped})
    found = find_prior(MINE)
    assert found is not None
    assert found.about == {"made": "by me"}


def test_without_a_folder_of_ones_own_the_users_is_looked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TYTO_PRIORS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert prior_folder() == Path("data", "tytoalba", "priors")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert prior_folder() == Path.home() / ".local" / "share" / "tytoalba" / "priors"


def test_a_damaged_file_among_them_is_named(folder: Path) -> None:
    folder.mkdir()
    (folder / "cut.safetensors").write_bytes(b"abc")
    with pytest.raises(PriorError, match=r"cut\.safetensors is damaged"):
        find_prior(MINE)


def test_an_old_prior_of_another_array_is_in_nobodys_way(prior: Prior, folder: Path) -> None:
    folder.mkdir()
    path = altered(prior, folder, lambda header, _: header.update(version=1))
    assert array_of(path) == prior.array
    assert find_prior(load_array("pepper")) is not None
    with pytest.raises(PriorError, match=r"has version 1; this program reads 2, and `tyto prior ARRAY`"):
        find_prior(MINE)


@pytest.mark.parametrize("toml", [None, 5, "name =", "name = 'x'"])
def test_a_prior_of_no_array_is_refused(prior: Prior, folder: Path, toml: Any) -> None:
    folder.mkdir()
    path = altered(prior, folder, lambda header, _: header.update(array=toml))
    for asked in (lambda: array_of(path), lambda: Prior.load(path), lambda: find_prior(load_array("pepper"))):
        with pytest.raises(TytoError, match=r"altered\.safetensors"):
            asked()


def test_maps_of_no_frames_are_none(prior: Prior, folder: Path) -> None:
    folder.mkdir()
    prior.save(folder / "mine.safetensors")
    assert PriorMaps(MINE, MINE.frame_length)(np.zeros((0, MINE.n_mics, MINE.frame_length))).shape == (0, 360)


def test_every_shipped_prior_loads_is_small_and_calibrated_and_keeps_simulated_frames() -> None:
    for name in builtin_arrays():  # a fresh install can locate at once, whatever it listens with
        prior, _ = fitting_prior(load_array(name))
        assert prior.array.n_mics == load_array(name).n_mics
    for name, path in shipped_priors().items():
        assert path.stat().st_size < 5e6
        loaded = Prior.load(path)
        assert loaded.array.name == name
        assert same_places(loaded.array, load_array(name))
        assert loaded.about
        found = find_prior(load_array(name))
        assert found is not None
        assert found.array == loaded.array
        assert len(loaded.confidence.asked) == 3
        assert len(loaded.counting()) == 2
        logits, sound = loaded.simulated_frames()
        assert len(logits) == len(sound) > 0


def test_peppers_prior_hears_where_plane_waves_come_from() -> None:
    pepper = load_array("pepper")
    prior = find_prior(pepper)
    assert prior is not None
    azimuth = np.arange(0, 360, 10.0)
    X = np.asarray(prior.gcc(plane_waves(pepper, azimuth)), np.float32)
    off = distance(decode(scores(prior.logits(X))), azimuth)
    assert (off <= 5.0).mean() >= 0.9


@pytest.mark.parametrize("name", sorted(shipped_priors()))
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_shipped_priors_find_any_wave_from_all_around(name: str, noise: float) -> None:
    """Hiss, too, which is not what they learned to locate: SRP-PHAT says that it is a lone wave."""
    array, azimuth = load_array(name), np.arange(0.0, 360.0, 5.0)
    maps = PriorMaps(array, array.frame_length)(plane_waves(array, azimuth, noise=noise).astype(np.float32))
    found, wanted = array.fold(decode(maps)), array.fold(azimuth)
    assert near(found, wanted, array).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", shipped_priors())
def test_torch_hears_the_same(name: str, device: str) -> None:
    shipped = Prior.load(shipped_priors()[name])
    X = shipped.gcc(plane_waves(shipped.array, np.arange(0.0, 360.0, 45.0))).reshape(8, -1)
    there = shipped.logits(torch.from_numpy(X).to(device)).cpu().numpy()
    assert np.array_equal(there, shipped.logits(X))
