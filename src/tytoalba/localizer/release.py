"""Models to give away: private ones, whose promise is proven, and advice about exact ones.

A private model differs from the untaught prior by three numbers alone, the offset of the device (`offsets`).
They follow from eight whole-number sums with discrete Gaussian noise (`noise`) in proportion to the most that
one unit, a frame, a lesson or a person, can add to them. So whoever has the model, and knows all else, cannot
tell whether any one unit was taught: chances of whatever he concludes change by a factor of at most
exp(epsilon), but for a chance of delta: by default one in a million, of all releases within the budget of a
state together. All in the model that is not made from the noisy sums is public.

Noisy sums of 500 random features at each direction, 180 000 of them, were measured too (`tyto bench
releases`, rows "weights"): after 3000 lessons they give less than these eight after 100.
"""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.errors import TytoError
from tytoalba.localizer.budget import DELTA, EPSILON, needed_noise
from tytoalba.localizer.frontend import USUAL
from tytoalba.localizer.model import Model
from tytoalba.localizer.noise import LARGEST_SIGMA, Source, discrete_gaussian
from tytoalba.localizer.offsets import BOUND, N_COEFFICIENTS, N_SUMS, Whole, clipped, offset_curve
from tytoalba.texts.printing import plural

if TYPE_CHECKING:
    from tytoalba.localizer.localizer import Localizer
    from tytoalba.localizer.state import State
    from tytoalba.localizer.worth import Worth

Unit = Literal["frame", "lesson", "person"]
UNITS: dict[Unit, str] = {
    "frame": "one frame of 171 ms more or less",
    "lesson": "one lesson (one recording that was taught) more or less, however long it is",
    "person": "all lessons of one name (--who) more or less; lessons without a name count as one person",
}
"""Whose presence a release hides."""
LESSONS_OF_A_PERSON = 4
"""What a person adds counts as much as this many lessons that agree, at most."""
FRAMES_A_FEATURE, SMALLEST_PHASE, SMALLEST_DIRECTION, REACH = 20, 20, 20, 5.0
"""The release gate: frames for each feature, in a phase, and within REACH degrees of a taught direction."""
GATE_COUNTS = "the release gate counts frames, not people: one person who taught enough frames passes it"
"""Said wherever its advice is."""


def release_gate(n_frames: int, n_features: int, smallest_phase: int, counts: ArrayLike) -> list[str]:
    """Reasons against giving a model away; none if it is empty. It lowers the risk and proves nothing.

    It counts frames, not people: one long recording of one person passes.

    n_frames: learned; n_features: D; smallest_phase: frames of the smallest lesson that states were saved
    around; counts: frames of each direction (n_directions,).

    >>> release_gate(4000, 200, 50, [0, 0, 30, 40])
    []
    >>> release_gate(300, 200, 50, [300, 0, 0, 0])
    ['300 frames are fewer than 20 for each of the 200 features (4000): members can be told from others']
    """
    taught = np.asarray(counts)
    if taught.ndim != 1 or not len(taught) or taught.dtype.kind not in "iu" or taught.min() < 0:
        raise TytoError(f"counts must be whole numbers from 0, (n_directions,), got shape {taught.shape}")
    if min(n_frames, smallest_phase) < 0 or n_features < 1:
        raise TytoError(
            f"sizes must not be negative, got {n_frames} frames, {n_features} features and a phase of "
            f"{smallest_phase}"
        )
    reasons = []
    if n_frames < FRAMES_A_FEATURE * n_features:
        reasons.append(
            f"{plural(n_frames, 'frame is', 'frames are')} fewer than {FRAMES_A_FEATURE} for each of the "
            f"{n_features} features ({FRAMES_A_FEATURE * n_features}): members can be told from others"
        )
    if smallest_phase < SMALLEST_PHASE:
        reasons.append(
            f"the smallest phase has {plural(smallest_phase, 'frame')}, fewer than {SMALLEST_PHASE}: two "
            "states around it give them away"
        )
    reach = int(REACH * len(taught) / 360.0)
    around = np.sum([np.roll(taught, k) for k in range(-reach, reach + 1)], axis=0)
    rare = np.flatnonzero((taught > 0) & (around < SMALLEST_DIRECTION)) * (360.0 / len(taught))
    if len(rare):
        shown = ", ".join(f"{azimuth:g}" for azimuth in rare[:5]) + (", ..." if len(rare) > 5 else "")
        reasons.append(
            f"{plural(len(rare), 'direction has', 'directions have')} fewer than {SMALLEST_DIRECTION} frames "
            f"within {REACH:g} degrees ({shown}): their columns are nearly those frames"
        )
    return reasons


