"""Pictures of a comparison: accuracy phase after phase, the accuracy matrices, the error around the circle.

A method has the same colour in every picture and on the page; the colours can be told apart by people with
any kind of colour blindness, and the bounds and references are dashed besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tytoalba.bench import paper as paper
from tytoalba.bench.plots import INK, PALE, new_figure
from tytoalba.bench.results import N_SECTORS
from tytoalba.bench.summary import Summary, View
from tytoalba.signal.angles import Float

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIEW: View = "overall"
"""The frames that are drawn: all of them."""
Dash = Literal["solid", "dashed", "dotted", "dashdot"]


class Style(NamedTuple):
    """How a method is drawn everywhere."""

    colour: str
    dash: Dash


_STYLES = {
    "sslcil": Style("#d55e00", "solid"),
    "icarl": Style("#0072b2", "solid"),
    "ssil": Style("#009e73", "solid"),
    "lwf": Style("#cc79a7", "solid"),
    "joint": Style("#555555", "dashed"),
    "finetune": Style("#8c8c8c", "dotted"),
    "mlp": Style("#56b4e9", "dashdot"),
    "srp": Style("#999933", "dashdot"),
    "tyto": Style("#000000", "solid"),
    "prior alone": Style("#000000", "dotted"),
    "tyto without prior": Style("#7f5539", "solid"),
}
_SPARE = ("#e69f00", "#882255", "#44aa99", "#6a51a3", "#117733", "#aa4499", "#1f78b4")
_DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted", "dashdot")
_MARKS = "osD^vP*X"
_RINGS = (1, 2, 4, 10, 20, 40, 60, 100, 140, 180)  # degrees at the edge of a circle


def styles(summaries: Sequence[Summary]) -> list[Style]:
    """A style for each summary: fixed for the paper's methods; another decision only changes the dash."""
    spare: dict[str, Style] = {}
    used: dict[str, int] = {}
    found = []
    for s in summaries:
        key = s.label if s.variant else paper.key(s.method)
        if key not in _STYLES and key not in spare:
            spare[key] = Style(_SPARE[len(spare) % len(_SPARE)], _DASHES[len(spare) // len(_SPARE) % 4])
        style = _STYLES.get(key) or spare[key]
        turn = used[key] = used.get(key, -1) + 1
        dash = _DASHES[(_DASHES.index(style.dash) + turn) % len(_DASHES)]
        found.append(Style(style.colour, dash))
    return found


def accuracy_curves(summaries: Sequence[Summary]) -> Figure:
    """Averaged accuracy per phase, one curve a method, named at its end; bands are ± one std."""
    figure = new_figure(9.5, 5.6)
    axes = figure.add_subplot()
    ends: list[tuple[float, str, str]] = []
    n_phases = 1
    for i, (s, style) in enumerate(zip(summaries, styles(summaries), strict=True)):
        if VIEW not in s.curves or not np.isfinite(s.curves[VIEW]["acc"][0]).any():
            continue
        mean, std = s.curves[VIEW]["acc"]
        n_phases = len(mean)
        phase = np.arange(n_phases)
        axes.plot(phase, mean, color=style.colour, ls=style.dash, lw=2, marker=_MARKS[i % 8], ms=4.5)
        axes.fill_between(phase, mean - std, mean + std, color=style.colour, alpha=0.14, lw=0)
        ends.append((float(mean[np.isfinite(mean)][-1]), s.label, style.colour))
    low, high = axes.get_ylim()
    low, high = (max(0.0, low), min(100.0, high))
    places = _apart([end for end, _, _ in ends], (high - low) / 22)
    for place, (end, label, colour) in zip(places, ends, strict=True):
        last = n_phases - 1
        axes.plot([last + 0.1, last + 0.3], [end, place], color=colour, lw=0.8, clip_on=False)
        axes.text(
            last + 0.36, place, _short(label), color=colour, va="center", fontsize=9.5, parse_math=False
        )
    axes.set(xlim=(-0.2, n_phases - 0.8), ylim=(min([low, *places]), max([high, *places])))
    axes.set_xticks(range(n_phases) if n_phases <= 20 else range(0, n_phases, n_phases // 10))
    axes.set_xlabel("phase learned", color=INK)
    axes.set_ylabel("ACC on the phases seen (%)")
    axes.grid(color=PALE)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def accuracy_matrices(summaries: Sequence[Summary]) -> Figure:
    """ACC on phase j (across) after learning phase i (down), one square a method, one colour scale."""
    shown = [s for s in summaries if VIEW in s.matrices]
    figure, places = _grid(len(shown), 2.7, 2.75)
    image = None
    for s, place in zip(shown, places, strict=True):
        axes = figure.add_subplot(place)
        image = axes.imshow(
            s.matrices[VIEW]["acc"], vmin=0, vmax=100, cmap="cividis", interpolation="nearest"
        )
        axes.set_title(_short(s.label), fontsize=10, color=INK, parse_math=False)
        axes.set(xlabel="tested on phase", ylabel="after phase")
        ticks = range(0, len(s.matrices[VIEW]["acc"]), max(1, len(s.matrices[VIEW]["acc"]) // 5))
        axes.set(xticks=ticks, yticks=ticks)
        axes.set_facecolor("#f4f6f6")
        axes.spines[:].set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=figure.axes, label="ACC (%)", fraction=0.03, aspect=35, shrink=0.6)
    return figure


def error_polar(summaries: Sequence[Summary]) -> Figure:
    """Error by true azimuth after the last phase, one circle a method: 0 up (front), angles to the left."""
    drawn = list(zip(summaries, styles(summaries), strict=True))
    drawn = [
        (s, style) for s, style in drawn if VIEW in s.sectors and np.isfinite(s.sectors[VIEW]["mae"]).any()
    ]
    figure, places = _grid(len(drawn), 2.7, 3.0)
    largest = max([float(np.nanmax(s.sectors[VIEW]["mae"])) for s, _ in drawn], default=1.0)
    top = float(next(t for t in _RINGS if t >= largest))
    middle = np.deg2rad((np.arange(N_SECTORS) + 0.5) * 360 / N_SECTORS)
    for (s, style), place in zip(drawn, places, strict=True):
        axes: Any = figure.add_subplot(place, projection="polar")
        axes.set_theta_zero_location("N")
        values: Float = np.nan_to_num(s.sectors[VIEW]["mae"])
        axes.bar(
            middle, values, width=2 * np.pi / N_SECTORS, color=style.colour, alpha=0.8, ec="white", lw=0.5
        )
        axes.set(ylim=(0, top), yticks=(top / 2, top), yticklabels=(f"{top / 2:.3g}", f"{top:.3g}"))
        axes.set_xticks(np.deg2rad([0, 90, 180, 270]), ["0°", "90°", "180°", "270°"], fontsize=8)
        axes.tick_params(axis="y", labelsize=7)
        axes.grid(color=PALE)
        axes.spines["polar"].set_color(PALE)
        axes.set_title(_short(s.label), fontsize=10, color=INK, parse_math=False)
    title = "MAE (degrees) by true azimuth after the last phase, all to one scale"
    figure.suptitle(title, color=INK, fontsize=11)
    return figure


def _grid(n: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure with a place for each of n small pictures, four across."""
    n_columns = max(1, min(4, n))
    n_rows = max(1, -(-n // 4))
    figure = new_figure(max(5.0, width * n_columns), height * n_rows + 0.4)
    grid = figure.add_gridspec(n_rows, n_columns)
    return figure, [grid[i // n_columns, i % n_columns] for i in range(n)]


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights at least `gap` apart, in the same order, near the wanted ones.

    >>> _apart([10.0, 10.0, 50.0], 4.0)
    [8.0, 12.0, 50.0]
    """
    clusters = [[i] for i in np.argsort(wanted, kind="stable").tolist()]

    def low(cluster: list[int]) -> float:
        return float(np.mean([wanted[i] for i in cluster])) - gap * (len(cluster) - 1) / 2

    k = 1
    while k < len(clusters):
        if low(clusters[k]) - low(clusters[k - 1]) < gap * len(clusters[k - 1]):
            clusters[k - 1] += clusters.pop(k)
            k = max(1, k - 1)
        else:
            k += 1
    place = {i: low(cluster) + gap * turn for cluster in clusters for turn, i in enumerate(cluster)}
    return [place[i] for i in range(len(wanted))]


def _short(label: str) -> str:
    return label if len(label) <= 28 else f"{label[:27]}…"
