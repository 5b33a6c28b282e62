"""How fast sums are added up, solved and answered from, beside numpy and beside the textbook recursion."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.speed.rows import Ceiling, Exponent, Row, best_of, compared, now, using
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.products import FLOAT32, INT8, fastest, integer_products, mirrored
from tytoalba.learning.random_features import RandomFourier
from tytoalba.learning.recursive import RecursiveHead
from tytoalba.learning.sums import import_torch

OUTPUTS = 360
BATCH = 256
"""Rows that the recursion takes at a time."""
RIDGE = 0.3
"""In units of D / 2, as our learner has it."""

ENDLESS = 10**12
"""So many rows that importing torch is nothing."""

Rows = tuple[NDArray[np.int8], NDArray[np.int8]]


def random_rows(n: int, D: int, seed: int = 0) -> Rows:
    """Features (n, D) and labels (n, 360), int8: time does not depend on what they are."""
    rng = np.random.default_rng(seed)
    H = rng.integers(-127, 128, (n, D), dtype=np.int8)
    return H, rng.integers(0, 128, (n, OUTPUTS), dtype=np.int8)


def measure_sums(D: int, n: int, threads: int, repeats: int = 3) -> tuple[list[Row], list[Ceiling]]:
    """H'H beside numpy's, 2 n D^2 operations counted for each: numpy's own `H.T @ H` is a syrk, too.

    numpy's is that of floats that are there already, ours begins with int8 and adds up H'Y and Y^2 as well.
    """
    task = f"sums H'H, D = {D}, N = {n}"
    H, Y = random_rows(n, D)
    operations = 2.0 * n * D * D / 1e9
    with_kernel = fastest(H, ENDLESS) is INT8
    with using(threads, torch=with_kernel):
        seconds: dict[str, float] = {}
        for dtype in (np.float64, np.float32):
            h = H.astype(dtype)
            seconds |= best_of({f"numpy, {np.dtype(dtype).name} (syrk)": lambda h=h: h.T @ h}, repeats)  # type: ignore[misc]
            del h
        ways = {"tytoalba, exact, float32": FLOAT32} | (
            {"tytoalba, exact, int8": INT8} if with_kernel else {}
        )
        runs: dict[str, Callable[[], object]] = {
            name: partial(_whole_sums, H, Y, way) for name, way in ways.items()
        }
        runs["tytoalba, a head that learns them"] = lambda: AnalyticHead(D, OUTPUTS, exact=True).learn(H, Y)
        seconds |= best_of(runs, repeats)
        peak = {"GEMM, float32": _gemm_peak(np.float32)}
        if with_kernel:
            peak["GEMM, int8"] = _int8_peak()
    done = (n * D * (D + 1.0) + 2.0 * n * D * OUTPUTS) / 1e9  # the triangle, and H'Y
    ceilings = [
        Ceiling(
            f"sums, D = {D}: {kind}",
            f"GEMM, {kind}",
            done / seconds[f"tytoalba, exact, {kind}"],
            top,
            "GOP/s",
        )
        for kind, top in ((name.split(", ")[1], top) for name, top in peak.items())
    ]
    return compared(task, seconds, operations, "GOP/s", threads), ceilings


def measure_gpu(D: int, n: int, device: str = "cuda", block: int = 26_624) -> list[Row]:
    """Sums of a GPU, from Z on: expansion into int8, products, and all that a head does."""
    torch = import_torch()
    features = RandomFourier(OUTPUTS, D, OUTPUTS**0.5)
    rng = np.random.default_rng(0)
    Z = torch.from_numpy(rng.standard_normal((block, OUTPUTS)).astype(np.float32)).to(device)
    Y = torch.from_numpy(random_rows(block, 1)[1]).to(device)

    def learn(rows: int) -> None:
        head = AnalyticHead(D, OUTPUTS, exact=True, device=device)
        head.learn_parts((features.codes(Z), Y) for _ in range(max(1, rows // block)))
        int(head.statistics().n)
        if device != "cpu":
            torch.cuda.synchronize()

    learn(block)
    took = best_of({"": lambda: learn(n)}, 2)[""]
    rate = 2.0 * max(1, n // block) * block * D * D / took / 1e12
    return [Row(f"sums and expansion, D = {D}, N = {n}", f"tytoalba, {device}", rate, "TOP/s", None, 1)]


def measure_learning(D: int, n: int, threads: int, batches: int, slow_batches: int) -> list[Row]:
    """Learning n frames and solving, beside the recursion in float64, extrapolated from some batches."""
    task = f"learning {n} frames, D = {D}"
    H, Y = random_rows(min(n, 20_000), D)
    parts = -(-n // len(H))

    def learn() -> None:
        head = AnalyticHead(D, OUTPUTS, RIDGE * D / 2, exact=True)
        head.learn_parts(
            (H, Y) if k + 1 < parts else (H[: n - k * len(H)], Y[: n - k * len(H)]) for k in range(parts)
        )
        head.weights()

    h, y = H[: batches * BATCH] / 127.0, Y[: batches * BATCH] / 127.0
    with using(threads, torch=fastest(H, ENDLESS) is INT8):
        recursive = _of_batches(RecursiveHead(D, OUTPUTS, RIDGE * D / 2), h, y, batches)
        published = _of_batches(LeftToRight(D, OUTPUTS, RIDGE * D / 2), h, y, slow_batches)
        del h, y
        ours = best_of({"": learn}, 2)[""]
    scale = n / BATCH
    rows = [
        (
            "RecursiveHead, as bracketed",
            recursive * scale,
            f"{batches} batches of {BATCH} timed, extrapolated",
        ),
        (
            "published form, left to right",
            published * scale,
            f"{slow_batches} batches of {BATCH} timed, extrapolated",
        ),
        ("tytoalba", ours, "timed whole, solution included"),
    ]
    first = rows[0][1]
    return [Row(task, name, took, "s", first / took, threads, note) for name, took, note in rows]


class LeftToRight:
    """The recursion with its products in the order in which they are published and commonly programmed.

    R <- R - R H' K H R,   W <- W + R H' (Y - H W),   each from left to right: D x D times D x D.
    """

    def __init__(self, n_features: int, n_outputs: int, ridge: float) -> None:
        self.R = np.eye(n_features) / ridge
        self.W = np.zeros((n_features, n_outputs))

    def learn(self, H: NDArray[np.float64], Y: NDArray[np.float64]) -> None:
        """Add the rows of one batch."""
        R = self.R
        K = np.linalg.inv(np.eye(len(H)) + H @ R @ H.T)
        self.R = R - R @ H.T @ K @ H @ R
        self.W = self.W + self.R @ H.T @ (Y - H @ self.W)


def measure_lesson(D: int, rows: int, threads: int, repeats: int = 3) -> list[Row]:
    """Answers after a small lesson: with the last solution brought up to date, and anew."""
    head = AnalyticHead(D, OUTPUTS, RIDGE * D / 2, exact=True).learn(*random_rows(2 * D, D))
    lesson, question = random_rows(rows, D, seed=1), random_rows(1, D, seed=2)[0]
    with using(threads):
        head.scores(question)

        def answer(anew: bool) -> None:
            taught = copy(head).learn(*lesson)
            if anew:
                taught = taught.restored(taught.memory())
            taught.scores(question)

        seconds = best_of(
            {"solved anew": partial(answer, True), "brought up to date": partial(answer, False)}, repeats
        )
    first = next(iter(seconds.values()))
    task = f"a lesson of {rows} frames and an answer, D = {D}"
    return [Row(task, name, took, "s", first / took, threads) for name, took in seconds.items()]


def measure_growth(
    threads: int, frames: tuple[int, ...], widths: tuple[int, ...], phases: tuple[int, ...], repeats: int = 5
) -> list[Exponent]:
    """How the time of sums grows with frames (the middle D), with D, and with phases learned before."""
    D, n = widths[len(widths) // 2], frames[len(frames) // 2]
    H, Y = random_rows(max(frames), max(widths))
    found = []
    with using(threads, torch=fastest(H, ENDLESS) is INT8):

        def sums(rows: int, width: int) -> None:
            AnalyticHead(width, OUTPUTS, exact=True).learn(H[:rows, :width], Y[:rows])

        sums(n, D)
        for against, runs in (
            ("frames N", {k: partial(sums, k, D) for k in frames}),
            ("features D", {k: partial(sums, n, k) for k in widths}),
        ):
            seconds = best_of({str(k): run for k, run in runs.items()}, repeats)
            found.append(Exponent.fitted("sums", against, {int(k): took for k, took in seconds.items()}))
        few = slice(0, max(64, D // 8))
        heads = {k: AnalyticHead(D, OUTPUTS, exact=True) for k in phases}
        for k, head in heads.items():
            for _ in range(k):
                head.learn(H[few, :D], Y[few])
        runs = {k: partial(_next_phase, head, H[:n, :D], Y[:n]) for k, head in heads.items()}
        seconds = best_of({str(k): run for k, run in runs.items()}, 2 * repeats)
        found.append(
            Exponent.fitted("the next phase", "phases before", {int(k): t for k, t in seconds.items()})
        )
    return found


def measure_memory(D: int, n: int) -> Row:
    """Peak of a process that learns n frames at D features, from Z on, and solves, and does nothing else."""
    program = (
        "from tytoalba.bench.speed.learning import learn_from_z\n"
        "from tytoalba.bench.speed.rows import memory_peak\n"
        f"learn_from_z({D}, {n})\n"
        "print(memory_peak())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return Row(
        f"learning and solving, D = {D}, N = {n}", "peak of memory", int(ran.stdout) / 1e9, "GB", None, 0
    )


def learn_from_z(D: int, n: int, block: int = 4096) -> AnalyticHead:
    """A head that learned n frames, expanded block by block, and was solved."""
    features = RandomFourier(OUTPUTS, D, OUTPUTS**0.5)
    rng = np.random.default_rng(0)

    def parts() -> Iterator[Rows]:
        for first in range(0, n, block):
            rows = min(block, n - first)
            Z = rng.standard_normal((rows, OUTPUTS)).astype(np.float32)
            yield features.codes(Z), rng.integers(0, 128, (rows, OUTPUTS), dtype=np.int8)

    head = AnalyticHead(D, OUTPUTS, RIDGE * D / 2, exact=True).learn_parts(parts())
    head.scores(features.codes(np.zeros((1, OUTPUTS), np.float32)))
    return head


def memory_ceiling(D: int, rows: int = 16, threads: int = 1, repeats: int = 5) -> Ceiling:
    """A lesson of a few frames reads all sums and writes new ones: beside copying as many bytes."""
    head = AnalyticHead(D, OUTPUTS, exact=True).learn(*random_rows(256, D))
    lesson, G = random_rows(rows, D, seed=1), head.memory()["G"]
    with using(threads):
        seconds = best_of({"lesson": lambda: copy(head).learn(*lesson), "copy": lambda: np.array(G)}, repeats)
    moved = 2 * G.nbytes / 1e9  # read once, written once
    return Ceiling(
        f"a lesson of {rows} frames, D = {D}",
        "copying the sums",
        moved / seconds["lesson"],
        moved / seconds["copy"],
        "GB/s",
    )


def expansion_ceiling(D: int, n: int, threads: int, repeats: int = 3) -> Ceiling:
    """Random features in int8 beside the float64 product in them."""
    features = RandomFourier(OUTPUTS, D, OUTPUTS**0.5)
    Z = np.random.default_rng(0).standard_normal((n, OUTPUTS)).astype(np.float32)
    W, z = features.weights.astype(np.float64), Z.astype(np.float64)
    with using(threads):
        seconds = best_of({"codes": lambda: features.codes(Z), "gemm": lambda: z @ W}, repeats)
    operations = 2.0 * n * D * OUTPUTS / 1e9
    reached, possible = operations / seconds["codes"], operations / seconds["gemm"]
    return Ceiling(f"random features, D = {D}", "GEMM, float64", reached, possible, "GFLOP/s")


def _whole_sums(H: NDArray[np.int8], Y: NDArray[np.int8], way: Any) -> None:
    mirrored(integer_products(H, Y, way)[0])


def _next_phase(head: AnalyticHead, H: NDArray[np.int8], Y: NDArray[np.int8]) -> None:
    copy(head).learn(H, Y)


def _of_batches(head: Any, H: NDArray[np.float64], Y: NDArray[np.float64], batches: int) -> float:
    """Seconds per batch of 256 rows, on average."""
    start = now()
    for k in range(batches):
        rows = slice(k * BATCH % len(H), k * BATCH % len(H) + BATCH)
        head.learn(H[rows], Y[rows])
    return (now() - start) / batches


def _gemm_peak(dtype: type, n: int = 1536) -> float:
    a: NDArray[Any] = np.ones((n, n), dtype)
    return 2e-9 * n**3 / best_of({"": lambda: a @ a}, 6)[""]


def _int8_peak(n: int = 1024) -> float:
    torch = import_torch()
    a = torch.ones((n, n), dtype=torch.int8)
    return 2e-9 * n**3 / best_of({"": lambda: torch._int_mm(a, a)}, 20)[""]
