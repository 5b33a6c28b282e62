"""Pictures: an array from above, directions over time, errors around the circle, how sure is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.bench.score import Outcome
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.learning.prior.calibration import reliability
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import signed_difference
from tytoalba.signal.array import MicArray
from tytoalba.signal.metrics import hits
from tytoalba.storage.writing import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf", ".jpg")
INK, AMBER, TEAL, PALE = "#1f2933", "#c9822b", "#2a7f8e", "#d9e2e4"


def plot_array(array: MicArray) -> Figure:
    """The array from above: front is up, left is left; channel numbers beside the microphones."""
    figure = new_figure(5.0, 5.0)
    axes = figure.add_subplot()
    xyz = 1000 * array.coordinates  # millimetres
    reach = max(float(np.abs(xyz[:, :2]).max()) * 1.35, 10.0)
    axes.scatter(-xyz[:, 1], xyz[:, 0], s=90, color=TEAL, zorder=3)
    for (x, y, _), channel in zip(xyz, array.channels, strict=True):
        axes.annotate(f"ch {channel}", (-y, x), textcoords="offset points", xytext=(8, 6), color=INK)
    axes.annotate(
        "", (0, reach), (0, reach * 0.72), arrowprops={"arrowstyle": "-|>", "color": AMBER, "lw": 2}
    )
    axes.text(reach * 0.04, reach * 0.9, "front 0°", color=AMBER)
    axes.text(-reach * 0.98, reach * 0.02, "left 90°", color=AMBER)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=array.name)
    axes.set_xlabel("mm (right)")
    axes.set_ylabel("mm (front)")
    axes.grid(color=PALE)
    return figure


def plot_directions(located: Sequence[Located], title: str) -> Figure:
    """Azimuth over time, and how often each direction was found."""
    figure = new_figure(10.0, 4.0)
    grid = figure.add_gridspec(1, 2, width_ratios=(2.2, 1))
    time = np.array([found.time for found in located for _ in found.azimuth])
    azimuth = np.array([a for found in located for a in found.azimuth])
    known = all(found.probability is not None for found in located)
    heights = [c for found in located for c in (found.probability if known else found.score) or ()]
    axes = figure.add_subplot(grid[0])
    dots = axes.scatter(time, azimuth, c=heights, s=14, cmap="viridis", vmin=0)
    axes.set(
        ylim=(0, 360), yticks=range(0, 361, 45), xlabel="time (s)", ylabel="azimuth (degrees)", title=title
    )
    axes.grid(color=PALE)
    if len(time):
        figure.colorbar(dots, ax=axes, label="probability" if known else "score")
    polar = _polar(figure, grid[1])
    counts, edges = np.histogram(azimuth, bins=72, range=(0, 360))
    polar.bar(np.deg2rad(edges[:-1] + 2.5), counts, width=np.deg2rad(5), color=TEAL)
    return figure


def plot_evidence(counts: ArrayLike, title: str) -> Figure:
    """How many frames were taught at each direction, (n_directions,), in sectors of 5 degrees."""
    frames = np.asarray(counts)
    sector = max(1, len(frames) // 72)
    total = frames[: len(frames) // sector * sector].reshape(-1, sector).sum(axis=1)
    figure = new_figure(5.0, 5.0)
    axes = _polar(figure, 111)
    middle = np.deg2rad((np.arange(len(total)) + 0.5) * 360.0 / len(total) - 0.5)
    axes.bar(middle, total, width=2 * np.pi / len(total), color=TEAL)
    axes.set_title(title)
    return figure


def plot_errors(outcomes: dict[str, Outcome], title: str) -> Figure:
    """Found against true azimuth, and the share of frames within 5 degrees around the circle (one source)."""
    figure = new_figure(10.0, 4.4)
    grid = figure.add_gridspec(1, 2, width_ratios=(1.4, 1))
    axes = figure.add_subplot(grid[0])
    polar = _polar(figure, grid[1])
    for (name, outcome), colour in zip(outcomes.items(), (TEAL, AMBER, INK, "#8a4f7d"), strict=False):
        true = outcome.reference[:, 0]
        off = signed_difference(outcome.estimate[:, 0], true)
        axes.scatter(true, true + off, s=5, alpha=0.35, color=colour, label=name)
        hit = hits(outcome.reference, outcome.estimate)[:, 0]
        sector = (true // 15).astype(int)
        share = [100 * hit[sector == s].mean() if (sector == s).any() else np.nan for s in range(24)]
        middle = np.deg2rad(np.arange(24) * 15 + 7.5)
        polar.plot(np.append(middle, middle[0]), [*share, share[0]], color=colour, lw=2)
    axes.set(xlim=(0, 360), xticks=range(0, 361, 45), xlabel="true azimuth (degrees)")
    axes.set(ylabel="found azimuth (degrees)", title=title)
    axes.legend(loc="upper left", frameon=False)
    axes.grid(color=PALE)
    polar.set_ylim(0, 100)
    polar.set_title("ACC (%) around the circle", color=INK)
    return figure


def plot_reliability(probability: ArrayLike, right: ArrayLike, title: str, n_bins: int = 15) -> Figure:
    """How often decisions of each probability were right, how many there are, and the calibration error.

    probability: fractions in [0, 1], any shape, no NaN. right: of the same shape, True or False.
    """
    bins = reliability(probability, right, n_bins)
    figure = new_figure(5.0, 5.6)
    grid = figure.add_gridspec(2, 1, height_ratios=(4, 1))
    axes = figure.add_subplot(grid[0])
    middle, filled = (np.arange(n_bins) + 0.5) / n_bins, bins.count > 0
    axes.bar(middle[filled], bins.accuracy[filled], width=1 / n_bins, color=PALE, edgecolor="white")
    axes.plot((0, 1), (0, 1), color=AMBER, lw=1.5, label="as sure as right")
    axes.plot(bins.probability[filled], bins.accuracy[filled], "o-", color=TEAL, label="found")
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of right decisions")
    axes.set_title(f"{title} (ECE {bins.error:.3f})", color=INK)
    axes.legend(loc="upper left", frameon=False)
    below = figure.add_subplot(grid[1], sharex=axes)
    below.bar(middle, bins.count, width=1 / n_bins, color=TEAL, edgecolor="white")
    below.set(xlabel="probability", ylabel="decisions")
    return figure


def check_drawing() -> None:
    """Refuse where nothing can be drawn: worth asking before hours of work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pictures", "plot") from error


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, its size in inches; no window is opened."""
    check_drawing()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def check_picture(path: str | Path) -> None:
    """Refuse what cannot be drawn into: worth asking before minutes of work, not after."""
    if Path(path).suffix.lower() not in PICTURES:
        raise TytoError(f"{path}: the name of a picture ends in {', '.join(PICTURES)}")
    if not Path(path).parent.is_dir():
        raise TytoError(f"{path}: there is no folder {Path(path).parent}; make it first")
    check_drawing()


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a picture (png, svg, pdf by its name), whole or not at all."""
    check_picture(path)
    kind = Path(path).suffix.lower()[1:]
    with whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)


def _polar(figure: Figure, place: Any) -> Any:
    """Polar axes as seen from above: 0 up (front), angles grow to the left."""
    axes: Any = figure.add_subplot(place, projection="polar")
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(1)
    axes.grid(color=PALE)
    return axes
