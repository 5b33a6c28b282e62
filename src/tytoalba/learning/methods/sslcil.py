"""SSL-CIL, the paper's method, and the variant that its authors' released script runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Task
from tytoalba.learning.methods.analytic import Analytic, AnalyticOptions
from tytoalba.learning.phases import Phase


class SslCil(Analytic):
    """A backbone trained on phase 0, H = ReLU(Z W_fe), ridge regression to Gaussian labels of all directions.

    G and Q are accumulated and solved on demand, which is the joint ridge solution at every phase; the paper
    writes the same as a recursion (`learning.recursive`). W_fe is uniform +-1/sqrt(width), as in the authors'
    program, and the ridge is meant with that scale. The paper's block-diagonal labels are not used: they are
    not the joint solution where a label spills over the edge of its sector (see `acil`). Nor is what only the
    authors' program does: the base solution times 0.9, the last partial batch dropped.
    """

    def __init__(self, task: Task, *, n_features: int = 20000, **options: Unpack[AnalyticOptions]) -> None:
        super().__init__(task, n_features=n_features, **options)

    def joint_solution(self, phases: Sequence[Phase]) -> NDArray[np.float64]:
        """W (n_features, n_directions) of all phases at once, with the same backbone and expansion.

        From scratch: sums of its own in one pass over all frames together, and another solver (LU).
        """
        import torch

        X, azimuth = (np.concatenate([getattr(p, name) for p in phases]) for name in ("X", "azimuth"))
        device = self.task.device
        A = self.ridge * torch.eye(self.n_features, dtype=torch.float64, device=device)
        B = torch.zeros(self.n_features, self.task.n_directions, dtype=torch.float64, device=device)
        everywhere = np.arange(self.task.n_directions)
        for rows, Z in self._backbone_features(X):
            H = self._expand(Z)
            A.addmm_(H.T, H)
            Y = torch.from_numpy(self._targets(azimuth[rows], everywhere))
            B.addmm_(H.T, Y.to(device, torch.float64))
        W: NDArray[np.float64] = torch.linalg.solve(A, B).cpu().numpy()
        return W

    def deviation(self, phases: Sequence[Phase]) -> float:
        """How far the weights are from the joint solution of these phases, as a share of the latter."""
        joint = self.joint_solution(phases)
        return float(np.linalg.norm(self.weights() - joint) / np.linalg.norm(joint))


class SslCilRandom(SslCil):
    """SSL-CIL on a backbone that is never trained, as the authors' script runs when it is just started."""

    def __init__(self, task: Task, *, n_features: int = 20000, ridge: float = 0.1, width: int = 1000) -> None:
        super().__init__(task, n_features=n_features, ridge=ridge, backbone="random", width=width)
