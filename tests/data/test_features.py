"""Features: the same to the bit on every way there, and kept in a file that is whole or refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from tytoalba.data.datasets import open_dataset
from tytoalba.data.features import FeatureSet, describe, extract, read_description, stream_features
from tytoalba.data.folder import open_folder
from tytoalba.data.recording import Recording
from tytoalba.data.simulation import talkers
from tytoalba.data.simulation.export import write_simulation
from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.presets import TWIN
from tytoalba.data.simulation.recordings import Simulation, as_recording
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.data.sslr import open_sslr
from tytoalba.errors import AudioError, DataError, SealError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import frames
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.keys import make_identity, read_identities
from tytoalba.storage.soundfiles import read_audio

SMALL = replace(
    TWIN,
    parts=tuple(
        replace(part, n_recordings=n, rooms=TWIN.parts[0].rooms[3:4])
        for part, n in zip(TWIN.parts, (5, 1, 3, 2), strict=True)
    ),
    seconds=0.67,  # as long as the room's response, so that the coherence of both is computed once
    two_sources=0.6,
)
BANDS = ((100.0, 1000.0), (1000.0, np.inf))


def simulation(array: str = "pepper", seed: int = 0) -> Simulation:
    return Simulation(SMALL, load_array(array), SyntheticVoices(), seed)


@pytest.fixture(scope="module")
def train() -> FeatureSet:
    """Features of a small training part."""
    return simulate_features(simulation(), "train")


def assert_same(a: FeatureSet, b: FeatureSet) -> None:
    """Equal to the bit, labels and origin included."""
    assert a.names == b.names
    assert a.X.dtype == b.X.dtype == np.float32
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.azimuth, b.azimuth)
    np.testing.assert_array_equal(a.recording, b.recording)
    np.testing.assert_array_equal(a.frame, b.frame)


def test_what_a_set_holds(train: FeatureSet) -> None:
    assert train.X.shape == (len(train), 6, 51)
    assert train.flat.shape == (len(train), 306)
    assert train.names == tuple(f"train_{i:05d}" for i in range(5))
    assert set(train.n_sources.tolist()) == {1, 2}
    made = simulation().recording((0, 3))
    rows = train.recording == 3
    recording = as_recording(made, "", load_array("pepper"))
    talks = recording.n_sources > 0
    assert 0 < talks.sum() < len(talks)
    np.testing.assert_array_equal(train.frame[rows], made.frame_ids[talks])
    np.testing.assert_array_equal(train.azimuth[rows], made.azimuth[talks])
    gcc = GccPhat.for_array(load_array("pepper"))
    # number of threads: last bit
    np.testing.assert_allclose(train.X[rows], gcc(recording.frames()[talks]), atol=1e-6)


def test_two_processes_give_the_same_bits_and_other_seeds_do_not() -> None:
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    quick = replace(simulation(), preset=replace(SMALL, parts=(replace(SMALL.parts[0], n_recordings=4),)))
    alone = simulate_features(quick, "train")
    both = simulate_features(quick, "train", processes=2, on_progress=progress)
    assert_same(both, alone)
    assert seen == [(i, 4) for i in range(1, 5)]
    other = simulate_features(replace(quick, seed=1), "train")
    assert len(other) != len(alone) or not np.array_equal(other.X, alone.X)


def test_through_sslr_files_and_directly_is_the_same(tmp_path: Path, train: FeatureSet) -> None:
    write_simulation(simulation(), tmp_path, "sslr")
    recordings = open_sslr(tmp_path)
    assert {r.subset for r in recordings} == {"lsp_train_106", "lsp_test_106", "human"}
    assert [r.name for r in open_dataset(tmp_path)] == [r.name for r in recordings]
    read = [r for r in recordings if r.subset == "lsp_train_106"]
    assert_same(extract(read), train)
    assert_same(extract(read, processes=2), train)  # files: on threads
    gcc = GccPhat.for_array(load_array("pepper"), bands=BANDS)
    for part, subset in (("test", "lsp_test_106"), ("human", "human")):
        direct = simulate_features(simulation(), part, gcc)
        assert direct.X.shape[1:] == (2, 6, 51)
        assert (direct.n_sources == 2).any()
        assert_same(extract([r for r in recordings if r.subset == subset], gcc), direct)


def test_rooms_are_spread_over_the_folders_of_sslr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talkers, "room_response", lambda *_, **__: np.ones((4, 1), np.float32))
    parts = tuple(
        replace(part, n_recordings=len(part.rooms)) for part in TWIN.parts if part.name in ("train", "test")
    )
    write_simulation(
        replace(simulation(), preset=replace(SMALL, parts=parts, seconds=0.25)), tmp_path, "sslr"
    )
    found = [(r.subset, r.name) for r in open_sslr(tmp_path)]
    assert found == [
        *(("lsp_train_106", f"train_0000{i}") for i in (0, 1, 2)),
        *(("lsp_train_301", f"train_0000{i}") for i in (3, 4)),
        *(("lsp_test_106", f"test_0000{i}") for i in (0, 1)),
        ("lsp_test_library", "test_00002"),
    ]


def test_through_a_folder_and_directly_is_the_same(tmp_path: Path) -> None:
    of_respeaker = simulation("respeaker-usb-4")
    write_simulation(of_respeaker, tmp_path)
    recordings = open_folder(tmp_path)
    array = recordings[0].array
    assert array.channels == (0, 1, 2, 3)  # the file has the microphones alone
    assert replace(array, channels=of_respeaker.array.channels) == of_respeaker.array
    assert sorted({r.subset for r in recordings}) == ["human", "test", "train", "valid"]
    for part in ("train", "test"):
        direct = simulate_features(of_respeaker, part)
        assert direct.gcc.n_samples == 2730
        assert (direct.n_sources == 2).any()
        assert_same(extract([r for r in recordings if r.subset == part]), direct)


def test_the_sslr_layout_is_for_four_microphones_at_48_khz(tmp_path: Path) -> None:
    for array in ("respeaker-usb-4", "matrix-voice"):
        with pytest.raises(DataError, match=r"SSLR layout is 4 channels at 48 kHz; .* use --layout folder"):
            write_simulation(simulation(array), tmp_path, "sslr")
    assert not list(tmp_path.iterdir())


def test_sslr_has_no_part_of_ones_own(tmp_path: Path) -> None:
    own = replace(SMALL, parts=(replace(SMALL.parts[0], name="kitchen"),))
    with pytest.raises(DataError, match="SSLR has no part called 'kitchen': use --layout folder"):
        write_simulation(replace(simulation(), preset=own), tmp_path, "sslr")


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(DataError, match="'twin' has no part 'dev'; it has: train, valid, test, human"):
        simulate_features(simulation(), "dev")


def test_nothing_to_extract_from_is_refused() -> None:
    with pytest.raises(DataError, match="no recordings"):
        extract([])


def test_recordings_of_other_widths_are_padded() -> None:
    array = load_array("respeaker-usb-4")
    sound = np.random.default_rng(0).standard_normal((4, 8000)).astype(np.float32)
    one = Recording("a", "", array, np.array([0, 2]), np.array([[10.0], [20.0]]), sound.copy, 2730, 1365)
    three = replace(one, name="b", azimuth=np.array([[1.0, 2.0, 3.0], [4.0, np.nan, np.nan]]))
    gathered = extract([one, three])
    nan = np.nan
    np.testing.assert_array_equal(
        gathered.azimuth, [[10.0, nan, nan], [20.0, nan, nan], [1.0, 2.0, 3.0], [4.0, nan, nan]]
    )
    assert gathered.frame.tolist() == [0, 2, 0, 2]
    assert gathered.recording.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(gathered.X[:2], gathered.X[2:])


def test_labels_beyond_the_sound_are_refused_and_none_are_fine() -> None:
    array = load_array("respeaker-usb-4")
    short = np.zeros((4, 2729), np.float32)
    beyond = Recording("r", "", array, np.array([0]), np.array([[10.0]]), short.copy, 2730, 1365)
    with pytest.raises(DataError, match="'r' has 2729 samples, but frame 0 is labelled"):
        extract([beyond])
    none = replace(beyond, frame_ids=np.array([], np.intp), azimuth=np.empty((0, 2)))
    for parts in (1, 4):
        empty = extract([none], GccPhat.for_array(array, 2730, BANDS, parts=parts))
        assert len(empty) == 0
        assert empty.flat.shape == (0, empty.gcc.n_features)


@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize("bands", [(0.0, np.inf), ((100.0, 1000.0),), BANDS])
def test_a_description_says_it_all(bands: Any, parts: int) -> None:
    array = load_array("respeaker-usb-4")
    gcc = GccPhat.for_array(array, 1024, bands, max_lag=7, parts=parts)
    told = json.loads(json.dumps(describe(gcc)))
    assert told["parts"] == parts
    assert read_description(told, array) == gcc
    assert "exact" not in told  # so that files are as they were
    exact = replace(gcc, exact=True)
    assert read_description(json.loads(json.dumps(describe(exact))), array) == exact != gcc
    del told["parts"]  # as it was told before there were windows
    assert read_description(told, array) == gcc.whole


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("bands", [(0.0, np.inf), (100.0, 8000.0), ((100.0, 1000.0),), BANDS])
def test_what_is_saved_is_loaded(tmp_path: Path, bands: Any, parts: int) -> None:
    array = replace(load_array("respeaker-usb-4"), yaw=12.5, name='odd "name"')
    gcc = GccPhat.for_array(array, array.frame_length, bands, max_lag=7, parts=parts)
    tiny = replace(SMALL, parts=(replace(SMALL.parts[0], n_recordings=2),), seconds=0.5)
    made = simulate_features(Simulation(tiny, array, SyntheticVoices()), "train", gcc)
    made.save(tmp_path / "made.safetensors")
    again = FeatureSet.load(tmp_path / "made.safetensors")
    assert_same(again, made)
    assert again.array == array
    assert again.gcc == gcc
    assert again.flat.shape == (len(made), gcc.n_features)
    assert again.X.shape[1:] == gcc(np.zeros((1, 4, 2730), np.float32)).shape[1:]
    assert [path.name for path in tmp_path.iterdir()] == ["made.safetensors"]


def test_sealed_features_are_opened_in_memory(tmp_path: Path, train: FeatureSet) -> None:
    public = make_identity(tmp_path / "key")
    train.save(tmp_path / "set.age", [public])
    assert b"tytoalba" not in (tmp_path / "set.age").read_bytes()
    with pytest.raises(SealError, match="no key"):
        FeatureSet.load(tmp_path / "set.age")
    keys = read_identities(tmp_path / "key")
    found = FeatureSet.load(tmp_path / "set.age", keys)
    assert np.array_equal(found.X, train.X)
    assert found.names == train.names
    (tmp_path / "set.age").write_bytes((tmp_path / "set.age").read_bytes()[:-1])
    with pytest.raises(SealError, match="damaged"):
        FeatureSet.load(tmp_path / "set.age", keys)


def test_some_of_the_frames(tmp_path: Path, train: FeatureSet) -> None:
    every_third = train.select(slice(None, None, -3))
    assert_same(every_third, train.select(np.arange(len(train))[::-3]))
    np.testing.assert_array_equal(every_third.X, train.X[::-3])
    every_third.save(tmp_path / "third")
    assert_same(FeatureSet.load(tmp_path / "third"), every_third)
    nothing = train.select(np.zeros(len(train), bool))
    assert len(nothing) == 0
    nothing.save(tmp_path / "nothing")
    assert FeatureSet.load(tmp_path / "nothing").flat.shape == (0, 306)


def test_sets_that_do_not_fit_together_are_refused(train: FeatureSet) -> None:
    for field in ("azimuth", "recording", "frame"):
        with pytest.raises(DataError, match="differ in length"):
            replace(train, **{field: getattr(train, field)[1:]})
    with pytest.raises(DataError, match="recording that is not listed"):
        replace(train, names=train.names[:-1])
    with pytest.raises(DataError, match="recording that is not listed"):
        replace(train, recording=train.recording - 1)
    with pytest.raises(DataError, match=r"\(5, 51\) values per frame, the recipe gives 306"):
        replace(train, X=train.X[:, 1:])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, train: FeatureSet) -> Path:
    path = tmp_path_factory.mktemp("features") / "train.safetensors"
    train.select(slice(0, 4)).save(path)
    return path


def rewritten(saved: Path, to: Path, **changes: Any) -> Path:
    """A copy of the file with another recipe; None removes a key."""
    with safe_open(str(saved), framework="numpy") as file:
        recipe = json.loads(file.metadata()["tytoalba"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    for key, value in changes.items():
        within = recipe["gcc"] if key in recipe["gcc"] else recipe
        within[key] = value
        if value is None:
            del within[key]
    save_file(tensors, to, {"tytoalba": json.dumps(recipe)})
    return to


def test_files_from_before_there_were_windows_are_read(tmp_path: Path, saved: Path) -> None:
    old = FeatureSet.load(rewritten(saved, tmp_path / "old", parts=None))
    assert old.gcc.parts == 1
    assert_same(old, FeatureSet.load(saved))


def test_files_of_others_are_refused(tmp_path: Path, saved: Path) -> None:
    other = tmp_path / "other.safetensors"
    with pytest.raises(DataError, match="no such file"):
        FeatureSet.load(other)
    save_file({"X": np.zeros(3)}, other)
    with pytest.raises(DataError, match="holds no features; tyto features DATA -o FILE makes some"):
        FeatureSet.load(other)
    with pytest.raises(DataError, match="holds no features"):
        FeatureSet.load(rewritten(saved, other, format="another-format"))
    with pytest.raises(DataError, match="has version 2; this program reads 1"):
        FeatureSet.load(rewritten(saved, other, version=2))
    for content in (b"", b"RIFF....WAVEfmt ", b"PK\x03\x04" * 20, bytes(4096)):
        other.write_bytes(content)
        with pytest.raises(DataError, match="damaged or not a feature file"):
            FeatureSet.load(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"array": None},
        {"gcc": None},
        {"gcc": []},
        {"single_band": None},
        {"array": 5},
        {"array": "name = 'x'"},
        {"array": "positions = ["},
        {"bands": []},
        {"bands": [[8000, 100]]},
        {"bands": 3},
        {"n_samples": "many"},
        {"n_samples": -1},
        {"n_samples": 10**30},
        {"bands": [[100, 10**400]]},
        {"max_lag": 24},
        {"max_lag": 25.0},
        {"max_lag": 10**9},
        {"parts": 0},
        {"parts": 2},  # as many values are not there
        {"parts": 10**9},
        {"parts": "two"},
        {"names": None},
        {"names": 7},
        {"names": []},
        {"names": [7] * 99},
    ],
)
def test_a_damaged_recipe_is_refused(tmp_path: Path, saved: Path, changes: dict[str, Any]) -> None:
    path = rewritten(saved, tmp_path / "damaged", **changes)
    with pytest.raises(DataError):
        FeatureSet.load(path)


@pytest.mark.parametrize("text", ["[]", "3", "null", "{", '"features"'])
def test_a_recipe_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    save_file({"X": np.zeros(3)}, tmp_path / "odd", {"tytoalba": text})
    with pytest.raises(DataError):
        FeatureSet.load(tmp_path / "odd")


def test_missing_tensors_are_refused(tmp_path: Path, saved: Path) -> None:
    with safe_open(str(saved), framework="numpy") as file:
        metadata = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    for missing in tensors:
        path = tmp_path / f"without_{missing}"
        save_file({key: value for key, value in tensors.items() if key != missing}, path, metadata)
        with pytest.raises(DataError, match=missing):
            FeatureSet.load(path)


@given(share=st.floats(0.0, 0.999))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_truncated_files_are_refused(tmp_path: Path, saved: Path, share: float) -> None:
    whole = saved.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match="damaged or not a feature file"):
        FeatureSet.load(cut)


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_scratched_files_are_loaded_or_refused(tmp_path: Path, saved: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, header - 1))] = data.draw(st.integers(0, 255))
    scratched = tmp_path / "scratched"
    scratched.write_bytes(bytes(content))
    try:
        loaded = FeatureSet.load(scratched)
    except DataError:
        return
    assert len(loaded) == 4


def test_a_failed_save_leaves_the_old_file(
    tmp_path: Path, train: FeatureSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.safetensors"
    train.select(slice(0, 2)).save(path)
    before = path.read_bytes()

    def full_disk(_tensors: Any, target: Path, *_: Any) -> None:
        Path(target).write_bytes(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full_disk)
    with pytest.raises(OSError, match="no space left"):
        train.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["kept.safetensors"]


def test_the_array_travels_with_the_features(saved: Path) -> None:
    loaded = FeatureSet.load(saved)
    assert isinstance(loaded.array, MicArray)
    assert loaded.array == load_array("pepper")
    assert loaded.gcc.pairs == loaded.array.pairs


def test_features_of_a_file_are_those_of_its_frames_and_need_little_memory(tmp_path: Path) -> None:
    """To the bit, read ahead by two threads; ten times the sound takes no more memory."""
    array = load_array("respeaker-usb-4")
    gcc = prior_gcc(array)
    rng = np.random.default_rng(0)
    peaks = []
    for seconds in (30, 300):
        path = tmp_path / f"{seconds}.wav"
        with soundfile.SoundFile(path, "w", array.sample_rate, array.n_mics) as file:
            for _ in range(seconds):
                file.write(0.1 * rng.standard_normal((array.sample_rate, array.n_mics)))
        some = gcc if seconds == 30 else GccPhat.for_array(array, array.frame_length)  # takes less time
        tracemalloc.start()
        n = sum(len(batch) for batch in stream_features(path, array, some, threads=2))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n == (seconds * array.sample_rate - gcc.n_samples) // (gcc.n_samples // 2) + 1
    assert peaks[1] < peaks[0] + 5e6
    audio = read_audio(tmp_path / "30.wav", array)
    expected = gcc(frames(audio.samples, gcc.n_samples, gcc.n_samples // 2)[:400])
    found = np.concatenate(list(stream_features(tmp_path / "30.wav", array, gcc)))
    assert np.array_equal(found[:400], expected)
    soundfile.write(tmp_path / "short.wav", 0.1 * rng.standard_normal((100, 4)), array.sample_rate)
    with pytest.raises(AudioError, match="too short"):
        list(stream_features(tmp_path / "short.wav", array, gcc))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*silent")
def test_ten_hours_of_sound_take_no_more_memory_than_ten_minutes(tmp_path: Path) -> None:
    """A file of five gigabytes with hardly anything in it but its length: the disk holds a second of it."""
    array = load_array("respeaker-usb-4")
    gcc = prior_gcc(array)
    path = tmp_path / "long.w64"
    noise = 0.1 * np.random.default_rng(0).standard_normal((array.sample_rate, array.n_mics))
    soundfile.write(path, noise, array.sample_rate, "PCM_16", format="W64")
    head = bytearray(path.read_bytes()[:512])
    place = head.index(b"data\xf3\xac\xd3\x11") + 16  # the size of a chunk follows its name of 16 bytes
    peaks = {}
    for minutes in (10, 600):
        n_bytes = 8 * 60 * minutes * array.sample_rate
        head[place : place + 8] = (n_bytes + 24).to_bytes(8, "little")
        head[16:24] = (n_bytes + place + 8).to_bytes(8, "little")
        with path.open("r+b") as file:
            file.write(head)
            file.truncate(place + 8 + n_bytes)
        program = (
            "import sys\n"
            "from tytoalba.bench.speed.rows import memory_peak\n"
            "from tytoalba.data.features import stream_features\n"
            "from tytoalba.learning.prior.features import prior_gcc\n"
            "from tytoalba.signal.array import load_array\n"
            "array = load_array('respeaker-usb-4')\n"
            "n = sum(map(len, stream_features(sys.argv[1], array, prior_gcc(array))))\n"
            "print(n, memory_peak())\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        )
        n, peaks[minutes] = map(int, ran.stdout.split())
        samples = 60 * minutes * array.sample_rate
        assert n == (samples - gcc.n_samples) // (gcc.n_samples // 2) + 1
    assert peaks[600] < peaks[10] + 30e6
