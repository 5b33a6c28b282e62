"""One device that is open, until it ends: PortAudio's callback, what is taken from it, and how it is."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.live.inputs.devices import RATES, Device, recording_rate, records_at
from tytoalba.live.inputs.portaudio import close_stream, quiet
from tytoalba.live.inputs.waiting import Piece, Waiting
from tytoalba.live.update import Fault

SILENT = 0.7
"""Seconds without a callback, or with nothing but zeros after sound, until that is a fault."""
STARTING = 5.0
"""Seconds until the first callback: sound servers take up to two."""
ZEROS = 3.0
"""Seconds of zeros after which a device is opened again; each further attempt waits twice as long."""
LONGEST_WAIT = 60.0
WAITING = 2.0
"""Seconds of sound that wait at most to be taken."""
RATE_WINDOW, RATE_OFF = 5.0, 0.03
"""Seconds over which the rate is measured, and the share by which it may differ."""


class Stream:
    """A device that is open. rate: Hz that it records at; wanted: Hz of what is taken."""

    def __init__(self, sounddevice: Any, device: Device, n_channels: int, wanted: int) -> None:
        self.rate, self.wanted = _rate(sounddevice, device, n_channels, wanted), wanted
        self.waiting = Waiting(self.rate, WAITING)
        self.served: tuple[Fault, ...] = ()  # what a sound server does to it
        self._n_channels = n_channels
        self._patience = ZEROS  # seconds of zeros until it is opened anew
        self._finished = threading.Event()
        self.opened = time.monotonic()
        self._taken: float | None = None  # when what was taken last had come, and the last sound in it
        self._sounded: float | None = None
        self._meter = Meter(self.rate)
        self._resampler: Any = None
        if self.rate != wanted:
            import soxr  # type: ignore[import-untyped]

            self._resampler = soxr.ResampleStream(self.rate, wanted, n_channels, dtype="float32")
        with quiet():
            try:
                self._stream = sounddevice.InputStream(
                    device=device.number,
                    channels=n_channels,
                    samplerate=self.rate,
                    dtype="float32",
                    latency="high",  # of what drivers offer; "low" loses sound on small boards
                    callback=self._put,
                    finished_callback=self._finished.set,
                )
                self._stream.start()
            except (sounddevice.PortAudioError, ValueError) as error:
                raise _refused(device, error) from error

    def after(self, old: Stream, gone: bool) -> None:
        """It takes the place of one that was gone, or that gave nothing but zeros, and may do so still."""
        if not gone:
            self._sounded = old._sounded
            self._patience = min(2 * old._patience, LONGEST_WAIT)

    def _put(self, data: NDArray[np.float32], _frames: int, _when: Any, status: Any) -> None:
        """PortAudio's callback: copy and queue."""
        self.waiting.put(Piece(data.T.copy(), time.monotonic()), bool(status.input_overflow))

    def taken(self, pieces: list[Piece], lost: int) -> NDArray[np.float32]:
        """What was taken, as samples (n_channels, any length) at the wanted rate."""
        if not pieces:
            return np.zeros((self._n_channels, 0), np.float32)
        samples = np.concatenate([piece.samples for piece in pieces], axis=1)
        self._taken = pieces[-1].arrived
        if samples.any():
            self._sounded, self._patience = self._taken, ZEROS
        self._meter.add(samples.shape[1], lost, self._taken)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(np.ascontiguousarray(samples.T)).T
        return np.ascontiguousarray(samples)

    def at_wanted_rate(self, n_samples: int) -> int:
        """So many samples of the device in samples of what is taken."""
        return round(n_samples * self.wanted / self.rate)

    def has_ended(self) -> bool:
        """Whether PortAudio says that no more sound will come."""
        return self._finished.is_set() or not self._stream.active

    def is_late(self, now: float) -> bool:
        """Whether sound should have come long ago."""
        last = self.waiting.last
        return now - self.opened > STARTING if last is None else now - last > SILENT

    def is_mute_for_long(self) -> bool:
        """Whether it is worth a try to open it again, as nothing but zeros come."""
        if self._taken is None or not self._zeros() >= SILENT:
            return False
        return self._taken - max(self.opened, self._sounded or 0.0) >= self._patience

    def _zeros(self) -> float:
        """Seconds of nothing but zeros after sound."""
        return 0.0 if self._taken is None or self._sounded is None else self._taken - self._sounded

    def fault(self, device: Device) -> Fault | None:
        """What is wrong while it runs."""
        if self._zeros() >= SILENT:
            return Fault(
                "unplugged",
                (),
                f"only zeros come from {device.title}: unplugged, muted, or not allowed to record?",
            )
        if (measured := self._meter.off()) is not None:
            return Fault(
                "rate",
                (),
                f"{device.title} says {self.rate} Hz and gives about {measured:.0f}, so directions are "
                "wrong: set its rate, or use the hardware (hw:...)",
            )
        return None

    def close(self, patience: float) -> bool:
        """Close it; False if that takes longer than so many seconds."""
        return close_stream(self._stream, patience)


class Meter:
    """Measures the rate at which sound really comes."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._began: float | None = None
        self._n = 0
        self._measured: float | None = None

    def add(self, n_samples: int, lost: int, arrived: float) -> None:
        """So many samples have come; the first ones of a window only set its beginning."""
        if self._began is None or lost:
            self._began, self._n = arrived, 0
            return
        self._n += n_samples
        if arrived - self._began >= RATE_WINDOW:
            self._measured = self._n / (arrived - self._began)
            self._began, self._n = arrived, 0

    def off(self) -> float | None:
        """Hz, where that is not what the device says."""
        if self._measured is None or abs(self._measured / self._rate - 1) <= RATE_OFF:
            return None
        return self._measured


def _rate(sounddevice: Any, device: Device, n_channels: int, wanted: int) -> int:
    """Hz to record at; TytoError where the device has lower ones only."""
    with quiet():
        if records_at(sounddevice, device.number, n_channels, wanted):
            return wanted
        rates = [rate for rate in RATES if records_at(sounddevice, device.number, n_channels, rate)]
    rate = recording_rate(rates, wanted)
    if rate is not None:
        return rate
    if rates:
        raise TytoError(
            f"{device.title} records {n_channels} channels at {max(rates)} Hz at most, and "
            f"{wanted} Hz are needed: what is above {max(rates) / 2:g} Hz cannot be made up. Choose an array "
            "file of that rate, or another sound card"
        )
    try:
        sounddevice.check_input_settings(
            device=device.number, channels=n_channels, dtype="float32", samplerate=wanted
        )
    except (sounddevice.PortAudioError, ValueError) as error:
        raise _refused(device, error) from error
    return wanted


def _refused(device: Device, error: Exception) -> TytoError:
    said = " ".join(str(part) for part in error.args[:1]) or "no reason given"
    return TytoError(
        f"{device.title} cannot be opened ({said}); is it plugged in, and does no other program "
        "record from it? On Linux a sound server may hold it: pasuspender -- tyto ..."
    )
