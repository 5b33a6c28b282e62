"""The data of a benchmark: the same parts and conditions wherever they come from, kept in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.data import test_mat as mat
from tytoalba.bench import data as benchdata
from tytoalba.bench.data import CLEAN, BenchData, Frames, data_name, load_benchdata
from tytoalba.data.datasets import open_dataset
from tytoalba.data.features import extract
from tytoalba.data.mat import file_name
from tytoalba.data.recording import Recording
from tytoalba.data.simulation.export import write_simulation
from tytoalba.data.simulation.features import simulate_features, simulate_noisy
from tytoalba.data.simulation.noise import Noise
from tytoalba.data.simulation.presets import PRESETS, TWIN, Preset
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import ArrayError, DataError
from tytoalba.learning.method import Task
from tytoalba.learning.methods import METHODS
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat

BAND = (100.0, 8000.0)
WHITE = Noise("white", -10.0)
PEPPER = load_array("pepper")
TINY = replace(
    TWIN,
    name="tiny",
    parts=tuple(
        replace(part, n_recordings=n, rooms=part.rooms[:1])
        for part, n in zip(TWIN.parts, (11, 1, 4, 1), strict=True)
    ),
    seconds=0.67,
    two_sources=0.5,
)


@pytest.fixture
def presets(monkeypatch: pytest.MonkeyPatch) -> dict[str, Preset]:
    """A preset that takes no time."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    return PRESETS


def simulation(seed: int = 0) -> Simulation:
    return Simulation(TINY, PEPPER, SyntheticVoices(), seed)


@pytest.fixture(scope="module")
def sslr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench") / "my-sslr"
    write_simulation(simulation(), root, "sslr")
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench") / "mine"
    parts = tuple(part for part in TINY.parts if part.name != "human")
    write_simulation(replace(simulation(), preset=replace(TINY, parts=parts)), root)
    return root


@pytest.fixture
def mats(tmp_path: Path) -> Path:
    """The authors' files: training, both test parts, and one of them in noise."""
    mat.write_hdf5(tmp_path / file_name("train"), mat.variables("tr", 30))
    mat.WRITERS["v5"](tmp_path / file_name("human"), mat.variables("te1", 9, seed=1))
    mat.write_hdf5(tmp_path / file_name("loudspeaker"), mat.variables("te2", 12, seed=2))
    mat.write_hdf5(tmp_path / file_name("loudspeaker", -10), mat.variables("te2", 12, seed=3))
    return tmp_path


def sets(data: BenchData) -> Iterator[Frames]:
    yield data.train
    yield from [data.valid] if data.valid else []
    yield from data.tests.values()


def assert_sound(data: BenchData, n_inputs: int = 306) -> None:
    """Features that methods can use: finite, labelled, of one width, no frame without source."""
    assert data.n_inputs == n_inputs
    for frames in sets(data):
        assert len(frames) == len(frames.X) == len(frames.azimuth) > 0
        assert frames.X.shape == (len(frames), n_inputs)
        assert frames.X.dtype == np.float32
        assert np.isfinite(frames.X).all()
        assert np.isfinite(frames.azimuth).any(axis=1).all()
        assert frames.azimuth.shape[1] == 2


def assert_same(a: BenchData, b: BenchData) -> None:
    """Equal to the bit, recipe included."""
    assert (a.name, a.array, a.gcc) == (b.name, b.array, b.gcc)
    assert list(a.tests) == list(b.tests)
    assert (a.valid is None) == (b.valid is None)
    for one, two in zip(sets(a), sets(b), strict=True):
        assert one.X.dtype == two.X.dtype
        np.testing.assert_array_equal(one.X, two.X)
        np.testing.assert_array_equal(one.azimuth, two.azimuth)


# ---- simulated ----


