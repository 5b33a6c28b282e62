"""How well talkers are followed: simulated scenes, several ways to follow, the columns of `track_scores`.

Scenes are those of `data.simulation.presets.TRACKING`: talkers who come after a while, stand, walk, pause,
near a fan. Settings are chosen on scenes of the part "valid" (`search`), other rooms and other speakers than
those of "test". A way to follow is a `Follower`: from a scene, with its sound, to a report. To measure
another tracker beside ours, on the same sound, give `measure_tracking` one more; `bench.odas` has ODAS's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.descent import OnStep, descend
from tytoalba.bench.track_scores import COLUMNS, HIGHER, Report, Truth, linked, scored, summarised
from tytoalba.data.simulation.presets import TRACKING
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.voice import choose_voices
from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.live.background import Background
from tytoalba.live.peaks import Peak, peaks
from tytoalba.live.settings import Settings
from tytoalba.live.tracker import AUTO, Tracker
from tytoalba.localizer.locate import new_stream
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.parallel import parallel_map

PARTS = {"valid": 1, "test": 2}
"""Parts of the scenes and their number in the preset."""
QUIET = 1.45
"""Seconds at the start of every scene in which nobody talks: what the background is learned from."""
SURE = 0.5
"""Probability from which a direction counts that was found frame by frame."""
Row = dict[str, tuple[float, float]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Scene:
    """One scene: its sound (n_mics, n_samples), who was where, and what the method says of each frame.

    labelled: the frames that `truth` knows. time: seconds of every frame. level: dB of full scale. scores:
    (360,), None in silence.
    located: what the method finds frame by frame, with an unknown number of sources. counting: what turns
    its peaks into chances.
    """

    kind: str
    array: MicArray
    samples: NDArray[np.float32]
    truth: Truth
    labelled: NDArray[np.intp]
    time: Sequence[float]
    level: Sequence[float]
    scores: Sequence[Float | None]
    located: Sequence[Located]
    counting: Sequence[Calibration]


Follower = Callable[[Scene], Report]
"""From a scene to those that talk, in every frame: pairs (identity, azimuth in degrees)."""


def framewise(scene: Scene) -> Report:
    """What the method finds frame by frame; identities are those of the nearest direction just before."""
    sure = [
        [a for a, p in zip(one.azimuth, one.probability or (1.0,) * one.n_sources, strict=True) if p >= SURE]
        for one in scene.located
    ]
    return linked(sure)


def tracks(scene: Scene, settings: Settings | None = None, background: float | str | None = None) -> Report:
    """Our tracker; background: what it leaves out, as `Tracker` takes it."""
    tracker = Tracker(scene.counting, settings or Settings(), background)
    return [
        [(one.id, one.azimuth) for one in tracker.update(scores, time, level) if one.speaking]
        for scores, time, level in zip(scene.scores, scene.time, scene.level, strict=True)
    ]


FOLLOWERS: dict[str, Follower] = {
    "frame by frame": framewise,
    "tracks": tracks,
    "tracks, auto": partial(tracks, background=AUTO),
    "tracks, background": partial(tracks, background=QUIET),
}
"""Ways to follow, by name. The background is learned by itself, or is that of the first 1.45 s of a scene."""


def make_scene(
    array: MicArray, method: str, speech: str | Path | None, part: str, task: tuple[int, str, int]
) -> Scene:
    """A scene. task: seed, kind, number."""
    seed, kind, number = task
    simulation = Simulation(TRACKING[kind], array, choose_voices(speech), seed)
    made = simulation.recording((PARTS[part], 1000 * list(TRACKING).index(kind) + number))
    stream = new_stream(array, method, n_sources="auto")
    heard = list(stream.run_heard([made.samples]))
    x, y = made.positions[..., 0], made.positions[..., 1]
    time = [frame.time for frame in heard]
    truth = Truth(
        np.array(time)[made.frame_ids],
        np.asarray(wrap(np.rad2deg(np.arctan2(y, x)))),
        made.talking,
        simulation.preset.seconds,
    )
    level = [one.level for one in heard]
    scores = [None if one.maps is None else stream.finder.scores(one.maps[None])[0] for one in heard]
    located = stream.decide(heard)
    return Scene(
        kind, array, made.samples, truth, made.frame_ids, time, level, scores, located, stream.finder.counting
    )


def measure_tracking(
    array: MicArray | str | Path = "respeaker-usb-4",
    *,
    method: str = "prior",
    part: str = "valid",
    n_scenes: int = 4,
    seeds: Sequence[int] = (0, 1, 2),
    speech: str | Path | None = None,
    processes: int = 1,
    followers: Mapping[str, Follower] | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Columns of each way to follow, for each kind of scene and for all, with intervals over scenes.

    n_scenes: of each kind and seed. followers: `FOLLOWERS` if not given; they must be picklable with more
    than one process. The result is plain, for JSON.
    """
    mics = load_array(array)
    ways = FOLLOWERS if followers is None else followers
    tasks = scene_tasks(part, n_scenes, seeds)
    work = partial(_scores, mics, method, speech, part, ways)
    rows: list[dict[str, Row]] = []
    for row in parallel_map(work, tasks, processes):
        rows.append(row)
        if on_progress:
            on_progress(len(rows), len(tasks))
    kinds = {
        kind: [row for row, task in zip(rows, tasks, strict=True) if task[1] == kind] for kind in TRACKING
    }
    return {
        "array": mics.name,
        "method": method,
        "part": part,
        "speech": "synthetic" if speech is None else Path(speech).name,
        "seeds": list(seeds),
        "scenes_per_kind_and_seed": n_scenes,
        "scenes": len(tasks),
        "seconds": next(iter(TRACKING.values())).seconds,
        "settings": asdict(Settings()),
        "others": _settings_of(ways),
        "columns": COLUMNS,
        "rows": {
            kind: {way: _plain([one[way] for one in some]) for way in ways}
            for kind, some in {"all": rows, **kinds}.items()
        },
    }


