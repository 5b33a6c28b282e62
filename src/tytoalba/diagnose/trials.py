"""How often a check is right: arrays mixed up on purpose, in simulated rooms with echo and noise.

In each trial a device as it might have been built (gains, places, patterns) stands in a room, and somebody
talks at directions around it, pointing at them roughly. Then its channels are mixed up, or it is mounted
otherwise, and the check has to find out how. A trial is made of its seed and number alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tytoalba.data.simulation.home import Home
from tytoalba.data.simulation.room import Sound, convolved
from tytoalba.data.simulation.voice import SyntheticVoices, say
from tytoalba.diagnose.check import CheckResult, check_array, take
from tytoalba.diagnose.wiring import Wiring, same_file, slightly_turned
from tytoalba.errors import TytoError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray

MixUp = Literal["order", "mounting", "free"]
MIXUPS: tuple[MixUp, ...] = ("order", "mounting", "free")
ECHOES = (0.15, 0.25, 0.35, 0.45, 0.6)
"""Reverberation times, seconds: a few, so that what is costly about them is computed once."""
SNR = (10.0, 30.0)
POINTING = 3.0
"""Degrees (standard deviation) by which a talker misses the direction that is given."""
UNTOUCHED = 0.2
"""Share of trials in which nothing is mixed up."""


@dataclass(frozen=True)
class Trial:
    """One trial: what was done, what was found, and "right", "wrong" or "cannot tell".

    undecided: right, but the truth is one of several that cannot be told apart. guess: whether the truth is
    among the best, sure or not. alarms: faults of channels that have none.
    """

    truth: Wiring
    outcome: Literal["right", "wrong", "cannot tell"]
    undecided: bool
    guess: bool
    margin: float
    fit: float
    alarms: tuple[str, ...]


def evaluate(
    array: MicArray,
    n_trials: int,
    seed: int = 0,
    mixup: MixUp = "order",
    n_recordings: int = 4,
    seconds: float = 3.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Mix up an array `n_trials` times and see what the check says.

    mixup: "order" (channels, known directions), "mounting" (upside down and turned, known directions) or
    "free" (channels, unknown directions). n_recordings: at directions evenly around the array.
    """
    if n_trials < 1 or n_recordings < 1 or not 1.0 <= seconds <= 60.0 or seed < 0:
        raise TytoError(
            "an evaluation needs at least 1 trial and 1 recording, 1 to 60 seconds and a seed of at least 0"
        )
    if mixup not in MIXUPS:
        raise TytoError(f"nothing called {mixup!r} to mix up; known: {', '.join(MIXUPS)}")
    array = array.plain_channels()
    trials = []
    for number in range(n_trials):
        rng = np.random.default_rng([0x6D6978, seed, number])
        truth = _mixed(array, mixup, rng)
        given, sounds = _recordings(array, truth, n_recordings, seconds, rng)
        azimuths = [None if mixup == "free" else float(azimuth) for azimuth in given]
        takes = [take(f"{k}", sounds[k], array, azimuths[k]) for k in range(n_recordings)]
        trials.append(_marked(check_array(takes, array), truth, array))
        if on_progress:
            on_progress(number + 1, n_trials)
    return trials


def summary(trials: list[Trial]) -> dict[str, Any]:
    """Counts of a set of trials, per cent of right and wrong answers, and what was worst."""
    outcomes = Counter(trial.outcome for trial in trials)
    return {
        "trials": len(trials),
        "right": outcomes["right"],
        "undecided": sum(trial.undecided for trial in trials),
        "wrong": outcomes["wrong"],
        "cannot_tell": outcomes["cannot tell"],
        "best_guess_right": sum(trial.guess for trial in trials),
        "false_alarms": sum(bool(trial.alarms) for trial in trials),
        "right_percent": 100.0 * outcomes["right"] / len(trials),
        "wrong_percent": 100.0 * outcomes["wrong"] / len(trials),
        "least_margin": min(trial.margin for trial in trials),
        "median_margin": float(np.median([trial.margin for trial in trials])),
        "least_fit": min(trial.fit for trial in trials),
    }


def _mixed(array: MicArray, mixup: MixUp, rng: np.random.Generator) -> Wiring:
    plain = Wiring(tuple(range(array.n_mics)))
    if rng.random() < UNTOUCHED:
        return plain
    if mixup == "mounting":
        return replace(plain, mirrored=bool(rng.random() < 0.5), turn=float(rng.uniform(0.0, 360.0)))
    return Wiring(tuple(rng.permutation(array.n_mics).tolist()))


def _recordings(
    array: MicArray, truth: Wiring, n: int, seconds: float, rng: np.random.Generator
) -> tuple[Float, list[Sound]]:
    """Directions that are given (degrees), and what the channels record: (n_mics, n_samples) each."""
    late = replace(array, pattern=1.0, yaw=0.0)
    home = Home.draw(array, n, rng, smallest=(3.5, 3.2), rt60=lambda rng: rng.choice(ECHOES), late=late)
    voices, sounds = SyntheticVoices(), []
    for azimuth in home.azimuth + rng.normal(0.0, POINTING, n):
        # a mounting is another place of the talker, seen from the array
        turned = azimuth - array.yaw - truth.turn
        seen = (-turned if truth.mirrored else turned) + array.yaw
        response = home.response(home.talker(seen, rng, nearest=0.6, heights=(-0.1, 0.5)), rng)
        dry = say(voices, int(rng.integers(voices.n_speakers)), seconds, array.sample_rate, rng)
        sounds.append(home.recording(convolved(dry, response), SNR, rng)[list(truth.order)])
    return home.azimuth, sounds


def _marked(found: CheckResult, truth: Wiring, array: MicArray) -> Trial:
    """Compare what was found with the truth; a channel fault other than clipping is a false alarm."""
    verdict = found.verdict
    alarms = tuple(
        f.what for f in found.findings if f.kind == "fault" and "channel " in f.what and "clips" not in f.what
    )
    if verdict is None:
        return Trial(truth, "cannot tell", False, False, 0.0, 0.0, alarms)
    every = range(array.n_mics)
    # a slight turn is measured apart
    among = [w for w in verdict.alternatives if slightly_turned(array, w, truth)]
    files = [w for w in verdict.alternatives if not same_file(array, w, verdict.alternatives[0], every)]
    outcome: Literal["right", "wrong", "cannot tell"] = "right" if among else "wrong"
    if not verdict.sure:
        outcome = "cannot tell"
    undecided = outcome == "right" and bool(files)
    return Trial(truth, outcome, undecided, bool(among), verdict.margin or 0.0, verdict.fit, alarms)
