"""Scenes in which somebody talks, with pauses, while a machine runs at another place of the room.

A scene is drawn from its part, seed and number alone, and then heard beside its machine at any level, beside
noise from everywhere, or in quiet: what differs between these is the noise and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.microphones import CALM, recorded, varied
from tytoalba.data.simulation.presets import TWIN, Preset
from tytoalba.data.simulation.recordings import activity
from tytoalba.data.simulation.room import Sound, diffuse_noise, loudness
from tytoalba.data.simulation.steady import LEFT_OUT, NOT_STEADY, TRAINED, steady_sound
from tytoalba.data.simulation.talkers import interrupted, place_talkers, propagate
from tytoalba.data.simulation.voice import Voices, say, split_speakers
from tytoalba.errors import DataError
from tytoalba.signal.angles import wrap
from tytoalba.signal.array import MicArray

KINDS: dict[str, tuple[str, ...]] = {
    "valid": tuple(kind for kind in TRAINED if kind not in NOT_STEADY),
    "test": tuple(LEFT_OUT),
}
"""Machines of each part."""
QUIET = (25.0, 40.0)
"""dB of speech over what every scene has: noise from everywhere."""
_PRESET = Preset(
    "machines",
    "one talker with pauses",
    (),
    begins=(1.0, 4.0),
    talks=(2.0, 6.0),
    pauses=(1.5, 3.5),
    separation=30.0,
)


@dataclass(frozen=True, eq=False)
class MachineScene:
    """Sound at the microphones, apart: (n_mics, n_samples) each.

    speech: of the talker, power 1 while it talks. machine, diffuse: power 1. quiet: what is always there.
    azimuth, machine_azimuth: degrees of the talker and of the machine. talking, pausing: frames, one after
    the other, in which the talker surely talks, and in which it surely does not.
    """

    kind: str
    array: MicArray
    device: MicArray
    speech: Sound
    machine: Sound
    diffuse: Sound
    quiet: Sound
    azimuth: float
    machine_azimuth: float
    talking: NDArray[np.bool_]
    pausing: NDArray[np.bool_]
    seed: tuple[int, ...]

    def heard(self, noise: str, snr: float) -> Sound:
        """What the device records; noise: "machine", "diffuse" or "quiet"; snr: dB of speech over it."""
        sound = self.speech + self.quiet
        if noise != "quiet":
            sound = sound + np.float32(10 ** (-snr / 20)) * getattr(self, noise)
        return recorded(self.device, sound, np.random.default_rng([*self.seed, 1]), CALM)


def machine_scene(
    array: MicArray, voices: Voices, part: str, seed: int, number: int, seconds: float = 40.0
) -> MachineScene:
    """One scene; its kind is that of its number, in turn. part: "valid" or "test"."""
    if part not in KINDS:
        raise DataError(f"no part called {part!r}; known: {', '.join(KINDS)}")
    kind = KINDS[part][number % len(KINDS[part])]
    rooms = next(one for one in TWIN.parts if one.name == part)
    rng = np.random.default_rng([0x66616E, seed, list(KINDS).index(part), number])
    room = rooms.rooms[int(rng.integers(len(rooms.rooms)))]
    device, _ = varied(array, rng, CALM)
    placement, (talker, fan) = place_talkers(room, rooms, _PRESET, 2, rng)
    preset = replace(_PRESET, seconds=seconds)
    speaker = int(rng.choice(split_speakers(voices.n_speakers, part)))
    dry = interrupted(say(voices, speaker, seconds, array.sample_rate, rng), preset, array.sample_rate, rng)
    n_samples = len(dry)
    speech = propagate(room, device, placement, dry, talker[None], float(rng.uniform(*preset.talker)), rng)
    sound = steady_sound(kind, n_samples, array.sample_rate, rng)
    machine = propagate(room, device, placement, sound, fan[None], 1.0, rng)
    around = [diffuse_noise(device, n_samples, rng, float(rng.uniform(0.3, 1.5))) for _ in range(2)]
    n_frames = len(range(0, n_samples - array.frame_length, array.frame_length // 2))
    loud, silent = activity(dry, float(np.linalg.norm(talker)), array, n_frames)
    share = max(0.05, float(np.mean(np.abs(dry) > 0)))
    level = np.float32(10 ** (-float(rng.uniform(*QUIET)) / 20))
    return MachineScene(
        kind,
        array,
        device,
        speech / np.float32(loudness(speech) / np.sqrt(share)),
        machine / np.float32(loudness(machine)),
        around[0] / np.float32(loudness(around[0])),
        level * around[1] / np.float32(loudness(around[1])),
        _azimuth(talker),
        _azimuth(fan),
        loud,
        silent,
        (seed, number),
    )


def _azimuth(place: NDArray[np.float64]) -> float:
    return float(wrap(np.rad2deg(np.arctan2(place[1], place[0]))))
