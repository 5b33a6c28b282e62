"""The attacks of `model_attacks` on models: with the file alone, and on lessons that we know of.

With the file alone an attacker finds places and sums, and knows from the algebra whether they are right. To
know how well attacks do, lessons are simulated and taught to a copy, of which models are then made in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet
from tytoalba.learning.inputs import views_of
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import find_prior
from tytoalba.learning.sums import SCALE, gaussian_labels, quantize_labels
from tytoalba.localizer.model import Model, task_of
from tytoalba.localizer.state import State
from tytoalba.privacy.attacks import Float, by_group, evidence, leverages, membership, rounded
from tytoalba.privacy.model_attacks import (
    Known,
    Places,
    RecoveredG,
    between_models,
    gram_from_weights,
    places,
    relative_error,
    unused,
)

Parts = tuple[list[Phase], list[Phase], list[Phase]]
"""Lessons to teach, lessons not to teach, and the attacker's own."""
STEP = 0.5
"""Degrees, between places that are looked for in a file."""
CLOSE = 0.01
"""Relative error of a G that counts as recovered."""
Export = Callable[[State], Model]
"""How a model is made of a state."""
Again = tuple[Export, int]
"""That, and how often."""
Rows = Sequence[tuple[Float, Float, int]]
"""Lessons as rows: features, labels, and the number of frames."""


def exact_model(state: State) -> Model:
    """As `tyto export --exact` writes it."""
    return state.model().coarse()


def prior_of(model: Model) -> Prior | None:
    """The model's prior with its simulated frames, which files of models leave out; None if not to be had."""
    if model.prior.frames:
        return model.prior
    found = find_prior(replace(model.prior.array, yaw=0.0))
    same = found is not None and bool(found.frames) and np.array_equal(found.digest, model.prior.digest)
    return found if same else None


def shadow_of(model: Model) -> State | None:
    """A state like the one that the model is from, which has learned nothing: anybody can make it."""
    prior = prior_of(model)
    options = {name: value for name, value in model.options.items() if name != "seed"}
    return State.new(model.array, prior, int(model.options["seed"]), **options) if prior else None


def known_of(shadow: State) -> Known:
    """Sums of the prior's simulated frames, computed as the learner does."""
    options, inputs = shadow.options, shadow.learner.inputs
    logits, sound = shadow.prior.simulated_frames()
    H = np.asarray(inputs.expand(logits, sound), np.float64) / SCALE
    B = np.asarray(quantize_labels(scores(logits)), np.float64) / SCALE
    ridge = float(options["alpha"]) * H.shape[1] / 2
    times = int(options["simulated"])
    return Known(times * (H.T @ H) + ridge * np.eye(H.shape[1]), times * (H.T @ B))


def labels_of(model: Model, degrees: Sequence[int] | NDArray[Any] | None = None) -> Float:
    """Labels (n, 360) of degrees, of all whole ones if not given, as frames from there have them."""
    n = model.prior.n_directions
    where = np.arange(n) if degrees is None else np.asarray(degrees)
    return np.asarray(
        gaussian_labels(where.astype(np.float64)[:, None], float(model.options["sigma"]), n) / SCALE
    )


def from_every_side(state: State) -> list[int]:
    """Degrees, in the frame of the prior, at which a state was taught, mirrored or turned ones too."""
    views = views_of(task_of(state.prior, 0))[: int(state.options["views"])]
    taught = np.flatnonzero(state.learner.counts).astype(np.float64)
    return sorted({int(where) for view, _ in views for where in np.rint(view.azimuth(taught)) % 360})


def attack_file(model: Model) -> dict[str, Any]:
    """What the file alone gives: degrees that were taught, and on how many directions G is determined."""
    shadow = shadow_of(model)
    if shadow is None:
        return {"possible": False, "why": "the simulated frames of its prior are not at hand"}
    known, V = known_of(shadow), _labels_half(model)
    degrees = np.arange(0.0, 360.0, STEP)
    found = places(V, known, labels_of(model, degrees))
    G = _sums_tried(V, known, found, labels_of(model, degrees[found.found]))[0]
    return {
        "possible": True,
        "places": {"degrees": _mounted(model, degrees[found.found]), "rank": found.rank},
        "sums": {
            "features": len(V),
            "directions": len(G.G) if found.rank and G.found else 0,
            "asymmetry": round(G.asymmetry, 6),
        },
    }


