"""What our learner sees of a frame: the prior's scores beside the sound itself, from any side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Task
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.files import load_prior
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import find_prior
from tytoalba.learning.random_features import RandomFourier
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.symmetry import Symmetry, symmetries


@dataclass(frozen=True)
class Inputs:
    """From features of frames to int8 codes H, where they are (numpy, or torch on any device).

    prior: its logits (360, standardised with constants from simulations) stand beside the GCC-PHAT over all
    bands, scaled frame by frame and weighted by `sound`; without a prior the features alone, scaled.
    bandwidth: of the Gaussian kernel, in units of sqrt(n_inputs).
    """

    task: Task
    prior: Prior | None
    n_features: int
    bandwidth: float
    sound: float
    seed: int
    features: RandomFourier = field(init=False, compare=False)

    def __post_init__(self) -> None:
        n = self.task.n_inputs
        if self.prior:
            n_sound = len(self.prior.gcc.pairs) * self.prior.gcc.n_lags
            n = self.task.n_directions + (n_sound if self.sound else 0)
        width = self.bandwidth * float(np.sqrt(n))
        object.__setattr__(self, "features", RandomFourier(n, self.n_features, width, self.seed))

    def codes(self, x: Any) -> tuple[Any, Any]:
        """H (n_frames, n_features) of features x (n_frames, n_inputs), and the prior's scores, or None."""
        if self.prior is None:
            if isinstance(x, np.ndarray):
                return self.features.codes(self.task.scale(x)), None
            return self.features.codes(x.new_tensor(self.task.scale(x.cpu().numpy()))), None
        logits = self.prior.logits(x)
        return self.expand(logits, self.prior.sound(x) if self.sound else None), scores(logits)

    def expand(self, logits: Any, sound: Any) -> Any:
        """H of the prior's logits (n_frames, 360) and of the scaled sound."""
        assert self.prior
        Z = self.prior.standardised(logits)
        return self.features.codes(joined([Z, sound * self.sound]) if self.sound else Z)


def joined(columns: list[Any]) -> Any:
    """Columns side by side, in numpy or in torch."""
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns, axis=1)
    import torch

    return torch.cat(columns, dim=1)


def fitting_prior(task: Task, prior: str | Prior) -> Prior | None:
    """The prior that a task means: one that is given, a file's, "none", or "auto", the array's if it fits."""
    if prior == "none" or (prior == "auto" and (task.array is None or task.gcc is None)):
        return None
    if isinstance(prior, Prior):
        found: Prior | None = prior
    else:
        found = find_prior(task.array) if prior == "auto" and task.array else load_prior(prior)
    same = found and task.gcc and replace(found.gcc, exact=task.gcc.exact) == task.gcc
    fits = found and same and task.n_directions == found.n_directions
    if not fits and prior != "auto":
        name = "" if isinstance(prior, Prior) else f" {prior}"
        raise TytoError(
            f"the prior{name} does not fit these features: it takes "
            f"GCC-PHAT of {found.array.name if found else 'another array'} in the bands of `prior_gcc`"
        )
    return found if fits else None


def views_of(task: Task) -> list[tuple[Symmetry, Any]]:
    """The symmetries of the array, and the order that features come to by each; the plain view first.

    The mirror image of a line's world is no other view: its features are the same.
    """
    plain = Symmetry((), False, 0), slice(None)
    if task.array is None or task.gcc is None or task.gcc.n_features != task.n_inputs:
        return [plain]
    found = symmetries(task.array) if task.n_directions == N_DIRECTIONS else ()
    others = (s for s in found[1:] if s.partner != found[0].partner)
    return [plain, *((s, s.order(task.gcc)) for s in others)]


def own_side(X: NDArray[np.float32], n_sides: int) -> NDArray[np.intp]:
    """One of `n_sides` sides for each frame (n_frames, n_inputs), drawn from its bits: always the same."""
    bits = np.ascontiguousarray(X[:, :8], np.float32).view(np.uint32).sum(axis=1, dtype=np.uint64)
    spread = bits * np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: near bits become far ones
    return np.asarray((spread >> np.uint64(40)) % np.uint64(n_sides), np.intp)
