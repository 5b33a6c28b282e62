"""Several talkers, followed over time: who is there, since when, where, and who talks now.

Each talker has a belief over 360 degrees (`belief`) and a chance to be nobody, silent or talking, which every
frame changes by Bayes' rule. Peaks of a frame (`peaks`) are given to talkers by the best assignment; one that
nobody explains may be somebody new. Only past frames count, so it works live: `Tracker.update`, frame by
frame. `tracking` does it for sound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.live.background import Background
from tytoalba.live.belief import agreement, centre, predicted, seen, updated
from tytoalba.live.peaks import Peak, checked_scores, peaks
from tytoalba.live.quiet import OwnBackground
from tytoalba.live.settings import HOP, Settings
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import Float, distance, signed_difference

LONGEST = 120.0
"""Seconds between frames that count at most."""
AUTO = "auto"
"""A background that is learned by itself."""
FASTEST = 90.0
"""Degrees per second: nobody walks faster around an array."""
LIKELY = 0.5
"""Probability down to which a talker who was reported still is."""
SILENT = 0.05
"""How likely somebody who talks is in a frame below the level of silence."""
_NOBODY, _SILENT, _TALKS = range(3)


@dataclass(frozen=True)
class Track:
    """One talker at one time.

    Parameters
    ----------
    id : int
        Its number, from 1; the same as long as it is followed.
    azimuth : float
        Degrees in [0, 360).
    probability : float
        Chance that somebody is there, silent or not.
    since : float
        Seconds: when it was first heard.
    speaking : bool
        Whether it talks now.

    Examples
    --------
    >>> one = Track(id=1, azimuth=350.0, probability=0.9, since=0.3, speaking=True)
    >>> one.at(5.0).azimuth, one.azimuth
    (5.0, 350.0)
    """

    id: int
    azimuth: float
    probability: float
    since: float
    speaking: bool

    def at(self, azimuth: float) -> Track:
        """The same at another azimuth."""
        return replace(self, azimuth=azimuth)


@dataclass
class _Talker:
    """What is believed of one talker."""

    belief: Float
    states: Float  # chances to be nobody, silent, talking
    since: float
    id: int = 0  # 0: never reported
    velocity: float = 0.0  # degrees per second
    shared: float = 0.0  # seconds beside an older one

    @property
    def azimuth(self) -> float:
        return centre(self.belief)

    @property
    def present(self) -> float:
        return float(1.0 - self.states[_NOBODY])

    def wait(self, passed: float, s: Settings) -> None:
        """Time goes by: a talker walks on, falls silent, begins again, leaves."""
        steps = max(1, round(passed / HOP))
        stop, begin, leave = (1 - math.exp(-passed / steps / mean) for mean in (s.talk, s.pause, s.memory))
        change = np.array(
            [[1.0, 0.0, 0.0], [leave, (1 - leave) * (1 - begin), (1 - leave) * begin], [0.0, stop, 1 - stop]]
        )
        self.states = self.states @ (change if steps == 1 else np.linalg.matrix_power(change, steps))
        self.belief = predicted(self.belief, s.drift * math.sqrt(passed / HOP), self.velocity * passed)
        self.velocity *= math.exp(-passed / s.stride)

    def hear(self, probability: float, likelihood: Float, passed: float, s: Settings) -> None:
        """A peak is this talker's, if he talks."""
        before = self.azimuth
        talks = float(self.states[_TALKS]) / max(self.present, 1e-9)
        self.belief = updated(self.belief, likelihood, probability * talks)
        moved = float(signed_difference(self.azimuth, before))
        self.velocity = min(max(self.velocity + s.lead * moved / passed, -FASTEST), FASTEST)

    def weigh(self, odds: float) -> None:
        """Somebody who talks is this many times likelier than somebody silent or nobody."""
        states = self.states * np.array([1.0, 1.0, odds])
        self.states = states / states.sum()


