"""What a state or a model gives away: listed, then attacked with lessons that we know were in it, or not.

Nobody's recordings are needed: scenes of the array are simulated, half of them are taught to a copy, and the
attacker, who holds the copy and other scenes, tries to say which half was. The more frames are behind a
state, the harder that is, so that the answer holds for lessons of this kind in this very state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.make import scenes_of, simulate
from tytoalba.learning.sums import SCALE
from tytoalba.localizer.budget import has_accounting
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.state import State
from tytoalba.privacy.attacks import (
    between,
    evidence,
    leverages,
    membership,
    presence,
    presence_match,
    real_sums,
    residual,
    rounded,
)
from tytoalba.privacy.model_audit import attack_exports, attack_file, lessons, with_lessons
from tytoalba.privacy.release_audit import attack_promise, attack_releases
from tytoalba.signal.angles import Float, encode

FAMILIES = ("hybrid", "anechoic")
N_CANDIDATES = 200
"""Frames among which the one is looked for that was learned between two states."""


def audit(
    localizer: Localizer,
    *,
    n_scenes: int = 24,
    seed: int = 0,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Everything that is stored, and what attacks on it find; plain numbers and text.

    n_scenes: simulated, as `halves` takes them apart. processes: to simulate with; 0: one per core.
    """
    stored = [
        {"name": name, "bytes": int(values.nbytes), "shape": list(values.shape), "purpose": why}
        for name, values, why in localizer.inventory()
    ]
    found: dict[str, Any] = {"stored": stored, "n_frames": localizer.n_frames}
    if not localizer.can_learn:
        found |= {"kind": "model", "private": attack_promise(localizer.model)}
        return found | {"attacks": attack_file(localizer.model)}
    state = localizer.state
    found |= {"kind": "state", "places": _places(state), "release": state.against_release()}
    scenes = scenes_of(
        state.prior.array, [SyntheticVoices()], families=FAMILIES, speakers="test", seed=10**6 + seed
    )
    frames = simulate(scenes, n_scenes, processes=processes, on_progress=on_progress)
    found |= attack(state, *halves(frames))
    parts = lessons(frames)
    trial = with_lessons(state, parts)
    found["exports"] = {"exact": attack_exports(trial, parts)}
    if trial.release is not None and has_accounting():
        found["exports"]["private"] = attack_releases(trial, parts[1], seed=seed)
    return found


def halves(frames: FeatureSet) -> tuple[FeatureSet, FeatureSet, FeatureSet]:
    """Frames to teach, frames of the same scenes not to teach, and the attacker's own scenes.

    Of two thirds of the scenes one half in time is taught: nothing but having been learned tells it from the
    other, with the same talkers in the same rooms. Frames in the middle overlap both and are left out.
    """
    number = np.array([int(name.rpartition("_")[2]) for name in frames.names])[frames.recording]
    middle = np.array([np.median(frames.frame[frames.recording == r]) for r in range(len(frames.names))])
    late = frames.frame - middle[frames.recording]
    ours, clear = number % 3 < 2, np.abs(late) >= 1.5
    first = (late < 0) == (number % 2 == 0)
    return (
        frames.select(ours & clear & first),
        frames.select(ours & clear & ~first),
        frames.select(~ours),
    )


def attack(state: State, taught: FeatureSet, other: FeatureSet, own: FeatureSet) -> dict[str, Any]:
    """Teach some lessons to a copy, and attack it; then forget them, and attack again."""
    trial = state.copy()
    lessons = [_phase(taught, number) for number in np.unique(taught.recording)]
    for lesson in lessons:
        trial.teach(lesson)
    before = _members(trial, taught, other, own)
    for lesson in lessons:
        trial.forget(lesson)
    found: dict[str, Any] = {
        "lessons": {"taught": len(lessons), "frames": len(taught)},
        "taught": before,
        "same_bytes_after_forgetting": trial.to_bytes() == state.to_bytes(),
        "two_states": _two_states(state, other),
    }
    found["forgotten"] = _members(trial, taught, other, own) if state.n_frames else None
    return found


def _members(state: State, taught: FeatureSet, other: FeatureSet, own: FeatureSet) -> dict[str, Any]:
    """Who was learned? By leverage, for who holds the state; by loss, for who holds a model."""
    H_in, H_out = (_rows(state, part.flat) for part in (taught, other))
    every_side = state.learner.lesson(Phase(own.flat, own.azimuth, np.arange(1))).H
    H_own = np.asarray(every_side, np.float64) / SCALE  # as the sums have them
    memory = state.learner.memory()
    G, n = real_sums(memory, "G"), int(memory["n"])
    by_leverage = [evidence(*leverages(G, n, H_own.T @ H_own, len(H_own), H)) for H in (H_in, H_out)]
    model = state.model()
    by_loss = []
    for part in (taught, other):
        Y = encode(part.azimuth, state.options["sigma"])
        of_model, of_prior = model.scores(part.flat), scores(model.prior.logits(part.flat))
        by_loss.append(evidence(residual(of_model, Y), residual(of_prior, Y)))
    both = {"state_by_leverage": by_leverage, "model_by_loss": by_loss}
    return {
        name: rounded(membership(*found, groups_in=taught.recording, groups_out=other.recording))
        for name, found in both.items()
    }


def _two_states(state: State, frames: FeatureSet) -> dict[str, Any]:
    """Who holds a state and the next one, with one frame more: do they find the frame?"""
    after = state.copy()
    after.teach(Phase(frames.flat[:1], frames.azimuth[:1], np.arange(1)))
    candidates = _rows(state, frames.flat[:N_CANDIDATES])
    share, rank = between(state.learner.memory(), after.learner.memory(), candidates)
    return {
        "rank": rank,
        "candidates": len(share),
        "share_of_the_frame": round(float(share[0]), 6),
        "largest_share_of_another": round(float(share[1:].max(initial=0.0)), 6),
        "found": bool(share[0] > share[1:].max(initial=0.0)),
    }


def _places(state: State) -> dict[str, Any] | None:
    """Where people stood, from the sums."""
    counts = state.learner.counts
    if not 0 < np.count_nonzero(counts) < len(counts):
        return None
    Q = real_sums(state.learner.memory(), "Q")
    profile = presence(Q[:, : len(counts)], float(state.options["sigma"]))
    return {"from": "columns of Q", **rounded(presence_match(profile, counts))}


def _rows(state: State, X: NDArray[np.float32]) -> Float:
    """Random features of frames as real numbers; who has the state can compute them."""
    return np.asarray(state.learner.inputs.codes(X)[0], np.float64) / SCALE


def _phase(frames: FeatureSet, recording: int) -> Phase:
    rows = frames.recording == recording
    return Phase(frames.flat[rows], frames.azimuth[rows], np.arange(1))
