"""What is wrong with how an array is wired or mounted: every channel's health, then the wiring.

From a few recordings at known directions, or from free speech where that suffices. What cannot be told is
said to be so, with what would tell it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.diagnose.channels import MORE, TOO_LITTLE, Channels, Finding, Take, examine_channels, numbering
from tytoalba.diagnose.search import (
    LEAST_TURN,
    REACH,
    SURE_FIT,
    SURE_MARGIN,
    Evidence,
    Search,
    Verdict,
    gather,
    judge,
    turn_of,
)
from tytoalba.diagnose.wiring import MOST_ORDERED, Wiring, all_orders, same_file
from tytoalba.errors import AudioError, TytoError, TytoWarning
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import pick_channels, refuse_damaged, resample
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import read_audio

LEAST_SECONDS = 0.5
RATES = (8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
POOR_FIT = 0.8
"""Below it, a wrong sample rate is looked for."""
ALIKE_RATES = (0.65, 1.25)
"""Ratios of rates that a talker above the array, warm air or a tolerance of places explain as well."""
SHOWN = 4
"""Alternatives that are named; the others are counted."""


@dataclass(frozen=True)
class CheckResult:
    """What was found, and the array file that is right if one is known and differs from the one given.

    channels: of the recordings, one for each microphone of the array file.
    """

    findings: tuple[Finding, ...]
    corrected: MicArray | None
    verdict: Verdict | None
    channels: tuple[int, ...]

    @property
    def faulty(self) -> bool:
        """Whether anything is wrong."""
        return any(finding.kind == "fault" for finding in self.findings)


def read_take(path: str | Path, array: MicArray, azimuth: float | None = None, keys: Keys = None) -> Take:
    """Read a recording; its faults are findings, not warnings, unless nothing can be done with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TytoWarning)
        audio = read_audio(str(path), keys=keys)
    channels = tuple(pick_channels(len(audio.samples), array, str(path)))
    samples = resample(audio.samples[list(channels)], audio.sample_rate, array.sample_rate)
    return take(str(path), samples, array, azimuth, audio.sample_rate, channels)


def take(
    name: str,
    samples: NDArray[Any],
    array: MicArray,
    azimuth: float | None = None,
    file_rate: int | None = None,
    channels: Sequence[int] | None = None,
) -> Take:
    """A recording from memory, (n_mics, n_samples) at the array's rate; refuses what cannot be checked."""
    refuse_damaged(samples, name)
    if len(samples) != array.n_mics:
        raise AudioError(f"{name}: {len(samples)} channels, but {array.name} has {array.n_mics} microphones")
    if samples.shape[1] < LEAST_SECONDS * array.sample_rate:
        seconds = samples.shape[1] / array.sample_rate
        raise AudioError(f"{name}: {seconds:.2f} s are too short; record 2 or 3 seconds of speech")
    if not samples.any():
        raise AudioError(f"{name}: every channel is silent; was the microphone muted or not allowed?")
    if azimuth is not None and not np.isfinite(azimuth):
        raise TytoError(f"{name}: a direction is degrees, got {azimuth}")
    rate = array.sample_rate if file_rate is None else file_rate
    return Take(name, samples, azimuth, rate, tuple(array.channels if channels is None else channels))


def check_array(takes: Sequence[Take], array: MicArray, turned: bool = False) -> CheckResult:
    """Examine an array by its recordings.

    turned: the array may be turned by any angle besides having its channels mixed up. Without it, other
    orders are tried only as the array file is mounted, and other mountings only in the order of the file.
    Where some directions are known, recordings without one serve only to examine the channels.
    """
    if not takes:
        raise TytoError("no recordings; give some, such as front.wav@0 left.wav@90")
    evidence = [gather(t.samples, array, t.azimuth) for t in takes]
    channels = examine_channels(takes, evidence, array)
    findings = [*channels.findings, *_header_rates(takes, array)]
    if len(channels.used) < 2:
        lost = Finding("cannot tell", "order", "fewer than two channels can be compared")
        return CheckResult((*findings, lost), None, None, numbering(takes, array))
    search = Search(evidence, array, channels.used, channels.polarity)
    verdict = judge(search, turned)
    rate, search, verdict = _true_rate(evidence, takes, search, verdict, channels, turned)
    wired, wiring = _wiring_findings(search, verdict, channels.used, takes, turned)
    findings += [*rate, *wired]
    if not any(f.kind == "fault" for f in findings):
        findings.insert(
            0, Finding("fine", "array", f"no fault found in {len(takes)} recording{'s' * (len(takes) > 1)}")
        )
    number = numbering(takes, array)
    return CheckResult(tuple(findings), _corrected(array, wiring, channels.used, number), verdict, number)


