"""SSLR on disk: what is written is read, and what is wrong is named."""

from __future__ import annotations

import pickle
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.data import sslr as sslr
from tytoalba.data import unpickle
from tytoalba.data.recording import FRAME_LENGTH, HOP
from tytoalba.data.sslr import open_sslr, write_recording
from tytoalba.errors import AudioError, DataError, TytoWarning
from tytoalba.signal.array import load_array

RATE = 48000
N_FRAMES = 4
N_SAMPLES = FRAME_LENGTH + (N_FRAMES - 1) * HOP
GTF = ".w8192_o4096.gtf.pkl"
NAME = "ssl-data_2017-05-13-15-25-43_0"
FRAMES: list[Any] = [
    (0, []),
    (1, [((1.0, 1.0, 0.3), 1, "f01")]),
    (3, [((0.0, -2.0, 0.3), 1, "f01"), ((-1.0, 0.0, 0.1), 0, None), ((3.0, 0.0, 0.0), 1, 7)]),
]
PLAYED = [((1.0, 1.0, 0.3), "f01.wav", 0.1, 0.2, 0.5, "f01")]


def noise() -> NDArray[np.float32]:
    grid = np.random.default_rng(0).integers(-32768, 32768, (4, N_SAMPLES))
    return (grid / 32768).astype(np.float32)


def write(root: Path, subset: str = "lsp_test_106", name: str = NAME) -> None:
    write_recording(root, subset, name, noise(), RATE, FRAMES, PLAYED)


def write_labels(root: Path, labels: Any, subset: str = "human", name: str = "s2_14") -> Path:
    """A sound file, and a label file of whatever one likes."""
    write_recording(root, subset, name, noise(), RATE, [])
    path = root / subset / "gt_frame" / f"{name}{GTF}"
    path.write_bytes(labels if isinstance(labels, bytes) else pickle.dumps(labels, protocol=2))
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path)
    (recording,) = open_sslr(tmp_path)
    assert (recording.name, recording.subset) == (NAME, "lsp_test_106")
    assert recording.array == load_array("pepper")
    assert recording.frame_ids.tolist() == [0, 1, 3]
    np.testing.assert_allclose(recording.azimuth, [[np.nan, np.nan], [45.0, np.nan], [270.0, 0.0]])
    assert recording.n_sources.tolist() == [0, 1, 2]
    samples = recording.load()
    assert samples.dtype == np.float32
    assert samples.flags.c_contiguous
    np.testing.assert_array_equal(samples, noise())
    np.testing.assert_array_equal(recording.frames()[2], noise()[:, 3 * HOP : 3 * HOP + FRAME_LENGTH])


def test_files_hold_what_the_data_set_holds(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "lsp_test_106"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [
        f"audio/{NAME}.wav",
        f"gt_file/{NAME}.gt.pkl",
        f"gt_frame/{NAME}{GTF}",
    ]
    info = soundfile.info(folder / "audio" / f"{NAME}.wav")
    assert (info.channels, info.samplerate, info.subtype, info.frames) == (4, RATE, "PCM_16", N_SAMPLES)
    gt_frame = (folder / "gt_frame" / f"{NAME}{GTF}").read_bytes()
    assert gt_frame[:2] == b"\x80\x02"
    assert unpickle.load(gt_frame) == FRAMES
    gt_file = unpickle.load(folder / "gt_file" / f"{NAME}.gt.pkl")
    assert gt_file == (NAME, 0.0, N_SAMPLES / RATE, PLAYED)


def test_labels_written_by_python_2(tmp_path: Path) -> None:
    source = b"(G?\xf0\x00\x00\x00\x00\x00\x00K\x01K\x00tK\x01U\x03f01\x87"  # ((1.0, 1, 0), 1, 'f01')
    write_labels(tmp_path, b"\x80\x02]q\x01(K\x00]q\x02\x86K\x02]q\x03" + source + b"a\x86e.")
    (recording,) = open_sslr(tmp_path)
    assert recording.frame_ids.tolist() == [0, 2]
    np.testing.assert_allclose(recording.azimuth, [[np.nan, np.nan], [45.0, np.nan]])


def test_labels_of_numpy_numbers(tmp_path: Path) -> None:
    source = (np.array([0.0, 1.0, 0.0], dtype=np.float32), np.int64(1), np.float64(3))
    write_labels(tmp_path, [(np.int32(2), [source]), [1, (source,)]])
    (recording,) = open_sslr(tmp_path)
    assert recording.frame_ids.tolist() == [1, 2]  # sorted
    assert recording.azimuth[:, 0].tolist() == [90.0, 90.0]


def test_ids_that_are_sample_offsets(tmp_path: Path) -> None:
    source = ((0.0, 1.0, 0.0), 1, "f01")
    write_labels(tmp_path, [(0, []), (HOP, [source]), (3 * HOP, [])])
    (recording,) = open_sslr(tmp_path)
    assert recording.frame_ids.tolist() == [0, 1, 3]
    assert recording.n_sources.tolist() == [0, 1, 0]


def test_ids_that_only_look_like_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sslr, "HOP", 2)  # frames 0 and 2 are multiples of the hop, and are there
    write_labels(tmp_path, [(0, []), (2, [])])
    assert open_sslr(tmp_path)[0].frame_ids.tolist() == [0, 2]


