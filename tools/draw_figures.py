"""Draw the figures of docs/how-it-works.md: `python tools/draw_figures.py` (needs the extra `plot`).

The signal path is drawn from a simulated recording of two talkers; the other two figures are diagrams.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import soundfile
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import tytoalba
from tytoalba.learning.prior.registry import find_prior

IMAGES = Path(__file__).parents[1] / "docs" / "images"
INK, GREY, BLUE, ORANGE, PALE, WARM = "#1d2b33", "#7d8f99", "#2f6f8f", "#c2611f", "#eaf1f4", "#fbeee4"
HOP = 4096


def two_talkers() -> tuple[np.ndarray, list[float]]:
    """A frame (4, 8192) of a simulated recording in which two people talk, and where they are."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tytoalba", "simulate", folder, "--array", "pepper", "--size", "0.2"]
        subprocess.run(command, check=True, capture_output=True)
        best: tuple[float, np.ndarray, list[float]] | None = None
        for path in sorted(Path(folder, "test").glob("*.wav")):
            sound = soundfile.read(path, always_2d=True)[0].T
            rows: dict[int, list[float]] = {}
            with path.with_suffix(".csv").open(encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if row["azimuth"]:
                        rows.setdefault(int(row["frame"]), []).append(float(row["azimuth"]))
            for frame, azimuths in rows.items():
                if len(azimuths) == 2 and 60 < abs(azimuths[0] - azimuths[1]) < 160:
                    cut = sound[:, frame * HOP : frame * HOP + 2 * HOP]
                    if best is None or cut.std() > best[0]:
                        best = (float(cut.std()), cut, azimuths)
    assert best is not None
    return best[1], best[2]


def signal_path() -> Figure:
    """One frame on its way: samples, GCC-PHAT, the map of SRP-PHAT and the map of the prior."""
    frame, azimuths = two_talkers()
    array = tytoalba.load_array("pepper")
    frames = frame[None].astype(np.float32)
    lags = np.arange(-array.max_lag, array.max_lag + 1)
    gcc = tytoalba.gcc_phat(frames, array, bands=(100, 8000))[0]
    srp = np.asarray(tytoalba.srp_phat(frames, array, band=(100, 8000)))[0]
    prior = find_prior(array)
    assert prior is not None
    logits = prior.logits(prior.gcc(frames).reshape(1, -1))[0]

    figure = Figure(figsize=(11, 3.5))
    grid = figure.add_gridspec(1, 4, wspace=0.42, left=0.03, right=0.985, top=0.78, bottom=0.15)
    wave, pairs, steered, learned = (figure.add_subplot(grid[0, k]) for k in range(4))
    seconds = np.arange(frame.shape[1]) / array.sample_rate
    for k, channel in enumerate(frame):
        wave.plot(seconds[::4] * 1e3, channel[::4] / np.abs(frame).max() * 0.6 - k, color=BLUE, linewidth=0.4)
    wave.set(xlabel="ms", yticks=[0, -1, -2, -3])
    wave.set_yticklabels(["0", "1", "2", "3"])
    wave.set_ylabel("microphone", labelpad=1)
    names = [f"{i}{j}" for i in range(4) for j in range(i + 1, 4)]
    for k, values in enumerate(gcc):
        pairs.plot(lags, values / gcc.max() * 0.9 - k, color=BLUE, linewidth=1)
    pairs.set(xlabel="lag in samples", yticks=[-k for k in range(6)])
    pairs.set_yticklabels(names)
    pairs.set_ylabel("pair", labelpad=1)
    for axes, values, color in ((steered, srp, BLUE), (learned, 1 / (1 + np.exp(-logits)), ORANGE)):
        axes.plot(np.arange(360), values, color=color, linewidth=1.3)
        for azimuth in azimuths:
            axes.axvline(azimuth, color=GREY, linestyle=":", linewidth=1)
        axes.set(xlabel="azimuth in degrees", xticks=[0, 90, 180, 270, 360], yticks=[])
    titles = [
        (wave, "1  One frame", "171 ms, four microphones"),
        (pairs, "2  GCC-PHAT", "which microphone heard it first?"),
        (steered, "3  SRP-PHAT", "all pairs, added up per azimuth"),
        (learned, "4  The prior", "the same frame, by the network"),
    ]
    for axes, title, below in titles:
        axes.set_title(f"{title}\n", loc="left", fontsize=12, color=INK, fontweight="bold")
        axes.text(0, 1.04, below, transform=axes.transAxes, fontsize=9, color=GREY)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    return figure


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure measured in units of its own axes."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width * 10), ylim=(0, height * 10))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, width: float, height: float, *lines: str, **look: Any) -> None:
    """A rounded box; its first line is its title."""
    style = {
        "boxstyle": "round,pad=0,rounding_size=1",
        "linewidth": 1.2,
        "edgecolor": BLUE,
        "facecolor": PALE,
    }
    axes.add_patch(FancyBboxPatch((x, y), width, height, **(style | look)))
    middle, step = y + height / 2 + 2.1 * (len(lines) - 1) / 2, 2.1
    for k, line in enumerate(lines):
        weight, size, color = ("bold", 11, INK) if k == 0 else ("normal", 9, GREY)
        axes.text(
            x + width / 2,
            middle - step * k,
            line,
            ha="center",
            va="center",
            fontsize=size,
            color=color,
            fontweight=weight,
        )


def arrow(
    axes: Axes, x: float, y: float, to_x: float, to_y: float, words: str = "", color: str = INK
) -> None:
    """An arrow, with words above its middle."""
    axes.add_patch(
        FancyArrowPatch((x, y), (to_x, to_y), arrowstyle="-|>", mutation_scale=13, color=color, linewidth=1.3)
    )
    if words:
        axes.text((x + to_x) / 2, (y + to_y) / 2 + 1.1, words, ha="center", fontsize=9, color=GREY)


def sums() -> Figure:
    """Lessons become sums; sums add up, and come apart again."""
    figure, axes = canvas(11, 4.2)
    warm = {"facecolor": WARM, "edgecolor": ORANGE}
    for y, name in ((31, "Monday"), (19, "Tuesday"), (7, "simulations")):
        look = warm if name != "simulations" else {}
        box(axes, 2, y, 15, 7, name, "frames, thrown away" if look else "frames of the prior", **look)
        box(axes, 27, y, 15, 7, "H,  Y", "features, labels: int8", **look)
        box(axes, 51, y, 17, 7, "G = H'H,  Q = H'Y", "whole numbers", **look)
        arrow(axes, 17.4, y + 3.5, 26.6, y + 3.5)
        arrow(axes, 42.4, y + 3.5, 50.6, y + 3.5, "multiply")
        arrow(axes, 68.4, y + 3.5, 74.6, 22.5 + (y - 19) * 0.25)
    box(axes, 75, 17.5, 13, 10, "add", "forget: subtract", "merge: add")
    arrow(axes, 88.4, 22.5, 93.6, 22.5)
    box(axes, 94, 17.5, 14, 10, "W", "(G + ridge)⁻¹ Q", "solved on demand")
    axes.text(
        2,
        2,
        "Only the sums are stored. Order and batches do not matter: whole numbers add up to the same bits.",
        fontsize=9.5,
        color=INK,
    )
    return figure


def prior() -> Figure:
    """How a prior is made, and what it does with a frame."""
    figure, axes = canvas(11, 4.6)
    axes.text(2, 42.5, "Made once, per array, from simulations", fontsize=11, color=ORANGE, fontweight="bold")
    warm = {"facecolor": WARM, "edgecolor": ORANGE}
    stages = [
        ("rooms and devices", "drawn at random", "3 kinds of acoustics"),
        ("voices and noises", "36 AudioMNIST", "speakers, fans, hiss"),
        ("mixed frames", "each one new,", "millions of them"),
        ("training", "gradient descent", "on a GPU"),
        ("calibration", "score to chance,", "on held-out scenes"),
    ]
    for k, lines in enumerate(stages):
        box(axes, 2 + 21.7 * k, 28, 17.5, 11, *lines, **warm)
        if k not in (0, len(stages) - 1):
            arrow(axes, 19.8 + 21.7 * k, 33.5, 23.4 + 21.7 * k, 33.5, color=ORANGE)
    axes.text(21.6, 32.8, "+", fontsize=14, color=ORANGE, ha="center")
    axes.text(
        2,
        22,
        "Used for every frame: no torch, the same bits from the same GCC-PHAT",
        fontsize=11,
        color=BLUE,
        fontweight="bold",
    )
    steps = [
        ("GCC-PHAT", "4 bands, 6 pairs,", "frame + 7 windows"),
        ("steering", "lags to azimuths,", "by the geometry"),
        ("circular network", "the same weights", "all around"),
        ("360 logits", "one per degree", ""),
        ("answer", "directions and", "how sure they are"),
    ]
    for k, lines in enumerate(steps):
        box(axes, 2 + 21.7 * k, 7.5, 17.5, 11, *[line for line in lines if line])
        if k < len(steps) - 1:
            arrow(axes, 19.8 + 21.7 * k, 13, 23.4 + 21.7 * k, 13, color=BLUE)
    arrow(axes, 75.9, 27.6, 58, 18.9, color=ORANGE)
    axes.text(70.5, 23.4, "weights", fontsize=9, color=ORANGE)
    axes.text(
        2,
        3,
        "Numbers are those of Pepper: four microphones. No sound of any user is in a prior.",
        fontsize=9.5,
        color=INK,
    )
    return figure


if __name__ == "__main__":
    mpl.rcParams |= {"svg.hashsalt": "tytoalba", "font.family": "DejaVu Sans"}
    for name, figure in (("signal-path", signal_path()), ("sums", sums()), ("prior", prior())):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, facecolor="white")