def _sums_tried(V: Float, known: Known, found: Places, labels: Float) -> list[RecoveredG]:
    """G by the labels that are known to be in use, and by all that may be; the better one first.

    The second needs no labels and has fewer equations. It helps where people stood between whole degrees.
    """
    tried = [gram_from_weights(V, known, N) for N in (unused(labels), found.free)]
    return sorted(tried, key=lambda G: (not G.found, -len(G.G) if G.found else G.asymmetry))


def places_found(model: Model, found: dict[str, Any], truth: Sequence[int]) -> tuple[int, int]:
    """How many of the degrees that `attack_file` found are true ones, and how many are not."""
    seen = set(found["places"]["degrees"] if found["possible"] else ())
    right = seen & set(_mounted(model, np.asarray(truth)))
    return len(right), len(seen - right)


def attack_exports(
    trial: State,
    parts: Parts,
    export: Export = exact_model,
    *,
    n_trials: int = 5,
    n_candidates: int = 40,
) -> dict[str, Any]:
    """Export a state that was taught known lessons, and attack the model.

    trial: was taught `parts[0]`, beside its own. export: how models are made. n_trials: lessons that are
    taught between two exports and looked for among n_candidates.
    The attacker is told which degrees were taught where the weights do not tell.
    """
    model = export(trial)
    shadow = shadow_of(model)
    assert shadow is not None
    known, V, truth = known_of(shadow), _labels_half(model), from_every_side(trial)
    rows = [[_rows(shadow, phase) for phase in part] for part in parts]
    seen = places(V, known, labels_of(model))
    right = len(set(seen.found.tolist()) & set(truth))
    told = right < len(truth)
    tried = _sums_tried(V, known, seen, labels_of(model, truth if told else seen.found))
    G, memory = tried[0], trial.learner.memory()
    true_G = memory["G"].astype(np.float64) / SCALE**2
    error = relative_error(G, true_G)
    return {
        "lessons": len(trial.lessons),
        "frames": trial.n_frames,
        "features": len(V),
        "places": {"taught": len(truth), "found": right, "false": len(seen.found) - right},
        "sums": {
            "told_places": told,
            "directions": len(G.G),
            "error": _plain(error),
            "asymmetry": _plain(G.asymmetry),
            "found": bool(G.found and error < CLOSE),
        },
        "members": _members(tried, true_G, int(memory["n"]), rows),
        "two_exports": _two_exports(
            trial, model, known, parts[1][:n_candidates], rows[1][:n_candidates], (export, n_trials)
        ),
    }


def with_lessons(state: State, parts: Parts) -> State:
    """A copy that was taught the first part."""
    trial = state.copy()
    for phase in parts[0]:
        trial.teach(phase)
    return trial


def lessons(frames: FeatureSet) -> Parts:
    """Lessons to teach, lessons of the same scenes not to teach, and the attacker's own, of other scenes.

    A lesson is half a scene, of the frames with one talker, at whole degrees: what a person would say. One
    in three scenes is the attacker's.
    """
    single = frames.select(frames.n_sources == 1)
    parts: Parts = ([], [], [])
    for number in np.unique(single.recording):
        rows = np.flatnonzero(single.recording == number)
        early = single.frame[rows] < np.median(single.frame[rows]) - 1  # neighbours share half their samples
        late = single.frame[rows] > np.median(single.frame[rows]) + 1
        halves = [_phase(single, rows[half]) for half in (early, late)]
        if number % 3 == 2:
            parts[2].append(_phase(single, rows))
        elif len(halves[0]) and len(halves[1]):
            first = int(number % 2)
            parts[0].append(halves[first])
            parts[1].append(halves[1 - first])
    return parts


