"""Other people's localizers on the user's own labelled recordings, judged on the same frames as ours.

A peer is any program that reads a sound file and prints directions. A line is a time in seconds and azimuths
in our convention (degrees, 0 front, 90 left), strongest first:

    0.085 135.0
    0.171 134.5 20.0

A line answers for the frames in which its time falls. Of several, the one nearest to the middle of a frame
counts; of its azimuths as many as there are sources, as for every other row. A frame without a line, and an
azimuth too few, are sources that were not found. Lines that begin with # say nothing.
"""

from __future__ import annotations

import math
import shlex
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.odas.configuration import HOP, RATE
from tytoalba.bench.odas.follower import at_frames
from tytoalba.bench.odas.program import find_odas, run_odas, run_odas_localizer
from tytoalba.bench.odas.settings import BEST, SHIPPED, OdasSettings
from tytoalba.bench.programs import find_program, run_program
from tytoalba.bench.score import score_recordings
from tytoalba.data.recording import Recording
from tytoalba.errors import DataError, TytoError
from tytoalba.signal.angles import N_DIRECTIONS, Float, decode, decode_two, encode
from tytoalba.signal.gcc import SPEECH_BAND, Band
from tytoalba.signal.metrics import Interval, bootstrap, count, match
from tytoalba.storage.parallel import parallel_map
from tytoalba.storage.soundfiles import write_audio
from tytoalba.storage.writing import write_whole

SECONDS, PER_SECOND = 60.0, 20.0
"""How long a peer may take: this, and more for each second of sound."""
LONGEST_LINE = 400
MOST_LINES_A_SECOND = 1000
SPREAD = 5.0
"""Degrees by which potential sources of ODAS are smoothed before peaks are picked."""
WAV, ARRAY = "sound.wav", "array.toml"

Line = tuple[float, tuple[float, ...]]
"""Time in seconds, and azimuths."""
Answer = Callable[[Recording], Float]
"""Azimuths of each labelled frame of a recording, (n_frames, 2), NaN where there is none; strongest first."""


@dataclass(frozen=True)
class Peer:
    """A program: words in which {wav}, {array} and {sources} are filled in.

    {wav}: the recording, 16 bits, one channel per microphone, at the array's rate. {array}: its TOML file.
    {sources}: the most sources that a frame of the recording has.
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, command: str) -> Peer:
        """From a command line; TytoError where it has no {wav}, or no words."""
        try:
            words = tuple(shlex.split(command))
        except ValueError as why:
            raise TytoError(f"{command[:80]!r} is no command: {why}") from why
        if not any("{wav}" in word for word in words):
            raise TytoError(f"{command[:80]!r} never says {{wav}}: where does the recording go?")
        program = find_program(words[0])
        return cls((str(program), *words[1:]))

    def __call__(self, recording: Recording) -> Float:
        """Run it on the recording."""
        samples = recording.load()
        seconds = samples.shape[1] / recording.array.sample_rate
        with tempfile.TemporaryDirectory(prefix="tyto-peer-") as name:
            folder = Path(name)
            peak = float(np.abs(samples).max(initial=0.0))
            write_audio(folder / WAV, samples / max(1.0, peak), recording.array.sample_rate)
            write_whole(folder / ARRAY, recording.array.to_toml().encode())
            filled = {
                "{wav}": str(folder / WAV),
                "{array}": str(folder / ARRAY),
                "{sources}": str(int(recording.n_sources.max(initial=1))),
            }
            words = [_filled(word, filled) for word in self.words]
            most = int(LONGEST_LINE * MOST_LINES_A_SECOND * (seconds + 1))
            allowed = SECONDS + PER_SECOND * seconds
            text = run_program(words, folder, allowed, where=Path.cwd(), most_said=most)
        return at_labels(read_lines(text, Path(self.words[0]).name), recording)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def read_lines(text: str, name: str = "the program") -> list[Line]:
    """Lines of a peer in the order of their times; TytoError names what is none.

    >>> read_lines("# time azimuth\\n0.2 370\\n0.1 10 20")
    [(0.1, (10.0, 20.0)), (0.2, (10.0,))]
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            time, *azimuths = map(float, line.split())
            if not all(map(math.isfinite, (time, *azimuths))):
                raise ValueError
        except ValueError:
            raise TytoError(
                f"line {number} of {name} is {line[:60]!r}; expected a time in seconds and azimuths in "
                "degrees, such as '0.085 135'"
            ) from None
        found.append((time, tuple(azimuth % 360.0 for azimuth in azimuths)))
    return sorted(found)


def at_labels(lines: Sequence[Line], recording: Recording) -> Float:
    """What lines say of each labelled frame: azimuths (n_frames, 2), NaN where nothing is said."""
    rate = recording.array.sample_rate
    times = [time for time, _ in lines]
    start = recording.frame_ids * recording.hop / rate
    length = recording.frame_length / rate
    answers = np.full((len(start), 2), np.nan)
    for row, begin in enumerate(start.tolist()):
        inside = range(bisect_left(times, begin), bisect_right(times, begin + length))
        if inside:
            middle = begin + length / 2
            azimuths = lines[min(inside, key=lambda i: abs(times[i] - middle))][1][:2]
            answers[row, : len(azimuths)] = azimuths
    return answers


