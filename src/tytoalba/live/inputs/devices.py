"""Sound cards with inputs: which are there, which array they may be, and which one is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tytoalba.errors import TytoError
from tytoalba.live.inputs.portaudio import load_sounddevice, quiet
from tytoalba.signal.array import MicArray, builtin_arrays
from tytoalba.signal.audio import recorded_channels

RATES = (8000, 16000, 32000, 44100, 48000, 96000)
"""Hz that are tried."""
MIXERS = ("MME", "Windows DirectSound")
"""Host APIs that stand between program and hardware, whatever the device."""
PROC = Path("/proc/asound")
"""Where Linux lists its sound cards."""


@dataclass(frozen=True)
class Device:
    """A sound card with inputs.

    Parameters
    ----------
    number : int
        What PortAudio calls it, until something is plugged in or out.
    name, host_api : str
        Such as "USB Audio (hw:1,0)" of "ALSA".
    n_channels : int
        Inputs; what is no hardware says 32 or more, and means any.
    default_rate : int
        Hz.
    rates : tuple of int
        Which of `RATES` (Hz) it records at with all its channels; empty where it cannot be opened now.
    is_default : bool
        Whether the system takes it if none is named.
    """

    number: int
    name: str
    host_api: str
    n_channels: int
    default_rate: int
    rates: tuple[int, ...] = ()
    is_default: bool = False

    @property
    def hardware(self) -> str | None:
        """ALSA's name of the hardware, such as "hw:1,0"."""
        found = re.search(r"\((hw:[^)]+)\)$", self.name)
        return found[1] if found else None

    @property
    def is_direct(self) -> bool:
        """Whether nothing stands between it and the hardware that may mix channels."""
        if self.host_api == "ALSA":
            return self.hardware is not None
        return self.host_api not in MIXERS

    @property
    def label(self) -> str:
        """Short, for sentences."""
        return self.hardware or f"device {self.number}"

    @property
    def title(self) -> str:
        """Its name, with its number where that says more."""
        return f"sound card {self.number} ({self.name})"

    def is_same(self, other: Device) -> bool:
        """Whether it may be the other one, plugged in again: numbers of devices and cards change."""
        return self.host_api == other.host_api and _without_card(self.name) == _without_card(other.name)


@dataclass(frozen=True)
class Verdict:
    """What a sound card is good for. arrays: names of those that it fits; text: in words."""

    arrays: tuple[str, ...]
    text: str


def list_devices(rates: Sequence[int] = RATES) -> list[Device]:
    """Sound cards with inputs, in PortAudio's order; as they were when it was initialised.

    rates: Hz that are tried, which takes some milliseconds each.
    """
    sounddevice = load_sounddevice()
    found = []
    with quiet():
        apis = sounddevice.query_hostapis()
        default = apis[0]["default_input_device"] if apis else -1
        for number, entry in enumerate(sounddevice.query_devices()):
            if entry["max_input_channels"] < 1:
                continue
            n = int(entry["max_input_channels"])
            found.append(
                Device(
                    number,
                    str(entry["name"]),
                    str(apis[entry["hostapi"]]["name"]),
                    n,
                    round(entry["default_samplerate"]),
                    tuple(rate for rate in rates if records_at(sounddevice, number, n, rate)),
                    number == default,
                )
            )
    return found


def records_at(sounddevice: Any, number: int, n_channels: int, rate: int) -> bool:
    """Whether a sound card records so many channels at a rate (Hz)."""
    try:
        sounddevice.check_input_settings(device=number, channels=n_channels, dtype="float32", samplerate=rate)
    except (sounddevice.PortAudioError, ValueError):
        return False
    return True