def test_subsets_in_order(tmp_path: Path) -> None:
    for subset in reversed(sslr.SUBSETS):
        write(tmp_path, subset, "b")
        write(tmp_path, subset, "a")
    recordings = open_sslr(tmp_path)
    assert [(r.subset, r.name) for r in recordings] == [(s, n) for s in sslr.SUBSETS for n in "ab"]


def test_sound_is_read_late_and_survives_pickling(tmp_path: Path) -> None:
    write(tmp_path)
    (recording,) = open_sslr(tmp_path)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(recording.load))(), noise())
    next(tmp_path.rglob("*.wav")).unlink()
    with pytest.raises(AudioError, match=r"_0\.wav: no such file"):
        recording.load()


def test_a_complete_layout_has_nothing_to_report(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "human", "s2_14")
    for known in ("misc/phone_alignment.npz", "human/audio_gt/x.txt", "human/video_gt/s2_14/stamps"):
        (tmp_path / known).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / known).touch()
    (tmp_path / "human" / "audio" / ".DS_Store").touch()
    assert len(open_sslr(tmp_path)) == 2  # and no warning


def test_missing_files_are_named(tmp_path: Path) -> None:
    for i in range(8):
        write(tmp_path, "lsp_train_301", f"r{i}")
    for i in range(7):
        (tmp_path / f"lsp_train_301/gt_frame/r{i}{GTF}").unlink()
    (tmp_path / "lsp_train_301/audio/r7.wav").unlink()
    expected = ["lsp_train_301/audio/r7.wav", *(f"lsp_train_301/gt_frame/r{i}{GTF}" for i in range(7))]
    assert sslr._compared(tmp_path, ["lsp_train_301"]) == (expected, [])
    with pytest.raises(DataError, match=r"8 missing: lsp_train_301/audio/r7\.wav, .*r3.* and 3 more"):
        open_sslr(tmp_path)


def test_missing_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "human").mkdir()
    with pytest.raises(DataError, match="2 missing: human/audio/, human/gt_frame/"):
        open_sslr(tmp_path)
    (tmp_path / "human" / "audio").mkdir()
    (tmp_path / "human" / "gt_frame").mkdir()
    with pytest.raises(DataError, match=r"no recording in lsp_train_106, .*, human"):
        open_sslr(tmp_path)


def test_extra_files_are_named(tmp_path: Path) -> None:
    write(tmp_path)
    extra = [
        "README",
        "misc/other.npz",
        "lsp_test_106/audio/a.mp3",
        "lsp_test_106/gt_frame/a.w4096_o2048.gtf.pkl",
        "lsp_test_106/notes.txt",
    ]
    for name in extra:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "lsp_test_999").mkdir()
    (tmp_path / "lsp_test_106/audio/b.wav").mkdir()
    missing, found = sslr._compared(tmp_path, ["lsp_test_106"])
    assert (missing, set(found)) == ([], {*extra, "lsp_test_999/", "lsp_test_106/audio/b.wav/"})
    with pytest.warns(TytoWarning, match=r"ignores 7 unknown: README, lsp_test_999/.* and 2 more"):
        assert len(open_sslr(tmp_path)) == 1


@pytest.mark.parametrize(
    ("n_channels", "rate", "what"),
    [(2, RATE, "2 channels, but the array 'pepper' has 4"), (4, 16000, "16000 Hz.* 48000 Hz")],
)
def test_sound_of_another_format(tmp_path: Path, n_channels: int, rate: int, what: str) -> None:
    write(tmp_path)
    path = next(tmp_path.rglob("*.wav"))
    soundfile.write(path, np.zeros((N_SAMPLES, n_channels)), rate)
    with pytest.raises(DataError, match=rf"_0\.wav: {what}"):
        open_sslr(tmp_path)[0].load()


def test_sound_that_is_damaged(tmp_path: Path) -> None:
    write(tmp_path)
    (recording,) = open_sslr(tmp_path)
    path = next(tmp_path.rglob("*.wav"))
    content = path.read_bytes()
    path.write_bytes(content[:50_000])
    with pytest.raises(AudioError, match=r"_0\.wav is cut short, it holds 49956 of 163840 bytes"):
        recording.load()
    for damaged, why in ((b"", "is empty"), (content[:20], "is damaged"), (b"hello" * 100, "is text")):
        path.write_bytes(damaged)
        with pytest.raises(AudioError, match=rf"_0\.wav {why}"):
            recording.load()
    path.write_bytes(content[:4] + b"\xff" * 4 + content[8:])  # a header that was never completed
    np.testing.assert_array_equal(recording.load(), noise())
    soundfile.write(path, np.full((N_SAMPLES, 4), np.nan), RATE, subtype="FLOAT")
    with pytest.raises(AudioError, match="are NaN or infinite"):
        recording.load()
    soundfile.write(path, np.zeros((N_SAMPLES - 1, 4)), RATE)
    with pytest.raises(DataError, match="frame 3 is labelled"):
        recording.frames()


