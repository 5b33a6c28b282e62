"""examples/onnx/browser: the page finds in Debian's Chromium, and node finds, what tytoalba finds."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.contents import ARRAY, GOLDEN, plane_wave
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.builder import PRECISIONS, Precision
from tytoalba.localizer.onnx.files import write_prior
from tytoalba.signal.audio import frames
from tytoalba.storage.soundfiles import read_audio, write_audio

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx" / "browser"
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with onnxruntime-web, as its README says."""
    if not (npm := shutil.which("npm")):
        pytest.skip("npm is not installed")
    made = tmp_path_factory.mktemp("browser")
    shutil.copytree(EXAMPLE, made, dirs_exist_ok=True)
    ran = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "onnxruntime-web"],
        cwd=made, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if ran.returncode:
        pytest.skip(f"npm cannot install onnxruntime-web: {ran.stderr[-300:]}")
    return made


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def wanted(wave: Path) -> np.ndarray:
    """The scores of tytoalba."""
    finder, samples = MapFinder(ARRAY, "prior"), read_audio(wave, ARRAY).samples
    cut = np.asarray(frames(samples, ARRAY.frame_length, ARRAY.frame_length // 2), np.float32)
    return np.asarray(finder.scores(finder.maps(cut)))


def said_of(scores: np.ndarray) -> str:
    """What the page says of the wave, whose end is silent: the azimuth that most frames point to."""
    samples = read_audio(GOLDEN / "wave.wav", ARRAY).samples
    cut = np.asarray(frames(samples, ARRAY.frame_length, ARRAY.frame_length // 2), np.float64)
    loud = (cut**2).mean(axis=(1, 2)) >= 1e-6
    usual = np.bincount(scores[loud].argmax(axis=1)).argmax()
    assert 0 < loud.sum() < len(loud)
    return f"{len(loud)} frames, {loud.sum()} with sound; most often at {usual} degrees"


def near(found: np.ndarray, precision: Precision) -> bool:
    apart = np.abs(found - wanted(GOLDEN / "wave.wav"))
    return bool(apart.max() == 0 if precision == "same" else 0 < apart.max() < 0.02)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_node_has_the_scores_of_tytoalba(folder: Path, precision: Precision) -> None:
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed")
    write_prior(ARRAY, folder / "node.onnx", precision)
    script = (
        "import * as ort from 'onnxruntime-web'; import fs from 'fs'; import * as l from './locate.mjs';"
        "ort.env.wasm.numThreads = 1;"
        "const session = await ort.InferenceSession.create(fs.readFileSync('node.onnx'));"
        f"const file = fs.readFileSync({json.dumps(str(GOLDEN / 'wave.wav'))});"
        "const wav = l.readWav(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));"
        "const found = await l.locate(ort, session, wav);"
        "console.log(JSON.stringify(found.scores.map((one) => Array.from(one))));"
    )
    ran = subprocess.run(
        [node, "--input-type=module", "-e", script],
        cwd=folder, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert near(np.array(json.loads(ran.stdout), np.float32), precision)


def test_the_page_draws_what_tytoalba_finds(folder: Path, address: str, tmp_path: Path) -> None:
    sync = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM:
        pytest.skip("chromium is not installed")
    write_prior(ARRAY, folder / "model.onnx")
    two = plane_wave(ARRAY, 70.0, n_samples=3 * ARRAY.frame_length)
    write_audio(tmp_path / "two.wav", two[:2], ARRAY.sample_rate)
    (tmp_path / "text.wav").write_text("not a sound")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page, faults = browser.new_page(), list[str]()
        page.on("pageerror", lambda error: faults.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        status = page.locator("output")
        for file, said in (
            (tmp_path / "two.wav", "the array has 4 microphones"),
            (tmp_path / "text.wav", "no WAV"),
        ):
            page.set_input_files("input", file)
            sync.expect(status).to_contain_text(said, timeout=120_000)
        page.set_input_files("input", GOLDEN / "wave.wav")
        sync.expect(status).to_have_text(said_of(wanted(GOLDEN / "wave.wav")), timeout=120_000)
        found = page.evaluate(
            "import('./page.mjs').then((m) => m.found.scores.map((one) => Array.from(one)))"
        )
        painted = page.evaluate(
            "(() => { const c = document.querySelector('canvas');"
            "const image = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
            "return image.data.some(Boolean) })()"
        )
        browser.close()
    assert near(np.array(found, np.float32), "same")
    assert painted
    assert not faults
    assert all(url.startswith(address) for url in asked)
