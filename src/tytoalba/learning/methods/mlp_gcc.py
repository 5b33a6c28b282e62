"""MLP-GCC: the network and its own output layer on all data at once, no phases. A reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tytoalba.learning.methods.finetune import FineTune

if TYPE_CHECKING:
    from tytoalba.learning.network import Mlp


class MlpGcc(FineTune):
    """Each call of `learn` starts from new initial weights and is meant to bring everything."""

    sees_everything: ClassVar[bool] = True

    def start(self) -> Mlp:
        """New initial weights."""
        return self.fresh()
