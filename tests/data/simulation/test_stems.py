"""Stems: what scenes are mixed from, the same from a seed, each what it says it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tytoalba.data.simulation import stems as module
from tytoalba.data.simulation.microphones import CALM
from tytoalba.data.simulation.room import loudness
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.stems import PLACES, Stems, gather_stems
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import SPEED_OF_SOUND, load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import lag_matrix
from tytoalba.storage.tensors import write_tensors

ARRAY = load_array("respeaker-usb-4")
SCENES = Scenes(ARRAY, (SyntheticVoices(),), ("hybrid", "anechoic", "hybrid"), "train", 3, seconds=1.5)

HEADER = {"format": "tytoalba-stems", "version": 2, "array": ARRAY.to_toml(), "families": ["hybrid"]}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few voices."""
    monkeypatch.setattr(module, "N_VOICES", (4, 5))


@pytest.fixture
def stems() -> Stems:
    return gather_stems(SCENES, 7)


def arrays_of(stems: Stems) -> dict[str, Any]:
    return {name: value for name, value in vars(stems).items() if isinstance(value, np.ndarray)}


def same(a: Stems, b: Stems) -> bool:
    assert len(arrays_of(a)) == 9
    alike = (a.array, a.families) == (b.array, b.families)
    return alike and all(map(np.array_equal, arrays_of(a).values(), arrays_of(b).values()))


def test_stems_are_as_many_and_as_long_as_they_say(stems: Stems) -> None:
    rate = ARRAY.sample_rate
    assert stems.families == ("hybrid", "anechoic")
    assert stems.family.tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert stems.noise_family.tolist() == [0, 1, 0]
    assert stems.responses.shape == (7, PLACES, 4, int(1.024 * rate))
    assert stems.azimuth.shape == stems.delay.shape == (7, PLACES)
    assert stems.noises.shape == (3, 4, SCENES.n_samples)
    assert stems.voices.shape == (5, 3 * rate)
    assert stems.disturbances.shape == (2, SCENES.n_samples)
    for name in ("noises", "voices", "disturbances"):
        for sound in getattr(stems, name):
            assert loudness(sound.astype(np.float64)) == pytest.approx(1.0, rel=1e-2), name
    energy = np.sum(stems.responses.astype(np.float64) ** 2, axis=(2, 3)) / 4
    assert energy == pytest.approx(np.ones((7, PLACES)), rel=1e-2)


def test_a_seed_gives_the_same_stems_on_any_number_of_processes(stems: Stems) -> None:
    done: list[tuple[int, int]] = []
    assert same(gather_stems(SCENES, 7, on_progress=lambda now, all_: done.append((now, all_))), stems)
    assert done == [(k, 17) for k in range(1, 18)]  # 7 rooms, 3 noises, 5 voices, 2 disturbances
    other = gather_stems(replace(SCENES, seed=4), 7)
    for name in ("responses", "noises", "voices", "disturbances"):
        assert not np.array_equal(getattr(other, name), getattr(stems, name)), name


def test_a_part_of_them_does_not_depend_on_how_many_there_are(stems: Stems) -> None:
    fewer = gather_stems(SCENES, 2, processes=2)
    assert np.array_equal(fewer.responses, stems.responses[:2])
    assert np.array_equal(fewer.azimuth, stems.azimuth[:2])
    assert np.array_equal(fewer.noises, stems.noises)  # one of each turn at least
    assert np.array_equal(fewer.voices, stems.voices[:4])