def test_simulated(presets: dict[str, Preset]) -> None:
    assert "quick" in presets
    told: list[tuple[str, int, int]] = []
    data = load_benchdata(
        "simulated:tiny",
        bands=BAND,
        noises=[WHITE],
        noise_share=0.5,
        announce=lambda *news: told.append(news),
    )
    assert data.name == "simulated:tiny"
    assert list(data.tests) == [(c, part) for part in ("test", "human") for c in (CLEAN, "white -10 dB")]
    assert_sound(data)
    assert data.array == PEPPER
    assert data.gcc == GccPhat.for_array(PEPPER, 8192, BAND)
    assert data.valid is not None
    for frames, part in ((data.train, "train"), (data.valid, "valid"), (data.tests[CLEAN, "test"], "test")):
        straight = simulate_features(simulation(), part, data.gcc)
        np.testing.assert_array_equal(frames.X, straight.flat)
        np.testing.assert_array_equal(frames.azimuth, straight.azimuth)
    noisy = simulate_noisy(simulation(), "test", [WHITE], data.gcc)[0]
    half = noisy.select(noisy.recording < 2)  # the first two of four recordings
    np.testing.assert_array_equal(data.tests["white -10 dB", "test"].X, half.flat)
    assert not np.array_equal(half.flat, data.tests[CLEAN, "test"].X[: len(half)])
    assert [what for what, done, total in told if done == total] == [
        "train", "valid", "test", "test, noisy", "human", "human, noisy"
    ]  # fmt: skip


def test_size_seed_bands_and_array_of_a_simulation(presets: dict[str, Preset]) -> None:
    presets["tiny"] = replace(TINY, parts=tuple(part for part in TINY.parts if part.name != "human"))
    small = load_benchdata("simulated:tiny", bands=[BAND, (500.0, 4000.0)], size=0.1, seed=3)
    assert_sound(small, 612)
    assert small.gcc is not None
    assert small.gcc.band_list == (BAND, (500.0, 4000.0))
    gcc = GccPhat.for_array(PEPPER, 8192, (BAND, (500.0, 4000.0)))
    first = Simulation(presets["tiny"].scaled(0.1), PEPPER, SyntheticVoices(), seed=3)
    np.testing.assert_array_equal(small.train.X, simulate_features(first, "train", gcc).flat)
    other = load_benchdata("simulated:tiny", bands=BAND, size=0.1, array="respeaker-usb-4")
    assert other.array == load_array("respeaker-usb-4")
    assert other.n_inputs != small.n_inputs


def test_bands_together_are_the_band_that_holds_them(presets: dict[str, Preset]) -> None:
    presets["tiny"] = replace(TINY, parts=tuple(part for part in TINY.parts if part.name != "human"))
    low, high, edge = *BAND, 1500.0
    how: Any = {"size": 0.1}
    one = load_benchdata("simulated:tiny", bands=BAND, **how)
    data = load_benchdata("simulated:tiny", bands=[(low, edge), (edge, high)], parts=2, **how)
    assert data.plain.gcc == one.gcc
    for mine, theirs in zip(sets(data.plain), sets(one), strict=True):
        np.testing.assert_allclose(mine.X, theirs.X, atol=3e-3)  # the bin at the edge counts twice
        assert not np.allclose(mine.X, theirs.X[::-1], atol=3e-3)
        assert np.array_equal(mine.azimuth, theirs.azimuth, equal_nan=True)
    assert_same(one.plain, one)
    unknown = replace(one, gcc=None)
    assert unknown.plain is unknown  # as it comes
    apart = load_benchdata("simulated:tiny", bands=[(low, edge), (edge + 500.0, high)], **how)
    with pytest.raises(DataError, match="do not follow each other: leave out the option plain"):
        _ = apart.plain
    with pytest.raises(DataError, match="which features of simulated:tiny"):
        _ = replace(data, gcc=one.gcc).plain


def test_windows_of_simulated_and_recorded_frames(presets: dict[str, Preset], folder: Path) -> None:
    presets["tiny"] = replace(TINY, parts=tuple(part for part in TINY.parts if part.name != "human"))
    plain, cut = (load_benchdata("simulated:tiny", bands=BAND, size=0.1, parts=n) for n in (1, 2))
    assert cut.gcc == GccPhat.for_array(PEPPER, 8192, BAND, parts=2)
    assert_sound(cut, 4 * 306)  # the whole frame and three windows
    assert_same(cut.whole, plain)
    assert_same(plain.whole, plain)
    recorded = load_benchdata(str(folder), bands=BAND, parts=2)
    assert recorded.gcc == cut.gcc
    assert_sound(recorded, 4 * 306)


def test_features_that_no_frame_has(folder: Path) -> None:
    for where in ("simulated:quick", str(folder)):
        with pytest.raises(DataError, match=r"no such GCC-PHAT.* change bands or parts"):
            load_benchdata(where, bands=BAND, parts=3000)
        with pytest.raises(DataError, match="holds no frequency"):
            load_benchdata(where, bands=(100.0, 100.1))


