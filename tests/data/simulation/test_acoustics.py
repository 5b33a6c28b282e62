"""Families of acoustics: by different physics, true to the geometry, the same bits from the same seed."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import oaconvolve, resample_poly, welch

from tytoalba.data.simulation import acoustics as acoustics
from tytoalba.data.simulation.acoustics import FAMILIES, PointSource, ambient_noise, crowd_noise, reflector
from tytoalba.data.simulation.room import Room
from tytoalba.errors import MissingExtraError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, load_array, unit_vector
from tytoalba.signal.srp import SrpPhat

Numbers = NDArray[np.float64]
ARRAYS = ("pepper", "respeaker-usb-4", "linear-4")
# family, seed: pyroomacoustics draws image sources with seed 0 and rays with this one
RAYS = 11
CASES = [("hybrid", 0), ("hybrid", 1), ("pyroom", 0), ("pyroom", RAYS), ("anechoic", 0), ("anechoic", 1)]
AZIMUTHS = tuple(np.arange(8) * 45.0 + 10.0)
FAR = 0.6


def omnidirectional(name: str) -> MicArray:
    return replace(load_array(name), pattern=1.0)


def azimuths_of(family: str, seed: int) -> tuple[float, ...]:
    return AZIMUTHS[::4] if (family, seed) == ("pyroom", RAYS) else AZIMUTHS  # rays take long


@lru_cache
def responses(family: str, seed: int, name: str) -> tuple[NDArray[np.float32], ...]:
    """Of talkers all around, close by, to omnidirectional microphones."""
    if family == "pyroom":
        pytest.importorskip("pyroomacoustics")
    array = omnidirectional(name)
    places = [FAR * unit_vector(azimuth) for azimuth in azimuths_of(family, seed)]
    sources = [PointSource(place, -place) for place in places]
    return tuple(FAMILIES[family](array, array, sources, np.random.default_rng(seed)))


def onset(response: NDArray[Any], gain: Numbers) -> Numbers:
    """Samples at which each microphone first hears half of the direct sound, to an eighth of a sample."""
    fine = resample_poly(response.astype(np.float64), 8, 1, axis=1)
    return np.asarray((np.abs(fine) > 0.5 * gain[:, None]).argmax(axis=1) / 8)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(("family", "seed"), CASES)
def test_sound_arrives_as_the_geometry_says_from_all_around(family: str, seed: int, name: str) -> None:
    array = omnidirectional(name)
    found = responses(family, seed, name)
    azimuths = azimuths_of(family, seed)
    assert len(found) == len(azimuths)
    late, apart = [], []
    for azimuth, response in zip(azimuths, found, strict=True):
        assert response.shape[0] == array.n_mics
        assert response.dtype == np.float32
        assert np.isfinite(response).all()
        metres = np.linalg.norm(FAR * unit_vector(azimuth) - array.coordinates, axis=1)
        exact = metres / SPEED_OF_SOUND * array.sample_rate
        arrival = onset(response, 1 / metres)
        late.append(arrival - exact)
        apart.append((arrival - arrival.mean()) - (exact - exact.mean()))
    assert np.abs(np.array(late) + 0.6).max() < 0.3  # half of the height comes 0.6 samples before the top
    assert np.abs(np.array(apart)).max() < 0.25
    assert np.sqrt(np.mean(np.square(apart))) < 0.1


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(("family", "seed"), CASES)
def test_the_strongest_direction_is_the_talkers(family: str, seed: int, name: str) -> None:
    array = load_array(name)
    n = array.frame_length
    noise = np.random.default_rng(3).standard_normal(3 * n).astype(np.float32)
    errors = []
    for azimuth, response in zip(azimuths_of(family, seed), responses(family, seed, name), strict=True):
        frame = oaconvolve(noise[None], response, axes=1)[None, :, 2 * n : 3 * n]
        found = float(SrpPhat(array, n)(frame).argmax())
        images = [azimuth] if array.mirror_axis is None else [azimuth, 2 * array.mirror_axis - azimuth]
        errors.append(min(float(distance(found, image)) for image in images))
    assert np.median(errors) <= 2
    assert np.mean(np.array(errors) <= 6) >= 0.85


@pytest.mark.parametrize(("family", "seed"), [("hybrid", 0), ("pyroom", 0), ("anechoic", 0)])
def test_microphones_and_talkers_face_somewhere(family: str, seed: int) -> None:
    if family == "pyroom":
        pytest.importorskip("pyroomacoustics")
    array = replace(load_array("respeaker-usb-4"), pattern=0.5, sample_rate=48000)  # cardioids to the front
    front, left, back = (0.7 * unit_vector(azimuth) for azimuth in (0.0, 90.0, 180.0))
    cases = [
        (PointSource(front, -front), 1.0),
        (PointSource(left, -left), 0.5),
        (PointSource(back, -back), 0.0),
        (PointSource(front, -front, 0.5), 1.0),
        (PointSource(front, left, 0.5), 0.5),
        (PointSource(front, front, 0.5), 0.0),
    ]
    found = FAMILIES[family](array, array, [source for source, _ in cases], np.random.default_rng(seed))
    for (source, gain), response in zip(cases, found, strict=True):
        metres = np.linalg.norm(source.position - array.coordinates, axis=1)
        first = (metres / SPEED_OF_SOUND * array.sample_rate).astype(int)
        heard = [
            row[k - 11 : k + 13].sum() * away for row, k, away in zip(response, first, metres, strict=True)
        ]
        np.testing.assert_allclose(heard, gain, atol=0.1)


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_the_same_generator_gives_the_same_bits(family: str, seed: int) -> None:
    if family == "pyroom":
        pra = pytest.importorskip("pyroomacoustics")
        before = pra.constants.get("num_threads")
    array = omnidirectional("respeaker-usb-4")
    place = FAR * unit_vector(77.0)
    made = []
    for threads in (1, 3):
        if family == "pyroom":  # what a machine has, and what others drew, must change nothing
            pra.constants.set("num_threads", threads)
            pra.random.get_rng().random(threads)
        rng = np.random.default_rng(seed)
        made.append((FAMILIES[family](array, array, [PointSource(place, -place)], rng)[0], rng.random()))
    if family == "pyroom":
        pra.constants.set("num_threads", before)
    (one, after), (again, then) = made
    np.testing.assert_array_equal(one, again)
    assert after == then
    other = FAMILIES[family](array, array, [PointSource(place, -place)], np.random.default_rng(seed + 7))[0]
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_pyroomacoustics_traces_rays_or_mirrors_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    pra = pytest.importorskip("pyroomacoustics")
    traced: list[int] = []

    def stop(_: object, n_rays: int, **__: object) -> None:
        traced.append(n_rays)

    monkeypatch.setattr(pra.ShoeBox, "set_ray_tracing", stop)
    monkeypatch.setattr(pra.ShoeBox, "compute_rir", lambda room: setattr(room, "rir", [[np.ones(50)]] * 4))
    array, place = omnidirectional("respeaker-usb-4"), FAR * unit_vector(10.0)
    for seed in range(40):
        before = len(traced)
        FAMILIES["pyroom"](array, array, [PointSource(place, -place)], np.random.default_rng(seed))
        if seed in (0, RAYS):
            assert len(traced) - before == (seed == RAYS)  # as CASES says
    assert 3 <= len(traced) <= 16  # of 40


def test_without_pyroomacoustics_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyroomacoustics", None)
    array, place = load_array("pepper"), unit_vector(0.0)
    with pytest.raises(MissingExtraError, match=r"need the extra 'sim': pip install 'tytoalba\[sim\]'"):
        FAMILIES["pyroom"](array, array, [PointSource(place, -place)], np.random.default_rng(0))


def test_everybody_is_inside_the_room() -> None:
    sizes = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        places = [
            rng.uniform(0.3, 4.0) * unit_vector(rng.uniform(0, 360), rng.uniform(-30, 60))
            for _ in range(int(rng.integers(1, 4)))
        ]
        size, placement = acoustics._room_around([PointSource(place, -place) for place in places], rng)
        room, centre = Room(size, 1.0), np.asarray(placement.centre)
        for place in (np.zeros(3), *places):
            assert room.contains(centre + placement.to_room(place), 0.25)
        sizes.append(size)
    assert (np.std(sizes, axis=0) > 0.3).all()


# ------------------------------------------------------------------------------------------ a reflector


class Scripted:
    """A generator that says what it is told: a table 0.3 m below that returns half of the sound."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def uniform(self, *_: float) -> float:
        return self.numbers.pop(0)

    random = uniform


