"""SRP-PHAT: no learning at all, the yardstick that every learner must beat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Method, Task, checked_array, checked_features, checked_phase
from tytoalba.learning.phases import Phase
from tytoalba.signal.srp import lag_matrix


class SrpPhatMethod(Method):
    """The steered response power of the GCC-PHAT features themselves; of several bands their sum by bins.

    Windows of a frame do not count. The features are taken as they are: no scaling, whatever the task
    says, as it would only shift the map.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        array, gcc = checked_array(task, "srp-phat", "leave this method out")
        whole = gcc.whole
        maps = [lag_matrix(replace(whole, bands=b), array, task.n_directions) for b in whole.band_list]
        weighted = np.array(maps) * gcc.band_shares[:, None, None]
        self._matrix = weighted.reshape(-1, task.n_directions).astype(np.float32)  # (values, n_directions)

    def learn(self, phase: Phase) -> None:
        """Nothing to learn; a phase that does not fit is still refused."""
        checked_phase(self.task, phase)

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """SRP maps (n_frames, n_directions)."""
        return checked_features(self.task, X)[:, : len(self._matrix)] @ self._matrix

    def memory(self) -> Memory:
        """Nothing is kept."""
        return {}

    def restore(self, memory: Memory) -> None:
        """There is nothing to become."""
        if memory:
            raise TytoError(
                f"srp-phat keeps nothing, this memory holds {', '.join(memory)}: another method's?"
            )
