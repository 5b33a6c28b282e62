"""Is the sound that comes in fit to be located? Muted, copied, mixed and clipped channels, as they happen.

It looks at the past only, keeps two seconds, and costs well below one per cent of a core.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import AudioError
from tytoalba.live.likeness import Alike, Likeness
from tytoalba.live.update import Fault
from tytoalba.signal.audio import FULL_SCALE

STEP = 0.25
"""Seconds between two looks."""
MUTED, NEVER = 0.5, 3.0
"""Seconds of nothing until a channel, or all of them, are called muted; and if there was no sound yet."""
SOUND = 0.003
"""A sample above this is sound: -50 dB."""
CLIPPED, CLIPPED_OVER = 0.0005, 1.0
"""Share of samples at full scale that is a fault, of so many seconds."""
HELD = 2.0
"""Seconds for which a fault is told after it has gone."""
HARDWARE = "open the hardware (hw:... in `tyto devices`) and not pulse, default or another sound server"


class Watch:
    """What is wrong with sound that comes in blocks.

    Parameters
    ----------
    sample_rate : int
        Hz.
    n_channels : int
        Of the blocks.
    used : sequence of int
        Which of them are microphones, from 0; playback and the like may be silent or copies.

    Examples
    --------
    >>> watch = Watch(16000, 3, used=(0, 1, 2))
    >>> sound = np.random.default_rng(0).standard_normal((3, 16000)) * 0.1
    >>> sound[1] = 0.0
    >>> watch.feed(sound)
    >>> watch.faults[0].kind, watch.faults[0].channels
    ('muted', (1,))
    """

    def __init__(self, sample_rate: int, n_channels: int, used: Sequence[int]) -> None:
        if not used or not all(0 <= channel < n_channels for channel in used):
            raise AudioError(f"microphones on channels {list(used)} of {n_channels}: they are counted from 0")
        self._used, self._n_channels = tuple(used), n_channels
        self._likeness = Likeness(sample_rate, len(self._used))
        length = self._likeness.frame_length
        self._step = max(1, round(STEP * sample_rate / length)) * length
        self._seconds = self._step / sample_rate
        self._held = np.zeros((n_channels, 0), np.float32)
        self._time = 0.0
        self._still = np.zeros(n_channels)  # seconds for which a channel has not moved
        self._heard = np.zeros(n_channels)  # the largest sample of those seconds among the others
        self._sounded = False
        self._full: deque[NDArray[np.intp]] = deque(maxlen=max(1, round(CLIPPED_OVER / self._seconds)))
        self._told: dict[str, tuple[Fault, float]] = {}  # by kind, and when it was true last

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong now, or was a moment ago."""
        return tuple(fault for fault, _ in self._told.values())

    def feed(self, samples: NDArray[np.floating]) -> None:
        """Take a block (n_channels, any length)."""
        if samples.ndim != 2 or len(samples) != self._n_channels:
            raise AudioError(
                f"{self._n_channels} channels were expected, got a block of shape {samples.shape}; "
                "channels come first"
            )
        held = np.concatenate([self._held, samples.astype(np.float32, copy=False)], axis=1)
        n = held.shape[1] // self._step
        for k in range(n):
            self._look(held[:, k * self._step : (k + 1) * self._step])
        self._held = held[:, n * self._step :].copy()

    def _look(self, samples: NDArray[np.float32]) -> None:
        self._time += self._seconds
        samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
        magnitude = np.abs(samples)
        found = self._muted(samples, magnitude.max(axis=1)) + self._clipped(magnitude)
        used = list(self._used)
        alive = np.flatnonzero(self._still[used] == 0).tolist()
        if alive:
            self._likeness.add(samples[used])
            found += self._alike(self._likeness.judge(alive))
        for fault in found:
            self._told[fault.kind] = fault, self._time
        self._told = {k: one for k, one in self._told.items() if self._time - one[1] < HELD}

    def _muted(self, samples: NDArray[np.float32], peak: NDArray[np.float32]) -> list[Fault]:
        """Channels without any change, which no microphone ever is."""
        still = np.ptp(samples, axis=1) == 0
        loudest = float(peak[~still].max(initial=0.0))
        self._still = np.where(still, self._still + self._seconds, 0.0)
        self._heard = np.where(still, np.maximum(self._heard, loudest), 0.0)
        self._sounded = self._sounded or not still.all()
        if still.all():
            return self._silent(float(self._still.min()))
        muted = [c for c in self._used if self._still[c] >= MUTED - 1e-9 and self._heard[c] > SOUND]
        if not muted:
            return []
        text = (
            f"{_channels(muted)} {_is(muted)} muted: every sample is the same while others have sound; check "
            f"the microphone and the channel numbers, or {HARDWARE}"
        )
        return [Fault("muted", tuple(muted), text)]

    def _silent(self, seconds: float) -> list[Fault]:
        if self._sounded and seconds >= MUTED - 1e-9:
            text = "nothing but zeros come: the device is unplugged, muted, or not allowed to record"
            return [Fault("unplugged", (), text)]
        if not self._sounded and seconds >= NEVER - 1e-9:
            text = (
                "nothing but zeros have come since the start: the device is muted or not allowed to record, "
                f"or a sound server leaves its channels out; {HARDWARE}"
            )
            return [Fault("muted", self._used, text)]
        return []

    def _clipped(self, magnitude: NDArray[np.float32]) -> list[Fault]:
        full = magnitude >= FULL_SCALE
        runs = full[:, :-2] & full[:, 1:-1] & full[:, 2:]  # three in a row: one alone may be a loud word
        self._full.append(runs.sum(axis=1))
        share = np.sum(self._full, axis=0) / (self._step * len(self._full))
        clipped = [c for c in self._used if share[c] > CLIPPED]
        if not clipped:
            return []
        text = f"{_channels(clipped)} {_is(clipped)} clipping: too loud; lower the input gain"
        return [Fault("clipping", tuple(clipped), text)]

    def _alike(self, alike: Alike) -> list[Fault]:
        found = []
        if copied := self._numbers(alike.copies):
            text = f"{_channels(copied)} carry the same sound, so directions are wrong; {HARDWARE}"
            found.append(Fault("copied", copied, text))
        mixed = self._numbers((*alike.mixed, alike.sums))
        before = self._told.get("copied")  # what were copies a moment ago still share some of the sound
        if mixed and not (before and set(mixed) <= set(before[0].channels)):
            text = f"{_channels(mixed)} are mixed with each other, so directions are wrong; {HARDWARE}"
            found.append(Fault("mixed", mixed, text))
        return found

    def _numbers(self, groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
        return tuple(sorted({self._used[place] for group in groups for place in group}))


def _channels(numbers: Sequence[int]) -> str:
    """ "channel 2" or "channels 1, 3 and 4"."""
    if len(numbers) == 1:
        return f"channel {numbers[0]}"
    return f"channels {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _is(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"
