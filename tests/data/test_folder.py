"""One's own recordings in a folder: what is written is read, what is wrong is named with its line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.data.datasets import open_dataset
from tytoalba.data.folder import _read_labels, open_folder, write_array, write_recording
from tytoalba.errors import ArrayError, AudioError, DataError, WrongKeyError
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import write_audio

ARRAY = load_array("respeaker-usb-4")
LENGTH, HOP = 2730, 1365
NAN = np.nan
FRAME_IDS = np.array([0, 1, 4])
AZIMUTH = np.array([[NAN, NAN], [0.1 + 0.2, NAN], [359.99999999999994, 90.0]])


def sound(n_mics: int = 4, n_samples: int = 5 * HOP + LENGTH) -> NDArray[np.float32]:
    grid = np.random.default_rng(0).integers(-20000, 20000, (n_mics, n_samples))
    return (grid / 32768).astype(np.float32)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one recording in each of two parts."""
    write_array(tmp_path, ARRAY)
    for part, name in (("train", "kitchen"), ("test", "hall")):
        write_recording(tmp_path, part, name, sound(), ARRAY, FRAME_IDS, AZIMUTH)
    return tmp_path


def test_what_is_written_is_read(root: Path) -> None:
    hall, kitchen = open_folder(root)
    assert (hall.name, hall.subset) == ("hall", "test")
    assert (kitchen.name, kitchen.subset) == ("kitchen", "train")
    assert (hall.frame_length, hall.hop) == (LENGTH, HOP)
    assert hall.array.channels == (0, 1, 2, 3)  # the file has the microphones alone
    assert replace(hall.array, channels=ARRAY.channels) == ARRAY
    np.testing.assert_array_equal(hall.frame_ids, FRAME_IDS)
    np.testing.assert_array_equal(hall.azimuth, AZIMUTH)  # to the bit
    np.testing.assert_array_equal(hall.load(), sound())
    frames = hall.frames()
    assert frames.shape == (3, 4, LENGTH)
    np.testing.assert_array_equal(frames[2], sound()[:, 4 * HOP : 4 * HOP + LENGTH])
    assert [r.name for r in open_dataset(root)] == ["hall", "kitchen"]


def test_the_table_is_what_one_would_type(root: Path) -> None:
    lines = (root / "test" / "hall.csv").read_text().splitlines()
    assert lines == ["frame,azimuth", "0,", "1,0.30000000000000004", "4,359.99999999999994", "4,90.0"]
    assert sorted(path.name for path in (root / "test").iterdir()) == ["hall.csv", "hall.wav"]


def test_tables_may_come_in_any_order_and_from_a_spreadsheet(root: Path) -> None:
    table = root / "test" / "hall.csv"
    table.write_bytes(b"\xef\xbb\xbfframe,azimuth\r\n4,90\r\n0,\r\n4,45.5\r\n2,1e2\r\n4,0\r\n")
    recording = open_folder(root)[0]
    assert recording.frame_ids.tolist() == [0, 2, 4]
    np.testing.assert_array_equal(recording.azimuth, [[NAN, NAN, NAN], [100.0, NAN, NAN], [90.0, 45.5, 0.0]])
    assert recording.n_sources.tolist() == [0, 1, 3]


def test_other_formats_and_all_the_channels_of_the_device(root: Path) -> None:
    (root / "array.toml").write_text(ARRAY.to_toml())  # microphones on channels 1 to 4 of six
    six = np.concatenate([sound(1), sound(), sound(1)])
    for name in ("raw.flac", "LOUD.WAV"):
        write_audio(root / "test" / name, six, 16000)
        (root / "test" / name).with_suffix(".csv").write_text("frame,azimuth\n0,10\n")
    loud, hall, raw, _ = open_folder(root)
    assert (loud.name, hall.name, raw.name) == ("LOUD", "hall", "raw")
    np.testing.assert_array_equal(raw.load(), sound())
    np.testing.assert_array_equal(loud.load(), sound())


