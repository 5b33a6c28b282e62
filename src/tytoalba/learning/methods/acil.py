"""ACIL: analytic class-incremental learning as published, with targets that grow by phase."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.analytic import Analytic, AnalyticOptions
from tytoalba.signal.angles import Float


class Acil(Analytic):
    """Random ReLU expansion of a backbone trained on phase 0; directions not yet seen have no column yet.

    (Zhuang et al., NeurIPS 2022.) Expansion: uniform +-1/sqrt(width), no bias, float64, 8192 features and a
    ridge (its gamma) of 0.1, the defaults of the authors' program. Its one-hot labels know only the classes
    seen so far; here the Gaussian label is cut at the edge of what was seen, and the rest of it is lost for
    good: near that edge the result is not the joint solution. Columns of older phases keep their part of the
    label (a second source, or the other side of the edge), as one-hot labels of old classes would. The
    columns not yet seen are there all the time and hold zeros, which is the same as growing them later.
    """

    def __init__(self, task: Task, *, n_features: int = 8192, **options: Unpack[AnalyticOptions]) -> None:
        super().__init__(task, n_features=n_features, **options)
        self._seen = np.zeros(task.n_directions, np.bool_)

    def memory(self) -> Memory:
        """Also which directions were seen."""
        return super().memory() | {"seen": self._seen.copy()}

    def _restore(self, memory: Memory) -> None:
        super()._restore(memory)
        self._seen = np.array(memory["seen"], np.bool_)

    def _learn(self, X: NDArray[np.float32], azimuth: Float, directions: NDArray[np.intp]) -> None:
        self._seen = self._seen.copy()
        self._seen[directions] = True
        super()._learn(X, azimuth, directions)

    def _targets(self, azimuth: Float, directions: NDArray[np.intp]) -> NDArray[np.float32]:
        return super()._targets(azimuth, directions) * self._seen
