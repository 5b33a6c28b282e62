"""GKEAL: a Gaussian kernel to stored features in the place of a random expansion."""

from __future__ import annotations

from typing import ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.acil import Acil
from tytoalba.learning.methods.analytic import AnalyticOptions, Tensor
from tytoalba.signal.angles import Float


class Gkeal(Acil):
    """H = exp(-|z - c|^2 / (2 s^2)) for centres c: backbone features of frames drawn from phase 0.

    (Zhuang et al., CVPR 2023.) The centres are features of somebody's frames and are kept: this method is
    not exemplar-free, and `memory` shows them. They are drawn at random without replacement (a public version
    takes the first rows). n_centres: 3600 by default, the memory that the replay methods have; fewer if
    phase 0 is smaller. s = bandwidth times the median distance between centres: the published s = 10 suits
    the features of its ResNet only. Augmentation, for its few-shot setting, is left out. Targets: as in
    `acil`.
    """

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "exemplars"

    def __init__(
        self,
        task: Task,
        *,
        n_centres: int = 3600,
        bandwidth: float = 1.0,
        **options: Unpack[AnalyticOptions],
    ) -> None:
        super().__init__(task, n_features=n_centres, **options)
        self.budget, self.bandwidth = n_centres, bandwidth
        self._centres: Tensor = None  # (n_centres, width) once phase 0 has come
        self._kernel_width = 0.0

    def memory(self) -> Memory:
        """Also the centres, and the width of the kernel."""
        kept = super().memory() | {"kernel_width": np.array(self._kernel_width)}
        return kept if self._centres is None else kept | {"centres": self._centres.cpu().numpy().copy()}

    def _restore(self, memory: Memory) -> None:
        import torch

        centres = memory.get("centres")
        self._centres, n_centres = None, self.budget
        if centres is not None:
            self._centres, n_centres = torch.tensor(centres, device=self.task.device), len(centres)
        self._kernel_width = float(memory["kernel_width"])
        self._head = self._new_head(n_centres, self.ridge)
        super()._restore(memory)

    def _begin(self, X: NDArray[np.float32], azimuth: Float) -> None:
        import torch

        super()._begin(X, azimuth)
        rng = np.random.default_rng(self._seed)
        chosen = rng.choice(len(X), min(self.budget, len(X)), replace=False)
        self._centres = torch.cat([Z for _, Z in self._backbone_features(X[chosen])])
        typical = float(torch.pdist(self._centres[:1000]).median()) if len(chosen) > 1 else 0.0
        self._kernel_width = self.bandwidth * (typical or 1.0)  # one centre, or all alike
        self._head = self._new_head(len(chosen), self.ridge)

    def _expand(self, Z: Tensor) -> Tensor:
        """H (n, n_centres), the kernel to each centre."""
        C = self._centres
        apart = (Z * Z).sum(1)[:, None] - 2 * Z @ C.T + (C * C).sum(1)  # squared distances
        return (apart.clamp(min=0) / (-2 * self._kernel_width**2)).exp()