def _header_rates(takes: Sequence[Take], array: MicArray) -> list[Finding]:
    rates = sorted({t.file_rate for t in takes} - {array.sample_rate})
    if not rates:
        return []
    how = f"files say {', '.join(map(str, rates))} Hz, {array.name} records at {array.sample_rate} Hz"
    remedy = "record at the rate of the array, or change sample_rate in its file; sound was resampled here"
    return [Finding("fault", "sample rate of the recordings", how, "sure", remedy)]


def _true_rate(
    evidence: Sequence[Evidence],
    takes: Sequence[Take],
    search: Search,
    verdict: Verdict,
    channels: Channels,
    turned: bool,
) -> tuple[list[Finding], Search, Verdict]:
    """Whether another sample rate explains the lags of known directions, and then the search with it."""
    rates = {t.file_rate for t in takes}
    if not search.directions_known or len(rates) > 1 or (verdict.sure and verdict.fit >= POOR_FIT):
        return [], search, verdict
    (said,) = rates
    orders = all_orders(search.array.n_mics)
    tried = []
    for rate in RATES:
        if ALIKE_RATES[0] < rate / said < ALIKE_RATES[1] or rate / said > REACH:
            continue
        other = Search(evidence, search.array, channels.used, channels.polarity, rate / said)
        scored = other.scored(orders)
        k = int(scored.scores.argmax())
        tried.append((float(scored.scores[k]), rate, other, scored.wiring(k)))
    if not tried:
        return [], search, verdict
    score, rate, other, wiring = max(tried, key=lambda row: row[0])
    margin = other.margin(other.block_scores(wiring), search.block_scores(verdict.alternatives[0]))
    if margin < SURE_MARGIN or score / search.height < max(SURE_FIT, verdict.fit):
        return [], search, verdict
    how = f"lags are {rate / said:.2f} of what {said} Hz and the given directions predict"
    confidence = f"{margin:.1f} standard errors"
    if rate < said:
        why = f"recorded at {rate} Hz, talkers far above the array, or a sound that all channels share"
        return [Finding("cannot tell", "sample rate", f"{how}: {why}", confidence, MORE)], search, verdict
    what = f"sound was recorded at about {rate} Hz, not {said}"
    remedy = f"correct the rate in the header of the files: sox -r {rate} IN.wav OUT.wav"
    return [Finding("fault", what, how, confidence, remedy)], other, judge(other, turned)


def _wiring_findings(
    search: Search, verdict: Verdict, used: Sequence[int], takes: Sequence[Take], turned: bool
) -> tuple[list[Finding], Wiring | None]:
    """What the verdict means, and the one wiring that is sure, if there is one."""
    array, number = search.array, numbering(takes, search.array)
    if not verdict.sure:
        return [_unsure(verdict, number)], None
    names = verdict.alternatives
    files = _distinct(array, names, used)
    best: Wiring | None = names[0] if len(files) == 1 else None
    turn, margin = turn_of(search, best) if best and verdict.directions_known else (0.0, 0.0)
    if best and all(name.turn for name in names):  # turned by what is no symmetry: measure it
        best = replace(best, turn=(best.turn + turn) % 360.0)
        names, turn = (best,), 0.0
    findings = []
    confidence = _in_words(verdict.margin)
    explained = f"explains {100 * verdict.fit:.0f} % of the peaks"
    if verdict.as_filed:
        what = (
            "order and mounting as in the array file"
            if verdict.directions_known
            else "order as in the array file"
        )
        findings.append(Finding("fine", what, explained, confidence))
    elif best:
        how = f"{_names(names, number, ' or (the same) ')}: {explained}, "
        how += f"the array file {100 * verdict.plain_fit:.0f} %"
        findings.append(Finding("fault", _title(best), how, confidence, _USE))
    else:
        how = f"one of {len(files)}: {_names(files, number, '; ')}"
        findings.append(Finding("fault", _title(names[0]), how, confidence, _tell(verdict)))
    if verdict.as_filed and len(files) > 1:
        how = f"these sound the same here: {_names(files, number, '; ')}"
        findings.append(Finding("cannot tell", "other wirings", how, "", _tell(verdict)))
    if verdict.almost:
        how = f"{describe(verdict.almost, number)} sounds nearly the same"
        how += "" if turned else "; taken to be mounted as the array file says"
        best = None if turned else best
        findings.append(Finding("cannot tell", "other wirings", how, "", "look how the array is mounted"))
    if not verdict.directions_known:
        how = "free speech does not say where the front is: turned or upside down sounds the same"
        findings.append(Finding("cannot tell", "mounting", how, "", MORE))
    if array.n_mics > MOST_ORDERED:
        how = f"of {array.n_mics} microphones only swaps of two and shifts of all were tried"
        findings.append(Finding("cannot tell", "other orders", how))
    if best and abs(turn) >= LEAST_TURN and margin >= SURE_MARGIN:
        how = f"the given directions fit best with the array turned by {turn:+.0f} degrees"
        what = f"array is turned by {turn:+.0f} degrees"
        findings = [finding for finding in findings if finding.kind != "fine"]
        findings.append(Finding("fault", what, how, _in_words(margin), _USE))
        best = replace(best, turn=(best.turn + turn) % 360.0)
    return findings, best


