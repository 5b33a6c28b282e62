"""A sound card: all of its channels, as they come, whatever is plugged out and in again.

Three threads: PortAudio's copies and queues, the caller of `blocks` takes, and one opens the device again
after it was gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from tytoalba.errors import TytoError
from tytoalba.live.inputs.devices import Device, channels_to_open, list_devices
from tytoalba.live.inputs.input import Block
from tytoalba.live.inputs.portaudio import abandon, load_sounddevice, quiet, rescan
from tytoalba.live.inputs.soundserver import ask_server
from tytoalba.live.inputs.stream import Stream
from tytoalba.live.update import Fault
from tytoalba.signal.array import MicArray

TELL = 0.25
"""Seconds between two blocks without samples."""
AGAIN = 0.5
"""Seconds between two attempts to open a device."""
CLOSING = 2.0
"""Seconds for a stream to close, until it is taken to be stuck."""
ASK, ASK_AGAIN = 0.25, 10.0
"""Seconds between two questions to a sound server: until it answers, and then."""


class SoundCard:
    """An input that is a sound card.

    Parameters
    ----------
    device : Device
        Of `choose_device`.
    array : MicArray
        What it is to be used for: its rate is that of the blocks. Their channels are those of the device;
        `array.channels` (or `pick_channels`) says which of them are microphones.
    n_channels : int, optional
        How many to open, if not `channels_to_open`.

    Raises
    ------
    TytoError
        It has too few channels, records at lower rates only, or cannot be opened.
    """

    def __init__(self, device: Device, array: MicArray, *, n_channels: int | None = None) -> None:
        self._sounddevice = load_sounddevice()
        self._n_channels = n_channels or channels_to_open(device, array)
        self._rate = array.sample_rate
        self._device = device
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._opening: threading.Thread | None = None
        self._fault: Fault | None = None  # while it is being opened again
        self._stuck = False
        self._stream = self._opened(device)
        if not device.is_direct:
            threading.Thread(target=self._ask, name="asking a sound server", daemon=True).start()

    @property
    def name(self) -> str:
        """As PortAudio has it."""
        return self._device.name

    @property
    def sample_rate(self) -> int:
        """Hz, of the blocks; `recorded_at` may be higher."""
        return self._rate

    @property
    def recorded_at(self) -> int:
        """Hz, of the device."""
        return self._stream.rate

    @property
    def n_channels(self) -> int:
        """Channels of its blocks."""
        return self._n_channels

    def blocks(self) -> Iterator[Block]:
        """Blocks as they come; four times per second one without samples while the device is gone."""
        told = time.monotonic()
        while not self._closed.is_set():
            stream = self._stream
            pieces, lost = stream.waiting.take(TELL / 2)
            now = time.monotonic()
            samples = stream.taken(pieces, lost)
            faults = self._watched(stream, nothing=not pieces)
            if self._closed.is_set():
                return
            if samples.shape[1]:
                told = now
                yield Block(samples, pieces[-1].arrived, stream.at_wanted_rate(lost), faults)
            elif faults and now - told >= TELL:
                told = now
                yield Block(samples, now, 0, faults)

    def close(self) -> None:
        """Let go of it, from any thread."""
        self._closed.set()
        self._stream.waiting.wake()
        with self._lock:
            opening, stream = self._opening, self._stream
        if opening is not None:
            opening.join(3.0)  # it closes what it opens
        elif not stream.close(CLOSING):
            self._stuck = True
        if self._stuck:
            abandon()

    def _watched(self, stream: Stream, nothing: bool) -> tuple[Fault, ...]:
        """What is wrong with the device; one that is gone is opened again by a thread of its own.

        nothing: whether no sound came for a while.
        """
        with self._lock:
            if stream is not self._stream or self._closed.is_set():
                return ()
            if self._opening is None:
                fault = stream.fault(self._device)
                gone = stream.has_ended() or (nothing and stream.is_late(time.monotonic()))
                if not gone and not stream.is_mute_for_long():
                    return stream.served if fault is None else (fault, *stream.served)
                self._fault = fault if fault is not None and not gone else self._gone()
                self._opening = threading.Thread(
                    target=self._reopen, args=(stream, gone), name="opening a sound card", daemon=True
                )
                self._opening.start()
            return () if self._fault is None else (self._fault,)

    def _ask(self) -> None:
        """Ask the sound server, if there is one, what it does to the sound: soon, and again at times."""
        asked, when = None, 0.0
        while not self._closed.wait(ASK):
            stream, now = self._stream, time.monotonic()
            if (stream is not asked or now - when >= ASK_AGAIN) and self._opening is None:
                answer = ask_server(self._n_channels)
                if answer is not None or now - stream.opened > ASK_AGAIN:  # or nobody knows of it
                    asked, when, stream.served = stream, now, answer or ()

    def _gone(self) -> Fault:
        return Fault(
            "unplugged",
            (),
            f"{self._device.title} is gone: unplugged, or its sound server ended; it goes on by itself when "
            "it is back",
        )

    def _reopen(self, old: Stream, gone: bool) -> None:
        """Close what there was, and try to open the device until that works."""
        while not old.close(CLOSING):
            self._stuck = True
            self._fault = Fault(
                "unplugged",
                (),
                f"{self._device.title}: the sound server does not answer; restart it, or this program",
            )
            if self._closed.is_set():
                return
        self._stuck = False
        self._fault = self._gone() if gone else self._fault
        while not self._closed.is_set():
            began = time.monotonic()
            with suppress(TytoError), quiet():
                rescan()
                found = [one for one in list_devices(rates=()) if one.is_same(self._device)]
                if found:
                    device = min(found, key=lambda one: one.name != self._device.name)
                    fresh = self._opened(device)
                    fresh.after(old, gone)
                    self._take_over(fresh, device)
                    return
            self._fault = self._gone()
            self._closed.wait(max(AGAIN, 2 * (time.monotonic() - began)))

    def _opened(self, device: Device) -> Stream:
        return Stream(self._sounddevice, device, self._n_channels, self._rate)

    def _take_over(self, fresh: Stream, device: Device) -> None:
        with self._lock:
            if not self._closed.is_set():
                self._device, self._stream, self._opening, self._fault = device, fresh, None, None
                return
        fresh.close(CLOSING)