GOOD = ((1.0, 2.0, 0.5), 1, "f01")


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (b"cos\nsystem\n.", "wants to use 'os.system'"),
        (b"not a pickle", "label file|pickle"),
        (None, "expected a list of frames, got NoneType"),
        ("text", "expected a list of frames, got str"),
        ([5], r"entry 0: expected \(frame id, sources\), got 5"),
        ([(0, [], 1)], "entry 0: expected"),
        ([(0, []), ("1", [])], "entry 1: a frame id must count from 0, got '1'"),
        ([(True, [])], "entry 0: a frame id"),
        ([(1.0, [])], "entry 0: a frame id"),
        ([(-1, [])], "entry 0: a frame id"),
        ([(2**40, [])], "entry 0: a frame id"),
        ([(3, []), (3, [])], "frame 3 is labelled twice"),
        ([(3, None)], "frame 3: expected a list of at most 16 sources, got None"),
        ([(3, [GOOD] * 17)], "frame 3: expected a list of at most 16 sources"),
        ([(3, [(GOOD[0], 1)])], "frame 3: a source must be"),
        ([(3, [7])], "frame 3: a source must be"),
        ([(3, [((1.0, 2.0), 1, "f01")])], "frame 3: a position must be"),
        ([(3, [(np.ones((3, 1)), 1, "f01")])], "frame 3: a position must be three numbers"),
        ([(3, [(5.0, 1, "f01")])], "frame 3: a position must be"),
        ([(3, [((1.0, "2", 0.0), 1, "f01")])], "frame 3: a position must be three numbers"),
        ([(3, [((1.0, float("nan"), 0.0), 1, "f01")])], "frame 3: a position must be finite"),
        ([(3, [((1.0, float("inf"), 0.0), 0, "f01")])], "frame 3: a position must be finite"),
        ([(3, [((0.0, 0.0, 0.0), 1, "f01")])], "frame 3: a source at the array's centre"),
        ([(3, [((0, 0, 1), 1, "f01")])], "frame 3: a source at the array's centre"),
        (
            [(3, [(GOOD[0], 2, "f01")])],
            r"frame 3: a source's type must be 1 \(speech\) or 0 \(other\), got 2",
        ),
        ([(3, [(GOOD[0], "1", "f01")])], "frame 3: a source's type"),
        ([(3, [(GOOD[0], 1, [])])], "frame 3: a speaker"),
    ],
)
def test_wrong_labels_name_file_and_frame(tmp_path: Path, labels: Any, what: str) -> None:
    write_labels(tmp_path, labels)
    with pytest.raises(DataError, match=rf"human/gt_frame/s2_14{re.escape(GTF)}.*({what})"):
        open_sslr(tmp_path)


plain = st.recursive(
    st.none() | st.integers(-2, 2) | st.floats() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.tuples(inner, inner, inner),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3) | plain, st.lists(st.tuples(plain, plain, plain), max_size=2) | plain)
    )
)
def test_any_labels_are_read_or_refused(labels: Any) -> None:
    try:
        frame_ids, azimuth = sslr._frames(labels, "labels")
    except DataError:
        return
    assert azimuth.shape == (len(frame_ids), max(2, azimuth.shape[1]))
    assert (np.isnan(azimuth) | ((azimuth >= 0) & (azimuth < 360))).all()


def test_samples_are_rounded_to_16_bits(tmp_path: Path) -> None:
    samples = np.zeros((4, N_SAMPLES), dtype=np.float32)
    step = 1 / 32768
    samples[0, :6] = [
        -1.0,
        1 - step,
        np.nextafter(np.float32(1), np.float32(0)),
        0.4 * step,
        0.6 * step,
        -1.5 * step,
    ]
    write_recording(tmp_path, "human", "s1_1", samples, RATE, [])
    expected = [-1.0, 1 - step, 1 - step, 0.0, step, -2 * step]
    assert open_sslr(tmp_path)[0].load()[0, :6].tolist() == expected


def test_what_cannot_be_written_leaves_the_old_files(tmp_path: Path) -> None:
    write(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for samples in (np.full((4, N_SAMPLES), np.nan), 1.5 * np.ones((4, N_SAMPLES))):
        with pytest.raises(AudioError, match=r"NaN|peak 1\.5"):
            write_recording(tmp_path, "lsp_test_106", NAME, samples.astype(np.float32), RATE, [])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_wav_with_an_extensible_header(tmp_path: Path) -> None:
    write(tmp_path)
    path = next(tmp_path.rglob("*.wav"))
    soundfile.write(path, (noise().T * 32768).astype(np.int16), RATE, format="WAVEX", subtype="PCM_16")
    assert struct.unpack("<H", path.read_bytes()[20:22]) == (0xFFFE,)
    np.testing.assert_array_equal(open_sslr(tmp_path)[0].load(), noise())


def test_whom_to_thank() -> None:
    assert "ICRA" in sslr.CITATION
    assert "not redistributable" in sslr.LICENCE
