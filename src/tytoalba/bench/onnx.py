"""How near ONNX files are to tytoalba: scores, phases and time of both, on the same random frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tytoalba.errors import TytoError
from tytoalba.localizer.onnx.builder import Builder, Precision
from tytoalba.localizer.onnx.features import phases
from tytoalba.localizer.onnx.graph import INPUT, OUTPUT, Known, onnx_bytes
from tytoalba.localizer.stream import Finder
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.phases import hamming
from tytoalba.signal.phases import phases as rounded_phases

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

AT_ONCE = 16
"""Frames in memory together."""
RIGHT = 5.0
"""Degrees: a top direction that is farther off points elsewhere."""


def random_frames(array: MicArray, n_frames: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Frames of one or two plane waves in noise, (up to AT_ONCE, n_mics, frame_length), drawn one by one.

    Azimuth, spectrum, noise and level (60 dB) are random; every second frame has samples of 16 bits.
    """
    rng = np.random.default_rng([seed, 20])
    for first in range(0, n_frames, AT_ONCE):
        yield np.stack([_frame(array, rng, k) for k in range(first, min(first + AT_ONCE, n_frames))])


def _frame(array: MicArray, rng: np.random.Generator, number: int) -> NDArray[np.float32]:
    n = array.frame_length
    hertz = np.fft.rfftfreq(n, 1 / array.sample_rate)
    spectrum = rng.uniform(0.0, 1.0) * np.exp(1j * rng.uniform(0, 2 * np.pi, (array.n_mics, len(hertz))))
    for height in (1.0, rng.uniform(0.0, 1.0))[: rng.integers(1, 3)]:
        phase = np.exp(1j * rng.uniform(0, 2 * np.pi, len(hertz)))
        delay = array.arrival_times(rng.uniform(0.0, 360.0))[:, None]
        spectrum = spectrum + height * phase * np.exp(-2j * np.pi * hertz * delay)
    sound = np.fft.irfft(spectrum * (1.0 + hertz / 100.0) ** -rng.uniform(0.0, 2.0), n)
    sound *= 10.0 ** rng.uniform(-3.0, 0.0) / np.abs(sound).max()
    return np.asarray(np.round(sound * 2**15) / 2**15 if number % 2 else sound, np.float32)


def open_session(data: bytes, threads: int = 1) -> InferenceSession:
    """A session of onnxruntime, on the CPU."""
    try:
        import onnxruntime
    except ImportError:
        raise TytoError("running ONNX files needs: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def compared(
    known: Known,
    finder: Finder,
    precision: Precision,
    n_frames: int,
    seed: int = 0,
    on_progress: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Scores of an ONNX file beside those of `finder`, who knows the same. on_progress: told now and then.

    different: frames in which any score differs. largest, mean: of the differences. moved, moved_away: frames
    whose highest score is elsewhere, and by more than RIGHT degrees.
    """
    session = open_session(onnx_bytes(known, precision))
    found = {"frames": 0, "different": 0, "largest": 0.0, "mean": 0.0, "moved": 0, "moved_away": 0}
    for frames in random_frames(finder.array, n_frames, seed):
        ours = np.asarray(finder.scores(finder.maps(frames)))
        theirs = np.asarray(session.run([OUTPUT], {INPUT: frames})[0])
        there = np.isfinite(ours)
        apart = np.abs(np.where(there, ours, 0.0) - np.where(there, theirs, 0.0))
        off = distance(ours.argmax(axis=1).astype(float), theirs.argmax(axis=1).astype(float))
        found["different"] += int((ours != theirs).any(axis=1).sum())
        found["largest"] = max(found["largest"], float(apart.max()))
        found["mean"] += float(apart.sum() / there[0].sum())
        found["moved"] += int((off > 0).sum())
        found["moved_away"] += int((off > RIGHT).sum())
        found["frames"] += len(frames)
        if found["frames"] % (64 * AT_ONCE) == 0:
            on_progress(found | {"mean": found["mean"] / found["frames"]})
    return {"precision": precision} | found | {"mean": found["mean"] / max(1, found["frames"])}


def phases_moved(array: MicArray, gcc: GccPhat, n_frames: int, seed: int = 0) -> dict[str, int]:
    """How many rounded phases of whole frames an ONNX runtime puts on another step than tytoalba does."""
    from scipy.fft import rfft

    g, whole = Builder("same"), gcc.whole
    shape = (1, array.n_mics, whole.n_samples)
    found = phases(g, g.cast(g.reshape(INPUT, -1, *shape), g.real), whole)
    outputs = {name: (part, np.float64, [None] * 4) for name, part in zip(("re", "im"), found, strict=True)}
    data = g.to_bytes({INPUT: ("n_frames", *shape[1:])}, outputs, {})  # type: ignore[arg-type]
    session, n, moved = open_session(data), 0, 0
    for frames in random_frames(array, n_frames, seed):
        ours = rounded_phases(frames * hamming(whole.n_samples), *whole.span, rfft)
        for mine, other in zip(ours, session.run(["re", "im"], {INPUT: frames}), strict=True):
            moved += int((mine != np.asarray(other)[:, 0]).sum())
            n += mine.size
    return {"frames": n_frames, "phases": n, "moved": moved}


def timed(known: Known, finder: Finder, seconds: float = 5.0) -> dict[str, float]:
    """Milliseconds per frame of tytoalba and both precisions, one thread: taking turns, the best of each.

    The first turn is not counted.
    """
    sessions = {precision: open_session(onnx_bytes(known, precision)) for precision in ("same", "fast")}
    (frames,) = random_frames(finder.array, 1, 0)
    tasks: dict[str, Callable[[], Any]] = {"tytoalba": lambda: finder.scores(finder.maps(frames))}
    for name, session in sessions.items():
        tasks[name] = lambda session=session: session.run([OUTPUT], {INPUT: frames})  # type: ignore[misc]
    spent: dict[str, list[float]] = {name: [] for name in tasks}
    with threadpool_limits(1):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or len(spent["fast"]) < 3:
            for name, task in tasks.items():
                start = time.perf_counter()
                task()
                spent[name].append(1e3 * (time.perf_counter() - start))
    return {name: round(min(times[1:]), 3) for name, times in spent.items()}


def score_table(same: dict[str, Any], fast: dict[str, Any]) -> str:
    """What `compared` found of both precisions, as the rows of a table."""

    def row(label: str, name: str) -> str:
        return f"| {label} | {_short(same[name])} | {_short(fast[name])} |"

    rows = {
        "frames": "frames",
        "frames with any other score": "different",
        "largest difference of a score": "largest",
        "mean difference": "mean",
        "frames whose highest score is at another degree": "moved",
        f"frames where it is more than {RIGHT:g} degrees away": "moved_away",
    }
    return "\n".join(row(label, name) for label, name in rows.items())


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.5f}" if value else "0"