def test_sound_at_another_rate_is_resampled(root: Path) -> None:
    write_audio(root / "test" / "hall.wav", sound(n_samples=48000), 48000)
    recording, _ = open_folder(root)
    assert recording.load().shape == (4, 16000)


@pytest.mark.parametrize(
    "line",
    [
        "x,10",
        "1.5,10",
        "-1,10",
        "4294967296,10",
        "1,-0.5",
        "1,360",
        "1,nan",
        "1,inf",
        "1,left",
        "1",
        "1,10,20",
        "",
        ",",
        ",10",
        "1;10",
        "9" * 5000 + ",10",
    ],
)
def test_a_bad_line_is_named(root: Path, line: str) -> None:
    table = root / "test" / "hall.csv"
    table.write_text(f"frame,azimuth\n0,12\n{line}\n3,\n")
    wanted = re.escape("hall.csv, line 3: expected a frame number from 0 and an azimuth in [0, 360) degrees")
    with pytest.raises(DataError, match=wanted):
        open_folder(root)


@pytest.mark.parametrize(
    "content", ["", "\n", "frame;azimuth\n", "azimuth,frame\n10,0\n", "0,12\n", "frame\n"]
)
def test_a_bad_first_line_is_named(root: Path, content: str) -> None:
    (root / "test" / "hall.csv").write_text(content)
    with pytest.raises(DataError, match=r"hall\.csv: the first line must be frame,azimuth, got"):
        open_folder(root)


def test_tables_that_are_not_text_are_named(root: Path) -> None:
    table = root / "test" / "hall.csv"
    table.write_bytes(b"frame,azimuth\n0,\xff\xfe\n")
    with pytest.raises(DataError, match=r"cannot read .*hall\.csv"):
        open_folder(root)
    table.write_text("frame,azimuth\n0," + "1" * 200000 + "\n")
    with pytest.raises(DataError, match=r"hall\.csv"):
        open_folder(root)


def test_what_is_missing_is_named(root: Path) -> None:
    (root / "test" / "hall.csv").unlink()
    with pytest.raises(DataError, match=r"hall\.wav has no labels: hall\.csv is missing beside it"):
        open_folder(root)
    (root / "test" / "hall.wav").unlink()
    assert [r.name for r in open_folder(root)] == ["kitchen"]
    (root / "train" / "kitchen.wav").unlink()
    with pytest.raises(DataError, match=r"holds no recording: expected <part>/<name>\.wav"):
        open_folder(root)
    (root / "array.toml").unlink()
    with pytest.raises(DataError, match=r"has no array\.toml; tyto array show NAME --toml prints one"):
        open_folder(root)


def test_an_array_file_tells_a_folder_from_sslr(tmp_path: Path) -> None:
    """A part called human, as the twin has one, is also a name of SSLR's."""
    write_array(tmp_path, ARRAY)
    samples = np.zeros((ARRAY.n_mics, 2 * ARRAY.frame_length), np.float32)
    write_recording(tmp_path, "human", "quiet", samples, ARRAY, np.array([0]), np.array([[12.5, np.nan]]))
    (recording,) = open_dataset(tmp_path)
    assert (recording.subset, recording.array.name) == ("human", ARRAY.name)


def test_folders_that_are_no_data_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder; tyto simulate makes a data set"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"holds no data set that is known \(folder, sslr\)"):
        open_dataset(tmp_path)


def test_a_wrong_array_or_sound_is_refused(root: Path) -> None:
    write_audio(root / "test" / "hall.wav", sound(3), 16000)
    recording, _ = open_folder(root)
    with pytest.raises(AudioError, match=r"hall\.wav: channels that came: 3"):
        recording.load()
    (root / "array.toml").write_text("name = 'mine'\n")
    with pytest.raises(ArrayError, match="'positions' is missing"):
        open_folder(root)


def test_labels_beyond_the_sound_are_refused(root: Path) -> None:
    (root / "test" / "hall.csv").write_text("frame,azimuth\n2147483647,10\n")
    recording, _ = open_folder(root)
    with pytest.raises(DataError, match="frame 2147483647 is labelled; the sound is cut short"):
        recording.frames()


