"""examples/onnx/cpp: built with the headers that are there, it finds what tytoalba finds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.golden.contents import ARRAY, GOLDEN
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.files import write_prior
from tytoalba.signal.audio import SILENCE_DB, frames
from tytoalba.storage.soundfiles import read_audio

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx" / "cpp"
HEADER = "onnxruntime_cxx_api.h"
PLACES = (
    os.environ.get("ONNXRUNTIME_INCLUDE", ""),
    "/usr/include/onnxruntime",
    "/usr/include/onnxruntime/core/session",
    "/usr/local/include/onnxruntime",
)
pytestmark = pytest.mark.end_to_end


def library(folder: Path) -> Path:
    """The library of the Python package, under the name that programs look for."""
    onnxruntime = pytest.importorskip("onnxruntime")
    (found,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    include = next((place for place in PLACES if place and Path(place, HEADER).is_file()), None)
    if include is None:
        pytest.skip(
            f"{HEADER} is not there; the Python package has the library without headers. Unpack a release "
            "of onnxruntime and set ONNXRUNTIME_INCLUDE to its include folder"
        )
    if not (compiler := shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("there is no C++ compiler")
    place = library(folder)
    built = folder / "locate"
    told = ["-std=c++17", "-O2", "-Wall", f"-I{include}", str(EXAMPLE / "locate.cpp"), f"-L{place}"]
    subprocess.run(
        [compiler, *told, "-lonnxruntime", f"-Wl,-rpath,{place}", "-o", str(built)], check=True, timeout=300
    )
    return built


def test_it_finds_what_tytoalba_finds(program: Path, tmp_path: Path) -> None:
    write_prior(ARRAY, tmp_path / "model.onnx")
    samples = read_audio(GOLDEN / "wave.wav", ARRAY).samples
    raw = np.round(samples.T * 2**15).astype("<i2").tobytes()
    ran = subprocess.run(
        [program, tmp_path / "model.onnx"], input=raw, capture_output=True, check=True, timeout=300
    )
    found = np.array([line.split() for line in ran.stdout.decode().splitlines()], float)
    cut = np.asarray(frames(samples, ARRAY.frame_length, ARRAY.frame_length // 2), np.float32)
    finder = MapFinder(ARRAY, "prior")
    scores = np.asarray(finder.scores(finder.maps(cut)))
    loud = 10 * np.log10(np.maximum((cut**2).mean(axis=(1, 2)), 1e-20)) >= SILENCE_DB
    assert 0 < loud.sum() < len(loud)
    scores, hop = scores[loud], ARRAY.frame_length // 2
    assert found[:, 1].tolist() == scores.argmax(axis=1).tolist()
    assert np.abs(found[:, 2] - scores.max(axis=1)).max() < 1e-6
    middle = hop * np.arange(1, len(cut) + 1)[loud] / ARRAY.sample_rate
    assert np.abs(found[:, 0] - middle).max() <= 0.0051


def test_what_is_no_model_is_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    ran = subprocess.run(
        [program, tmp_path / "bad.onnx"], input=b"", capture_output=True, timeout=300, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr
    assert subprocess.run([program], capture_output=True, timeout=60, check=False).returncode == 2
