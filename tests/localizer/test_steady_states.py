"""States and streams that ignore steady noise: the same from a file and a stream, taught, forgotten, kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, closed, opened, prior
from tests.helpers.waves import plane_wave
from tytoalba.data.recording import Recording, SoundFile
from tytoalba.errors import AudioError, DataError, FileError, TytoError
from tytoalba.localizer.frontend import STEADY, USUAL, FrontEnd
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import MapFinder, locate, new_stream
from tytoalba.localizer.stream import Stream

N = ARRAY.frame_length
FAN = plane_wave(ARRAY, 200.0, 2.0, level=0.05)


def scene() -> NDArray[np.float32]:
    """1.3 s of a fan, then a loud voice elsewhere, half a second of the fan."""
    sound = plane_wave(ARRAY, 200.0, 2.4, level=0.05)
    t = np.arange(sound.shape[1]) / 16000
    talk = plane_wave(ARRAY, 60.0, 2.4, seed=3, level=0.5)
    return np.asarray(0.3 * (sound + talk * ((t > 1.4) & (t < 1.9))), np.float32)


def new(**options: Any) -> Localizer:
    return Localizer.new(ARRAY, n_features=2, seed=5, prior=prior(), ignore_steady=True, **options)


@pytest.mark.parametrize("method", ["srp", "prior", "localizer"])
def test_a_file_a_stream_and_blocks_of_any_size_are_the_same(method: str) -> None:
    sound = scene()

    def stream() -> Stream:
        if method == "localizer":
            return new().new_stream()
        return new_stream(ARRAY, method, ignore_steady=True)

    expected = list(stream().run([sound]))
    fan = [one for one in expected if 1.15 < one.time < 1.3 or one.time > 2.05]
    assert fan
    assert not any(one.n_sources for one in fan)
    assert all(one.n_sources for one in expected if 1.5 < one.time < 1.8)
    edges = np.sort(np.random.default_rng(0).integers(0, sound.shape[1], 7))
    fed = stream()
    assert [one for part in np.split(sound, edges, axis=1) for one in fed.feed(part)] == expected
    assert fed.finish() == []
    assert list(fed.run([sound])) == expected  # a new recording, with nothing of the last


def test_without_it_the_fan_is_located_as_ever() -> None:
    found = list(locate(FAN, ARRAY))
    assert all(one.azimuth for one in found)
    assert not all(one.azimuth for one in locate(FAN, ARRAY, ignore_steady=True))


def test_the_floor_outlasts_a_gap_and_a_new_finder() -> None:
    stream = new_stream(ARRAY, "srp", ignore_steady=True)
    stream.feed(FAN)
    stream.restart(50000)
    stream.use(MapFinder(ARRAY, "srp", ignore_steady=True))
    assert not any(one.n_sources for one in stream.feed(FAN[:, :8000]))
    with pytest.raises(TytoError, match="ignores steady noise alike"):
        stream.use(MapFinder(ARRAY, "srp"))


def test_lessons_are_forgotten_and_files_open_again(tmp_path: Path) -> None:
    path = tmp_path / "scene.wav"
    soundfile.write(path, scene().T, 16000, subtype="FLOAT")
    array = ARRAY.plain_channels()
    localizer = Localizer.new(array, n_features=2, seed=5, prior=prior(), ignore_steady=True)
    empty = localizer.to_bytes()
    change = localizer.teach(path, 60.0)
    assert 3 <= change.n_frames <= 12  # the voice; of the fan only the first second, if it is loud enough
    again = Localizer.from_bytes(localizer.to_bytes())
    assert again.state.frontend == Localizer.like(again).state.frontend == STEADY
    assert again.to_bytes() == localizer.to_bytes()
    assert again.forget(scene(), 60.0).lessons == change.lessons
    assert again.to_bytes() == empty


def test_a_lesson_of_a_fan_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tytoalba.signal.steady.FIRST", 0)
    monkeypatch.setattr("tytoalba.signal.steady.CHANCE", -1.0)
    localizer = new()
    before = localizer.to_bytes()
    with pytest.raises(AudioError, match="all of it is steady noise from one place"):
        localizer.teach(FAN, 200.0)
    assert localizer.to_bytes() == before


def test_models_know_their_front_end() -> None:
    model = new().model
    data = model.to_bytes()
    assert (model.frontend, opened(data)[0]["version"]) == (STEADY, 3)
    read = Localizer.from_bytes(data)
    assert read.to_bytes() == data
    assert read.finder.steady_noise() is not None
    usual = Localizer.new(ARRAY, n_features=2, seed=5, prior=prior())
    assert (usual.model.frontend, opened(usual.model.to_bytes())[0]["version"]) == (USUAL, 1)
    assert "frontend" not in opened(usual.model.to_bytes())[0]
    assert usual.state.frontend == USUAL
    header, arrays = opened(data)
    with pytest.raises(FileError, match="front end has version 9"):
        Localizer.from_bytes(closed({**header, "frontend": 9}, arrays))


def test_states_that_hear_otherwise_are_not_merged() -> None:
    usual = Localizer.new(ARRAY, n_features=2, seed=5, prior=prior())
    with pytest.raises(TytoError, match=r"version of their front end \(2 and 3\)"):
        usual.merge(new())


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(TytoError, match="settled when it is made"):
        new_stream(new(), ignore_steady=True)
    pytest.importorskip("onnx")
    from tytoalba.localizer.onnx.graph import Known

    with pytest.raises(TytoError, match="must remember the last seconds"):
        Known.of_model(new().model)


def test_labelled_recordings_are_heard_in_order(tmp_path: Path) -> None:
    """From a file in blocks as from memory, whatever is labelled; other front ends as before."""
    sound, array = scene(), ARRAY.plain_channels()
    path = tmp_path / "scene.wav"
    soundfile.write(path, sound.T, 16000, subtype="FLOAT")
    ids = np.array([1, 16, 17, 20])
    azimuth = np.array([[60.0], [60.0], [np.nan], [60.0]])
    one = Recording("r", "s", array, ids, azimuth, lambda: sound, N, N // 2)
    front = FrontEnd(array, prior(), STEADY)
    X, places = front.labelled(one)
    steady = front.steady_noise()
    assert steady
    cut = np.stack([sound[:, k : k + N] for k in range(0, sound.shape[1] - N + 1, N // 2)])
    assert np.array_equal(X, front.flat(steady.add(cut))[[1, 16, 20]])
    assert places.tolist() == [[60.0]] * 3
    from_file = list(front.labelled_blocks(replace(one, load=SoundFile(path, array))))
    assert np.array_equal(np.concatenate([X for X, _ in from_file]), X)
    assert not np.array_equal(FrontEnd(array, prior()).labelled(one)[0], X)
    with pytest.raises(DataError, match="frame 99 is labelled"):
        front.labelled(replace(one, frame_ids=np.array([1, 16, 17, 99])))