def loss(rows: Iterable[Row]) -> float:
    """One number for all columns, less is better.

    Ten points of ACC5 or of right tracks count as much as one ghost or one switch per minute, half a second
    of delay, or one degree of GOSPA.
    """
    some = list(rows)
    value = {
        name: sum(r[name][0] for r in some) / max(sum(r[name][1] for r in some), 1e-9) for name in COLUMNS
    }
    value |= {name: 10 * (1 - value[name]) for name in HIGHER}
    return float(sum(value.values()) + value["delay"])


Prepared = tuple[Scene, list[tuple[list[Peak], float, bool]]]
"""A scene, and of each frame its peaks, its time and whether it is silent."""


def prepared(scene: Scene) -> Prepared:
    """A scene without its sound, whose peaks are found once for all settings; without its background."""
    frames = list(zip(scene.scores, scene.time, strict=True))
    background = Background.learned(scores for scores, time in frames if time < QUIET)
    found = []
    for scores, time in frames:
        spread = None if scores is None else float(np.std(scores[np.isfinite(scores)]))
        left = None if scores is None else background.left(scores)
        found.append(([] if time < QUIET else peaks(left, scene.counting, spread), time, left is None))
    return replace(scene, samples=scene.samples[:, :0], scores=[], located=[]), found


def search(
    scenes: Sequence[Prepared],
    grid: Mapping[str, Sequence[float]],
    rounds: int = 2,
    start: Settings | None = None,
    on_step: OnStep | None = None,
) -> tuple[Settings, float]:
    """The settings of our tracker of least `loss`, by `descend`."""
    return descend(start or Settings(), grid, lambda trial: loss(_with(trial, scenes)), rounds, on_step)


def prepare_scenes(
    array: MicArray,
    method: str,
    n_scenes: int,
    seeds: Sequence[int],
    speech: str | Path | None = None,
    processes: int = 1,
) -> list[Prepared]:
    """Validation scenes for `search`."""
    work = partial(_prepare, array, method, speech)
    return list(parallel_map(work, scene_tasks("valid", n_scenes, seeds), processes))


def _prepare(array: MicArray, method: str, speech: str | Path | None, task: tuple[int, str, int]) -> Prepared:
    return prepared(make_scene(array, method, speech, "valid", task))


def _with(settings: Settings, scenes: Sequence[Prepared]) -> list[Row]:
    rows = []
    for scene, frames in scenes:
        tracker = Tracker((), settings)
        report = [
            [(one.id, one.azimuth) for one in tracker.follow(found, time, silent=silent) if one.speaking]
            for found, time, silent in frames
        ]
        rows.append(row_of(scene, report))
    return rows


def scene_tasks(part: str, n_scenes: int, seeds: Sequence[int]) -> list[tuple[int, str, int]]:
    """Seed, kind and number of each scene: what `make_scene` makes it of."""
    if part not in PARTS:
        raise TytoError(f"no part called {part!r}; known: {', '.join(PARTS)}")
    if not 1 <= n_scenes < 1000 or not seeds or min(seeds) < 0 or n_scenes * len(seeds) < 2:
        raise TytoError(
            "scenes must be 1 to 999 of each kind and seed, seeds 0 or more, and two scenes of each kind at "
            f"least, for intervals; got {n_scenes} and seeds {list(seeds)}"
        )
    return [(seed, kind, number) for seed in seeds for kind in TRACKING for number in range(n_scenes)]


def _scores(
    array: MicArray,
    method: str,
    speech: str | Path | None,
    part: str,
    ways: Mapping[str, Follower],
    task: tuple[int, str, int],
) -> dict[str, Row]:
    scene = make_scene(array, method, speech, part, task)
    return {name: row_of(scene, follow(scene)) for name, follow in ways.items()}


def row_of(scene: Scene, report: Report) -> Row:
    """A report of a whole scene, judged in the frames that are labelled."""
    return scored(scene.truth, [report[number] for number in scene.labelled])


def _settings_of(ways: Mapping[str, Follower]) -> dict[str, dict[str, Any]]:
    """Settings of those followers that have any."""
    found = {name: getattr(way, "settings", None) for name, way in ways.items()}
    return {
        name: asdict(one) for name, one in found.items() if is_dataclass(one) and not isinstance(one, type)
    }


def _plain(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    return {
        name: {key: round(value, 4) for key, value in asdict(interval).items()}
        for name, interval in summarised(rows).items()
    }
