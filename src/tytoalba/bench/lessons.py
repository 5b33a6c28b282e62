"""What a few seconds of teaching change: there, and everywhere else.

A home is a device as it was built, in a room, at a fixed place. Somebody stands at one direction after
another and says a few sentences; the learner is taught one of them and asked about all, with the words of
somebody else. It starts from its prior and forgets each lesson before the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.home import Home
from tytoalba.data.simulation.room import convolved
from tytoalba.data.simulation.voice import Voices, choose_voices, say, split_speakers
from tytoalba.errors import TytoError
from tytoalba.learning.method import Task
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.registry import find_prior
from tytoalba.learning.tyto import Tyto
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import frames, spoken
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.metrics import within

X32 = NDArray[np.float32]
SNR = (5.0, 25.0)


@dataclass(frozen=True)
class Change:
    """How accuracy (per cent) changed by a lesson at one direction, in one home.

    home, taught: which. before, after: at the taught direction. others: azimuth of the other directions, and
    their accuracy before and after, (n_directions - 1, 3).
    """

    home: int
    taught: float
    before: float
    after: float
    others: NDArray[np.float64]


@dataclass(frozen=True)
class _Home:
    azimuth: NDArray[np.float64]
    lessons: list[X32]
    questions: list[X32]


def teach_everywhere(
    array: MicArray,
    voices: Voices,
    *,
    n_homes: int = 4,
    n_directions: int = 12,
    seconds: float = 5.0,
    n_features: int = 2000,
    ridge: float = 0.3,
    simulated: int = 2,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Change]:
    """Teach each direction of each home alone, and ask about all of them before and after."""
    limits = {
        "homes must be at least 1": n_homes >= 1,
        "directions must be at least 2": n_directions >= 2,
        "seconds must be from 0.5 to 60": 0.5 <= seconds <= 60,
        "features must be at least 1": n_features >= 1,
        "ridge must be positive": ridge > 0,
        "simulated and seed must not be negative": min(seed, simulated) >= 0,
    }
    if wrong := [what for what, right in limits.items() if not right]:
        raise TytoError(wrong[0])
    gcc = prior_gcc(array)
    if find_prior(array) is None:
        raise TytoError(f"{array.name} has no prior to start from; `tyto prior {array.name}` makes one")
    task = Task(gcc.n_features, seed=seed, array=array, gcc=gcc)
    make = partial(
        Tyto, task, n_features=n_features, ridge=ridge, simulated=simulated, views=1, answers="anywhere"
    )
    changes = []
    for number in range(n_homes):
        home = _home(array, gcc, voices, n_directions, seconds, np.random.default_rng([seed, number]))
        before = _asked(make(), home, array)
        for k, azimuth in enumerate(home.azimuth):
            learner = make()
            X = home.lessons[k]
            learner.learn(Phase(X, np.full((len(X), 1), azimuth), np.array([round(azimuth) % 360])))
            after = _asked(learner, home, array)
            rest = np.arange(n_directions) != k
            others = np.stack([home.azimuth[rest], before[rest], after[rest]], axis=1)
            changes.append(Change(number, float(azimuth), float(before[k]), float(after[k]), others))
            if on_progress:
                on_progress(len(changes), n_homes * n_directions)
    return changes


def measure_lessons(
    array: str, speech: Path | None = None, *, n_homes: int = 4, seconds: float = 5.0, **options: Any
) -> dict[str, Any]:
    """Teach everywhere (see `teach_everywhere` for the options) and sum up what changed.

    array: a built-in name or a TOML file. speech: folder of real speech; a synthetic voice without one.
    """
    changes = teach_everywhere(
        load_array(array), choose_voices(speech), n_homes=n_homes, seconds=seconds, **options
    )
    return {"array": array, "seconds": seconds, "homes": n_homes, **summary(changes)}


def summary(changes: list[Change]) -> dict[str, Any]:
    """Means over lessons, per cent: at the taught direction, elsewhere, and by the angle between."""
    others = np.concatenate(
        [np.insert(c.others, 0, distance(c.others[:, 0], c.taught), axis=1) for c in changes]
    )
    apart = np.round(others[:, 0])  # the directions of a home are equally far from each other
    rows = [
        {
            "degrees": float(degrees),
            "change": float((others[apart == degrees, 3] - others[apart == degrees, 2]).mean()),
            "n": int((apart == degrees).sum()),
        }
        for degrees in np.unique(apart)
    ]
    return {
        "before": float(np.mean([c.before for c in changes])),
        "after": float(np.mean([c.after for c in changes])),
        "others_before": float(others[:, 2].mean()),
        "others_after": float(others[:, 3].mean()),
        "by_distance": rows,
    }


def _asked(learner: Tyto, home: _Home, array: MicArray) -> NDArray[np.float64]:
    """Accuracy in per cent at each direction of a home; what the array cannot tell apart is the same."""
    found = [array.fold(decode(learner.posterior(X))) for X in home.questions]
    off = [distance(f, azimuth) for f, azimuth in zip(found, array.fold(home.azimuth), strict=True)]
    return np.array([100 * float(within(d).mean()) for d in off])


def _home(
    array: MicArray, gcc: GccPhat, voices: Voices, n: int, seconds: float, rng: np.random.Generator
) -> _Home:
    home = Home.draw(array, n, rng, smallest=(4.0, 3.5), rt60=lambda rng: rng.uniform(0.3, 0.9))
    lessons: list[X32] = []
    questions: list[X32] = []
    for azimuth in home.azimuth:
        response = home.response(home.talker(azimuth, rng, nearest=0.8, heights=(0.0, 0.6)), rng)
        for part, kept in (("train", lessons), ("test", questions)):
            speaker = int(rng.choice(split_speakers(voices.n_speakers, part)))
            dry = say(voices, speaker, seconds, array.sample_rate, rng)
            sound = home.recording(convolved(dry, response), SNR, rng)
            cut = frames(sound, array.frame_length, array.frame_length // 2)
            voiced = cut[spoken(cut)]
            kept.append(np.asarray(gcc(voiced), np.float32).reshape(len(voiced), -1))
    return _Home(home.azimuth, lessons, questions)
