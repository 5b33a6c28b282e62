"""Recordings: their sound in blocks is their sound, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.data import recording as module
from tytoalba.data.recording import Recording, SoundFile
from tytoalba.errors import AudioError, DataError
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import stream_audio, write_audio

ARRAY = load_array("respeaker-usb-4").plain_channels()
LENGTH, HOP = 400, 200
N_FRAMES = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A recording of N_FRAMES frames at the array's rate, and one at another, by rate."""
    folder = tmp_path_factory.mktemp("sound")
    found = {}
    for rate in (16000, 11025):
        n_samples = ((N_FRAMES - 1) * HOP + LENGTH) * rate // 16000 + 1
        sound = 0.1 * np.random.default_rng(rate).standard_normal((4, n_samples))
        found[rate] = folder / f"{rate}.wav"
        write_audio(found[rate], sound.astype(np.float32), rate)
    return found


def recording(path: Path, frame_ids: list[int]) -> Recording:
    azimuth = np.arange(len(frame_ids), dtype=np.float64)[:, None]
    load = SoundFile(path, ARRAY)
    return Recording(path.stem, "train", ARRAY, np.array(frame_ids, np.intp), azimuth, load, LENGTH, HOP)


def whole(found: Recording) -> Recording:
    """The same, its sound in memory."""
    samples = found.load()
    return replace(found, load=lambda: samples)


def parts(found: Recording, n_frames: int) -> list[tuple[list[int], list[float], NDArray[np.float32]]]:
    return [
        (part.frame_ids.tolist(), part.azimuth[:, 0].tolist(), cut) for part, cut in found.parts(n_frames)
    ]


@given(data=st.data())
@settings(max_examples=60)
def test_parts_of_a_file_are_those_of_its_sound(files: dict[int, Path], data: st.DataObject) -> None:
    """Whatever frames are labelled, in whatever order, and however large blocks and parts are."""
    rate = data.draw(st.sampled_from(sorted(files)))
    ids = data.draw(st.lists(st.integers(0, N_FRAMES - 2), unique=data.draw(st.booleans()), max_size=50))
    ids = sorted(ids) if data.draw(st.booleans()) else ids
    n_frames, block = data.draw(st.integers(1, 60)), data.draw(st.sampled_from([37, 400, 1001, 65536]))
    from_file = recording(files[rate], ids)
    in_memory = parts(whole(from_file), n_frames)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        in_blocks = parts(from_file, n_frames)
    assert len(in_blocks) == len(in_memory)
    for one, other in zip(in_blocks, in_memory, strict=True):
        assert one[:2] == other[:2]
        assert one[2].dtype == other[2].dtype == np.float32
        assert np.array_equal(one[2], other[2])
    assert np.array_equal(np.concatenate([cut for *_, cut in in_blocks]), from_file.frames())


def test_a_file_is_not_read_whole(files: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_audio", lambda *_, **__: pytest.fail("it was read whole"))
    assert len(parts(recording(files[16000], [0, 7]), 1)) == 2


def test_labels_beyond_the_sound_and_damaged_sound_are_refused(
    files: dict[int, Path], tmp_path: Path
) -> None:
    for beyond in (recording(files[16000], [3, N_FRAMES]), recording(files[16000], [N_FRAMES + 500])):
        for found in (beyond, whole(beyond)):
            with pytest.raises(DataError, match=r"has 122\d\d samples, but frame \d+ is labelled"):
                parts(found, 512)
    cut = tmp_path / "cut.wav"
    cut.write_bytes(files[16000].read_bytes()[:-1000])
    with pytest.raises(AudioError, match="cut short"):
        parts(recording(cut, [0]), 512)


def test_all_of_a_file_is_read_although_few_frames_are_labelled(
    files: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a damaged end is noticed, as it is where the file is read whole."""
    read: list[int] = []

    def watched(*args: object, **kwargs: object) -> Iterator[NDArray[np.float32]]:
        for block in stream_audio(*args, **kwargs):  # type: ignore[arg-type]
            read.append(block.shape[1])
            yield block

    monkeypatch.setattr(module, "stream_audio", watched)
    assert len(parts(recording(files[16000], [0]), 1)) == 1
    assert sum(read) == recording(files[16000], [0]).load().shape[1]
