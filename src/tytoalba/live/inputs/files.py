"""A recording as if it were heard now: at the speed at which it was recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tytoalba.live.inputs.input import Block
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import sound_format, stream_audio

if TYPE_CHECKING:
    from collections.abc import Generator

    from tytoalba.signal.audio import Samples

BLOCK = 1024 / 48000
"""Seconds of sound in a block: a quarter of the time between two frames."""
LATE = 2.0
"""Seconds: who takes blocks later than this was suspended; then the rest is played later, not faster."""


class PlayedFile:
    """A file of any format, sealed or plain, as an `Input`.

    loop: begins anew where it ends, without a pause. fast: as fast as blocks are taken, and as no live sound.
    clock: seconds, of a clock that is never set.
    """

    def __init__(
        self,
        path: str | Path,
        keys: Keys = None,
        *,
        loop: bool = False,
        fast: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._keys, self._loop, self._fast = Path(path), keys, loop, fast
        self._clock = clock
        self._closed = threading.Event()
        self._n_channels, self._sample_rate = sound_format(self._path, keys)

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self._path.name

    @property
    def sample_rate(self) -> int:
        """Hz, of the file."""
        return self._sample_rate

    @property
    def n_channels(self) -> int:
        """Channels of the file."""
        return self._n_channels

    def blocks(self) -> Iterator[Block]:
        """The sound, each block when its last sample would have been there."""
        began, n_samples = self._clock(), 0
        with closing(self._samples()) as pieces:
            for samples in pieces:
                n_samples += samples.shape[1]
                arrived = None
                if not self._fast:
                    arrived = began + n_samples / self._sample_rate
                    early = arrived - self._clock()
                    if early < -LATE:
                        began, arrived = began - early, arrived - early
                    if early > 0:
                        self._closed.wait(early)
                if self._closed.is_set():
                    return
                yield Block(samples, arrived)

    def _samples(self) -> Generator[Samples, None, None]:
        size = max(1, round(BLOCK * self._sample_rate))
        while True:
            sound = stream_audio(self._path, block=size, keys=self._keys, again=True)
            yield from cast("Generator[Samples, None, None]", sound)
            if not self._loop:
                return

    def close(self) -> None:
        """Stop; `blocks` ends at once, also where it waits."""
        self._closed.set()
