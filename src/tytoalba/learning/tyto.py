"""Our own learner: the prior's logits beside the sound itself, random features, integer sums."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.inputs import Inputs, fitting_prior, joined, own_side, views_of
from tytoalba.learning.method import (
    Had,
    Memory,
    Method,
    Task,
    blocks,
    checked_features,
    checked_phase,
    refuse_holes,
)
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.sums import SCALE, bring, gaussian_labels, quantize_labels
from tytoalba.signal.angles import Float, count_directions
from tytoalba.signal.symmetry import Symmetry

REACH = 5.0
"""Degrees around a direction within which frames teach it."""


class Lesson(NamedTuple):
    """Frames as the sums take them: features H (n, n_features) and labels Y (n, outputs), int8.

    counts: how often each direction came, (n_directions,).
    """

    H: NDArray[np.int8]
    Y: NDArray[np.int8]
    counts: NDArray[np.int64]


class Sums(NamedTuple):
    """A lesson as sums: the same to add and take away as its rows, and of one size."""

    head: AnalyticHead
    counts: NDArray[np.int64]


def answerable(counts: NDArray[np.int64], reach: float) -> NDArray[np.bool_]:
    """Directions that were taught, (n_directions,), and those between two whose surroundings meet.

    reach: degrees of the surroundings. Directions beyond are left out: without evidence, answers
    would go there as often as anywhere.

    >>> taught = np.zeros(360, np.int64)
    >>> taught[[10, 18, 40]] = 5
    >>> np.flatnonzero(answerable(taught, 5.0)).tolist()
    [10, 11, 12, 13, 14, 15, 16, 17, 18, 40]
    """
    steps = range(-(near := round(reach * len(counts) / 360.0)), near + 1)
    around = np.any([np.roll(counts > 0, k) for k in steps], axis=0)
    return np.asarray(~np.any([np.roll(~around, k) for k in steps], axis=0))


class Tyto(Method):
    """Inputs Z -> cos(Z W / bandwidth + b) -> int8 -> G, Q in int64 -> ridge regression.

    Z are the logits of the array's prior (360, standardised with constants from simulations) beside
    the GCC-PHAT over all bands, scaled frame by frame; without a prior the latter alone. The prior, too, is
    what ridge regression departs from: scores are w B + H (W_Y - w W_B), where B are the prior's scores,
    W_Y and W_B regress the labels and B itself, and w falls from 1 to 0 at each direction with the frames
    taught around it. So before anything is taught it answers as the prior does, and the sums of labels and
    of the prior's scores stay apart: either can be taken out. No constant is taken from anyone's data and
    every sum is one of integers: what is learned is the same to the bit whatever the order, phases, batches
    or device.

    n_features: D. bandwidth: of the Gaussian kernel, in units of sqrt(n_inputs), the length of a frame scaled
    to variance 1. sigma: width of the Gaussian labels in degrees.
    ridge: in units of D / 2, the mean of |h|^2 over frames: the noise variance of a label over the prior
    variance of the score. It means the same for any D, and as a prior it does not grow with the number of
    frames (on validation rooms 0.1 was best for 3000 and for 13600 frames alike). Files call it alpha.
    prior: "auto" takes the one that comes with the array, if there is one for these features; "none"; or a
    file. prior_frames: the prior at a direction counts as much as that many frames taught within
    5 degrees of it: w = prior_frames / (prior_frames + n).
    sound: weight of the GCC-PHAT beside the prior's logits.
    answers: directions that may be found: "taught" ones, as class-incremental learning has it, or "anywhere".
    simulated: how often each of the simulated frames that come with the prior counts beside what is taught,
    labelled by the prior itself, so that a lesson at one direction does not change the others; their sums
    are kept apart and are not part of the memory.
    views: from how many sides a frame may be looked at, where the array is symmetric (`symmetry`): questions
    are asked from every side and averaged.
    sides: "one": each frame is learned from one side only, which it draws itself; "all": from every side, for
    its mirrored or turned place too, in nearly twice the time.
    learns: False is what the prior alone can do.
    An array on a line cannot tell a direction from its mirror image: what is taught at one is taught at both.
    """

    def __init__(
        self,
        task: Task,
        *,
        n_features: int = 5000,
        bandwidth: float = 1.5,
        ridge: float = 0.3,
        sigma: float = 8.0,
        prior: str | Prior = "auto",
        prior_frames: float = 1000.0,
        sound: float = 1.0,
        answers: Literal["taught", "anywhere"] = "taught",
        simulated: int = 2,
        views: int = 2,
        sides: Literal["all", "one"] = "one",
        learns: bool = True,
    ) -> None:
        super().__init__(task)
        if answers not in ("taught", "anywhere"):
            raise TytoError(f"answers must be 'taught' or 'anywhere', got {answers!r}")
        if not prior_frames >= 0 or not sound >= 0 or views < 1 or simulated < 0:
            raise TytoError(
                f"prior_frames, sound and simulated must be at least 0, views at least 1, "
                f"got {prior_frames}, {sound}, {simulated} and {views}"
            )
        if sides not in ("all", "one"):
            raise TytoError(f"sides must be 'all' or 'one', got {sides!r}")
        if not 0 < sigma < np.inf:
            raise TytoError(f"sigma must be positive degrees, got {sigma}")
        self.n_features, self.bandwidth, self.ridge, self.sigma = n_features, bandwidth, ridge, sigma
        self.answers, self.simulated, self.learns = answers, simulated, learns
        self._views, self.sides = views_of(task)[:views], sides
        self.prior = fitting_prior(task, prior)
        self.prior_frames = prior_frames if self.prior else 0.0
        self.inputs = Inputs(task, self.prior, n_features, bandwidth, sound, task.seed)
        device = None if task.device == "cpu" else task.device  # on a CPU numpy will do: no need for torch
        n_outputs = task.n_directions * (2 if self.prior_frames else 1)
        self._head = AnalyticHead(n_features, n_outputs, ridge * n_features / 2, exact=True, device=device)
        self._from_simulation: AnalyticHead | None = None
        self._counts = np.zeros(task.n_directions, np.int64)

    def learn(self, phase: Phase) -> None:
        """Add the frames to the sums."""
        X, azimuth = self._checked(phase)
        if not self.learns:
            return
        head = copy(self._head)  # its sums are replaced, never changed: an error leaves ours as they were
        head.learn_parts(part for rows in blocks(len(X)) for part in self._rows(X[rows], azimuth[rows]))
        self._change(head, self._counts + count_directions(azimuth, self.task.n_directions))

    def turned(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Frames as seen from the first side that each is learned from."""
        if self.sides == "all":
            return X
        result, side = X.copy(), own_side(X, len(self._views))
        for k, (_, order) in enumerate(self._views):
            result[side == k] = X[side == k][:, order]
        return result

    def lesson(self, phase: Phase, by_frame: bool = False) -> Lesson:
        """A phase as the sums take it: what can be taken away again without the frames.

        by_frame: the rows of a frame, one of each side, stand together; else all rows of a side.
        """
        X, azimuth = self._checked(phase)
        rows = []
        for some in blocks(len(X)):
            sides = [(self._here(H), self._here(Y)) for H, Y in self._rows(X[some], azimuth[some])]
            if by_frame and self.sides == "all":
                both = (np.stack(part, axis=1) for part in zip(*sides, strict=True))
                H, Y = (part.reshape(-1, part.shape[-1]) for part in both)
                sides = [(H, Y)]
            rows += sides
        H, Y = (np.concatenate(part) for part in zip(*rows, strict=True)) if rows else self._no_rows()
        return Lesson(H, Y, count_directions(azimuth, self.task.n_directions))

    def plain_rows(self, n_frames: int, by_frame: bool = False) -> NDArray[np.bool_]:
        """Which rows of a `lesson` of that many frames are seen from the plain side, as they were heard."""
        if self.sides == "one":
            raise TytoError("frames that are learned from one side only do not tell from which")
        if by_frame:
            return np.tile(np.arange(self.n_views) == 0, n_frames)
        views = [
            np.repeat(np.arange(self.n_views) == 0, len(range(n_frames)[some])) for some in blocks(n_frames)
        ]
        return np.concatenate([np.zeros(0, np.bool_), *views])

    def add(self, lesson: Lesson | Sums) -> None:
        """Learn a lesson: the same to the bit as `learn` with its phase."""
        head = copy(self._head)
        if isinstance(lesson, Lesson):
            head.learn(lesson.H, lesson.Y)
        else:
            head.merge(lesson.head)
        self._change(head, self._counts + lesson.counts)

    def remove(self, lesson: Lesson | Sums) -> None:
        """Forget a lesson exactly; one that was never learned is refused where that shows."""
        if (self._counts < lesson.counts).any():
            raise TytoError("this lesson was not learned here: its directions were not taught so often")
        head = copy(self._head)
        if isinstance(lesson, Lesson):
            head.forget(lesson.H, lesson.Y)
        else:
            head.separate(lesson.head)
        self._change(head, self._counts - lesson.counts)

    def sums(self, lesson: Lesson, more: Sums | None = None) -> Sums:
        """A lesson as its own sums: of one size however long it is. more: sums that it is added to."""
        if more is None:
            return Sums(self._empty().learn(lesson.H, lesson.Y), lesson.counts)
        return Sums(more.head.learn(lesson.H, lesson.Y), more.counts + lesson.counts)

    def no_sums(self) -> Sums:
        """The sums of no lesson, to add to."""
        return Sums(self._empty(), np.zeros_like(self._counts))

    def read_sums(self, memory: Memory) -> Sums:
        """The sums of a lesson that a file kept; what cannot be is refused."""
        return Sums(self._head.restored(memory).check(), self._checked_counts(memory["counts"]))

    def read_lesson(self, memory: Memory) -> Lesson:
        """The rows of a lesson that a file kept; what cannot be is refused."""
        H, Y = memory["H"], memory["Y"]
        self._empty().learn(H[:1], Y[:1])  # says what is wrong with their size or type
        fit = len(H) == len(Y) and H.dtype == Y.dtype == np.int8
        if not fit or H.min(initial=0) < -SCALE or Y.min(initial=0) < 0:
            raise TytoError("the rows of a kept lesson do not fit: they were altered")
        return Lesson(H, Y, self._checked_counts(memory["counts"]))

    def merge(self, other: Tyto) -> None:
        """Add all that another learner of the same settings has learned."""
        mine, theirs = (learner.memory() for learner in (self, other))
        for name in ("seed", "prior"):
            if not np.array_equal(mine.get(name, ()), theirs.get(name, ())):
                raise TytoError(f"these learners differ in their {name}: their sums mean others")
        self._change(copy(self._head).merge(other._head), self._counts + other._counts)

    def check(self) -> None:
        """Refuse sums that no frames can have."""
        self._head.check()
        if self._head.n % self.n_views:
            raise TytoError(f"{self._head.n} rows are no whole number of frames of {self.n_views} views")

    @property
    def had(self) -> tuple[Had, ...]:
        """What it had beside the frames of its phases."""
        had: tuple[Had, ...] = ("simulations",) if self.prior else ()
        return (*had, "mirrored frames") if len(self._views) > 1 else had

    @property
    def views(self) -> list[Symmetry]:
        """Sides from which frames are looked at, the plain one first."""
        return [view for view, _ in self._views]

    @property
    def n_views(self) -> int:
        """Rows that the sums have for each frame."""
        return len(self._views) if self.sides == "all" else 1

    @property
    def n_outputs(self) -> int:
        """Columns of the labels in the sums."""
        return self._head.n_outputs

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each direction was taught, (n_directions,)."""
        return self._counts.copy()

    @property
    def n_frames(self) -> int:
        """Frames in the sums."""
        return self._head.n // self.n_views

    def solution(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """W (n_features, outputs), and how much the prior counts at each direction: all that answers need.

        The outputs are the labels' and, where the prior counts, those of its own scores.
        """
        return np.asarray(self._here(self._head.weights(beside=self._simulation()))), self._prior_weight()

    def _empty(self) -> AnalyticHead:
        return AnalyticHead(self.n_features, self._head.n_outputs, self._head.ridge, exact=True)

    def _change(self, head: AnalyticHead, counts: NDArray[np.int64]) -> None:
        self._head, self._counts = head, counts

    def _no_rows(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        return np.empty((0, self.n_features), np.int8), np.empty((0, self._head.n_outputs), np.int8)

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predicted labels (n_frames, n_directions); below -1 where nothing was taught and none is wanted."""
        X = checked_features(self.task, X, finite=False)
        n = self.task.n_directions
        result = np.zeros((len(X), n), np.float32)
        simulated, weight = self._simulation(), self._prior_weight()
        for rows in blocks(len(X)):
            x = self._sound(X[rows])
            for view, order in self._views:
                H, B = self.inputs.codes(x[:, order])
                found = self._here(self._head.scores(H, beside=simulated))
                result[rows] += view.back(found[:, :n]) / len(self._views)
                if B is not None and self.prior_frames:
                    result[rows] += weight * view.back(self._here(B) - found[:, n:]) / len(self._views)
        if self.answers == "taught" and self.prior_frames and self._counts.any():
            result[:, ~answerable(self._counts, REACH)] -= 4.0
        return result

    def memory(self) -> Memory:
        """The sums, how often each direction was taught, seed of the random features, digest of the prior."""
        kept: Memory = {"counts": self._counts.copy(), "seed": np.array(self.inputs.seed, np.int64)}
        if self.prior:
            kept["prior"] = self.prior.digest.copy()
        return self._head.memory() | kept

    def restore(self, memory: Memory) -> None:
        """Take over the sums and the random features they belong to."""
        if self.prior and not np.array_equal(memory.get("prior", ()), self.prior.digest):
            raise TytoError(
                "this memory was learned behind another prior, or behind none: its sums mean others"
            )
        head, inputs = self._head.restored(memory), replace(self.inputs, seed=int(memory["seed"]))
        self._change(head, self._checked_counts(memory["counts"]))
        self.inputs, self._from_simulation = inputs, None

    def _checked_counts(self, counts: NDArray[Any]) -> NDArray[np.int64]:
        if counts.shape != self._counts.shape or counts.dtype != np.int64 or (counts < 0).any():
            raise TytoError(f"memory 'counts' must be {self.task.n_directions} whole numbers from 0")
        return np.array(counts)

    def _simulation(self) -> AnalyticHead | None:
        """Sums of the simulated frames that come with the prior; None where there is nothing to learn."""
        if self.prior is None or not (self.prior.frames and self.simulated and self.learns):
            return None
        if self._from_simulation is None:
            logits, sound = (self._beside(values) for values in self.prior.simulated_frames())
            head = AnalyticHead(self.n_features, self._head.n_outputs, exact=True, device=self._head.device)
            B = quantize_labels(scores(logits))
            Y = joined([B, B]) if self.prior_frames else B  # the prior's scores shall stay as they are
            head.learn(self.inputs.expand(logits, sound), Y, times=self.simulated)
            self._from_simulation = head
        return self._from_simulation

    def _prior_weight(self) -> NDArray[np.float64]:
        """How much the prior still counts at each direction, (n_directions,)."""
        reach = round(REACH * self.task.n_directions / 360.0)
        taught = np.sum([np.roll(self._counts, k) for k in range(-reach, reach + 1)], axis=0)
        with np.errstate(invalid="ignore"):  # for ever: infinity over infinity
            weight = self.prior_frames / np.maximum(self.prior_frames + taught, 1e-9)
        return np.asarray(np.nan_to_num(weight, nan=1.0))

    def _checked(self, phase: Phase) -> tuple[NDArray[np.float32], Float]:
        """Frames, and all directions that each may come from as far as the array can resolve."""
        X, azimuth, _ = checked_phase(self.task, phase, finite=not self.learns)
        return X, self.task.array.alike(azimuth) if self.task.array else azimuth

    def _rows(self, X: NDArray[np.float32], azimuth: NDArray[np.floating]) -> Iterator[tuple[Any, Any]]:
        """H and labels of some frames: from every side, or each from its own."""
        x = self._sound(X)
        side = own_side(X, len(self._views)) if self.sides == "one" else None
        for k, (view, order) in enumerate(self._views):
            here = slice(None) if side is None else np.flatnonzero(side == k)
            if len(own := azimuth[here]):
                H, B = self.inputs.codes(x[here][:, order])
                yield H, self._labels(self._beside(view.azimuth(own)), B)

    def _labels(self, azimuth: Any, B: Any) -> Any:
        """Gaussian labels, and the prior's scores beside them where they count, as int8."""
        Y = gaussian_labels(azimuth, self.sigma, self.task.n_directions)
        return joined([Y, quantize_labels(B)]) if self.prior_frames else Y

    def _sound(self, X: NDArray[np.float32]) -> Any:
        """Frames where the head is; NaN and infinity are found there, which a GPU does in no time."""
        x = self._beside(X)
        refuse_holes(x)
        return x

    def _beside(self, values: NDArray[Any]) -> Any:
        """An array where the head is."""
        return bring(values, self._head.device)

    def _here(self, values: Any) -> NDArray[Any]:
        """An array from where the head is."""
        return np.asarray(values if self._head.device is None else values.cpu().numpy())
