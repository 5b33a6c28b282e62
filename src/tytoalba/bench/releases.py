"""From how many lessons on a private release is worth it: devices off their drawing, taught and released.

A device is simulated whose microphones are not where its drawing has them; every recording of two seconds is
a lesson. What it was taught is released with several promises, and prior, exact model and release answer for
the same device in rooms and with voices that were not taught. Lessons beyond the number of simulated ones are
drawn again from them. For the unit person they are dealt out, four to each name.

What was not built is measured beside it: noisy weights, that is sums of 500 random features times the error
of the prior at each direction, each lesson bounded in the same way, with public or noisy products of
features. Their ridge is the best on the test frames themselves, so they look better here than they could be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import fitting_prior
from tytoalba.learning.tyto import Lesson
from tytoalba.localizer.budget import DELTA, needed_noise
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import Model
from tytoalba.localizer.offsets import Offsets, moved, offsets_of
from tytoalba.localizer.release import LESSONS_OF_A_PERSON, Unit, private_model
from tytoalba.localizer.state import Kept, State
from tytoalba.signal.angles import decode, decode_two
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.metrics import match, within

DEVICES = {"as drawn": (0.0, 0.0), "4.5 % wider, turned 1": (0.045, 1.0), "8 % wider, turned 3": (0.08, 3.0)}
"""How much wider than drawn (across its front), and turned by how many degrees."""
N_LESSONS = (10, 30, 100, 300, 1000, 3000)
EPSILONS = (1.0, 3.0, 10.0)
UNITS: tuple[Unit, ...] = ("lesson", "frame", "person")
SECONDS = 2.0
N_WEIGHTS, WIDE, LONGEST_ERROR, RIDGES = 3, 500, 3.5, (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5)
"""Of noisy weights: how often noise is drawn, random features, the length to which errors are cut, ridges to
choose from."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Pool:
    """Lessons of a device: rows to learn, and what each adds to the sums for releases."""

    lessons: list[Lesson]
    offsets: list[Offsets]
    n_frames: list[int]


