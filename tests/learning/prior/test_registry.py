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
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.learning.prior.decisions import Blend
from tytoalba.learning.prior.features import prior_gcc, scores
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


def test_maps_are_blended_with_srp_phat_as_was_calibrated(prior: Prior, folder: Path) -> None:
    folder.mkdir()
    flat = replace(MINE, name="flat", yaw=0.0, positions=tuple((1.1 * x, y, z) for x, y, z in MINE.positions))
    built = replace(prior, array=flat)
    built.save(folder / "flat.safetensors")
    frames = plane_waves(flat, [20.0, 200.0], noise=0.3)
    plain = PriorMaps(flat, flat.frame_length)(frames)  # never calibrated
    sure, unsure = (Calibration((0.0, 1.0), (0.1, most), 50) for most in (0.9, 0.2))

    def blended(*blends: Blend) -> list[NDArray[np.float32]]:
        stored = {str(n): blend.to_dict() for n, blend in enumerate(blends, 1)}
        replace(built, constants=prior.constants | {"blends": stored}).save(folder / "flat.safetensors")
        return [PriorMaps(flat, flat.frame_length, n)(frames) for n in (1, 2, 3)]

    fallback = built.srp_maps(np.asarray(prior_gcc(MINE)(frames), np.float32).reshape(2, -1))
    assert np.abs(fallback - plain).max() > 0.05
    one, two, three = blended(Blend(sure, sure, 1.0, 0.5), Blend(sure, sure, 1.0, 0.0))
    np.testing.assert_allclose(one, (plain + 0.5 * fallback) / 1.5, atol=1e-6)
    assert np.array_equal(two, plain)
    assert np.array_equal(three, plain)
    one, two, _ = blended(Blend(unsure, sure, 0.0, 0.5), Blend(sure, unsure, 0.0, 0.0))
    np.testing.assert_allclose(one, fallback, atol=1e-6)  # SRP-PHAT is surer
    assert np.array_equal(two, plain)
    assert PriorMaps(flat, flat.frame_length)(frames[:0]).shape == (0, 360)


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
        for n_sources in (1, 2):
            assert 0 <= loaded.blend(n_sources).margin <= 1
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
    """Hiss, too, which is not what they learned to locate: SRP-PHAT is surer of it."""
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
