"""iCaRL (Rebuffi et al. 2017): herded exemplars, distillation, nearest mean of exemplars.

Learns new frames and exemplars as one set. As in the original, columns of old directions regress to the
previous network's outputs and the others to the label; the loss is the squared one of the other rows instead
of binary cross-entropy. Two decisions: the nearest mean (the method's own) and the output layer ("output").
The nearest mean gives no posterior: the score of a direction is the cosine between the frame's features and
the mean of its exemplars' (largest cosine = nearest, all at length 1), also where two sources are decoded;
a direction without exemplars gets -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.methods.finetune import TrainingSet
from tytoalba.learning.methods.lwf import distilled
from tytoalba.learning.methods.replay import Rehearsal, normalised
from tytoalba.learning.phases import Phase

if TYPE_CHECKING:
    from tytoalba.learning.network import Mlp


class ICarl(Rehearsal):
    """Exemplars, distillation and nearest mean."""

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """New frames and exemplars together; old columns from the previous network."""
        X, Y = self.frames(*self.with_exemplars(phase))
        return TrainingSet(distilled(X, Y, self.network_, self.old_columns(phase)), len(X))

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine with the mean of each direction's exemplars."""
        kept = self.exemplars_
        Z = normalised(self.layer(X, "features"))
        Z_kept = normalised(self.layer(kept.X, "features"))
        directions, which = np.unique(kept.direction, return_inverse=True)
        sums = np.zeros((len(directions), Z.shape[1]), np.float32)
        np.add.at(sums, which, Z_kept)
        scores = np.full((len(Z), self.task.n_directions), -1.0, np.float32)
        scores[:, directions] = Z @ normalised(sums).T
        return scores

    def posteriors(self, X: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Nearest mean, and the sigmoid of the output layer."""
        return {"": self.posterior(X), "output": self.layer(X, "scores")}