def measure_releases(
    array: str = "pepper",
    *,
    n_pool: int = 300,
    n_test: int = 60,
    n_releases: int = 20,
    n_lessons: Sequence[int] = N_LESSONS,
    devices: Sequence[str] = tuple(DEVICES),
    seed: int = 0,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Rows of devices, numbers of lessons, units and epsilons: ACC5 of prior, exact model and release.

    n_pool, n_test: recordings to teach, and to ask about. n_releases: how often lessons and noise are drawn.
    """
    if unknown := [name for name in devices if name not in DEVICES]:
        raise TytoError(f"no device called {unknown[0]!r}; known: {', '.join(DEVICES)}")
    if min(n_pool, n_test, n_releases, *n_lessons) < 1 or seed < 0:
        raise TytoError("there must be at least one lesson, recording and release, and no negative seed")
    mics = load_array(array)
    prior, _ = fitting_prior(mics)
    rows, weights = list[dict[str, Any]](), list[dict[str, Any]]()
    for done, name in enumerate(devices):
        if on_progress:
            on_progress(done, len(devices))
        state = State.new(mics, prior, seed=seed)
        train, test = (
            _features(off_drawing(mics, *DEVICES[name]), prior, part, n, seed)
            for part, n in (("train", n_pool), ("test", n_test))
        )
        rng = np.random.default_rng([seed, done])
        pool = _pool(state, train)
        found = _rows(state, pool, test, n_lessons, n_releases, rng)
        rows += [{"device": name, **row} for row in found]
        weights += [{"device": name, **row} for row in _weights(state, pool, test, n_lessons, rng)]
    if on_progress:
        on_progress(len(devices), len(devices))
    return {
        "array": array,
        "seconds_a_lesson": SECONDS,
        "simulated_lessons": n_pool,
        "test_recordings": n_test,
        "releases": n_releases,
        "delta": DELTA,
        "seed": seed,
        "rows": rows,
        "weights": weights,
    }


def off_drawing(array: MicArray, wider: float, turned: float) -> MicArray:
    """An array as it might have been built: wider across its front, and turned by some degrees."""
    angle = np.deg2rad(turned)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    places = np.asarray(array.positions, np.float64).copy()
    places[:, 1] *= 1 + wider
    places[:, :2] = places[:, :2] @ turn.T
    return replace(array, positions=tuple((float(x), float(y), float(z)) for x, y, z in places))


def _features(device: MicArray, prior: Prior, part: str, n: int, seed: int) -> FeatureSet:
    simulation = Simulation.of_preset("twin", device, seed=seed + 1)
    parts = tuple(replace(p, n_recordings=n) for p in simulation.preset.parts)
    preset = replace(simulation.preset, parts=parts, seconds=SECONDS)
    return simulate_features(replace(simulation, preset=preset), part, prior_gcc(prior.array))


def _pool(state: State, train: FeatureSet) -> _Pool:
    pool = _Pool([], [], [])
    for number in range(len(train.names)):
        own = train.select(train.recording == number)
        if not len(own):
            continue
        lesson = state.learner.lesson(Phase(own.flat, own.azimuth, np.arange(360)))
        pool.lessons.append(lesson)
        pool.offsets.append(offsets_of(lesson.Y[state.learner.plain_rows(len(own))]))
        pool.n_frames.append(len(own))
    return pool


def _rows(
    state: State,
    pool: _Pool,
    test: FeatureSet,
    n_lessons: Sequence[int],
    n_releases: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    maps = state.model().scores(test.flat)  # nothing is taught: the prior, from all sides
    of_prior = _hits(maps, test)
    own = rng.spawn(1)[0]  # of people, so that the other units have the same noise with them and without
    rows = []
    for n in n_lessons:
        draws = [_times(len(pool.lessons), n, rng) for _ in range(n_releases)]
        exact = _hits(_exact(state, pool, draws[0]).scores(test.flat), test)
        common = {"lessons": n, "prior": _acc(of_prior), "exact": _acc(exact)}
        for unit in UNITS:
            for epsilon in EPSILONS:
                promise: tuple[float, Unit] = (epsilon, unit)
                drawn_by = own if unit == "person" else rng
                found = [_released(state, pool, times, maps, test, promise, drawn_by) for times in draws]
                rows.append({**common, "unit": unit, "epsilon": epsilon, **_summary(found, of_prior, test)})
    return rows


def _released(
    state: State,
    pool: _Pool,
    times: NDArray[np.int64],
    maps: NDArray[np.float32],
    test: FeatureSet,
    promise: tuple[float, Unit],
    rng: np.random.Generator,
) -> NDArray[np.floating] | None:
    """Hits of each test frame of one release; None where it is the untaught prior.

    Its noise is drawn by the seed, so that the table can be made again: such a release must not be used.
    """
    epsilon, unit = promise
    total = Offsets.none()
    for k in np.flatnonzero(times):
        total = total.plus(pool.offsets[k], sign=int(times[k]))
    kept = _people(pool, times, rng) if unit == "person" else {}
    taught = Localizer(replace(state, release=total, kept=kept))
    release = private_model(taught, epsilon, DELTA, unit, source=rng.bytes)
    if not release.worth.is_better or release.model.offset is None:
        return None
    return _hits(moved(maps, release.model.offset), test)


def _people(pool: _Pool, times: NDArray[np.int64], rng: np.random.Generator) -> dict[str, Kept]:
    """The lessons dealt out to people: what each of them added, as one that is kept."""
    dealt = rng.permutation(np.repeat(np.arange(len(times)), times))
    people: dict[str, Kept] = {}
    for first in range(0, len(dealt), LESSONS_OF_A_PERSON):
        own, name = Offsets.none(), f"person {first // LESSONS_OF_A_PERSON}"
        for k in dealt[first : first + LESSONS_OF_A_PERSON]:
            own = own.plus(pool.offsets[k])
        people[name] = Kept(name, (0.0,), 0, release=own)
    return people


def _summary(
    found: Sequence[NDArray[np.floating] | None], of_prior: NDArray[np.floating], test: FeatureSet
) -> dict[str, Any]:
    """Means over releases. interval: of the mean gain, by recording; worst: the release that gained least."""
    hits = np.array([of_prior if one is None else one for one in found])
    gain = hits.mean(axis=0) - of_prior
    low, high = _interval(gain, test)
    of_release = 100 * (hits - of_prior).mean(axis=1)
    return {
        "release": _acc(hits),
        "gain": round(100 * float(gain.mean()), 2),
        "interval": [round(100 * low, 2), round(100 * high, 2)],
        "worst": round(float(of_release.min()), 2),
        "better_than_prior_said": round(float(np.mean([one is not None for one in found])), 2),
    }


def _interval(gain: NDArray[np.floating], test: FeatureSet) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    names = np.unique(test.recording)
    means = np.array([gain[test.recording == name].mean() for name in names])
    drawn = rng.choice(means, (1000, len(means))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def _exact(state: State, pool: _Pool, times: NDArray[np.int64]) -> Model:
    """The exact model of these lessons, each as often as it was drawn."""
    taught = state.copy()
    head: AnalyticHead = taught.learner._empty()
    counts = np.zeros(360, np.int64)
    for often in np.unique(times[times > 0]):
        some = [pool.lessons[k] for k in np.flatnonzero(times == often)]
        H, Y = (np.concatenate([lesson[part] for lesson in some]) for part in (0, 1))
        head.learn(H, Y, times=int(often))
        counts += int(often) * np.sum([lesson.counts for lesson in some], axis=0)
    taught.learner._change(head, counts)
    return taught.model()


def _weights(
    state: State, pool: _Pool, test: FeatureSet, n_lessons: Sequence[int], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Noisy weights at epsilon 3, unit lesson: errors alone (public products of features), and both noisy."""
    plain = [state.learner.plain_rows(n) for n in pool.n_frames]
    H = [lesson.H[rows, :WIDE] / 127.0 for lesson, rows in zip(pool.lessons, plain, strict=True)]
    Y = [lesson.Y[rows] / 127.0 for lesson, rows in zip(pool.lessons, plain, strict=True)]
    error = [y[:, :360] - y[:, 360:] for y in Y]
    error = [e * np.minimum(1, LONGEST_ERROR / np.linalg.norm(e, axis=1))[:, None] for e in error]
    E = np.stack([h.T @ e / len(h) for h, e in zip(H, error, strict=True)])
    public = np.asarray(state.learner.inputs.expand(*state.prior.simulated_frames()))[:, :WIDE] / 127.0
    codes, B = state.learner.inputs.codes(test.flat)
    asked, D = np.asarray(codes)[:, :WIDE] / 127.0, E.shape[1]
    longest = float(np.sqrt(0.57 * D))  # of features: a little more than all of them have
    noise = needed_noise(3.0, DELTA)
    rows = []
    for n in n_lessons:
        times = _times(len(E), n, rng)
        total = np.tensordot(times.astype(float), E, 1)
        products = sum(t * h.T @ h / len(h) for t, h in zip(times, H, strict=True))
        hits: dict[str, list[list[float]]] = {}
        for _ in range(N_WEIGHTS):
            drawn = noise * longest * rng.standard_normal((2, D, max(D, 360)))
            noisy = products + 2**0.5 * longest * (np.triu(drawn[1]) + np.triu(drawn[1], 1).T)[:D, :D]
            size, axes = np.linalg.eigh(noisy)
            tried = {
                "errors": (
                    n * (public.T @ public) / len(public),
                    total + LONGEST_ERROR * drawn[0, :, :360],
                ),
                "errors and products": (
                    (axes * np.maximum(size, 0)) @ axes.T,
                    total + 2**0.5 * LONGEST_ERROR * drawn[0, :, :360],
                ),
            }
            for name, (G, right) in tried.items():
                found = [_acc(_hits(_corrected(B, asked, G, right, ridge), test)) for ridge in RIDGES]
                hits.setdefault(name, []).append(found)
        best = {name: round(float(np.mean(found, axis=0).max()), 2) for name, found in hits.items()}
        rows.append({"lessons": n, "prior": _acc(_hits(np.asarray(B, np.float32), test)), **best})
    return rows


def _corrected(B: Any, H: Any, G: Any, E: Any, ridge: float) -> NDArray[np.float32]:
    """Scores of the prior with the correction that ridge regression gives, (n_frames, 360)."""
    return np.asarray(B + H @ np.linalg.solve(G + ridge * np.eye(len(G)), E), np.float32)


def _times(n_pool: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each lesson is taught when n are: at most once where there are enough."""
    if n <= n_pool:
        return np.isin(np.arange(n_pool), rng.permutation(n_pool)[:n]).astype(np.int64)
    return np.bincount(rng.integers(0, n_pool, n), minlength=n_pool)


def _hits(maps: NDArray[np.float32], test: FeatureSet) -> NDArray[np.floating]:
    """Share of the sources of each frame that are found within 5 degrees, (n_frames,)."""
    result, n_sources = np.zeros(len(test)), test.n_sources
    for n in (1, 2):
        rows = n_sources == n
        if rows.any():
            found = decode(maps[rows])[:, None] if n == 1 else decode_two(maps[rows])
            result[rows] = within(match(test.azimuth[rows, :n], found)).mean(axis=1)
    return result


def _acc(hits: NDArray[np.floating]) -> float:
    return round(100 * float(hits.mean()), 2)


def markdown(measured: dict[str, Any]) -> list[str]:
    """Lines of the table in docs/privacy.md: points that releases gain over the prior, and exact models."""
    head = [
        "device",
        "lessons",
        "prior",
        "exact",
        *(f"lesson, {e:g}" for e in EPSILONS),
        "frame, 3",
        "person, 3",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    cells: dict[tuple[str, int], dict[str, str]] = {}
    for row in measured["rows"]:
        own = cells.setdefault((row["device"], row["lessons"]), {})
        own["prior"], own["exact"] = f"{row['prior']:.1f}", f"{row['exact'] - row['prior']:+.1f}"
        own[f"{row['unit']}, {row['epsilon']:g}"] = f"{row['gain']:+.1f}"
    for (device, n), own in cells.items():
        lines.append("| " + " | ".join([device, str(n), *(own[name] for name in head[2:])]) + " |")
    return lines