@pytest.mark.usefixtures("presets")
def test_training_frames_in_noise(tmp_path: Path) -> None:
    quiet = load_benchdata("simulated:tiny", bands=BAND)
    data = load_benchdata("simulated:tiny", bands=BAND, noisy_train=True)
    assert quiet.noisy_train is None
    assert data.noisy_train is not None
    np.testing.assert_array_equal(data.train.X, quiet.train.X)
    for name in ("azimuth", "place"):  # the same frames, heard otherwise
        np.testing.assert_array_equal(getattr(data.noisy_train, name), getattr(data.train, name))
    changed = np.abs(data.noisy_train.X - data.train.X).max(axis=1)
    of_recording = [changed[data.train.recording == k].mean() for k in np.unique(data.train.recording)]
    assert min(of_recording) > 0.001
    assert np.ptp(of_recording) > 0.05  # some in much noise, others in little
    data.save(tmp_path / "kept.safetensors")
    again = BenchData.load(tmp_path / "kept.safetensors")
    np.testing.assert_array_equal(again.noisy.train.X, data.noisy_train.X)
    assert again.noisy.noisy_train is None
    with pytest.raises(DataError, match="no training frames in noise: leave out the option noisy"):
        _ = quiet.noisy


def test_recorded_training_frames_in_noise(folder: Path) -> None:
    data = load_benchdata(str(folder), bands=BAND, noisy_train=True)
    assert data.noisy_train is not None
    np.testing.assert_array_equal(data.noisy_train.azimuth, data.train.azimuth)
    assert not np.array_equal(data.noisy_train.X, data.train.X)


def test_what_methods_are_shown() -> None:
    data = small(bands=((100.0, 2000.0), (2000.0, 8000.0)), parts=2)
    data = replace(data, noisy_train=replace(data.train, X=data.train.X + 1))
    gcc = data.gcc
    assert gcc is not None
    pairs = len(gcc.pairs) * gcc.n_lags
    widths = {"": data.n_inputs, "whole": 2 * pairs, "plain": pairs}
    assert data.seen_by({}) is data
    assert data.seen_by({"windows": False}).n_inputs == widths["whole"]
    assert data.seen_by({"plain": True, "windows": False}).n_inputs == widths["plain"]
    for options, width in (({}, ""), ({"windows": False}, "whole"), ({"plain": True}, "plain")):
        seen = data.seen_by({**options, "noisy": True})
        assert seen.n_inputs == widths[width]
        np.testing.assert_allclose(seen.train.X, data.seen_by(options).train.X + 1, atol=1e-5)


def test_halves_of_the_validation_part() -> None:
    place = np.stack([np.repeat(np.arange(10), 3), np.tile(np.arange(3), 10)], axis=1)
    frames = Frames(np.arange(30, dtype=np.float32)[:, None], np.zeros((30, 1)), place)
    first, second = replace(small(), valid=frames).valid_halves()
    assert sorted(np.concatenate([first.X, second.X])[:, 0]) == list(range(30))
    assert set(first.recording) == {0, 1, 4, 5, 8, 9}
    assert set(second.recording) == {2, 3, 6, 7}
    with pytest.raises(DataError, match="no validation part: leave out the option patience"):
        small(valid=False).valid_halves()


# ---- recorded ----


def names(recordings: list[Recording], part: str) -> list[str]:
    return [recording.name for recording in recordings if part in recording.subset]


