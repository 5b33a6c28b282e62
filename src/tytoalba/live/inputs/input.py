"""What every input gives: blocks of sound as they come, with what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tytoalba.live.update import Fault


@dataclass(frozen=True, eq=False)
class Block:
    """Some sound.

    samples: (n_channels, any length), all channels that the input has, floats in [-1, 1]. arrived:
    `time.monotonic()` when its last sample was there; None where the sound is no live one. lost: samples per
    channel that were lost just before it. faults: what is wrong with the input now, such as a device that was
    unplugged; the sound itself is judged elsewhere.
    """

    samples: NDArray[np.float32]
    arrived: float | None = None
    lost: int = 0
    faults: tuple[Fault, ...] = ()


class Input(Protocol):
    """Sound that goes on until it ends, or for ever.

    name: what people call it. sample_rate: Hz. n_channels: of its blocks.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def sample_rate(self) -> int:
        """Hz."""
        ...

    @property
    def n_channels(self) -> int:
        """Channels of its blocks."""
        ...

    def blocks(self) -> Iterator[Block]:
        """The blocks, each as soon as it is there; ends where the sound ends, or after `close`.

        An input that can come back, such as a device that was unplugged, does not end: meanwhile it gives a
        block without samples, with its faults, about four times per second.
        """
        ...

    def close(self) -> None:
        """Let go of it, from any thread; `blocks` ends soon after. More than once does no harm."""
        ...