def _unsure(verdict: Verdict, number: Sequence[int]) -> Finding:
    how = f"best: {describe(verdict.alternatives[0], number)}"
    how += f"; then: {describe(verdict.rival, number)}" if verdict.rival else "; nothing else differs"
    if verdict.fit < SURE_FIT:
        how += f"; they explain {100 * verdict.fit:.0f} % of the peaks, is it the file of this array?"
    confidence = _in_words(verdict.margin) if verdict.enough_speech else TOO_LITTLE
    return Finding("cannot tell", "order and mounting", how, confidence, MORE)


def _in_words(margin: float | None) -> str:
    return "" if margin is None else f"{margin:.1f} standard errors, {SURE_MARGIN:g} needed"


_USE = "use the corrected array file, or rewire and mount it as its own file says"


def _tell(verdict: Verdict) -> str:
    if not verdict.directions_known:
        return "give one recording or more at known directions"
    return "give recordings at other directions than these"


def _title(wiring: Wiring) -> str:
    if wiring.order != tuple(range(len(wiring.order))):
        return "channels are in another order"
    return "array is mounted otherwise"


def describe(wiring: Wiring, number: Sequence[int]) -> str:
    """A wiring in words: all by channels of the recordings; a microphone is that of the array file's channel.

    number: the channel of each microphone of the array file. Where it is not the microphone's own number,
    as `tyto array show` has it, that is named, too.

    >>> describe(Wiring((1, 0, 2), mirrored=True), (0, 1, 2))
    'channel 0 has the microphone of channel 1, channel 1 has the microphone of channel 0, upside down'
    >>> describe(Wiring((0, 1, 3, 2)), (1, 2, 3, 5))[:52]
    'channel 3 has the microphone of channel 5 (number 3)'
    """
    words = [
        f"channel {number[k]} has the microphone of channel {number[mic]}"
        + (f" (number {mic})" if number[mic] != mic else "")
        for k, mic in enumerate(wiring.order)
        if k != mic
    ]
    if wiring.mirrored:
        words.append("upside down")
    if wiring.turn:
        words.append(f"turned by {wiring.turn:g} degrees")
    return ", ".join(words) or "the array file as it is"


def _names(wirings: Sequence[Wiring], number: Sequence[int], between: str) -> str:
    shown = between.join(describe(w, number) for w in wirings[:SHOWN])
    return shown + (f"{between}{len(wirings) - SHOWN} more" if len(wirings) > SHOWN else "")


def _distinct(array: MicArray, wirings: Sequence[Wiring], used: Sequence[int]) -> list[Wiring]:
    """One of each set of wirings that are two names of one thing."""
    found: list[Wiring] = []
    for wiring in wirings:
        if not any(same_file(array, wiring, other, used) for other in found):
            found.append(wiring)
    return found


def _corrected(
    array: MicArray, wiring: Wiring | None, used: Sequence[int], number: Sequence[int]
) -> MicArray | None:
    """The array file that is right, without channels that cannot be used; None if unknown or unchanged."""
    if wiring is None:
        return None
    right = wiring.applied(array)
    if len(used) < array.n_mics:
        facing = np.broadcast_to(right.facing, array.n_mics)
        right = replace(
            right,
            positions=tuple(right.positions[c] for c in used),
            channels=tuple(right.channels[c] for c in used),
            facing=right.facing if len(right.facing) == 1 else tuple(facing[list(used)].tolist()),
        )
    if right == array:
        return None
    why = "" if wiring == Wiring(tuple(range(array.n_mics))) else f": {describe(wiring, number)}"
    left = "" if len(used) == array.n_mics else "; unfit channels left out"
    return replace(right, description=f"{array.description} (corrected by tyto check{why}{left})".strip())