@pytest.fixture
def extracted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the recordings of every extraction, in order."""
    seen: list[list[str]] = []

    def spying(recordings: list[Recording], *arguments: Any, **options: Any) -> Any:
        seen.append([recording.name for recording in recordings])
        return extract(recordings, *arguments, **options)

    monkeypatch.setattr(benchdata, "extract", spying)
    return seen


def test_sslr(sslr: Path, extracted: list[list[str]]) -> None:
    data = load_benchdata(str(sslr), bands=BAND, noises=[WHITE], noise_share=0.5)
    assert data.name == "my-sslr"
    assert set(data.tests) == {(c, part) for c in (CLEAN, "white -10 dB") for part in ("test", "human")}
    assert_sound(data)
    test, human, valid, train = extracted
    recordings = open_dataset(sslr)
    assert sorted(valid + train) == sorted(names(recordings, "train"))
    assert len(valid) == 1  # of eleven
    assert not set(valid) & set(train)
    assert test == names(recordings, "test")
    assert human == names(recordings, "human")
    chosen = [recording for recording in recordings if recording.name in train]
    straight = extract(chosen, data.gcc)
    np.testing.assert_array_equal(data.train.X, straight.flat)
    np.testing.assert_array_equal(data.train.azimuth, straight.azimuth)
    assert len(data.tests["white -10 dB", "test"]) < len(data.tests[CLEAN, "test"])


def test_folder_with_its_own_validation_part(folder: Path, extracted: list[list[str]]) -> None:
    data = load_benchdata(str(folder), bands=BAND)
    assert data.name == "mine"
    assert set(data.tests) == {(CLEAN, "test")}
    assert_sound(data)
    recordings = open_dataset(folder)
    assert extracted == [names(recordings, part) for part in ("test", "valid", "train")]
    straight = simulate_features(simulation(), "train", data.gcc)
    np.testing.assert_array_equal(data.train.X, straight.flat)


def test_few_recordings_leave_none_for_validation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [r for r in open_dataset(folder) if r.subset == "train"][:2]
    few += [r for r in open_dataset(folder) if r.subset == "test"][:1]
    monkeypatch.setattr(benchdata, "open_dataset", lambda *_: few)
    data = load_benchdata(str(folder), bands=BAND)
    assert data.valid is None
    assert set(data.tests) == {(CLEAN, "test")}


@pytest.mark.parametrize(
    ("kept", "renamed", "message"),
    [
        (["train"], {}, "mine needs a training and a test part"),
        (["test", "valid"], {}, "mine needs a training and a test part"),
        (["train", "test"], {"train": "kitchen"}, "'kitchen' is neither of train, valid, test, human"),
    ],
)
def test_folders_that_lack_a_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kept: list[str], renamed: dict[str, str], message: str
) -> None:
    found = [r for r in open_dataset(folder) if r.subset in kept]
    found = [replace(r, subset=renamed.get(r.subset, r.subset)) for r in found]
    monkeypatch.setattr(benchdata, "open_dataset", lambda *_: found)
    with pytest.raises(DataError, match=message):
        load_benchdata(str(folder), bands=BAND)


# ---- the authors' features ----


def test_the_authors_features(mats: Path) -> None:
    data = load_benchdata(str(mats), bands=BAND)
    assert data.name == mats.name
    assert data.valid is None
    assert set(data.tests) == {(CLEAN, "test"), (CLEAN, "human"), (str(WHITE), "test")}
    assert_sound(data)
    content = mat.variables("tr", 30)
    heard = content["Itr"].ravel() > 0
    np.testing.assert_array_equal(data.train.X, content["Xtr"][heard].astype(np.float32))
    assert mat.without_nan(data.train.azimuth) == mat.directions(content["Ytr"][heard])
    noisy = mat.variables("te2", 12, seed=3)
    np.testing.assert_array_equal(
        data.tests[str(WHITE), "test"].X, noisy["Xte2"][noisy["Ite2"].ravel() > 0].astype(np.float32)
    )


def test_the_authors_features_serve_every_method(mats: Path) -> None:
    data = load_benchdata(str(mats), bands=BAND)
    task = Task(data.n_inputs, array=data.array, gcc=data.gcc)
    assert METHODS["srp-phat"](task).posterior(data.train.X).shape == (len(data.train), 360)


def test_the_authors_features_without_training(mats: Path) -> None:
    (mats / file_name("train")).unlink()
    with pytest.raises(DataError, match=r"qianTraining_GCCPHAT_SSLR\.mat is missing"):
        load_benchdata(str(mats), bands=BAND)


# ---- refusals ----


def test_data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no preset called 'huge'; known: quick, twin, hard"):
        load_benchdata("simulated:huge", bands=BAND)
    with pytest.raises(ArrayError, match="nosuch"):
        load_benchdata("simulated:quick", bands=BAND, array="nosuch")
    with pytest.raises(DataError, match="is not a folder"):
        load_benchdata(str(tmp_path / "nowhere"), bands=BAND)
    with pytest.raises(DataError, match="holds no data set that is known"):
        load_benchdata(str(tmp_path), bands=BAND)


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_name("simulated:quick") == "simulated:quick"
    assert data_name(".") == data_name(str(tmp_path)) == tmp_path.name


# ---- the file ----


def small(valid: bool = True, bands: Any = BAND, parts: int = 1) -> BenchData:
    rng = np.random.default_rng(0)
    gcc = GccPhat.for_array(PEPPER, 8192, bands, parts=parts)

    def frames(n: int) -> Frames:
        azimuth = rng.uniform(0, 360, (n, 2))
        azimuth[::2, 1] = np.nan
        place = rng.integers(0, 9, (n, 2)) if n > 4 else None
        return Frames(rng.standard_normal((n, gcc.n_features)).astype(np.float32), azimuth, place)

    tests = {(CLEAN, "test"): frames(5), (str(WHITE), "test"): frames(3), (CLEAN, "human"): frames(2)}
    return BenchData("simulated:tiny", frames(9), frames(4) if valid else None, tests, PEPPER, gcc)


@pytest.mark.parametrize(
    "data",
    [
        small(),
        small(valid=False),
        small(bands=((0.0, np.inf), (500.0, 4000.0))),
        small(parts=3),
        small(parts=3).whole,
        replace(small(), array=None, gcc=None),
        replace(small(), tests={}),
    ],
    ids=["whole", "no validation", "two bands", "windows", "without them", "no array", "no tests"],
)
def test_a_round_trip_gives_the_same_bits(tmp_path: Path, data: BenchData) -> None:
    data.save(tmp_path / "data.safetensors")
    found = BenchData.load(tmp_path / "data.safetensors")
    assert list(tmp_path.iterdir()) == [tmp_path / "data.safetensors"]
    assert_same(found, data)


def test_whole_frames_are_views_of_the_features() -> None:
    data = small(bands=(BAND, (500.0, 4000.0)), parts=2)
    whole = data.whole
    assert whole.gcc == GccPhat.for_array(PEPPER, 8192, (BAND, (500.0, 4000.0)))
    assert whole.n_inputs == 2 * 306
    for part, first in zip(sets(data), sets(whole), strict=True):
        assert np.shares_memory(part.X, first.X)
        np.testing.assert_array_equal(first.X, part.X[:, : 2 * 306])
        assert first.azimuth is part.azimuth
        assert first.place is part.place
    assert small(valid=False, parts=2).whole.valid is None
    for unknown in (replace(data, gcc=None), replace(data, gcc=whole.gcc)):
        with pytest.raises(DataError, match="which features of simulated:tiny are of whole frames"):
            _ = unknown.whole


def recipe(**changes: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Change what the file says about itself; None takes it away."""

    def change(tensors: dict[str, Any], told: dict[str, Any]) -> None:
        assert tensors
        told.update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            del told[key]

    return change


