"""From live sound to what is told of it: health, tracks, outputs, with lost samples and latency counted.

Memory does not grow with time, and only past frames are used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tytoalba.live.health import Watch
from tytoalba.live.inputs.input import Block, Input
from tytoalba.live.outputs.output import Output, Say
from tytoalba.live.pace import Pace
from tytoalba.live.resampler import Resampler
from tytoalba.live.segments import Moment
from tytoalba.live.tracking import Following
from tytoalba.live.update import Fault, Update
from tytoalba.signal.audio import LARGEST, check_rate, pick_channels


class Watching(Protocol):
    """What judges the sound of all channels."""

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Take a block (n_channels, any length)."""
        ...

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong now."""
        ...


class Keeping(Protocol):
    """What keeps the sound of the microphones, such as a sealed recording."""

    def add(self, samples: NDArray[np.float32], lost: int = 0) -> None:
        """Take a block (n_mics, any length); lost: samples that are missing just before it."""
        ...


class Listener:
    """Iterated, it gives an `Update` and its `Moment` for each frame, and hands them to every output.

    Parameters
    ----------
    input : Input
        Where the sound comes from.
    following : Following
        Who is there; its array picks the channels, and its rate is the one that is resampled to.
    outputs : sequence of Output
        They are closed when listening ends. One that raises is said once, and listening goes on.
    watch : Watching, optional
        Judges all channels of the input; `health.Watch` if not given.
    keep : Keeping, optional
        Gets the microphones' channels, at the rate of the input.
    say : callable
        Tells people a line.
    clock : callable
        Seconds of the clock of `Block.arrived`.

    Examples
    --------
    >>> from tytoalba.data.demo import demo_recording
    >>> from tytoalba.live.inputs.files import PlayedFile
    >>> path, _ = demo_recording()
    >>> with Listener(PlayedFile(path, fast=True), Following("respeaker-usb-4", "srp")) as listener:
    ...     found = [update for update, _ in listener]
    >>> len(found), [round(track.azimuth, -1) for track in found[20].tracks]
    (81, [40.0])
    """

    def __init__(
        self,
        input: Input,  # noqa: A002, it is what it is called
        following: Following,
        outputs: Sequence[Output] = (),
        *,
        watch: Watching | None = None,
        keep: Keeping | None = None,
        say: Say = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        array = following.array
        check_rate(input.sample_rate, input.name)
        self.channels = tuple(pick_channels(input.n_channels, array, input.name))
        """Channels of the input that are the array's microphones."""
        self._input, self._following, self._outputs = input, following, tuple(outputs)
        self._keep, self._say, self._clock = keep, say, clock
        self._rate = input.sample_rate
        self._watch = watch or Watch(self._rate, input.n_channels, self.channels)
        self._resampler = Resampler(self._rate, array.sample_rate, array.n_mics)
        self._pace = Pace(self._rate)
        self._half_frame = array.frame_length / 2 / array.sample_rate
        self._position = 0  # samples per channel since the sound began, also those that were lost
        self._dropped = 0
        self._told = -1.0  # time of the last update
        self._last_arrival: float | None = None
        self._gone: float | None = None  # when the input went away
        self._failed: set[int] = set()
        self._stopping = threading.Event()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Update, Moment]]:
        """Listen until the sound ends, or `stop`."""
        for block in self._input.blocks():
            if self._stopping.is_set():
                return
            yield from self._heard(block) if block.samples.shape[1] else self._nothing(block)

    def stop(self) -> None:
        """End listening soon; from any thread."""
        self._stopping.set()
        self._input.close()

    def close(self) -> None:
        """Let go of the input and of every output; from the thread that listens."""
        self.stop()
        if not self._closed:
            self._closed = True
            for output in self._outputs:
                self._guarded(output, output.close)

    def _heard(self, block: Block) -> Iterator[tuple[Update, Moment]]:
        samples, own = _mended(block.samples)
        if block.lost or self._gone is not None:
            self._resume(block)
        self._watch.feed(samples)
        self._pace.feed(samples.shape[1], block.arrived)
        picked = samples[list(self.channels)]
        if self._keep is not None:
            self._keep.add(picked)
        self._position += samples.shape[1]
        self._last_arrival = block.arrived
        for moment in self._following.feed(self._resampler.add(picked)):
            latency = None
            if block.arrived is not None:
                # how long before the end of this block the frame ended
                before = self._position / self._rate - moment.time - self._half_frame
                latency = round(max(self._clock() - block.arrived + before, 0.0), 4)
            yield self._tell(moment, latency, self._faults(block) + own)

    def _nothing(self, block: Block) -> Iterator[tuple[Update, Moment]]:
        """The input is gone: time goes on without sound."""
        if not block.faults:
            return
        now = self._clock()
        if self._gone is None:
            self._gone = now if self._last_arrival is None else self._last_arrival
        seconds = self._position / self._rate + now - self._gone
        if seconds > self._told:
            yield self._tell(self._following.absent(seconds), None, block.faults)

    def _resume(self, block: Block) -> None:
        """Sound was lost just before this block: go on where it belongs in time."""
        before = self._position
        self._position += block.lost
        if self._gone is None:
            self._dropped += block.lost
        else:  # how long it was away, the clock knows, and no update may be told twice
            if block.arrived is not None:
                passed = round((block.arrived - self._gone) * self._rate) - block.samples.shape[1]
                self._position = max(self._position, before + passed)
            self._position = max(self._position, round(self._told * self._rate))
            self._gone = None
        if self._keep is not None:
            self._keep.add(block.samples[list(self.channels), :0], self._position - before)
        self._resampler.clear()
        self._pace.restart()
        self._following.restart(round(self._position * self._following.array.sample_rate / self._rate))

    def _faults(self, block: Block) -> tuple[Fault, ...]:
        return block.faults + self._watch.faults + self._pace.faults

    def _tell(
        self, moment: Moment, latency: float | None, faults: tuple[Fault, ...]
    ) -> tuple[Update, Moment]:
        update = Update.of(moment, self._dropped, latency, faults)
        self._told = moment.time
        for output in self._outputs:
            self._guarded(output, lambda output=output: output.send(update, moment))  # type: ignore[misc]
        return update, moment

    def _guarded(self, output: Output, do: Callable[[], None]) -> None:
        """Nothing that an output does ends listening."""
        try:
            do()
        except Exception as error:
            if id(output) not in self._failed:
                self._failed.add(id(output))
                self._say(f"an output fails, listening goes on: {type(output).__name__}: {error}")


def _mended(samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], tuple[Fault, ...]]:
    """Samples with silence for what is no number: a broken driver must not end listening."""
    damaged = ~(np.abs(samples) <= LARGEST)
    if not damaged.any():
        return samples, ()
    channels = tuple(int(channel) for channel in np.flatnonzero(damaged.any(axis=1)))
    text = "samples that are not numbers count as silence; is the encoding right, or a driver broken?"
    return np.where(damaged, np.float32(0), samples), (Fault("damaged", channels, text),)
