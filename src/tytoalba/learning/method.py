"""What every method is: it sees one phase at a time, scores directions, and lists all that it keeps.

Below the classes: what a method refuses before it changes anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.phases import Phase
from tytoalba.learning.sums import all_finite
from tytoalba.signal.angles import N_DIRECTIONS, SIGMA, Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat, min_max

Memory = dict[str, NDArray[Any]]
"""Everything a method keeps, by name: the checkpoint, and what a privacy audit inspects."""
Scaling = Literal["frame", "min-max", "none"]
Had = Literal["simulations", "windows", "bands", "mirrored frames", "noise in training", "validation frames"]
HAD: tuple[Had, ...] = get_args(Had)
"""What a method may have beside the frames of its phases. Windows and bands: of the features it is shown."""
BLOCK = 8192
"""Frames taken at a time, so that expanded features never fill the memory."""
SCALED_AT_ONCE = 128
"""Frames scaled at a time: few enough for the cache of a processor, which is faster and takes no memory."""


@dataclass(frozen=True)
class Task:
    """What a method has to know of its work; the same for all methods.

    Parameters
    ----------
    n_inputs : int
        Values per frame.
    seed : int
        Seed of everything random.
    device : str
        "cpu", "cuda", ...: where a method computes.
    scaling : {"frame", "min-max", "none"}
        How frames are brought to a common scale, each by itself, so that no constant is ever taken from
        anyone's data: mean 0 and variance 1 within the frame, 0 to 1 as in the paper's program, or as is.
    sigma : float
        Width of the Gaussian labels, degrees.
    n_directions : int
        Direction classes around the circle.
    array : MicArray, optional
        The array that the features are of, for methods that know acoustics.
    gcc : GccPhat, optional
        How the features were computed.
    valid : Phase, optional
        Frames of every direction that nothing is learned from, for methods that stop when they are found no
        better.

    Examples
    --------
    >>> task = Task(n_inputs=3)
    >>> task.scale(np.float32([[1.0, 2.0, 3.0]])).round(3).tolist()
    [[-1.225000023841858, 0.0, 1.225000023841858]]
    """

    n_inputs: int
    seed: int = 0
    device: str = "cpu"
    scaling: Scaling = "frame"
    sigma: float = SIGMA
    n_directions: int = N_DIRECTIONS
    array: MicArray | None = field(default=None, compare=False)
    gcc: GccPhat | None = field(default=None, compare=False)
    valid: Phase | None = field(default=None, compare=False)

    def scale(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features on the common scale, (n_frames, n_inputs) float32; the input stays as it is."""
        X = np.asarray(X, np.float32)
        if self.scaling == "min-max":
            return np.asarray(min_max(X), np.float32)
        if self.scaling != "frame":
            return X
        result = np.empty_like(X)
        n_blocks = -(-len(X) // SCALED_AT_ONCE)
        bounds = np.linspace(0, len(X), n_blocks + 1).astype(np.intp)  # even: no row left alone
        for start, stop in pairwise(bounds):
            x = X[start:stop]
            centred = x - x.mean(axis=1, keepdims=True)
            spread = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
            np.divide(centred, np.where(spread > 0, spread, 1.0), out=result[start:stop])
        return result


class Method(ABC):
    """A learner of directions: it sees one phase at a time and scores directions.

    Hyper-parameters are keyword arguments of `__init__` with defaults. The contract, which `check_method`
    runs and tests run over every entry of `METHODS`:

    - Learning the same phases with the same seed gives the same result; `posterior` changes nothing.
    - What `memory` lists is all that is kept: `restore(memory())` on a fresh method of the same task gives
      the same posterior and goes on learning the same way.
    - Arrays that come in are never kept or changed (no aliasing).
    - Phases may have one frame, and directions never taught may be asked for.
    - The memory of an exemplar-free method does not grow with the number of frames.
    - The newest phase is learned, and beside the older ones; a method that loses these says so (`forgets`).

    Parameters
    ----------
    task : Task
        Features, seed and device.

    Examples
    --------
    >>> class Nothing(Method):
    ...     def learn(self, phase):
    ...         pass
    ...     def posterior(self, X):
    ...         return np.zeros((len(X), self.task.n_directions), np.float32)
    ...     def memory(self):
    ...         return {}
    ...     def restore(self, memory):
    ...         pass
    >>> Nothing(Task(n_inputs=3)).posterior(np.zeros((2, 3))).shape
    (2, 360)
    """

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "nothing"
    """Of the training data itself, from phase to phase."""
    sees_everything: ClassVar[bool] = False
    """Learns all phases at once, in a single call of `learn` (a reference, not an incremental method)."""
    forgets: ClassVar[bool] = False
    """Loses older phases as it learns new ones: says so if it does, and only then (the contract checks)."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def had(self) -> tuple[Had, ...]:
        """What it had beside the frames of its phases, without windows and bands: the harness knows those."""
        return ()

    @abstractmethod
    def learn(self, phase: Phase) -> None:
        """Learn one more phase.

        Parameters
        ----------
        phase : Phase
            Features X (n_frames, n_inputs), azimuth (n_frames, n_sources) in degrees, NaN padded, and the
            direction classes that are new.
        """

    @abstractmethod
    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of directions.

        Parameters
        ----------
        X : ndarray, (n_frames, n_inputs)
            Raw features; scaling them is the method's business (`Task.scale`).

        Returns
        -------
        ndarray, (n_frames, n_directions) float32
            Larger is likelier.
        """

    @abstractmethod
    def memory(self) -> Memory:
        """Everything that is kept, as numpy arrays (copies)."""

    @abstractmethod
    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""

    def posteriors(self, X: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Scores by decision rule, for methods that have several; the first is the method's own."""
        return {"": self.posterior(X)}


def blocks(n_frames: int) -> Iterator[slice]:
    """Slices of at most BLOCK frames."""
    return (slice(start, start + BLOCK) for start in range(0, n_frames, BLOCK))


def checked_features(task: Task, X: ArrayLike, *, finite: bool = True) -> NDArray[np.float32]:
    """X as (n_frames, n_inputs) float32, row after row in memory; refused where that cannot be.

    finite: False for callers that refuse NaN themselves (`refuse_holes`), on the device.
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != task.n_inputs:
        raise TytoError(
            f"features must be (n_frames, {task.n_inputs}), got shape {rows.shape}; "
            "flatten pairs and lags, and give the task the number of values of a frame"
        )
    if rows.dtype.kind not in "fiu":
        raise TytoError(f"features must be real numbers, got {rows.dtype}")
    if finite and rows.dtype.kind == "f":
        refuse_holes(rows)
    return np.ascontiguousarray(rows, np.float32)


def refuse_holes(rows: Any) -> None:
    """Refuse NaN and infinity, in one pass over large arrays or tensors and without a copy.

    The sum is finite only if all values are; where it is not, they may still be so large that it overflowed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(rows.sum())
    if not np.isfinite(total) and not all_finite(rows):
        raise TytoError("features hold NaN or infinity; did a silent or damaged frame slip through?")


def checked_array(task: Task, who: str, instead: str) -> tuple[MicArray, GccPhat]:
    """What the features of a task are, for those that must know; `who` needs it, `instead` is the way out."""
    if task.array is None or task.gcc is None:
        raise TytoError(
            f"{who} needs to know the array and its GCC-PHAT: give the task `array` and `gcc`, or {instead} "
            "where the features come without them"
        )
    if task.gcc.n_features != task.n_inputs:
        raise TytoError(
            f"this GCC-PHAT has {task.gcc.n_features} values a frame, the task {task.n_inputs}; "
            "are there features of another kind beside it?"
        )
    return task.array, task.gcc


def checked_phase(
    task: Task, phase: Phase, *, finite: bool = True
) -> tuple[NDArray[np.float32], Float, NDArray[np.intp]]:
    """X, azimuth (n_frames, n_sources) in degrees and directions of a phase that fits the task."""
    X = checked_features(task, phase.X, finite=finite)
    azimuth = np.asarray(phase.azimuth, np.float64)
    if azimuth.ndim != 2 or len(azimuth) != len(X):
        raise TytoError(
            f"a phase of {len(X)} frames needs azimuths ({len(X)}, n_sources), got shape {azimuth.shape}"
        )
    if np.isinf(azimuth).any():
        raise TytoError("azimuths must be degrees or NaN (no source), got an infinite value")
    directions = np.asarray(phase.directions, np.intp)
    if directions.ndim != 1 or not ((directions >= 0) & (directions < task.n_directions)).all():
        raise TytoError(f"directions of a phase must be classes 0..{task.n_directions - 1}, got {directions}")
    return X, azimuth, directions