def test_places_are_apart_and_sound_comes_from_them(stems: Stems) -> None:
    for azimuth in stems.azimuth:
        assert min(distance(float(a), float(b)) for a, b in combinations(azimuth, 2)) >= SCENES.separation
    clear = np.flatnonzero(stems.family == 1)  # hardly any echo
    gcc = GccPhat.for_array(ARRAY, 512, (500.0, 7000.0))
    matrix = lag_matrix(gcc, ARRAY).reshape(-1, 360)
    for room in clear:
        for response, azimuth, delay in zip(
            stems.responses[room], stems.azimuth[room], stems.delay[room], strict=True
        ):
            first = max(int(delay) - 32, 0)
            direct = np.zeros((1, 4, 512), np.float32)
            direct[0, :, 200:264] = response[:, first : first + 64]
            assert distance(float((gcc(direct).reshape(-1) @ matrix).argmax()), float(azimuth)) <= 15
            assert 0.25 < delay / ARRAY.sample_rate * SPEED_OF_SOUND < 4.1


def test_as_many_rooms_are_calm_as_asked_for(stems: Stems) -> None:
    assert not stems.calm.any()
    half = gather_stems(replace(SCENES, calm=0.5, families=("anechoic",)), 40).calm
    assert 10 <= half.sum() <= 30
    all_ = gather_stems(replace(SCENES, calm=1.0), 5)
    assert all_.calm.all()
    assert (all_.delay / ARRAY.sample_rate * SPEED_OF_SOUND < CALM.far[1] + 0.01).all()


def test_some_families_of_them(stems: Stems) -> None:
    clear = stems.only(["anechoic"])
    assert same(clear, replace(clear, family=np.array([1, 1], np.int32)))
    assert np.array_equal(clear.responses, stems.responses[[1, 4]])
    assert np.array_equal(clear.delay, stems.delay[[1, 4]])
    some = replace(stems, calm=np.arange(7) == 4).only(["anechoic"])
    assert some.calm.tolist() == [False, True]
    assert np.array_equal(clear.noises, stems.noises[[1]])
    assert clear.voices is stems.voices
    assert same(stems.only(["anechoic", "hybrid"]), stems)
    with pytest.raises(DataError, match="no stems of pyroom; there are hybrid, anechoic"):
        stems.only(["pyroom"])


def test_stems_in_a_file(stems: Stems, tmp_path: Path) -> None:
    stems.save(tmp_path / "stems")
    assert same(Stems.load(tmp_path / "stems"), stems)


@pytest.mark.parametrize(
    "changed",
    [
        {"azimuth": np.zeros((7, 3), np.float32)},
        {"delay": np.zeros((6, PLACES), np.int32)},
        {"calm": np.zeros(6, bool)},
        {"family": np.zeros(2, np.int32)},
        {"noises": np.zeros((3, 5, 9), np.float16)},
        {"noise_family": np.zeros(1, np.int32)},
        {"responses": np.zeros((7, PLACES, 3, 9), np.float16)},
        {"voices": np.zeros(9, np.float16)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_stems_that_do_not_fit_are_refused(stems: Stems, tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="do not fit"):
        replace(stems, **changed)
    write_tensors(tmp_path / "altered", arrays_of(stems) | changed, HEADER)
    with pytest.raises(DataError, match="do not fit"):
        Stems.load(tmp_path / "altered")


def test_places_too_far_apart_are_refused_and_not_sought_for_ever() -> None:
    with pytest.raises(DataError, match="4 places cannot be 120 degrees apart"):
        gather_stems(replace(SCENES, separation=120.0), 1)


@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "foreign", "version", "array", "names"])
def test_what_holds_no_stems_is_refused(stems: Stems, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "stems"
    headers: dict[str, dict[str, Any]] = {
        "foreign": {"format": "tytoalba-prior"},
        "version": HEADER | {"version": 1},
        "array": HEADER | {"array": "name = 3"},
        "names": HEADER,
    }
    if damage in headers:
        arrays = {"X": np.zeros(3)} if damage == "names" else arrays_of(stems)
        write_tensors(path, arrays, headers[damage])
    elif damage != "missing":
        stems.save(path)
        path.write_bytes(path.read_bytes()[:-100] if damage == "cut" else b"")
    with pytest.raises(DataError, match="stems"):
        Stems.load(path)