@dataclass(frozen=True)
class Release:
    """A private model, and what it is worth (`worth.Worth`)."""

    model: Model
    worth: Worth


def private_model(
    localizer: Localizer,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    unit: Unit = "lesson",
    *,
    source: Source = os.urandom,
) -> Release:
    """Make a differentially private model of what a localizer was taught. It writes nothing down.

    Each call tells more: who gives several away adds them up (`budget`). `Store.export` does that, in the
    ledger, and refuses what is beyond the budget; use it for models that leave your hands.

    Parameters
    ----------
    localizer : Localizer
        One that can learn.
    epsilon, delta : float
        What is promised: smaller is stronger, with more noise.
    unit : {"frame", "lesson", "person"}
        What is hidden: see `UNITS`.
    source : callable
        For tests alone: gives random bytes, in place of the operating system.

    Returns
    -------
    Release
        The model, and what it is worth on simulated frames.

    Raises
    ------
    TytoError
        No such unit, or sums that a state of before does not have.
    MissingExtraError
        dp-accounting is not installed.
    """
    from tytoalba.localizer import worth as judging

    if unit not in UNITS:
        raise TytoError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
    state, needed = localizer.state, needed_noise(epsilon, delta)
    if state.release is None and unit == "frame":
        from tytoalba.localizer.older import older_estimate

        found, noise = older_estimate(state, needed, source), needed
    else:
        sums, bound = sums_of(state, unit)
        sigma = ceil(needed * bound)
        if sigma > LARGEST_SIGMA:
            raise TytoError(
                f"epsilon {epsilon:g} with delta {delta:g} needs more noise than can be drawn for the unit "
                f"{unit}, and nothing would be left of what was taught: choose a larger epsilon"
            )
        found = judging.estimate(sums + discrete_gaussian(N_SUMS, sigma, source), sigma, unit)
        noise = sigma / bound
    coefficients, worth = judging.judged(found, state.prior)
    return Release(_model(state, coefficients, unit, epsilon, delta, noise), worth)


def sums_of(state: State, unit: Unit) -> tuple[Whole, int]:
    """The sums (8,) of a state in which no unit counts more than a bound; and that bound, their L2 norm."""
    if state.release is None:
        raise TytoError(
            "this state was made before there were sums for private releases, or merged with such a one: "
            "what a lesson or a person added to it has no bound. --unit frame can be released, which hides "
            "single frames only; a new state (`tyto new`), taught again, can be released by lesson and person"
        )
    if unit == "frame":
        return state.release.frames, BOUND
    if unit == "lesson":
        return state.release.lessons, BOUND
    rest, named = state.release.lessons, dict[str, Whole]()
    for kept in state.kept.values():
        if kept.who and kept.release is not None:
            own, person = kept.release.lessons, _person(kept.who)
            named[person] = named.get(person, np.zeros_like(own)) + own
            rest = rest - own
    most = LESSONS_OF_A_PERSON * BOUND
    return np.sum([clipped(part, most) for part in (rest, *named.values())], axis=0), most


def _person(who: str) -> str:
    """Whom a name means: spellings that differ in case, spaces or how accents are coded are one person."""
    return " ".join(unicodedata.normalize("NFKC", who).casefold().split())


def _model(
    state: State, coefficients: np.ndarray, unit: str, epsilon: float, delta: float, noise: float
) -> Model:
    """The prior with an offset: public facts of a state, and nothing else of it. The seed is secret."""
    n = state.prior.n_directions
    options = state.options | {"seed": 0, "n_features": 1, "simulated": 0}
    promise = {
        "unit": unit,
        "epsilon": float(epsilon),
        "delta": float(delta),
        "noise": float(noise),
        "features": N_COEFFICIENTS,
    }
    W, weight = np.zeros((1, 2 * n), np.float32), np.ones(n, np.float32)
    offset = offset_curve(coefficients).astype(np.float32)
    frontend = max(state.frontend, USUAL)
    return Model(state.array, state.prior, options, W, weight, 0, offset, promise, frontend)