def test_a_table_without_rows_has_no_frames(root: Path) -> None:
    (root / "test" / "hall.csv").write_text("frame,azimuth\n")
    recording, _ = open_folder(root)
    assert recording.azimuth.shape == (0, 2)
    assert recording.frames().shape == (0, 4, LENGTH)


def test_a_failed_write_leaves_the_old_recording(root: Path) -> None:
    with pytest.raises(AudioError, match="beyond 1"):
        write_recording(root, "test", "hall", 9 * sound(), ARRAY, FRAME_IDS[:1], AZIMUTH[:1])
    recording, _ = open_folder(root)
    np.testing.assert_array_equal(recording.load(), sound())
    np.testing.assert_array_equal(recording.azimuth, AZIMUTH)
    assert sorted(path.name for path in (root / "test").iterdir()) == ["hall.csv", "hall.wav"]


cell = st.one_of(
    st.integers(-2, 5).map(str), st.floats().map(repr), st.text("0123456789.-+e,;\"'\n\r\0 xé", max_size=6)
)
table = st.one_of(
    st.binary(max_size=60),
    st.lists(st.lists(cell, max_size=3), max_size=6).map(
        lambda rows: "\n".join(["frame,azimuth", *(",".join(row) for row in rows)]).encode()
    ),
)


@given(content=table)
@example(content=b'frame,azimuth\n"1\n')
@example(content=b"frame,azimuth\n1,\0")
@example(content=b"-----BEGIN AGE ENCRYPTED FILE-----")
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_table_is_read_or_refused(root: Path, content: bytes) -> None:
    (root / "test" / "hall.csv").write_bytes(content)
    try:
        recording, _ = open_folder(root)
    except (DataError, WrongKeyError):  # the second where it calls itself sealed
        return
    assert (recording.frame_ids >= 0).all()
    assert len(recording.frame_ids) == len(set(recording.frame_ids.tolist())) == len(recording.azimuth)
    known = recording.azimuth[np.isfinite(recording.azimuth)]
    assert ((known >= 0) & (known < 360)).all()


frames = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.lists(st.floats(0, 360, exclude_max=True), max_size=3),
    ),
    max_size=6,
    unique_by=lambda entry: entry[0],
)


@given(labels=frames)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_labels_come_back_to_the_bit(root: Path, labels: list[tuple[int, list[float]]]) -> None:
    labels.sort()
    ids = np.array([frame for frame, _ in labels], np.intp)
    azimuth = np.full((len(labels), 3), NAN)
    for row, (_, directions) in zip(azimuth, labels, strict=True):
        row[: len(directions)] = directions
    write_recording(root, "test", "hall", sound(n_samples=10), ARRAY, ids, azimuth)
    recording, _ = open_folder(root)
    np.testing.assert_array_equal(recording.frame_ids, ids)
    width = recording.azimuth.shape[1]
    assert width == max([2, *(len(directions) for _, directions in labels)])
    np.testing.assert_array_equal(recording.azimuth, azimuth[:, :width])
    assert not list((root / "test").glob(".*"))


def test_a_table_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """Frames times sources is what labels take: a table of 2 MB took 80 GB."""
    rows = "0,1\n" * 100_000 + "".join(f"{frame},\n" for frame in range(100_000))
    (tmp_path / "x.csv").write_text("frame,azimuth\n" + rows)
    with pytest.raises(DataError, match="line 66: frame 0 has more than 64 sources"):
        _read_labels(tmp_path / "x.csv", None)
    (tmp_path / "x.csv").write_text("frame,azimuth\n" + "9" * 200_000)
    with pytest.raises(DataError, match=r"cannot read|expected a frame number"):
        _read_labels(tmp_path / "x.csv", None)
    (tmp_path / "x.csv").write_text("frame,azimuth\n0," + "9" * 5000 + "\n")
    with pytest.raises(DataError, match=r"got '0,9{78}'"):
        _read_labels(tmp_path / "x.csv", None)
