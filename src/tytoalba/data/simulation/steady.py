"""Machines that run beside people: dry sounds of fans, pumps, hums, ..., each drawn anew and widely.

A kind is a mechanism (blades, air, a motor, water, mains), and no two sounds of a kind have the same tones,
spectrum or rhythm. Some kinds may be trained on (`TRAINED`); the others are for judging alone (`LEFT_OUT`),
so that a method is judged on mechanisms that it never met. One kind, `television`, is not steady: speech and
music from one place that nobody wants located.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft, rfftfreq

from tytoalba.data.simulation.voice import SPEECH_RATE, SyntheticVoices, at_rate

Sound = NDArray[np.float32]
Values = NDArray[np.float64]
Limits = tuple[float, float]
Peak = tuple[float, float, float]
"""Of a spectrum: frequency in Hz, width as a share of it, height in dB."""
SHORTEST = 0.5
"""Seconds that are made at least, of which shorter sounds are cut."""


def steady_sound(kind: str, n_samples: int, sample_rate: int, rng: np.random.Generator) -> Sound:
    """A sound of a kind of `KINDS`, (n_samples,), of power 1.

    n_samples: at least 1. sample_rate: Hz; what lies above half of it is left out.

    >>> sound = steady_sound("pump", 8000, 16000, np.random.default_rng(0))
    >>> sound.shape, round(float(np.mean(sound**2)), 3)
    ((8000,), 1.0)
    """
    if kind not in KINDS:
        raise ValueError(f"no steady sound called {kind!r}; known: {', '.join(KINDS)}")
    if n_samples < 1 or sample_rate < 1:
        raise ValueError(
            f"a sound has at least one sample and 1 Hz, got {n_samples} samples at {sample_rate} Hz"
        )
    workshop = Workshop(max(n_samples, int(SHORTEST * sample_rate)), sample_rate, rng)
    made = KINDS[kind](workshop)[:n_samples]
    return np.asarray(made / max(float(np.sqrt(np.mean(made**2))), 1e-12), np.float32)


@dataclass(frozen=True)
class Workshop:
    """What the kinds are built from; every sound is (n,) samples at `rate` Hz."""

    n: int
    rate: int
    rng: np.random.Generator

    def between(self, limits: Limits) -> float:
        """A number between two limits, every ratio as likely as another."""
        return float(np.exp(self.rng.uniform(*np.log(limits))))

    def noise(self, tilt: float, corner: float = 50.0, peaks: Sequence[Peak] = ()) -> Values:
        """Noise of power 1 that is flat up to `corner` Hz, falls as f^-tilt above, and has peaks."""
        size = next_fast_len(self.n, real=True)
        hertz = np.maximum(rfftfreq(size, 1 / self.rate), 20.0)
        shape = (1 + (hertz / corner) ** 2) ** (-tilt / 4)
        for centre, width, height in peaks:
            rise = 10 ** (height / 20) - 1
            shape *= 1 + rise / (1 + ((hertz - centre) / (width * centre)) ** 2)
        return _level(irfft(rfft(self.rng.standard_normal(size)) * shape, size)[: self.n])

    def resonances(self, n: int, where: Limits, height: Limits = (3.0, 15.0)) -> list[Peak]:
        """Peaks of a housing or duct, drawn anew."""
        return [
            (self.between(where), self.between((0.03, 0.4)), float(self.rng.uniform(*height)))
            for _ in range(n)
        ]

    def slow(self, seconds: float) -> Values:
        """A slow random course around 0, of power 1: changes within about so many seconds."""
        n_points = max(4, int(self.n / self.rate / seconds) + 4)
        points = self.rng.standard_normal(n_points)
        at = np.linspace(0.0, n_points - 3.0, self.n)
        whole = at.astype(np.intp)
        part = (1 - np.cos(np.pi * (at - whole))) / 2
        return np.asarray(points[whole] * (1 - part) + points[whole + 1] * part)

    def tones(self, base: float, n: int, fall: float, wander: float = 0.001, spread: float = 6.0) -> Values:
        """Harmonics of `base` Hz that fall as k^-fall and differ by `spread` dB, power 1 (0 if none fits).

        wander: share by which the speed drifts.
        """
        speed = base * (1 + wander * self.slow(self.between((0.5, 3.0))))
        turn = 2 * np.pi * np.cumsum(speed) / self.rate
        total = np.zeros(self.n)
        for k in range(1, n + 1):
            height = k**-fall * 10 ** (self.rng.normal(0, spread) / 20)
            phase = self.rng.uniform(0, 2 * np.pi)
            if k * base * (1 + 4 * wander) < 0.48 * self.rate:
                total += height * np.sin(k * turn + phase)
        return _level(total)

    def beaten(self, sound: Values, hertz: float, depth: float, sharp: float = 1.0) -> Values:
        """A sound whose loudness goes up and down: depth 0 to 1; sharp: above 1, short beats."""
        t = np.arange(self.n) / self.rate
        phase = 2 * np.pi * hertz * t + self.rng.uniform(0, 2 * np.pi) + 0.3 * self.slow(1.0)
        return np.asarray(sound * (1 - depth + depth * ((1 + np.sin(phase)) / 2) ** sharp))

    def drifting(self, sound: Values, decibel: float, seconds: Limits = (0.7, 4.0)) -> Values:
        """A sound whose level wanders by some dB."""
        return np.asarray(sound * 10 ** (decibel * self.slow(self.between(seconds)) / 20))

    def drops(self, per_second: float, where: Limits, ring: Limits) -> Values:
        """Many short decaying tones at random: bubbles, drops, rattling. ring: seconds that each sounds."""
        total = np.zeros(self.n)
        n_drops = max(8, int(self.rng.poisson(per_second * self.n / self.rate)))
        for start in self.rng.integers(0, self.n, n_drops):
            decay, hertz = self.between(ring), self.between(where)
            length = min(int(5 * decay * self.rate) + 1, self.n - start)
            t = np.arange(length) / self.rate
            if hertz < 0.48 * self.rate:
                wave = np.exp(-t / decay) * np.sin(2 * np.pi * hertz * t)
                total[start : start + length] += self.between((0.1, 1.0)) * wave
        return _level(total)

    def mixed(self, *parts: tuple[Values, Limits]) -> Values:
        """Sounds of power 1, added at levels (dB) drawn between limits."""
        return np.asarray(sum(sound * 10 ** (self.rng.uniform(*limits) / 20) for sound, limits in parts))


# ---- kinds that may be trained on ----


def fan(make: Workshop) -> Values:
    """Blades in open air: falling noise, tones of the blades, a slow beat of the turns."""
    turns, blades = make.between((8, 45)), int(make.rng.integers(3, 8))
    air = make.noise(make.rng.uniform(0.8, 2.6), make.between((100, 900)), make.resonances(2, (150, 3000)))
    air = make.beaten(air, turns, make.rng.uniform(0, 0.5))
    hum = make.tones(turns * blades, int(make.rng.integers(2, 10)), make.rng.uniform(0.5, 1.8), 0.003)
    return make.drifting(make.mixed((air, (0, 0)), (hum, (-25, 0))), make.rng.uniform(0, 1))


def vent(make: Workshop) -> Values:
    """Air through a duct and grille: resonances of the duct, hardly a tone."""
    air = make.noise(
        make.rng.uniform(1.0, 3.0), make.between((150, 2000)), make.resonances(4, (100, 5000), (3, 18))
    )
    rumble = make.noise(3.0, make.between((60, 120)))
    return make.drifting(make.mixed((air, (0, 0)), (rumble, (-20, 0))), make.rng.uniform(0.2, 1.5))


def refrigerator(make: Workshop) -> Values:
    """A compressor: harmonics of mains or inverter that are strong up to some hundred Hz, and rattle."""
    hum = make.tones(
        make.between((23, 75)), int(make.rng.integers(8, 40)), make.rng.uniform(0.3, 1.2), 3e-4, 8.0
    )
    hiss = make.noise(make.rng.uniform(0.5, 2.0), make.between((200, 1500)), make.resonances(2, (300, 4000)))
    hiss = make.beaten(hiss, make.between((20, 60)), make.rng.uniform(0, 0.6))
    return make.drifting(make.mixed((hum, (-3, 6)), (hiss, (-8, 3))), make.rng.uniform(0, 1))


def projector(make: Workshop) -> Values:
    """Small fans in a box: two or three near speeds that beat, a whine, bright hiss."""
    speed = make.between((40, 140))
    whines = [
        make.tones(speed * make.rng.uniform(0.97, 1.03) * make.rng.integers(5, 12), 6, 1.0, 0.001)
        for _ in range(int(make.rng.integers(2, 4)))
    ]
    hiss = make.noise(make.rng.uniform(0.2, 1.6), make.between((400, 3000)), make.resonances(3, (500, 7000)))
    return make.mixed((hiss, (0, 0)), *((whine, (-25.0, -5.0)) for whine in whines))


def mains(make: Workshop) -> Values:
    """A transformer: many steady harmonics of 100 or 120 Hz, over some hiss."""
    base = float(make.rng.choice([50.0, 60.0, 100.0, 120.0]))
    hum = make.tones(base, int(make.rng.integers(10, 60)), make.rng.uniform(0.2, 1.2), 2e-5, 10.0)
    hiss = make.noise(make.rng.uniform(0, 1), make.between((500, 4000)))
    return make.mixed((hum, (0, 0)), (hiss, (-25, -3)))


def hiss(make: Workshop) -> Values:
    """Escaping air or an amplifier: broadband, flat or bright or dull."""
    sound = make.noise(
        make.rng.uniform(-0.5, 1.5), make.between((300, 6000)), make.resonances(1, (800, 7000))
    )
    return make.drifting(sound, make.rng.uniform(0, 2))


def whistles(make: Workshop) -> Values:
    """Electronics: tones that belong to no common base, over hiss."""
    hum = make.mixed(
        *(
            (make.tones(make.between((90, 3500)), 2, 1.0, 1e-4), (-12.0, 0.0))
            for _ in range(int(make.rng.integers(3, 13)))
        )
    )
    return make.mixed((_level(hum), (0, 0)), (make.noise(0.5, 1000.0), (-20, 3)))


def traffic(make: Workshop) -> Values:
    """A road beyond a window: dull noise whose level comes and goes within seconds."""
    sound = make.noise(
        make.rng.uniform(1.2, 2.6), make.between((100, 700)), make.resonances(2, (60, 1200), (2, 8))
    )
    return make.drifting(sound, make.rng.uniform(0.5, 3.0), (1.5, 6.0))


def television(make: Workshop) -> Values:
    """Not steady: somebody speaks, over chords that change, through a small loudspeaker."""
    voices = SyntheticVoices()
    speaker = int(make.rng.integers(voices.n_speakers))
    spoken = voices.speak(speaker, make.n * SPEECH_RATE // make.rate + 64, make.rng)
    talk = np.asarray(at_rate(spoken, make.rate)[: make.n], np.float64)
    music = np.zeros(make.n)
    start = 0
    while start < make.n:
        length = max(1, min(int(make.rng.uniform(0.15, 0.9) * make.rate), make.n - start))
        note = Workshop(length, make.rate, make.rng)
        chord = sum(
            (note.tones(note.between((90, 900)), 8, 1.2, 1e-4) for _ in range(3)), start=np.zeros(length)
        )
        music[start : start + length] = chord * np.exp(
            -np.arange(length) / make.rate / make.between((0.2, 2.0))
        )
        start += length
    return make.mixed((_level(talk), (0, 0)), (_level(music), (-15, 6)), (make.noise(1.0), (-40, -25)))


# ---- kinds for judging alone ----


def vacuum_cleaner(make: Workshop) -> Values:
    """A commutator motor at hundreds of turns a second, its whine, and a rush of air around 1 kHz."""
    whine = make.tones(make.between((250, 800)), 12, make.rng.uniform(0.2, 1.0), 0.004, 9.0)
    rush = make.noise(
        make.rng.uniform(0.6, 1.6),
        make.between((800, 3500)),
        [(make.between((500, 2500)), 0.5, make.rng.uniform(4, 12)), *make.resonances(2, (200, 5000))],
    )
    return make.drifting(make.mixed((rush, (0, 0)), (whine, (-18, 2))), make.rng.uniform(0.2, 1.5), (0.4, 3))


def hair_dryer(make: Workshop) -> Values:
    """A blower that beats at twice the mains, with a tone of its blades above 1 kHz."""
    blow = make.noise(
        make.rng.uniform(0.3, 1.4), make.between((600, 4000)), make.resonances(3, (700, 6000), (3, 12))
    )
    blow = make.beaten(blow, float(make.rng.choice([100.0, 120.0])), make.rng.uniform(0.1, 0.6))
    blades = make.tones(make.between((1000, 3200)), 3, 1.0, 0.003)
    return make.mixed((blow, (0, 0)), (blades, (-20, 0)))


def pump(make: Workshop) -> Values:
    """Strokes, ten or so a second, each a burst through resonances of pipes, over harmonics of a motor."""
    strokes = make.between((4, 30))
    body = make.noise(
        make.rng.uniform(0.8, 2.0), make.between((300, 1500)), make.resonances(4, (120, 3000), (6, 20))
    )
    body = make.beaten(body, strokes, make.rng.uniform(0.4, 0.85), make.rng.uniform(1.0, 4.0))
    motor = make.tones(strokes * make.rng.integers(3, 9), 15, 0.7, 0.002)
    return make.mixed((body, (0, 0)), (motor, (-15, 3)))


def kettle(make: Workshop) -> Values:
    """Water that is about to boil: a roar of bubbles."""
    bubbles = make.drops(make.between((300, 1500)), (200, 3000), (0.002, 0.015))
    roar = make.noise(make.rng.uniform(1.0, 2.5), make.between((400, 1500)), make.resonances(2, (300, 2500)))
    return make.drifting(make.mixed((roar, (0, 0)), (bubbles, (-10, 6))), make.rng.uniform(0.5, 2.0))


def shower(make: Workshop) -> Values:
    """Water on tiles: bright, dense drops."""
    drops = make.drops(make.between((1500, 4000)), (800, 9000), (0.0005, 0.003))
    rush = make.noise(make.rng.uniform(-0.3, 0.8), make.between((1000, 5000)))
    return make.mixed((drops, (0, 0)), (rush, (-12, 3)))


Kind = Callable[[Workshop], Values]
TRAINED: dict[str, Kind] = {
    "fan": fan,
    "vent": vent,
    "refrigerator": refrigerator,
    "projector": projector,
    "mains": mains,
    "hiss": hiss,
    "whistles": whistles,
    "traffic": traffic,
    "television": television,
}
"""Kinds that may be in training, and on which settings may be chosen."""
LEFT_OUT: dict[str, Kind] = {
    "vacuum_cleaner": vacuum_cleaner,
    "hair_dryer": hair_dryer,
    "pump": pump,
    "kettle": kettle,
    "shower": shower,
}
"""Kinds for judging alone: in no training, and nothing is chosen on them."""
KINDS: dict[str, Kind] = TRAINED | LEFT_OUT
NOT_STEADY = ("television",)


def _level(sound: Values) -> Values:
    """A sound with power 1; silence stays as it is."""
    power = float(np.mean(sound**2))
    return np.asarray(sound / np.sqrt(power) if power > 0 else sound, np.float64)
