"""Our own learner: random Fourier features of the GCC-PHAT, integer sums, closed form."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.angles import encode
from tytoalba.expansion import RandomFourier
from tytoalba.head import AnalyticHead
from tytoalba.methods.checks import blocks, checked_features, checked_phase
from tytoalba.methods.heads import restored
from tytoalba.methods.method import Memory, Method, Task
from tytoalba.phases import Phase
from tytoalba.products import quantize_labels


class Tyto(Method):
    """X, scaled frame by frame -> cos(X W / bandwidth + b) -> int8 -> G, Q in int64 -> ridge regression.

    No constant is taken from data and every sum is one of integers: what is learned is the same to the bit
    whatever the order, the phases, the batches or the device.

    n_features: D. bandwidth: of the Gaussian kernel, in units of sqrt(n_inputs), the length of a frame scaled
    to variance 1. sigma: width of the Gaussian labels in degrees; wider than the task's is better here.
    alpha: the ridge is alpha D / 2, where D / 2 is the mean of |h|^2 over frames: alpha is the noise variance
    of a label over the prior variance of the score, means the same for any D, and as a prior it does not
    grow with the number of frames (on validation rooms 0.1 was best for 3000 and for 13600 frames alike).
    """

    def __init__(
        self,
        task: Task,
        *,
        n_features: int = 5000,
        bandwidth: float = 1.5,
        alpha: float = 0.1,
        sigma: float = 14.0,
    ) -> None:
        super().__init__(task)
        self.n_features, self.bandwidth, self.alpha, self.sigma = n_features, bandwidth, alpha, sigma
        self._expansion = self._draw(task.seed)
        device = None if task.device == "cpu" else task.device  # on a CPU numpy will do: no need for torch
        ridge = alpha * n_features / 2
        self._head = AnalyticHead(n_features, task.n_directions, ridge, exact=True, device=device)

    def learn(self, phase: Phase) -> None:
        """Add the frames to the sums."""
        X, azimuth, _ = checked_phase(self.task, phase)
        head = copy(self._head)  # its sums are replaced, never changed: an error leaves ours as they were
        for rows in blocks(len(X)):
            Y = encode(azimuth[rows], self.sigma, self.task.n_directions)
            head.learn(self._codes(X[rows]), quantize_labels(Y))
        self._head = head

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predicted labels (n_frames, n_directions)."""
        X = checked_features(self.task, X)
        scores = np.empty((len(X), self.task.n_directions), np.float32)
        for rows in blocks(len(X)):
            H = self._codes(X[rows])
            predicted = self._head.scores(H)
            scores[rows] = predicted if self._head.device is None else predicted.cpu().numpy()
        return scores

    def memory(self) -> Memory:
        """The sums, and the seed of the random features."""
        return self._head.memory() | {"seed": np.array(self._expansion.seed, np.int64)}

    def restore(self, memory: Memory) -> None:
        """Take over the sums and the random features they belong to."""
        head, expansion = restored(self._head, memory), self._draw(int(memory["seed"]))
        self._head, self._expansion = head, expansion

    def _draw(self, seed: int) -> RandomFourier:
        n_inputs = self.task.n_inputs
        return RandomFourier(n_inputs, self.n_features, self.bandwidth * float(np.sqrt(n_inputs)), seed)

    def _codes(self, X: NDArray[np.float32]) -> Any:
        """Features H (n_frames, n_features) as int8, where the head is."""
        scaled = self.task.scale(X)
        if self._head.device is None:
            return self._expansion.codes(scaled)
        import torch

        return self._expansion.codes(torch.tensor(scaled, device=self._head.device))