@dataclass
class Tracker:
    """Follows talkers from frame to frame; it only ever looks back.

    Parameters
    ----------
    counting : sequence of Calibration
        What turns the peaks of scores into chances: `Finder.counting`. Empty for methods that have none.
    settings : Settings
        How talkers are followed.
    background : Background, float, "auto" or None
        What is to be left out of the scores; or seconds at the start to learn it from, in which nobody is
        reported; or "auto", to learn it all the time, from moments in which nobody seems to talk.

    Examples
    --------
    >>> from tytoalba.signal.angles import encode
    >>> tracker = Tracker()
    >>> for number in range(12):
    ...     tracks = tracker.update(encode([40.0])[0], 0.0853 * number)
    >>> [(one.id, one.azimuth, one.speaking) for one in tracks]
    [(1, 40.0, True)]
    """

    counting: Sequence[Calibration] = ()
    settings: Settings = field(default_factory=Settings)
    background: Background | float | str | None = None

    def __post_init__(self) -> None:
        seconds = self.background
        if isinstance(seconds, str) and seconds != AUTO:
            raise TytoError(f'background must be "{AUTO}", seconds or a Background, got {seconds!r}')
        if isinstance(seconds, int | float) and not 0 < seconds < math.inf:
            raise TytoError(f"background must be seconds above 0, or a Background, got {seconds}")
        self._own = OwnBackground()
        self._quiet: list[Float | None] = []  # frames that the background is learned from
        self._talkers: list[_Talker] = []
        self._last = self._time = -math.inf
        self._n_reported = 0

    def update(self, frame: Float | Located | None, time: float, level: float | None = None) -> list[Track]:
        """Take a frame, give who is there now, oldest first.

        Parameters
        ----------
        frame : array (360,), Located or None
            Scores of a method (`Finder.scores`), or what it found, or None for a silent frame.
        time : float
            Seconds, of the middle of the frame; it must rise.
        level : float, optional
            dB of full scale; a background that is learned by itself needs it.

        Returns
        -------
        list of Track
        """
        if not time > self._last or not math.isfinite(time):
            raise TytoError(f"time must rise from frame to frame, got {time} s after {self._last} s")
        if frame is not None and not isinstance(frame, Located):
            frame = checked_scores(frame)
        self._last = time
        if self.background is None:
            return self.follow(peaks(frame, self.counting), time, silent=frame is None)
        if isinstance(frame, Located):
            raise TytoError("a background is left out of scores: give the tracker maps, not a Located")
        background = self._known(frame, time, level)
        if background is None:
            return []
        if frame is None:
            return self.follow([], time, silent=True)
        spread = float(np.std(frame[np.isfinite(frame)]))
        return self.follow(peaks(background.left(frame), self.counting, spread), time)

    def _known(self, scores: Float | None, time: float, level: float | None) -> Background | None:
        """The background now; None while it is learned."""
        if isinstance(self.background, str):
            if level is None:
                raise TytoError("a background that is learned by itself needs the level of each frame")
            self._own.hear(scores, level, time)
            return self._own.background
        if not isinstance(self.background, Background) and self.background is not None:
            if time < self.background:
                self._quiet.append(scores)
                return None
            self.background, self._quiet = Background.learned(self._quiet), []
        return self.background

    def follow(self, found: list[Peak], time: float, *, silent: bool = False) -> list[Track]:
        """As `update`, of a frame whose peaks are known."""
        passed = min(time - self._time, LONGEST)
        self._time = time
        for talker in self._talkers:
            talker.wait(passed, self.settings)
        likelihoods = [seen(peak.scores, peak.azimuth, self.settings.sharpness) for peak in found]
        given = self._assign(found, likelihoods)
        missed = min(self.settings.missed, SILENT) if silent else self.settings.missed
        for number, talker in enumerate(self._talkers):
            if number in given:
                peak, likelihood = found[given[number]], likelihoods[given[number]]
                talker.weigh(self._odds(peak.probability, agreement(talker.belief, likelihood)))
                talker.hear(peak.probability, likelihood, passed, self.settings)
            else:
                talker.weigh(missed)
        self._merge(passed)
        taken = set(given.values())
        self._bear([(found[k], likelihoods[k]) for k in range(len(found)) if k not in taken])
        self._talkers = [one for one in self._talkers if one.present >= self.settings.kept]
        return self._report()

    def _assign(self, found: list[Peak], likelihoods: list[Float]) -> dict[int, int]:
        """Which peak belongs to which talker: the assignment of the largest product of agreements.

        A peak near two goes to who is surer to be there; one that is no likelier for a talker than for a
        random place is not his.
        """
        if not found or not self._talkers:
            return {}
        chances = np.array([peak.probability for peak in found])
        beliefs = np.stack([one.belief for one in self._talkers])  # (n_talkers, 360)
        agreed = chances * (beliefs @ np.stack(likelihoods).T) + 1 - chances
        present = np.array([[one.present] for one in self._talkers])
        gain = np.where(agreed > 1, np.log(np.maximum(agreed * present, 1 + 1e-6)), 0.0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        return {int(r): int(c) for r, c in zip(rows, columns, strict=True) if gain[r, c] > 0}

    def _odds(self, probability: float, place: float = 1.0) -> float:
        """How many times likelier a peak of this chance and at this place is if the talker talks."""
        s = self.settings
        p = min(max(probability, 1e-6), 1 - 1e-6)
        odds = (p / (1 - p) * (1 - s.even) / s.even * place**s.place) ** s.trust
        return float(min(max(odds, 1 / s.most), s.most))

    def _bear(self, unexplained: Iterable[tuple[Peak, Float]]) -> None:
        """Peaks that nobody explains may be somebody new, except close to somebody."""
        for peak, likelihood in unexplained:
            if any(distance(one.azimuth, peak.azimuth) <= self.settings.near for one in self._talkers):
                continue
            born = self.settings.born * min(self._odds(peak.probability), 1.0)
            belief = likelihood / likelihood.sum()
            self._talkers.append(_Talker(belief, np.array([1 - born, 0.0, born]), self._time))

    def _merge(self, passed: float) -> None:
        """Two that stay close for long are one; of one that was never reported nothing is lost."""
        kept: list[_Talker] = []
        for talker in sorted(self._talkers, key=lambda one: (not one.id, one.id)):  # the longest known first
            beside = any(distance(talker.azimuth, one.azimuth) <= self.settings.near for one in kept)
            talker.shared = talker.shared + passed if beside else 0.0
            if not (beside and (not talker.id or talker.shared > self.settings.merge)):
                kept.append(talker)
        self._talkers = kept

    def _report(self) -> list[Track]:
        tracks = []
        for talker in self._talkers:
            if talker.present < (LIKELY if talker.id else self.settings.shown):
                continue
            if not talker.id:
                self._n_reported += 1
                talker.id = self._n_reported
            speaking = bool(talker.states[_TALKS] > talker.states[_SILENT])
            tracks.append(
                Track(
                    talker.id,
                    round(talker.azimuth, 2) % 360.0,
                    round(talker.present, 4),
                    round(talker.since, 4),
                    speaking,
                )
            )
        return sorted(tracks, key=lambda one: one.id)
