"""Channels that are dead, copied, clipped, too quiet, too loud, humming or inverted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.diagnose.search import HIGHEST, LEAST_FREEDOM, LOWEST, Evidence
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import Health

Kind = Literal["fault", "cannot tell", "fine"]
DEAD_DB, UNEVEN_DB = -40.0, 12.0
"""Level against the median of all channels, 300-8000 Hz."""
CLIPPED = 0.0005
"""Share of samples at full scale that is worth a word."""
HUM, HUM_BELOW = 0.9, 80.0
"""Share of the power below this many Hz that leaves nothing for speech."""
COPY, COPY_ABOVE = 0.9995, 1000.0
"""Correlation above this many Hz that two microphones never reach."""
INVERTED_SHARE = 0.75
"""Share of blocks in which a channel must be against the others to be called inverted."""
TOO_LITTLE = "too little speech"
"""Confidence where there are not blocks enough to say how sure an answer is."""
MORE = "record 2-3 s of speech at four known directions around the array"


@dataclass(frozen=True, eq=False)
class Take:
    """One recording. samples: (n_mics, n_samples) at the array's rate, channels as the array file has them.

    azimuth: degrees, None in free speech. file_rate: Hz, as its file says. channels: as in the file.
    """

    name: str
    samples: NDArray[np.float32]
    azimuth: float | None
    file_rate: int
    channels: tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One line of the report. confidence: in words, empty where nothing was weighed."""

    kind: Kind
    what: str
    evidence: str
    confidence: str = ""
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class Channels:
    """The health of the channels: what was found, which are fit to be compared, +1 or -1 for polarity."""

    findings: list[Finding]
    used: tuple[int, ...]
    polarity: Float


def numbering(takes: Sequence[Take], array: MicArray) -> tuple[int, ...]:
    """The channel of each microphone: as the recordings have it, or the array file where these differ."""
    found = {t.channels for t in takes}
    return found.pop() if len(found) == 1 else array.channels


def examine_channels(takes: Sequence[Take], evidence: Sequence[Evidence], array: MicArray) -> Channels:
    """Dead, copied, clipped, too quiet, too loud, humming and inverted channels."""
    number = numbering(takes, array)
    level, low = (np.array(rows) for rows in zip(*(_powers(t, array) for t in takes), strict=True))
    sounds, clipped = _whole(takes)
    decibel = 10 * np.log10(level + 1e-20)
    dead = ~sounds
    for _ in range(2):  # dead channels are no measure for the others
        middle = np.median(decibel[:, ~dead], axis=1, keepdims=True)
        relative = (decibel - middle).mean(axis=0)  # (M,)
        dead |= relative < DEAD_DB
    copies = _copies(takes, array, np.flatnonzero(~dead).tolist())
    findings = []
    for c in np.flatnonzero(dead):
        how = f"{relative[c]:.0f} dB against the others" if sounds[c] else "every sample is zero"
        findings.append(Finding("fault", f"channel {number[c]} is dead", how, "sure", _DEAD))
    for a, b, correlation in copies:
        how = f"correlation {correlation:.4f} above {COPY_ABOVE:g} Hz"
        what = f"channels {number[a]} and {number[b]} carry the same signal"
        findings.append(Finding("fault", what, how, "sure", _COPIED))
    for c in np.flatnonzero(~dead):
        if clipped[c] > CLIPPED:
            how = f"{100 * clipped[c]:.2f} % of its samples are at full scale"
            findings.append(
                Finding("fault", f"channel {number[c]} clips", how, "sure", "lower the input gain")
            )
        if abs(relative[c]) > UNEVEN_DB:
            side = "quieter" if relative[c] < 0 else "louder"
            how = f"{relative[c]:+.0f} dB against the middle of all channels, 300-8000 Hz"
            what = f"channel {number[c]} is much {side} than the others"
            findings.append(Finding("fault", what, how, "likely", "is its hole covered, its gain set alike?"))
        if (share := float(low[:, c].mean())) > HUM:
            how = f"{100 * share:.0f} % of its power is below {HUM_BELOW:g} Hz"
            what = f"channel {number[c]} is mostly DC or hum"
            findings.append(
                Finding("fault", what, how, "sure", "check grounding and supply, or high-pass it")
            )
    copied = {c for a, b, _ in copies for c in (a, b)}
    used = tuple(c for c in range(array.n_mics) if not dead[c] and c not in copied)
    polarity, inverted = _polarity(evidence, array, used, number)
    return Channels(findings + inverted, used, polarity)


