"""What every method is: it sees one phase at a time, scores directions, and lists all that it keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.phases import Phase
from tytoalba.signal.angles import N_DIRECTIONS, SIGMA
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat, min_max

Memory = dict[str, NDArray[Any]]
"""Everything a method keeps, by name: the checkpoint, and what a privacy audit looks at."""
Scaling = Literal["frame", "min-max", "none"]
BLOCK = 128
"""Frames scaled at a time: few enough for the cache of a processor, which is faster and takes no memory."""


@dataclass(frozen=True)
class Task:
    """What a method is told about its work, the same for all.

    n_inputs: values of a frame. scaling: how they are brought to a common scale, frame by frame, so that
    no constant is ever taken from anyone's data: "frame" (mean 0, variance 1 within the frame), "min-max"
    (the paper's program) or "none". seed: of everything random. device: "cpu", "cuda"...
    array, gcc: what the features are, for methods that know acoustics (None if nobody knows).
    """

    n_inputs: int
    seed: int = 0
    device: str = "cpu"
    scaling: Scaling = "frame"
    sigma: float = SIGMA
    n_directions: int = N_DIRECTIONS
    array: MicArray | None = field(default=None, compare=False)
    gcc: GccPhat | None = field(default=None, compare=False)

    def scale(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features on the common scale, (n_frames, n_inputs) float32; the input stays as it is."""
        X = np.asarray(X, np.float32)
        if self.scaling == "min-max":
            return np.asarray(min_max(X), np.float32)
        if self.scaling != "frame":
            return X
        result = np.empty_like(X)
        bounds = np.linspace(0, len(X), -(-len(X) // BLOCK) + 1).astype(np.intp)  # even: no row left alone
        for start, stop in pairwise(bounds):
            x = X[start:stop]
            centred = x - x.mean(axis=1, keepdims=True)
            spread = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
            np.divide(centred, np.where(spread > 0, spread, 1.0), out=result[start:stop])
        return result


class Method(ABC):
    """A learner of directions. Hyper-parameters are keyword arguments of `__init__` with defaults.

    The contract, which tests run over every entry of `METHODS`:
    learning the same phases with the same seed gives the same result; `posterior` changes nothing; what
    `memory` lists is all that is kept: `restore(memory())` on a fresh method of the same task gives the same
    posterior and goes on learning the same way; arrays that come in are never kept or changed (no aliasing);
    phases may have one frame, directions never taught may be asked for; an exemplar-free method's memory
    does not grow with the number of frames.
    """

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "nothing"
    """Of the training data itself, from phase to phase."""
    sees_everything: ClassVar[bool] = False
    """Learns all phases at once, in a single call of `learn` (a reference, not an incremental method)."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @abstractmethod
    def learn(self, phase: Phase) -> None:
        """Learn one more phase."""

    @abstractmethod
    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of raw features X (n_frames, n_inputs): (n_frames, n_directions), larger is likelier."""

    @abstractmethod
    def memory(self) -> Memory:
        """Everything that is kept, as numpy arrays (copies)."""

    @abstractmethod
    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""

    def posteriors(self, X: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Scores by decision rule, for methods that have several; the first is the method's own."""
        return {"": self.posterior(X)}