def without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, told: tensors.pop(name) if told else None


def shorter(tensors: dict[str, Any], told: dict[str, Any]) -> None:
    assert told
    tensors["train/azimuth"] = tensors["train/azimuth"][1:].copy()


def partless(tensors: dict[str, Any], told: dict[str, Any]) -> None:
    del told["tests"]  # as in older files
    tensors["test/clean/X"] = tensors["train/X"].copy()
    tensors["test/clean/azimuth"] = tensors["train/azimuth"].copy()


@pytest.mark.parametrize(
    "damage",
    [
        recipe(format="tytoalba-features"), recipe(name=None), recipe(array="[[["), recipe(array=3),
        recipe(gcc=None), recipe(gcc={}), recipe(gcc=[]), recipe(gcc={"bands": 3}),
        recipe(tests=[["x", "y"]]), recipe(tests=3),
        without("train/X"), without("train/azimuth"), without("test/clean/human/azimuth"), shorter, partless,
    ],
)  # fmt: skip
def test_a_damaged_recipe_is_refused(
    tmp_path: Path, damage: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    path = tmp_path / "data.safetensors"
    small().save(path)
    tensors = load_file(path)
    told = json.loads(_metadata(path)["tytoalba"])
    damage(tensors, told)
    save_file(tensors, path, {"tytoalba": json.dumps(told)})
    with pytest.raises(DataError, match="is damaged or not the data of a benchmark"):
        BenchData.load(path)


def _metadata(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        return dict(file.metadata())


@pytest.mark.parametrize("told", ["[]", "3", "{", ""])
def test_a_recipe_that_is_no_table_is_refused(tmp_path: Path, told: str) -> None:
    path = tmp_path / "data.safetensors"
    save_file({"train/X": np.zeros((1, 2), np.float32)}, path, {"tytoalba": told})
    with pytest.raises(DataError, match=r"data\.safetensors is damaged"):
        BenchData.load(path)


def test_bytes_that_are_no_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.safetensors"
    small().save(path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[:50], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            BenchData.load(path)
    for lost in (tmp_path / "nothing", tmp_path):
        with pytest.raises(DataError, match="is damaged"):
            BenchData.load(lost)
