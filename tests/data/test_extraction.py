"""Any data set to a feature file: the bits of `extract`, in pieces, interrupted or not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.waves import plane_wave
from tytoalba.data import extraction
from tytoalba.data.datasets import open_dataset
from tytoalba.data.extraction import Extraction, Span, extract_to_file, span_features
from tytoalba.data.feature_file import Piece
from tytoalba.data.features import FeatureSet, extract
from tytoalba.data.folder import write_array, write_recording
from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.source import FolderSource, SimulatedSource, described_source, open_source
from tytoalba.errors import DataError
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.keys import make_identity, read_identities
from tytoalba.storage.sealed import seal_file
from tytoalba.storage.soundfiles import write_audio

ARRAY = load_array("respeaker-usb-4")


def write_folder(root: Path, frames: int = 40) -> Path:
    """Two short recordings and a longer one, the second with three talkers in a frame, one with nobody."""
    write_array(root, ARRAY)
    hop = ARRAY.frame_length // 2
    for k, (part, n) in enumerate([("test", 5), ("train", 6), ("train", frames)]):
        samples = plane_wave(ARRAY, 40.0 * k, (n + 1) * hop / ARRAY.sample_rate + 0.01, k, 0.03, level=0.06)
        azimuth = np.full((n, 3), np.nan)
        azimuth[:, 0] = 40.0 * k
        azimuth[1, 0] = np.nan
        if k == 1:
            azimuth[2] = [10.0, 20.0, 30.0]
        write_recording(root, part, f"r{k}", samples.astype(np.float32), ARRAY, np.arange(n), azimuth)
    return root


@pytest.fixture
def pieces_of_16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "PIECE", 16)
    monkeypatch.setattr(extraction, "AT_ONCE", 7)


def expected(root: Path, made: Extraction, part: str | None = None) -> FeatureSet:
    return extract([r for r in open_dataset(root) if part in (None, r.subset)], made.gcc)


def assert_same(a: FeatureSet, b: FeatureSet) -> None:
    for name in ("X", "azimuth", "recording", "frame"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype, name
        np.testing.assert_array_equal(x, y, name)
    assert (a.array, a.gcc) == (b.array, b.gcc)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.usefixtures("pieces_of_16")
def test_the_file_is_what_extract_gives(tmp_path: Path, processes: int) -> None:
    root = write_folder(tmp_path / "data")
    made, seen = Extraction.of(FolderSource(root)), list[tuple[int, int]]()
    n_frames, n_recordings = extract_to_file(
        made, tmp_path / "f", processes=processes, on_progress=lambda *step: seen.append(step)
    )
    found, wanted = FeatureSet.load(tmp_path / "f"), expected(root, made)
    assert_same(found, wanted)
    assert (n_frames, n_recordings) == (len(wanted), 3) == (48, 3)
    assert found.names == ("test/r0", "train/r1", "train/r2")
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "f"]


@pytest.mark.usefixtures("pieces_of_16")
def test_one_part_in_several_bands(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    made = Extraction.of(FolderSource(root, "train"), [(100.0, 1000.0), (1000.0, 8000.0)], exact=False)
    extract_to_file(made, tmp_path / "f")
    found = FeatureSet.load(tmp_path / "f")
    assert_same(found, expected(root, made, "train"))
    assert found.names == ("r1", "r2")
    assert found.azimuth.shape == (44, 3)
    with pytest.raises(DataError, match="no recordings of part 'valid'"):
        Extraction.of(FolderSource(root, "valid"))


def test_a_simulated_preset(tmp_path: Path) -> None:
    source = open_source("simulated:quick", "test", array=ARRAY.name, size=0.03)
    made = Extraction.of(source, exact=False)
    extract_to_file(made, tmp_path / "f")
    simulation = Simulation.of_preset("quick", ARRAY, size=0.03)
    assert_same(FeatureSet.load(tmp_path / "f"), simulate_features(simulation, "test", made.gcc))
    with pytest.raises(DataError, match="no preset called 'loud'"):
        Extraction.of(open_source("simulated:loud"))
    with pytest.raises(DataError, match="leave out --array"):
        open_source("folder", array="pepper")


class StoppedError(Exception):
    """StoppedErrors the work."""


def stopping(after: int, made: Extraction, spans: Iterator[Span]) -> Iterator[Piece]:
    for n, span in enumerate(spans):
        if n == after:
            raise StoppedError
        yield span_features(made, None, span)


@pytest.mark.parametrize("sync", [0.0, 1e9])
@pytest.mark.usefixtures("pieces_of_16")
def test_goes_on_where_it_was_stopped(tmp_path: Path, sync: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tytoalba.data.feature_file.BETWEEN_SYNCS", sync)
    root = write_folder(tmp_path / "data")
    made = Extraction.of(FolderSource(root))
    extract_to_file(made, tmp_path / "whole")
    n_left = []
    for after in (1, 1, 2, 9):

        def worked(spans: Iterator[Span], after: int = after) -> Iterator[Piece]:
            yield from stopping(after, made, spans)

        try:
            extract_to_file(made, tmp_path / "f", worked=worked)
        except StoppedError:
            n_left.append(json.loads((tmp_path / "f.part" / "place.json").read_text())["place"]["recording"])
        assert (tmp_path / "f").exists() == (after == 9)
    assert n_left == [1, 2, 2]
    assert (tmp_path / "f").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "f.part").exists()


@pytest.mark.usefixtures("pieces_of_16")
def test_what_was_lost_is_made_again_and_what_is_foreign_is_refused(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    made = Extraction.of(FolderSource(root))
    extract_to_file(made, tmp_path / "whole")

    def begin() -> Path:
        with pytest.raises(StoppedError):
            extract_to_file(made, tmp_path / "f", worked=partial(stopping, 2, made))
        return tmp_path / "f.part"

    part = begin()
    with pytest.raises(DataError, match=r"begun with other recordings or options.*remove f\.part"):
        extract_to_file(Extraction.of(FolderSource(root), exact=False), tmp_path / "f")
    (part / "features").unlink()  # killed between the last two steps
    extract_to_file(made, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "whole").read_bytes()
    (begin() / "place.json").write_text('{"recipe": "", "place": {"frames": -1}}')
    with pytest.raises(DataError, match=r"damaged.*remove it"):
        extract_to_file(made, tmp_path / "f")
    with pytest.raises(DataError, match="there is no folder"):
        extract_to_file(made, tmp_path / "none" / "f")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
@pytest.mark.parametrize("name", ["features", "labels", "place.json"])
def test_what_somebody_planted_is_not_written_through(tmp_path: Path, name: str) -> None:
    """The attack: a link in the unfinished folder had the file it points to cut short and written over."""
    made = Extraction.of(FolderSource(write_folder(tmp_path / "data")))
    victim, part = tmp_path / "victim", tmp_path / "f.part"
    victim.write_text('{"of": "somebody"}')
    part.mkdir()
    (part / name).symlink_to(victim)
    with pytest.raises(DataError, match=r"nothing is written through links.*remove f\.part"):
        extract_to_file(made, tmp_path / "f")
    (part / name).unlink()
    os.mkfifo(part / name)  # which kept it waiting for ever
    with pytest.raises(DataError, match="nothing is written through links and pipes"):
        extract_to_file(made, tmp_path / "f")
    (part / name).unlink()
    part.rmdir()
    (tmp_path / "elsewhere").mkdir()
    part.symlink_to("elsewhere")
    with pytest.raises(DataError, match="nothing is written through links"):
        extract_to_file(made, tmp_path / "f")
    assert victim.read_text() == '{"of": "somebody"}'
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "f").exists()


@pytest.mark.usefixtures("pieces_of_16")
def test_sealed_recordings(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    wanted = expected(root, Extraction.of(FolderSource(root)))
    public = make_identity(tmp_path / "key")
    for file in (root / "train").iterdir():
        seal_file(file, file.with_name(file.name + ".age"), [public])
        file.unlink()
    keys = read_identities(tmp_path / "key")
    made = Extraction.of(FolderSource(root), keys=keys)
    with pytest.raises(DataError, match=r"r1 is sealed, and features tell much.*--plain"):
        extract_to_file(made, tmp_path / "f", keys=keys)
    extract_to_file(made, tmp_path / "f", keys=keys, plain=True)
    assert_same(FeatureSet.load(tmp_path / "f"), wanted)


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "sealed", "resampled"])
def test_spans_of_a_recording_have_its_frames(tmp_path: Path, kind: str) -> None:
    root = write_folder(tmp_path / "data")
    keys = None
    if kind != "wav":
        own = root / "train" / "r2.wav"
        (recording,) = [r for r in open_dataset(root) if r.name == "r2"]
        rate = 48000 if kind == "resampled" else ARRAY.sample_rate
        seconds = 42 * ARRAY.frame_length / 2 / ARRAY.sample_rate
        samples = plane_wave(replace(ARRAY, sample_rate=rate), 80.0, seconds, 3, 0.03, level=0.06)
        own.unlink()
        file = own.with_suffix({"flac": ".flac", "ogg": ".ogg"}.get(kind, ".wav"))
        write_audio(file, samples.astype(np.float32), rate, "VORBIS" if kind == "ogg" else "PCM_16")
        if kind == "sealed":
            seal_file(file, file.with_name(file.name + ".age"), [make_identity(tmp_path / "key")])
            file.unlink()
            keys = read_identities(tmp_path / "key")
    (recording,) = [r for r in open_dataset(root, keys) if r.name == "r2"]
    whole = recording.frames()
    spans = list(recording.spans(16))
    assert spans == [(0, 16), (16, 32), (32, 40)]
    for first, last in spans:
        span = recording.span(first, last)
        np.testing.assert_array_equal(span.frames(), whole[first:last])
        parts = np.concatenate([cut for _, cut in span.parts(5)])
        np.testing.assert_array_equal(parts, whole[first:last])


def test_a_source_says_what_it_is(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    mics = MicArray.from_toml(ARRAY.to_toml())
    (tmp_path / "speech").mkdir()
    for name in "abc":
        np.save(tmp_path / "speech" / f"{name}.npy", np.ones(9, np.float32))
    for source in (
        FolderSource(root.resolve(), "train"),
        SimulatedSource("hard", mics, "human", 0.5, 3.0, tmp_path / "speech", 7),
    ):
        again = described_source(json.loads(json.dumps(source.described())))
        assert again == source