@dataclass(frozen=True)
class OdasTracker:
    """ODAS's tracks at the end of each frame, those that talk most first."""

    program: Path
    settings: OdasSettings

    def __call__(self, recording: Recording) -> Float:
        """Run it on the recording."""
        array = recording.array
        half = recording.frame_length / array.sample_rate / 2
        middle = recording.frame_ids * recording.hop / array.sample_rate + half
        reports = run_odas(self.program, array, recording.load(), self.settings)
        answers = np.full((len(middle), 2), np.nan)
        for row, tracks in zip(
            answers, at_frames(reports, middle.tolist(), half, self.settings), strict=True
        ):
            azimuths = [azimuth for _, azimuth in tracks[:2]]
            row[: len(azimuths)] = azimuths
        return answers


@dataclass(frozen=True)
class OdasLocalizer:
    """ODAS's potential sources, before they are tracked.

    Those of the hops of a frame are laid around a circle, each as high as its energy and `SPREAD` wide, and
    its highest peaks are taken, as for our own maps.
    """

    program: Path
    settings: OdasSettings

    def __call__(self, recording: Recording) -> Float:
        """Run it on the recording."""
        array = recording.array
        reports = run_odas_localizer(self.program, array, recording.load(), self.settings)
        hops = [report.hop * HOP / RATE for report in reports]
        start = recording.frame_ids * recording.hop / array.sample_rate
        length = recording.frame_length / array.sample_rate
        maps = np.zeros((len(start), N_DIRECTIONS))
        for row, begin in zip(maps, start.tolist(), strict=True):
            inside = reports[bisect_right(hops, begin) : bisect_right(hops, begin + length)]
            for azimuth, energy in (source for report in inside for source in report.sources):
                row += max(energy, 0.0) * encode([azimuth], SPREAD)[0]
        answers = np.full((len(start), 2), np.nan)
        heard, several = maps.any(axis=1), recording.n_sources > 1
        answers[heard, 0] = decode(maps[heard])
        answers[heard & several] = decode_two(maps[heard & several])
        return answers


def odas_peers(binary: str | Path) -> dict[str, Answer]:
    """The rows of ODAS: its localizer, and its tracker as shipped and with the best setting we found."""
    program = find_odas(binary)
    return {
        "ODAS localizer": OdasLocalizer(program, SHIPPED),
        "ODAS tracker, as shipped": OdasTracker(program, SHIPPED),
        "ODAS tracker, best setting": OdasTracker(program, BEST),
    }


class PeerScore(NamedTuple):
    """A row of the table, in % and degrees.

    acc, acc_10: of all sources, those found within 5 and 10 degrees. answered: of all sources, those with an
    azimuth. mae: over frames with an azimuth for every source, NaN if there are none.
    """

    name: str
    n_sources: int
    n_frames: int
    acc: Interval
    acc_10: float
    answered: float
    mae: float


def measure_peers(
    recordings: Sequence[Recording],
    peers: Mapping[str, Answer],
    methods: Sequence[str] = ("srp", "music"),
    *,
    band: Band = SPEECH_BAND,
    processes: int = 1,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> list[PeerScore]:
    """Our methods and other people's programs on the frames with one and with two sources.

    methods: names in `tytoalba.localizer.locate.METHODS`. processes: recordings at a time; 0: one per core.
    on_progress: called with (name, recordings done, recordings in all).
    """
    if not recordings:
        raise DataError("no recordings to measure on")
    if twice := set(peers) & set(methods):
        raise TytoError(f"{sorted(twice)[0]!r} is a method of ours: give the program another name")
    rows = []
    outcomes = score_recordings(recordings, methods, band=band, processes=processes, on_progress=on_progress)
    for name, own in outcomes.items():
        for n, found in own.items():
            rows.append(_score(name, n, found.reference, found.estimate, found.recording))
    for name, answer in peers.items():
        answers = []
        for number, each in enumerate(parallel_map(partial(_folded, answer), recordings, processes)):
            answers.append(each)
            if on_progress:
                on_progress(name, number + 1, len(recordings))
        for n in (1, 2):
            parts = [_with_sources(r, found, n) for r, found in zip(recordings, answers, strict=True)]
            reference, estimate = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            if len(reference):
                numbers = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
                rows.append(_score(name, n, reference, estimate, numbers))
    return rows


def _folded(answer: Answer, recording: Recording) -> Float:
    """An array on a line cannot tell sides apart, and nobody's answer is judged by them."""
    return recording.array.fold(answer(recording))


def _with_sources(recording: Recording, answers: Float, n: int) -> tuple[Float, Float]:
    """Reference and estimate of the frames with n sources."""
    rows = recording.n_sources == n
    there = np.sort(recording.azimuth[rows], axis=1)[:, :n]  # NaN sorts last
    return recording.array.fold(there), answers[rows][:, :n]


def _score(name: str, n: int, reference: Float, estimate: Float, recording: NDArray[np.intp]) -> PeerScore:
    found = [100.0 * count(reference, estimate, within)[:, 0] / n for within in (5.0, 10.0)]
    answered = np.isfinite(estimate).mean(axis=1)
    complete = answered == 1.0
    mae = float(match(reference[complete], estimate[complete]).mean()) if complete.any() else math.nan
    mean = float(found[0].mean())
    acc = Interval(mean, math.nan, math.nan)
    if len(np.unique(recording)) > 1:  # one recording says nothing about others
        acc = bootstrap(found[0], recording, rng=np.random.default_rng(0))
    return PeerScore(
        name, n, len(reference), acc, float(found[1].mean()), 100.0 * float(answered.mean()), mae
    )
