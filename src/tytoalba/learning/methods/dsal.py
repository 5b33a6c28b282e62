"""DS-AL: ACIL and a second stream that learns what the first leaves over."""

from __future__ import annotations

from copy import copy
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.acil import Acil
from tytoalba.learning.methods.analytic import AnalyticOptions, Tensor
from tytoalba.signal.angles import Float


class DsAl(Acil):
    """Main stream as ACIL; the compensation stream, tanh of the same Z W, is fitted to its residual.

    (Zhuang et al., AAAI 2024.) Scores = main + weight x compensation, weight in [0, 2], searched there by the
    paper, 1 in the authors' program; it is used only when scoring. After the main stream has learned a phase,
    its residual on that phase's frames is the target of the other, with the columns of older phases set to
    zero ("previous label cleansing"). The residual is that of its day: the result depends on the order of
    the phases, unlike that of the main stream. ridge, ridge_compensation: both 0.1 as published.
    """

    def __init__(
        self,
        task: Task,
        *,
        n_features: int = 8192,
        ridge_compensation: float = 0.1,
        weight: float = 1.0,
        **options: Unpack[AnalyticOptions],
    ) -> None:
        super().__init__(task, n_features=n_features, **options)
        if not 0 <= weight <= 2:
            raise TytoError(f"the weight of the compensation stream must be in [0, 2], got {weight}")
        self.weight = weight
        self._compensation = self._new_head(n_features, ridge_compensation)

    def memory(self) -> Memory:
        """Also the sums of the compensation stream."""
        return super().memory() | self._compensation.memory("compensation.")

    def _restore(self, memory: Memory) -> None:
        super()._restore(memory)
        self._compensation = self._compensation.restored(memory, "compensation.")

    def _learn(self, X: NDArray[np.float32], azimuth: Float, directions: NDArray[np.intp]) -> None:
        super()._learn(X, azimuth, directions)
        self._compensation = copy(self._compensation)
        new = np.zeros(self.task.n_directions)
        new[directions] = 1.0
        for rows, Z in self._backbone_features(X):
            main = super()._scores(Z).cpu().numpy()
            residual = (self._targets(azimuth[rows], directions) - main) * new
            self._compensation.learn(self._tanh(Z), residual)

    def _scores(self, Z: Tensor) -> Tensor:
        return super()._scores(Z) + self.weight * self._compensation.scores(self._tanh(Z))

    def _tanh(self, Z: Tensor) -> Tensor:
        """H of the compensation stream: tanh(Z W), where the main stream has ReLU(Z W)."""
        import torch

        W = torch.from_numpy(self._relu().weights.copy()).to(Z.device, Z.dtype)
        return torch.tanh(Z @ W)
