"""Frames mixed from stems, on a CPU or a GPU: as many different ones as a network has time for.

Each mix is a scene like those of `scenes`, drawn anew: a room, one or two talkers, their voices and
levels, noise around, of the sensors and perhaps from one place, a recorder. A frame hardly ever comes twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation import microphones, scenes
from tytoalba.data.simulation.recordings import ACTIVE_DB, SILENT_DB
from tytoalba.data.simulation.stems import PLACES, Stems
from tytoalba.errors import DataError, MissingExtraError
from tytoalba.signal.gcc import GccPhat

try:
    import torch
except ImportError as error:
    raise MissingExtraError("new priors", "train") from error
from torch import Tensor

Limits = tuple[float, float] | tuple[Tensor, Tensor] | Tensor
N_FRAMES = 16
"""Frames cut from each mix at random; six fit one after the other, but mixing costs more than cutting."""
BLOCK, GPU_BLOCK = 8, 256
"""Mixes at a time."""
PATIENCE = 50
"""After this many blocks in which nobody talks, give up."""
STEADY_SNR = (-12.0, 20.0)
"""dB of speech over a machine that runs beside it, at a place of its own."""


@dataclass(frozen=True, eq=False)
class Machines:
    """Sounds of machines beside the talkers, which nobody wants located, and frames in which nobody talks.

    sounds: (n, n_samples), dry, power 1 (`steady`). share: of mixes with a machine. nobody: share of those
    in which only the machine is heard. pauses: share that is kept of the frames without a talker.
    """

    sounds: NDArray[np.float16]
    share: float = 0.4
    nobody: float = 0.3
    pauses: float = 0.5


class Mixer:
    """Mixes frames of stems, as GCC-PHAT.

    two_sources: share of mixes with two talkers, more than scenes have: they are harder to learn from.
    machines: sounds beside the talkers; without them frames in which nobody talks are left out.
    seed: of all that is drawn.
    """

    def __init__(
        self,
        stems: Stems,
        gcc: GccPhat,
        *,
        two_sources: float = 0.5,
        machines: Machines | None = None,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        if gcc.n_samples > stems.responses.shape[-1]:
            raise DataError(f"frames of {gcc.n_samples} samples are longer than rooms ring in these stems")
        self.array, self.gcc, self.two_sources = stems.array, gcc, two_sources
        self.generator = torch.Generator(device).manual_seed(seed)
        self.device = self.generator.device
        self.banks = {
            name: torch.as_tensor(getattr(stems, name), device=self.device)
            for name in ("responses", "azimuth", "delay", "calm", "noises", "voices", "disturbances")
        }
        self.machines = machines
        if machines:
            self.banks["machines"] = torch.as_tensor(machines.sounds, device=self.device)
        usual, calm = asdict(microphones.ANY), asdict(microphones.CALM)
        self.conditions = {
            name: torch.tensor([usual[name], calm[name]], device=self.device) for name in usual
        }
        self.n_taps = stems.responses.shape[-1]
        self.n_samples = 2 * self.n_taps  # of a mix; only in the second half all of the room rings
        rate = stems.array.sample_rate
        self.hertz = torch.fft.rfftfreq(self.n_taps, 1 / rate, device=self.device).clamp(min=1.0)
        self.octave = torch.log2(self.hertz.clamp(min=60.0) / 1000.0)

    def frames(self, n: int) -> Iterator[tuple[Tensor, Tensor]]:
        """GCC-PHAT (some, n_features) and azimuth (some, 2), NaN for nobody, of `n` frames in all."""
        for sound, azimuth in self.sounds(n):
            yield self.gcc(sound).flatten(1), azimuth

    def sounds(self, n: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The same frames as sound, (some, n_mics, n_samples)."""
        in_vain = 0
        while n > 0:
            sound, azimuth, sure = self.mixed(GPU_BLOCK if self.device.type == "cuda" else BLOCK)
            spoken = azimuth.isfinite().any(1)
            kept = spoken
            if self.machines:
                kept = spoken | (sure & (self._uniform(len(sure)) < self.machines.pauses))
            sound, azimuth = sound[kept][:n], azimuth[kept][:n]
            n -= len(sound)
            in_vain = 0 if spoken.any() else in_vain + 1
            if in_vain > PATIENCE:
                raise DataError("nobody talks in these stems: is the speech silent?")
            if len(sound):
                yield sound, azimuth

    def mixed(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Frames (n N_FRAMES, n_mics, n_samples) of n mixes, and where somebody talks, (n N_FRAMES, 2).

        Both are NaN where nobody talks, or where it is not certain whether somebody does; the last says
        where it is certain, (n N_FRAMES,).
        """
        scene = self._whole(len(self.banks["responses"]), n)
        place = self._uniform(n, PLACES).argsort(1)  # one or two talkers, a disturbance
        share = torch.tensor([2.0, self.two_sources], device=self.device)
        mix, number = (self._uniform(n, 2) < share).nonzero(as_tuple=True)  # of each talker
        room, here = scene[mix], place[mix, number]
        dry = self._stretches("voices", len(mix), self.n_samples)
        level = _factor(self._between((-scenes.APART, scenes.APART), len(mix)))
        received = _each(level) * self._received(dry, room, here)
        speech = received.new_zeros(n, *received.shape[1:]).index_add_(0, mix, received)
        noisy = self._noisy(speech, scene, place[:, 2])
        silent = self._with_machines(noisy, speech, scene, place[:, 3])
        sound = self._recorded(noisy, scene)
        start = self._whole(self.n_taps - self.gcc.n_samples + 1, n, N_FRAMES)
        cut = sound.unfold(2, self.gcc.n_samples, 1)
        frames = cut[torch.arange(n, device=self.device)[:, None], :, start].flatten(0, 1)
        first = start[mix] + self.n_taps - self.banks["delay"][room, here][:, None]
        loud, quiet = self._talking(dry, first)  # (n_talkers, N_FRAMES)
        loud, quiet = loud & ~silent[mix, None], quiet | silent[mix, None]
        azimuth = torch.where(loud, self.banks["azimuth"][room, here][:, None], math.nan)
        where = azimuth.new_full((n, N_FRAMES, 2), math.nan)
        where[mix, :, number] = azimuth
        unsure = where.new_zeros(n, N_FRAMES).index_add_(0, mix, (~(loud | quiet)).to(where.dtype))
        where[unsure > 0] = math.nan
        return frames, where.flatten(0, 1), (unsure == 0).flatten()

    def _with_machines(self, noisy: Tensor, speech: Tensor, room: Tensor, place: Tensor) -> Tensor:
        """Add machines to sound (n, n_mics, n_taps), in place; in which mixes they alone are left, (n,)."""
        n = len(noisy)
        silent = torch.zeros(n, dtype=torch.bool, device=self.device)
        if not self.machines:
            return silent
        mix = (self._uniform(n) < self.machines.share).nonzero()[:, 0]
        alone = self._uniform(len(mix)) < self.machines.nobody
        power = speech[mix].square().mean((1, 2)).clamp(min=1e-6)
        loud = power.sqrt() * _factor(-self._between(STEADY_SNR, len(mix)))
        dry = self._stretches("machines", len(mix), self.n_samples)
        noisy.index_add_(0, mix, _each(loud) * self._received(dry, room[mix], place[mix]))
        silent[mix[alone]] = True
        noisy[silent] -= speech[silent]
        return silent

    def _received(self, dry: Tensor, room: Tensor, place: Tensor) -> Tensor:
        """Dry sound (n, n_samples) from places in rooms: (n, n_mics, n_taps) of power 1, as all rings."""
        responses = self.banks["responses"][room, place].float()
        if not len(dry):  # torch cannot transform nothing
            return responses
        spectrum = torch.fft.rfft(dry)[:, None] * torch.fft.rfft(responses, self.n_samples)
        return _levelled(torch.fft.irfft(spectrum, self.n_samples)[..., self.n_taps :])

    def _talking(self, dry: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """`simulated.activity` of talkers (n, n_samples) in frames that start at (n, n_frames)."""
        length = self.gcc.n_samples
        energy = torch.nn.functional.pad(dry.double().square().cumsum(-1), (1, 0))

        def power(first: Tensor) -> Tensor:
            return energy.gather(1, first + length) - energy.gather(1, first)

        everywhere = torch.arange(0, self.n_samples - length, length // 2, device=self.device)
        usual = power(everywhere.expand(len(dry), -1)).quantile(0.9, dim=1, keepdim=True)
        decibel = 10 * torch.log10(power(start) / usual.clamp(min=1e-12) + 1e-12)
        return decibel >= ACTIVE_DB, decibel <= SILENT_DB

    def _noisy(self, speech: Tensor, room: Tensor, place: Tensor) -> Tensor:
        """Speech (n, n_mics, n_taps) and noise around it, of the sensors and perhaps from a place."""
        n, conditions = len(speech), self._conditions(room)
        power = speech.square().mean((1, 2)).clamp(min=1e-6)
        hard = self._uniform(n) < conditions["hard"]
        snr = torch.where(hard, self._between(scenes.HARD_SNR, n), self._between(conditions["snr"].T, n))
        share = self._evenly(conditions["sensors"].T, n)
        around = _levelled(self._stretches("noises", n, self.n_taps))
        tilt = self._between(scenes.SENSOR_TILT, n, 1, 1)
        coloured = torch.fft.rfft(self._normal(*speech.shape)) * self.hertz.clamp(min=50.0) ** (-tilt / 2)
        sensors = _levelled(torch.fft.irfft(coloured, self.n_taps))
        noise = _each((1 - share).sqrt()) * around + _each(share.sqrt()) * sensors
        result = speech + _each(power.sqrt() * _factor(-snr)) * noise
        mix = (self._uniform(n) < conditions["local"]).nonzero()[:, 0]  # those with noise from a place
        loud = power[mix].sqrt() * _factor(-self._between(scenes.LOCAL_SNR, len(mix)))
        dry = self._stretches("disturbances", len(mix), self.n_samples)
        return result.index_add_(0, mix, _each(loud) * self._received(dry, room[mix], place[mix]))

    def _recorded(self, x: Tensor, room: Tensor) -> Tensor:
        """`microphones.recorded` of sound (n, n_mics, n_taps) in rooms (n,)."""
        n, n_mics, _ = x.shape
        conditions = self._conditions(room)
        shape = n, n_mics, 1
        gain, tilt, turned, spread = (_each(conditions[name]) for name in ("gain", "tilt", "turn", "corner"))
        gain = self._between((-gain, gain), *shape) + tilt * self._normal(*shape) * self.octave
        corner = self._evenly(microphones.CORNER, n, 1, 1) * torch.exp(spread * self._normal(*shape))
        turn = torch.atan2(corner, self.hertz)
        turn = turn + torch.deg2rad(turned) * self._normal(*shape) * self.octave
        size = _factor(gain) / (1 + (corner / self.hertz).square()).sqrt()
        muffled = 1 / (1 + (self.hertz / self._between(microphones.TOP, n, 1, 1)) ** 12).sqrt()
        size = torch.where(self._uniform(n, 1, 1) < _each(conditions["muffled"]), size * muffled, size)
        x = torch.fft.irfft(torch.fft.rfft(x) * torch.polar(size, turn), self.n_taps)
        peak, loud = x.abs().amax((1, 2)).clamp(min=1e-12), x.square().mean((1, 2)).sqrt().clamp(min=1e-12)
        scale = torch.minimum(self._evenly(microphones.LEVEL, n) / loud, microphones.CEILING / peak)
        too_loud = self._between(microphones.TOO_LOUD, n) * microphones.CEILING / peak
        scale = torch.where(self._uniform(n) < conditions["clipped"], too_loud, scale)
        return (x * _each(scale) * 32768.0).round().clamp(-32768, 32767) / 32768.0

    def _conditions(self, room: Tensor) -> dict[str, Tensor]:
        """`microphones.Conditions` of each room (n,): (n,), or (n, 2) where they are limits."""
        calm = self.banks["calm"][room].long()
        return {name: both[calm] for name, both in self.conditions.items()}

    def _stretches(self, bank: str, n: int, length: int) -> Tensor:
        """Stretches of some sounds of a bank, (n, length) or (n, n_mics, length); their ends are joined."""
        sounds = self.banks[bank][self._whole(len(self.banks[bank]), n)]
        at = self._whole(sounds.shape[-1], n, 1) + torch.arange(length, device=self.device)
        at = (at % sounds.shape[-1]).reshape(n, *[1] * (sounds.ndim - 2), length)
        return sounds.gather(-1, at.expand(*sounds.shape[:-1], length)).float()

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)

    def _whole(self, top: int, *shape: int) -> Tensor:
        return torch.randint(top, shape, generator=self.generator, device=self.device)

    def _between(self, limits: Limits, *shape: int) -> Tensor:
        low, high = limits
        return low + (high - low) * self._uniform(*shape)

    def _evenly(self, limits: Limits, *shape: int) -> Tensor:
        """Drawn so that doublings are equally likely."""
        low, high = (torch.as_tensor(limit, device=self.device).log() for limit in limits)
        return torch.exp(self._between((low, high), *shape))


def _factor(decibel: Tensor) -> Tensor:
    return torch.as_tensor(10 ** (decibel / 20))


def _levelled(x: Tensor) -> Tensor:
    """Sound (..., n_mics, n_samples) of power 1."""
    return x / x.square().mean((-2, -1), keepdim=True).sqrt().clamp(min=1e-12)


def _each(values: Tensor) -> Tensor:
    """(n,) beside (n, n_mics, n_samples)."""
    return values[:, None, None]
