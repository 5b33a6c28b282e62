"""Sound cards that are none: a stand-in for the package sounddevice that does what a test says."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

APIS = ("ALSA", "Windows DirectSound")


class PortAudioError(Exception):
    pass


@dataclass
class Card:
    """A card. rates: Hz that it records at; frozen: whether closing it never ends."""

    name: str
    n_channels: int
    rates: tuple[int, ...] = (16000,)
    api: int = 0
    frozen: bool = False


@dataclass
class Stream:
    """A stream that is open, or was."""

    card: Card
    settings: dict[str, Any]
    active: bool = False
    closed: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.active = True

    def abort(self) -> None:
        if self.card.frozen:
            self.released.wait(20)
        self.active = False

    def close(self) -> None:
        self.closed = True

    def give(self, samples: NDArray[Any], overflow: bool = False) -> None:
        """Call back with samples (n_channels, any length), in memory that is used again."""
        data = np.ascontiguousarray(samples.T, dtype=np.float32)
        self.settings["callback"](data, len(data), None, SimpleNamespace(input_overflow=overflow))
        data[:] = np.nan

    def vanish(self) -> None:
        """End as PortAudio's streams do when their device is gone."""
        self.active = False
        self.settings["finished_callback"]()


class FakeSounddevice:
    """Lists cards as PortAudio does: those that were there when it was initialised."""

    PortAudioError = PortAudioError

    def __init__(self, *cards: Card) -> None:
        self.cards = list(cards)
        self.streams: list[Stream] = []
        self.n_initialised = 0
        self._initialize()

    def _initialize(self) -> None:
        self._listed = list(self.cards)
        self.n_initialised += 1

    def _terminate(self) -> None:
        assert all(one.closed for one in self.streams), "a stream is open"

    def _exit_handler(self) -> None:
        pass

    def query_hostapis(self) -> tuple[dict[str, Any], ...]:
        return tuple({"name": name, "default_input_device": 0} for name in APIS)

    def query_devices(self) -> list[dict[str, Any]]:
        return [
            {
                "name": one.name,
                "hostapi": one.api,
                "max_input_channels": one.n_channels,
                "default_samplerate": float((one.rates or (44100,))[0]),
            }
            for one in self._listed
        ]

    def check_input_settings(self, *, device: int, channels: int, dtype: str, samplerate: int) -> None:
        assert dtype == "float32"
        card = self._listed[device]
        if card not in self.cards or samplerate not in card.rates or channels > card.n_channels:
            raise PortAudioError("Invalid sample rate", -9997)

    def InputStream(self, *, device: int, **settings: Any) -> Stream:  # noqa: N802, its name there
        if (card := self._listed[device]) not in self.cards:
            raise PortAudioError("Error opening InputStream: Unanticipated host error", -9999)
        self.streams.append(Stream(card, settings))
        return self.streams[-1]


def pretend(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> FakeSounddevice:
    """Have these cards and no others."""
    fake = FakeSounddevice(*cards)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


RESPEAKER = Card("ReSpeaker 4 Mic Array (UAC1.0): USB Audio (hw:1,0)", 6)
LAPTOP = Card("HDA Intel PCH: ALC257 Analog (hw:0,0)", 2, (44100, 48000))
PULSE = Card("pulse", 32, (8000, 16000, 32000, 44100, 48000, 96000))