def channels_to_open(device: Device, array: MicArray) -> int:
    """How many channels to open for an array: all of the hardware; TytoError where they are too few.

    What is no hardware offers any number, and mixes what there is into it: then those of the array's device.
    """
    if device.is_direct and _fits(device.n_channels, array):
        return device.n_channels
    wanted = recorded_channels(array)
    if not device.is_direct and device.n_channels >= wanted:
        return wanted
    where = ", ".join(map(str, array.channels))
    few = "likely a headset or webcam"
    if device.n_channels == 1 and not device.is_direct:
        few = "likely mixed down"
    elif array.name == "respeaker-usb-4":
        few = "likely its one-channel firmware: install the six-channel one"
    raise TytoError(
        f"{device.title} has {_channels(device.n_channels)}; array {array.name!r} has its "
        f"microphones on channels {where}, counted from 0; {few}. tyto devices lists what is there"
    )


def _fits(n_channels: int, array: MicArray) -> bool:
    return n_channels > max(array.channels) or n_channels == array.n_mics


def fitting_arrays(device: Device, arrays: Iterable[MicArray]) -> list[MicArray]:
    """The arrays of which hardware has the very channels; by their names."""
    fits = [array for array in arrays if recorded_channels(array) == device.n_channels]
    return sorted(fits, key=lambda array: array.name)


def judge(device: Device, devices: Sequence[Device], array: MicArray | None = None) -> Verdict:
    """What a sound card is good for. devices: all, for a better one; array: the only one of interest."""
    if not device.is_direct:
        return _judge_software(device, devices, array)
    n = _channels(device.n_channels)
    if array is not None:
        if not _fits(device.n_channels, array):
            where = ", ".join(map(str, array.channels))
            return Verdict((), f"{n}: too few for {array.name}, whose microphones are on channels {where}")
        fits = [array]
    else:
        fits = fitting_arrays(device, builtin_arrays().values())
        if not fits:
            return Verdict((), f"{n}: none of the built-in arrays")
    if not device.rates:
        return Verdict((), f"{n}, but it cannot be opened: is another program recording?")
    exact = [one for one in fits if one.sample_rate in device.rates]
    if exact:
        return Verdict(tuple(one.name for one in exact), _per_rate(n, exact))
    resampled = [one for one in fits if recording_rate(device.rates, one.sample_rate)]
    if resampled:
        taken = f"{n}, resampled from {_khz(recording_rate(device.rates, resampled[0].sample_rate))}"
        return Verdict(tuple(one.name for one in resampled), f"{taken}: fits {_names(resampled)}")
    low = f"too low for {_names(fits)} ({_khz(fits[0].sample_rate)})"
    return Verdict((), f"{n}, at {_khz(max(device.rates))} at most: {low}")


def _judge_software(device: Device, devices: Sequence[Device], array: MicArray | None) -> Verdict:
    """A device that goes through a sound server: usable, and what is better."""
    arrays = [array] if array is not None else list(builtin_arrays().values())
    better = [one for one in devices if one.is_direct and judge(one, (), array).arrays]
    server = "PulseAudio" if "pulse" in device.name.lower() else "a sound server"
    if "pipewire" in device.name.lower():
        server = "PipeWire"
    use = f": use {better[0].label}" if better else "; no hardware that fits is listed"
    fits = tuple(one.name for one in arrays if device.n_channels >= recorded_channels(one))
    return Verdict(fits if array else (), f"goes through {server}, which may mix channels{use}")


def recording_rate(rates: Sequence[int], wanted: int) -> int | None:
    """The rate (Hz) to record at: the wanted one, else a higher one, multiples first; None if all are lower.

    >>> recording_rate((44100, 48000), 16000)
    48000
    """
    higher = [rate for rate in rates if rate >= wanted]
    return min(higher, key=lambda rate: (rate % wanted != 0, rate)) if higher else None