def table(array: MicArray, source: PointSource) -> NDArray[np.float32]:
    scripted: Any = Scripted(0.3, 0.9, 0.5)  # metres away, not beside it, strength
    return reflector(array, source, scripted)


def test_a_table_mirrors_what_is_above_it() -> None:
    array = omnidirectional("pepper")
    above = PointSource(np.array([1.0, 0.0, 0.2]), np.array([-1.0, 0.0, 0.0]), 0.6)
    heard = table(array, above)
    metres = np.linalg.norm(np.array([1.0, 0.0, -0.8]) - array.coordinates, axis=1)
    np.testing.assert_allclose(
        onset(heard, 0.5 / metres) + 0.6, metres / SPEED_OF_SOUND * array.sample_rate, atol=0.3
    )
    np.testing.assert_allclose(heard.sum(axis=1) * metres, 0.5, atol=0.03)


def test_a_source_behind_the_reflector_is_not_mirrored() -> None:
    array = load_array("pepper")
    for height in (-0.3, -0.5):
        below = PointSource(np.array([1.0, 0.0, height]), np.array([-1.0, 0.0, 0.0]))
        np.testing.assert_array_equal(table(array, below), np.zeros((4, 1), np.float32))
    assert table(array, PointSource(np.array([1.0, 0.0, -0.29]), np.array([-1.0, 0.0, 0.0]))).any()