def _phase(frames: FeatureSet, rows: NDArray[np.intp]) -> Phase:
    azimuth = np.rint(np.nanmax(frames.azimuth[rows], axis=1, initial=0.0)) % 360
    return Phase(frames.flat[rows], azimuth[:, None], np.arange(1))


def _labels_half(model: Model) -> Float:
    return model.W[:, : model.prior.n_directions].astype(np.float64)


def _mounted(model: Model, degrees: NDArray[Any]) -> list[float]:
    """Degrees as the array is mounted."""
    from tytoalba.localizer.frontend import FrontEnd

    turn = FrontEnd(model.array, model.prior).fit.turn
    return sorted(round(float((d + turn) % 360), 3) for d in degrees)


def _members(
    tried: Sequence[RecoveredG], true_G: Float, n_rows: int, parts: Sequence[Rows]
) -> dict[str, Any]:
    """Who was learned? By leverage under the G of the state, and under what the model gave of it.

    The best of several sets of directions is picked afterwards, which favours the attacker.
    """
    some = [G for G in tried if len(G.G)]
    of_state = [_by_leverage(G.basis.T @ true_G @ G.basis, G.basis, n_rows, parts) for G in some]
    of_model = [_by_leverage(_positive(G.G), G.basis, n_rows, parts) for G in some]
    return {
        "state": _best([_by_leverage(true_G, None, n_rows, parts), *of_state]),
        "model": _best(of_model),
    }


def _best(found: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return max(found, key=lambda each: float(each["lesson_auc"]), default=None)


def _by_leverage(G: Float, basis: Float | None, n_rows: int, parts: Sequence[Rows]) -> dict[str, Any]:
    """Leverage of taught frames and of others under G, which is known on a basis; None: everywhere."""

    def seen(H: Float) -> Float:
        return H if basis is None else np.asarray(H @ basis)

    usual = seen(np.concatenate([H for H, _, _ in parts[2]]))
    taught, other = ([H[:n] for H, _, n in part] for part in parts[:2])  # as seen from the front
    groups = [np.repeat(np.arange(len(part)), [len(H) for H in part]) for part in (taught, other)]
    inside, outside = (
        evidence(*leverages(G, n_rows, usual.T @ usual, len(usual), seen(np.concatenate(part))))
        for part in (taught, other)
    )
    by_frame = membership(inside, outside, groups_in=groups[0], groups_out=groups[1])
    whole = membership(by_group(inside, groups[0]), by_group(outside, groups[1]), n_bootstrap=0)
    return rounded(by_frame) | {"lesson_auc": round(whole.auc, 4)}


def _rows(shadow: State, phase: Phase) -> tuple[Float, Float, int]:
    """Features and labels of a lesson from every side, the front first, and how many frames it has."""
    H, Y, _ = shadow.learner.lesson(phase)
    return H / SCALE, Y / SCALE, len(phase)


def _positive(G: Float) -> Float:
    """The nearest G that can be one: of noise half of the eigenvalues are negative."""
    values, vectors = np.linalg.eigh(G)
    least = 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _two_exports(
    trial: State, before: Model, known: Known, candidates: Sequence[Phase], rows: Rows, again: Again
) -> dict[str, Any]:
    """Teach one lesson more: which rank has it among candidates, by the models before and after?"""
    export, n_trials = again
    real = [(H, Y) for H, Y, _ in rows]
    ranks = []
    for k in np.linspace(0, len(candidates) - 1, min(n_trials, len(candidates))).astype(int):
        later = trial.copy()
        later.teach(candidates[k])
        N = unused(labels_of(before, from_every_side(later)))
        missed = between_models(before.W, export(later).W, known, N, real)
        ranks.append(int((missed <= missed[k]).sum()))
    return {"candidates": len(candidates), "trials": len(ranks), "ranks": ranks}


def _plain(value: float) -> float:
    """Three digits, as JSON takes it."""
    return float(f"{value:.3g}")