def choose_device(text: str | None, array: MicArray, devices: Sequence[Device] | None = None) -> Device:
    """The sound card that is meant by a number, a name or a part of it, such as "hw:1".

    None: the one that fits the array. TytoError where there is none, or where several could be meant.
    """
    devices = list_devices() if devices is None else devices
    if not devices:
        raise TytoError(
            "no sound card with an input was found; is it plugged in, may you use it (group audio), or does "
            "another program record?" + _held(devices)
        )
    if text is None:
        return _fitting_device(array, devices)
    found = _meant(text.strip(), devices)
    if len(found) == 1:
        return found[0]
    if found:
        several = "; ".join(f"{one.number}: {one.name} ({one.host_api})" for one in found)
        raise TytoError(f"{text!r} may be several sound cards; give the number: {several}")
    names = {one.name.lower(): one.name for one in devices}
    parts = {word.lower(): one.name for one in devices for word in re.findall(r"[\w.:,-]{3,}", one.name)}
    near = get_close_matches(text.lower(), [*names, *parts], 1)
    meant = f" (did you mean {(names | parts)[near[0]]}?)" if near else ""
    there = "; ".join(f"{one.number}: {one.name}" for one in devices)
    raise TytoError(f"no sound card {text!r}{meant}; there are {there}{_held(devices)}")


def _fitting_device(array: MicArray, devices: Sequence[Device]) -> Device:
    """Hardware with the channels and rate of an array, else with enough, else what the system takes."""
    direct = [one for one in devices if array.name in judge(one, (), array).arrays and one.is_direct]
    as_built = [one for one in direct if one.n_channels == recorded_channels(array)]
    natural = [one for one in as_built if array.sample_rate in one.rates]
    for fits in (natural, as_built, direct):
        if len(fits) == 1:
            return fits[0]
        if fits:
            several = "; ".join(f"{one.number}: {one.name}" for one in fits)
            raise TytoError(f"several sound cards fit {array.name}; which? Say --device NUMBER: {several}")
    for one in devices:
        if one.is_default and not one.is_direct and one.n_channels >= recorded_channels(array):
            return one
    raise TytoError(
        f"no sound card here fits {array.name} ({_channels(recorded_channels(array))} at "
        f"{_khz(array.sample_rate)}); tyto devices says why, --device takes one all the same{_held(devices)}"
    )


def _meant(text: str, devices: Sequence[Device]) -> list[Device]:
    """Which devices a text may mean, the best kind of match only."""
    if text.isdecimal():
        return [one for one in devices if one.number == int(text)]
    wanted = text.lower()
    hardware = re.compile(rf"{re.escape(wanted)}(,.*)?$")
    kinds = (
        [one for one in devices if one.name.lower() == wanted],
        [one for one in devices if one.hardware and hardware.match(one.hardware)],
        [one for one in devices if wanted and wanted in one.name.lower()],
    )
    best = next((kind for kind in kinds if kind), [])
    direct = [one for one in best if one.is_direct]
    return direct if len(direct) == 1 else best


def held_cards(devices: Sequence[Device], proc: Path = PROC) -> list[str]:
    """Sound cards of Linux with an input that PortAudio does not list, because another program has them."""
    shown = {one.hardware for one in devices}
    held = []
    for info in sorted(proc.glob("card*/pcm*c/info")):
        entries = dict(re.findall(r"^(\w+): (.*)$", info.read_text(errors="replace"), re.MULTILINE))
        name = f"hw:{entries.get('card')},{entries.get('device')}"
        if name not in shown:
            held.append(f"{name} ({entries.get('name') or entries.get('id') or 'no name'})")
    return held


def _held(devices: Sequence[Device]) -> str:
    held = held_cards(devices)
    return f". Another program has {', '.join(held)}: end it, or try pasuspender -- tyto ..." if held else ""


def _without_card(name: str) -> str:
    return re.sub(r"\s*\(hw:[^)]*\)$", "", name)


def _per_rate(n: str, arrays: Sequence[MicArray]) -> str:
    """ "6 channels at 16 kHz: fits respeaker-usb-4"."""
    rates = sorted({array.sample_rate for array in arrays})
    fits = (f"at {_khz(r)}: fits {_names([a for a in arrays if a.sample_rate == r])}" for r in rates)
    return f"{n} {'; '.join(fits)}"


def _names(arrays: Sequence[MicArray]) -> str:
    return " or ".join(array.name for array in arrays)


def _channels(n: int) -> str:
    return f"{n} channel{'s' if n != 1 else ''}"


def _khz(rate: int | None) -> str:
    return f"{(rate or 0) / 1000:g} kHz"