_DEAD = "check its cable and its channel number; the corrected file leaves it out"
_COPIED = "one cable or setting feeds both; the corrected file leaves both out, as neither is known"


def _powers(recording: Take, array: MicArray) -> tuple[Float, Float]:
    """Power of each channel between LOWEST and HIGHEST, and the share of all that is below HUM_BELOW."""
    power = np.abs(np.fft.rfft(recording.samples.astype(np.float64), axis=1)) ** 2
    hertz = np.fft.rfftfreq(recording.samples.shape[1], 1 / array.sample_rate)
    voice = power[:, (hertz >= LOWEST) & (hertz <= HIGHEST)].sum(axis=1)
    low = power[:, hertz < HUM_BELOW].sum(axis=1) - power[:, 0] / 2  # 0 Hz has no mirror image
    total = power.sum(axis=1) - power[:, 0] / 2
    return voice / recording.samples.shape[1] ** 2, low / np.maximum(total, 1e-30)


def _whole(takes: Sequence[Take]) -> tuple[NDArray[np.bool_], Float]:
    """Which channels are not digital silence in some recording, and their share of clipped samples."""
    health = Health("recordings", takes[0].channels)
    for _ in health.watch(t.samples for t in takes):
        pass
    return health.sounds, health.clipped / health.n_samples


def _copies(takes: Sequence[Take], array: MicArray, alive: list[int]) -> list[tuple[int, int, float]]:
    """Pairs of channels that carry the same signal, whatever their gain and sign, in every recording."""
    least = np.ones((array.n_mics, array.n_mics))
    signed = np.zeros_like(least)
    for t in takes:
        spectrum = np.fft.rfft(t.samples.astype(np.float64), axis=1)
        hertz = np.fft.rfftfreq(t.samples.shape[1], 1 / array.sample_rate)
        part = spectrum[:, (hertz >= COPY_ABOVE) & (hertz <= HIGHEST)]
        part = part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-30)
        correlation = (part @ part.conj().T).real
        least, signed = np.minimum(least, np.abs(correlation)), signed + correlation / len(takes)
    return [(a, b, float(signed[a, b])) for a, b in combinations(alive, 2) if least[a, b] > COPY]


def _polarity(
    evidence: Sequence[Evidence], array: MicArray, used: Sequence[int], number: Sequence[int]
) -> tuple[Float, list[Finding]]:
    """Signs of the channels, the majority +1, from whether pairs peak upwards or downwards."""
    sign = np.ones(array.n_mics)
    gcc = np.concatenate([e.gcc for e in evidence])  # (B, P, L)
    upward = gcc.max(axis=2) + gcc.min(axis=2)  # (B, P)
    side = np.zeros((len(gcc), array.n_mics, array.n_mics))
    for p, (a, b) in enumerate(array.pairs):
        if a in used and b in used:
            side[:, a, b] = side[:, b, a] = upward[:, p]
    vector = np.linalg.eigh(side.mean(axis=0))[1][:, -1]
    sign[vector < 0] = -1.0
    n_inverted = int((sign[list(used)] < 0).sum())
    if n_inverted * 2 > len(used) or (n_inverted * 2 == len(used) and used and sign[used[0]] < 0):
        sign, n_inverted = -sign, len(used) - n_inverted
    sign[[c for c in range(array.n_mics) if c not in used]] = 1.0
    if not n_inverted:
        return sign, []
    against = [c for c in used if sign[c] < 0]
    share = min(float((np.einsum("bk,k->b", side[:, c], sign) * sign[c] > 0).mean()) for c in against)
    names = ", ".join(str(number[c]) for c in against)
    what = f"polarity of channel{'s' if n_inverted > 1 else ''} {names} is inverted"
    how = f"in {100 * share:.0f} % of the blocks, pairs with the others peak downwards"
    few = len(gcc) < LEAST_FREEDOM
    if few or share < INVERTED_SHARE:
        confidence = TOO_LITTLE if few else "weak"
        weak = Finding("cannot tell", what.replace(" is ", " may be "), how, confidence, MORE)
        return np.ones(array.n_mics), [weak]
    sure = "sure"
    if n_inverted * 2 == len(used):
        sure, what = "sure, but not which half", what + ", or that of all others"
    remedy = "swap its wires or multiply it by -1; an array file cannot say it"
    return sign, [Finding("fault", what, how, sure, remedy)]