@pytest.mark.parametrize("name", ARRAYS)
def test_a_mirrored_sound_never_comes_first(name: str) -> None:
    array = omnidirectional(name)
    n_heard = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        place = rng.uniform(0.3, 4.0) * unit_vector(rng.uniform(0, 360), rng.uniform(-25, 60))
        heard = reflector(array, PointSource(place, -place), rng)
        assert heard.shape[0] == 4
        assert np.isfinite(heard).all()
        if heard.any():
            n_heard += 1
            direct = np.linalg.norm(place - array.coordinates, axis=1) / SPEED_OF_SOUND * array.sample_rate
            assert np.abs(heard).argmax(axis=1).mean() > direct.mean() - 1
    assert 75 < n_heard < 150


# ------------------------------------------------------------------------------------------------ noise


def off_diffuse(noise: NDArray[np.float32], array: MicArray) -> float:
    """RMS difference of the microphones' coherence from that of sound from everywhere, a sinc."""
    size = 256
    pieces = noise[:, : noise.shape[1] // size * size].reshape(len(noise), -1, size) * np.hanning(size)
    X = np.fft.rfft(pieces)  # (M, S, K)
    hertz = np.fft.rfftfreq(size, 1 / array.sample_rate)
    used = (hertz > 300) & (hertz < 7000)
    power = np.mean(np.abs(X) ** 2, axis=1)
    off = []
    for i, j in array.pairs:
        coherence = np.mean(X[i] * X[j].conj(), axis=0) / np.sqrt(power[i] * power[j])
        apart = float(np.linalg.norm(array.coordinates[i] - array.coordinates[j]))
        off.append(np.abs(coherence - np.sinc(2 * hertz * apart / SPEED_OF_SOUND))[used])
    return float(np.sqrt(np.mean(np.square(off))))


def test_noise_comes_from_everywhere_or_from_a_few_directions() -> None:
    array = omnidirectional("respeaker-usb-4")
    n = 2**15
    off = {
        family: np.array(
            [
                off_diffuse(ambient_noise(family, array, array, n, 0.0, np.random.default_rng(seed)), array)
                for seed in range(16)
            ]
        )
        for family in FAMILIES
    }
    assert off["hybrid"].max() < 0.12
    assert off["anechoic"].min() > 0.2
    few = off["pyroom"] > 0.16
    assert 3 <= few.sum() <= 13  # now this, now that, and nothing between
    assert off["pyroom"][few].min() > 0.2
    assert off["pyroom"][~few].max() < 0.12


def test_noise_from_everywhere_has_the_coherence_of_the_late_array() -> None:
    array = omnidirectional("respeaker-usb-4")
    wide = replace(array, positions=tuple((3 * x, 3 * y, z) for x, y, z in array.positions))
    noise = ambient_noise("hybrid", array, wide, 2**15, 0.0, np.random.default_rng(0))
    assert off_diffuse(noise, wide) < 0.12
    assert off_diffuse(noise, array) > 0.2


@pytest.mark.parametrize("family", ["hybrid", "anechoic"])
@pytest.mark.parametrize("tilt", [0.0, 1.0, 2.0])
def test_noise_falls_with_frequency(family: str, tilt: float) -> None:
    array = omnidirectional("respeaker-usb-4")
    noise = np.concatenate(
        [ambient_noise(family, array, array, 2**15, tilt, np.random.default_rng(seed)) for seed in range(6)]
    )
    assert noise.dtype == np.float32
    assert noise.shape == (24, 2**15)
    hertz, power = welch(noise, array.sample_rate, nperseg=1024)
    level = [power[:, (hertz > f / 1.2) & (hertz < f * 1.2)].mean() for f in (500.0, 4000.0)]
    assert np.log2(level[0] / level[1]) == pytest.approx(3 * tilt, abs=0.6)


# ---------------------------------------------------------------------------------------------- crowds


def babble(n_voices: int, n_samples: int) -> list[NDArray[np.float32]]:
    """Voices of one length and loudness."""
    rng = np.random.default_rng(9)
    return [rng.standard_normal(n_samples).astype(np.float32) for _ in range(n_voices)]


def click(n_samples: int, at: int) -> list[NDArray[np.float32]]:
    """One voice that says one thing, once."""
    voice = np.zeros(n_samples, np.float32)
    voice[at] = 1.0
    return [voice]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(("n_voices", "n_samples"), [(1, 5000), (3, 4999), (16, 4096)])
def test_a_crowd_is_heard_by_every_microphone(name: str, n_voices: int, n_samples: int) -> None:
    voices = babble(n_voices, n_samples)
    kept = [voice.copy() for voice in voices]
    for array in (load_array(name), omnidirectional(name)):
        for seed in range(3):
            heard = crowd_noise(array, voices, np.random.default_rng(seed))
            assert heard.shape == (array.n_mics, n_samples)
            assert heard.dtype == np.float32
            assert np.isfinite(heard).all()
            level = np.sqrt(np.mean(np.square(heard, dtype=np.float64), axis=1))
            assert level.min() > 0.1
            if array.pattern == 1:
                assert level.max() < 1.5 * level.min()  # wherever they stand
    assert all(map(np.array_equal, voices, kept))


def test_a_crowd_is_drawn_from_its_generator_alone() -> None:
    array, voices = load_array("respeaker-usb-4"), babble(5, 3000)
    made = []
    for before in range(2):
        np.random.default_rng(before).random(before)  # what others draw changes nothing
        rng = np.random.default_rng(4)
        made.append((crowd_noise(array, voices, rng), rng.random()))
    (one, after), (again, then) = made
    assert one.tobytes() == again.tobytes()
    assert after == then
    assert not np.array_equal(crowd_noise(array, voices, np.random.default_rng(5)), one)
    assert not np.array_equal(crowd_noise(array, voices[::-1], np.random.default_rng(4)), one)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_bystander_is_heard_from_somewhere_and_later_from_somewhere_else(name: str) -> None:
    array = omnidirectional(name)
    rate, at = array.sample_rate, 2000
    close = array.max_lag / rate  # seconds
    apart = set()
    for seed in range(8):
        heard = crowd_noise(array, click(at + rate // 10, at), np.random.default_rng(seed))
        fine = np.abs(resample_poly(heard.astype(np.float64), 8, 1, axis=1))
        first = fine.argmax(axis=1) / 8 - at  # samples
        assert np.abs(first).max() <= array.max_lag  # the strongest is not late
        apart.add(tuple(np.round(first - first[0], 1)))
        skipped = 8 * (at + array.max_lag + rate // 1000)
        echo = fine[:, skipped:]
        later = (echo.argmax(axis=1) + skipped) / (8 * rate) - at / rate  # seconds
        assert 0.002 - close <= later.min() <= later.max() <= 0.06 + close
        assert np.ptp(later) <= 2 * close
        strength = echo.max(axis=1) / fine.max(axis=1)
        assert 0.15 < strength.min() <= strength.max() < 0.85
    assert len(apart) > 4  # not always from the same side


@pytest.mark.parametrize("at", [0, 3999])
def test_what_a_bystander_says_last_does_not_come_first(at: int) -> None:
    array = omnidirectional("respeaker-usb-4")
    for seed in range(4):
        heard = np.abs(crowd_noise(array, click(4000, at), np.random.default_rng(seed)))
        far = heard[:, 1200:] if at == 0 else heard[:, :3900]  # the echo of 0 ends before 0.06 s
        assert far.max() < 0.02 * heard.max()


def test_each_of_a_crowd_is_somewhere_else() -> None:
    array = omnidirectional("respeaker-usb-4")
    n = array.frame_length
    srp = SrpPhat(array, n)
    found = [
        float(srp(crowd_noise(array, babble(1, n), np.random.default_rng(seed))[None]).argmax())
        for seed in range(24)
    ]
    assert (np.histogram(found, 4, (0, 360))[0] > 1).all()  # every quadrant
    many = crowd_noise(array, babble(16, 2**15), np.random.default_rng(0))
    one = crowd_noise(array, babble(1, 2**15), np.random.default_rng(0))
    assert off_diffuse(many, array) < 0.75 * off_diffuse(one, array)  # nearer to sound from everywhere


def test_few_exponentials_are_as_good_as_many() -> None:
    turns = np.random.default_rng(0).uniform(-1e-3, 1e-3, 4)
    for n_bins in (1, 511, 512, 513, 40000):
        exact = np.exp(-2j * np.pi * turns[:, None] * np.arange(n_bins))
        np.testing.assert_allclose(acoustics._shifts(turns, n_bins), exact, atol=1e-6)
