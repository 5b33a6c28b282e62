"""What a localizer has learned, and nothing of it twice: secret sums, to add to, take from and merge.

A state is the array, its prior, the options and seed of the random features, the sums G and Q, how often each
direction was taught, a few small sums that private releases are made from (`offsets`), and a keyed digest of
each lesson, by which a lesson is known again when it shall be
forgotten. Rows of a lesson are kept only if asked for. Every sum is one of integers: the same lessons give
the same bytes in any order, and a lesson that was forgotten leaves none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba import __version__
from tytoalba.errors import FileError, TytoError, UnknownLessonError
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.triangles import packed, unpacked
from tytoalba.learning.tyto import Lesson, Sums, Tyto
from tytoalba.localizer.frontend import USUAL, VERSIONS
from tytoalba.localizer.lessons import gather, lesson_name
from tytoalba.localizer.model import (
    Model,
    checked_options,
    fitting,
    listed,
    prior_from,
    prior_parts,
    refuse_removed,
    task_of,
)
from tytoalba.localizer.offsets import BOUND, N_SUMS, Offsets
from tytoalba.localizer.release import release_gate
from tytoalba.signal.array import MicArray
from tytoalba.storage.tensors import Arrays, pack, unpack

KIND, RECIPE, VERSION = "state", "recipe", 1
RELEASE = 1
"""Version of the sums for releases (`offsets`): their meaning must not change without another number."""
OLDER = (
    "each keeps the one that it was made with. Teach the lessons of one again to a state that is like the "
    "other: `tyto new C --like A`"
)
TWICE = "this was taught already; to count it more often would not make it truer"
DEFAULTS: dict[str, Any] = {
    "n_features": 2000,
    "bandwidth": 1.5,
    "alpha": 0.3,
    "sigma": 8.0,
    "prior_frames": 1000.0,
    "sound": 1.0,
    "simulated": 2,
    "views": 1,
    "expansion": "random",
}
"""As the benchmarks have them, but for fewer random features: a home teaches few frames."""


@dataclass(frozen=True)
class Kept:
    """A lesson that can be forgotten without its recording.

    who, azimuth (degrees), time (seconds since 1970): as it was taught. part: what to take away again.
    release: what it added to the sums for releases, where there are any.
    """

    who: str
    azimuth: tuple[float, ...]
    time: int
    part: Lesson | Sums | None = None
    release: Offsets | None = None


@dataclass
class State:
    """See the module. lessons: frames of each lesson by its keyed digest. array: as it is mounted.

    owner: fingerprint of whose ledger (`store`) says what was learned; "" where there is none. A claim: only
    the ledger or signature beside the file, which sign the digest of all of this, make it more than that.
    release: sums for private releases; None in a state that was made before there were any.
    frontend: version of the front end (`FrontEnd`) that all its lessons came through.
    constants: digest of what the front end computes for itself (`Prior.steering_digest`); "" of version 1.
    """

    array: MicArray
    learner: Tyto
    options: dict[str, Any]
    lessons: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    owner: str = ""
    release: Offsets | None = field(default_factory=Offsets.none)
    frontend: int = USUAL
    constants: str = ""

    @classmethod
    def new(cls, array: MicArray, prior: Prior, seed: int, *, frontend: int = USUAL, **options: Any) -> State:
        """A state that has learned nothing. options: those of `DEFAULTS` that shall be others."""
        if unknown := [name for name in options if name not in DEFAULTS]:
            raise TytoError(f"no option called {unknown[0]!r}; known: {', '.join(DEFAULTS)}")
        chosen = checked_options(DEFAULTS | options | {"seed": seed})
        array = fitting(array, prior, chosen["n_features"])
        constants = prior.steering_digest if _checked_frontend(frontend) != 1 else ""
        return cls(array, _learner(prior, chosen), chosen, frontend=frontend, constants=constants)

    @property
    def prior(self) -> Prior:
        """What it starts from."""
        assert self.learner.prior
        return self.learner.prior

    @property
    def n_frames(self) -> int:
        """Frames learned and not forgotten."""
        return sum(self.lessons.values())

    def copy(self) -> State:
        """One that can be changed without changing this."""
        return replace(self, learner=copy(self.learner), lessons=dict(self.lessons), kept=dict(self.kept))

    def model(self) -> Model:
        """What can be shared; `against_release` says why it should still wait."""
        W, weight = (values.astype(np.float32) for values in self.learner.solution())
        frontend = max(self.frontend, USUAL)  # the first one differs in last bits only
        return Model(
            self.array, self.prior, self.options, W, weight, self.learner.n_frames, frontend=frontend
        )

    def against_release(self) -> list[str]:
        """Reasons against giving a model away; none where nothing was learned."""
        if not self.lessons:
            return []
        smallest = min(self.lessons.values())
        return release_gate(self.n_frames, self.options["n_features"], smallest, self.learner.counts)

    def teach(self, phase: Phase | Iterable[Phase], keep: Kept | None = None) -> str:
        """Learn frames; returns the lesson's digest. A lesson that is known already is refused.

        phase: all frames of the lesson, or blocks of them. keep: what to write beside its rows or sums,
        which are then kept.
        """
        lesson = gather(self.learner, phase, self.options["seed"], self.frontend)
        if lesson.name in self.lessons:
            raise TytoError(TWICE)
        self.learner.add(lesson.part)
        self.lessons[lesson.name] = lesson.n_frames
        own = None if self.release is None else lesson.release
        self._change_release(own)
        if keep is not None:
            self.kept[lesson.name] = replace(keep, part=lesson.part, release=own)
        return lesson.name

    def add_sums(self, lessons: Iterable[tuple[str, int]], part: Sums, release: Offsets) -> None:
        """Learn lessons (name, frames) that were gathered elsewhere: the same to the byte as to teach them.

        Sums that these lessons cannot have are refused, and lessons that are known already or come twice.
        """
        given = list(lessons)
        added = dict(given)
        if len(added) < len(given) or added.keys() & self.lessons.keys():
            raise TytoError(TWICE)
        n_frames, n_sources = sum(added.values()), int(part.counts.sum())
        right = part.head.n == n_frames * self.learner.n_views
        right = right and n_frames <= n_sources <= len(part.counts) * n_frames
        trial = self.copy()
        trial.learner.add(part)
        trial.lessons |= added
        trial._change_release(None if self.release is None else release)
        if not right or not trial._release_is_possible():
            raise FileError("these sums belong to no such lessons")
        self.learner, self.lessons, self.release = trial.learner, trial.lessons, trial.release

    def recipe(self) -> bytes:
        """All that lessons are computed with and nothing that was taught; secret, as it has the seed."""
        of_prior, arrays = prior_parts(replace(self.prior, frames={}))  # frames are for answers
        own = {
            "array": self.array.to_toml(),
            "options": self.options,
            "frontend": self.frontend,
            "constants": self.constants,
            "program": __version__,
        }
        return pack(RECIPE, VERSION, own | of_prior, arrays)

    @classmethod
    def of_recipe(cls, data: bytes, what: str = "this recipe") -> State:
        """A state that has learned nothing and can gather lessons; of the same version of the program."""
        header, arrays = unpack(data, RECIPE, VERSION, what)
        if (other := header.get("program")) != __version__:
            raise FileError(
                f"{what} is of tytoalba {str(other)[:40]}, and here is {__version__}: install one version"
            )
        try:
            return cls._untaught(header, arrays, what)
        except (TytoError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FileError(f"{what} is damaged: {error}") from error

    @classmethod
    def _untaught(cls, header: dict[str, Any], arrays: Arrays, what: str) -> State:
        options = checked_options(header["options"])
        frontend = _checked_frontend(header.get("frontend", 1))
        constants = "" if frontend == 1 else _checked_constants(header["constants"])
        prior = replace(prior_from(header, arrays), agreed=constants)
        array = fitting(MicArray.from_toml(header["array"], what), prior, options["n_features"])
        return cls(array, _learner(prior, options), options, frontend=frontend, constants=constants)

    def forget(self, phase: Phase | Iterable[Phase]) -> str:
        """Take away what these frames taught, exactly; frames that were not taught are refused."""
        lesson = gather(self.learner, phase, self.options["seed"], self.frontend)
        if lesson.name not in self.lessons:
            raise UnknownLessonError(_unknown(self.frontend))
        self.learner.remove(lesson.part)
        self._change_release(lesson.release, sign=-1)
        del self.lessons[lesson.name]
        self.kept.pop(lesson.name, None)
        return lesson.name

    def forget_kept(self, which: Callable[[Kept], bool]) -> list[str]:
        """Take away all kept lessons that the function picks, exactly."""
        names = [name for name, kept in self.kept.items() if which(kept)]
        learner = copy(self.learner)
        for name in names:
            part = self.kept[name].part
            assert part
            learner.remove(part)
        self.learner = learner
        for name in names:
            self._change_release(self.kept[name].release, sign=-1)
            del self.kept[name], self.lessons[name]
        return names

    def merge(self, other: State) -> None:
        """Add all that another state has learned; the same lesson in both is refused."""
        if self.frontend != other.frontend:
            raise TytoError(
                "these states cannot be merged: they differ in the version of their front end "
                f"({self.frontend} and {other.frontend}), which computes features from sound. Teach the "
                "lessons of the older one to a new state, `tyto new B --like A`"
            )
        same = [
            (self.options, other.options, "options or seed: make one like the other, `tyto new B --like A`"),
            (_meaning(self.prior), _meaning(other.prior), f"prior: {OLDER}"),
            (self.array, other.array, "array or how it is mounted"),
            (self.constants, other.constants, "steering matrices: they were made on machines that differ"),
        ]
        for mine, theirs, what in same:
            if mine != theirs:
                raise TytoError(f"these states cannot be merged: they differ in their {what}")
        if twice := self.lessons.keys() & other.lessons.keys():
            raise TytoError(
                f"both states have the same lessons ({len(twice)}), which count only once; forget them in one"
            )
        learner = copy(self.learner)
        learner.merge(other.learner)
        self.learner = learner
        self.lessons |= other.lessons
        self.kept |= other.kept
        if self.release is None or other.release is None:  # of some lessons they are not known
            self.release = None
            self.kept = {name: replace(kept, release=None) for name, kept in self.kept.items()}
        else:
            self.release = self.release.plus(other.release)

    def _change_release(self, offsets: Offsets | None, sign: int = 1) -> None:
        if self.release is not None and offsets is not None:
            self.release = self.release.plus(offsets, sign)

    def name(self, lesson: Lesson) -> str:
        """By what a lesson is known again: a digest of its rows that only who has the seed can compute."""
        return lesson_name(lesson, self.options["seed"], self.frontend)

    def inventory(self) -> Iterator[tuple[str, NDArray[Any], str]]:
        """Every stored array: name, values, purpose."""
        return listed(self._parts()[1])

    def to_bytes(self) -> bytes:
        """The file: secret, and the same for the same lessons in any order."""
        return pack(KIND, VERSION, *self._parts())

    def _parts(self) -> tuple[dict[str, Any], Arrays]:
        of_prior, arrays = prior_parts(self.prior)
        memory = self.learner.memory()
        arrays |= packed(memory) | {"counts": memory["counts"]}
        for name, kept in self.kept.items():
            arrays |= {f"kept.{name}.{key}": values for key, values in _kept_arrays(kept).items()}
        header = {
            "array": self.array.to_toml(),
            "options": self.options,
            "owner": self.owner,
            "lessons": self.lessons,
            "kept": {
                name: {"who": k.who, "azimuth": list(k.azimuth), "time": k.time}
                for name, k in self.kept.items()
            },
            **({"frontend": self.frontend, "constants": self.constants} if self.frontend != 1 else {}),
            **of_prior,
        }
        if self.release is not None:
            header["release"] = RELEASE
            arrays |= {f"release.{name}": values for name, values in self.release._asdict().items()}
        return header, arrays

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "this file") -> State:
        """What `to_bytes` gave; anything else, and sums that no lessons can have, are refused."""
        header, arrays = unpack(data, KIND, VERSION, what)
        refuse_removed(header, what)
        try:
            options = checked_options(header["options"])
            n_features = options["n_features"]
            if len(arrays["G"]) != n_features * (n_features + 1) // 2:  # before anything of that size is made
                raise FileError("its sums are of another size")
            state = cls._untaught(header, arrays, what)
            learner = state.learner
            memory = unpacked(arrays, n_features) | {"counts": arrays["counts"]}
            memory |= {"seed": np.array(options["seed"]), "prior": state.prior.digest}
            learner.restore(memory)
            learner.check()
            kept = {name: _kept(learner, name, about, arrays) for name, about in header["kept"].items()}
            state.lessons, state.kept, state.owner = {**header["lessons"]}, kept, header["owner"]
            state.release = _release(header.get("release"), arrays)
            state._check()
            return state
        except (TytoError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FileError(f"{what} is damaged: {error}") from error

    def _check(self) -> None:
        """Refuse lessons that contradict the sums, or each other."""
        counts = self.learner.counts
        n_frames, n_sources = self.learner.n_frames, float(counts.sum(dtype=np.float64))
        right = all(type(n) is int and n >= 1 for n in self.lessons.values()) and type(self.owner) is str
        right = right and self.n_frames == n_frames and n_frames <= n_sources <= len(counts) * n_frames
        for name, kept in self.kept.items():
            assert kept.part
            n_rows = kept.part.head.n if isinstance(kept.part, Sums) else len(kept.part.H)
            right = right and n_rows == self.lessons.get(name, 0) * self.learner.n_views
            right = right and bool((kept.part.counts <= counts).all())
            if isinstance(kept.part, Lesson):
                right = right and self.name(kept.part) == name
        if not right or not self._release_is_possible():
            raise FileError("its lessons contradict each other")

    def _release_is_possible(self) -> bool:
        """Whether the sums for releases are short enough for these lessons, and those of kept ones there."""
        parts = [(self.release, len(self.lessons), self.n_frames)]
        parts += [(kept.release, 1, self.lessons[name]) for name, kept in self.kept.items()]
        if any((part is None) != (self.release is None) for part, *_ in parts):
            return False
        return all(
            bool((np.abs(sums.astype(np.float64)) <= float(n) * BOUND).all())
            for part, *numbers in parts
            for sums, n in zip(part or (), numbers, strict=False)
        )


def _meaning(prior: Prior) -> list[bytes]:
    """All of a prior that sums behind it depend on: not how far it is trusted."""
    header, arrays = prior.parts()
    scale = {name: header["constants"].get(name) for name in ("logit_mean", "logit_spread")}
    constants = json.dumps([scale, header["steps"], header["array"]], sort_keys=True)
    return [constants.encode(), *(values.tobytes() for _, values in sorted(arrays.items()))]


def _learner(prior: Prior, options: dict[str, Any]) -> Tyto:
    named = {name: value for name, value in options.items() if name not in ("seed", "expansion", "alpha")}
    named["ridge"] = options["alpha"]  # as files call it
    return Tyto(task_of(prior, options["seed"]), prior=prior, answers="anywhere", sides="all", **named)


def _checked_frontend(version: Any) -> int:
    if type(version) is not int or version not in VERSIONS:
        *others, last = map(str, VERSIONS)
        known = f"{', '.join(others)} and {last}"
        raise FileError(
            f"its front end has version {str(version)[:20]}, this program knows {known}: a newer one made it"
        )
    return version


def _checked_constants(digest: Any) -> str:
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{16}", digest):
        raise FileError("the digest of its steering matrices was altered")
    return digest


def _unknown(frontend: int) -> str:
    """Why a recording is not forgotten that no lesson is known of."""
    why = (
        "this recording was not taught here, or not at this direction, or from another piece of it: "
        "nothing was changed"
    )
    if frontend == 1:
        why += (
            ". The state is an old one (front end 1), whose features depend on the type of CPU: if it was "
            "taught on another machine, forget it there, or teach the lessons that shall stay to a new state"
        )
    return why


def _kept_arrays(kept: Kept) -> Arrays:
    assert kept.part
    release = {} if kept.release is None else {"release": np.concatenate(kept.release)}
    if isinstance(kept.part, Lesson):
        return kept.part._asdict() | release
    return packed(kept.part.head.memory()) | {"counts": kept.part.counts} | release


def _kept(learner: Tyto, name: str, about: dict[str, Any], arrays: Arrays) -> Kept:
    start = f"kept.{name}."
    own = {key.removeprefix(start): values for key, values in arrays.items() if key.startswith(start)}
    if "H" in own:
        part: Lesson | Sums = learner.read_lesson(own)
    else:
        part = learner.read_sums(unpacked(own, learner.n_features) | {"counts": own["counts"]})
    who, when, azimuth = about["who"], about["time"], tuple(map(float, about["azimuth"]))
    if not isinstance(who, str) or type(when) is not int or not azimuth:
        raise FileError("what it says of a kept lesson was altered")
    return Kept(
        who, azimuth, when, part, _offsets(*np.split(own["release"], 2)) if "release" in own else None
    )


def _release(version: Any, arrays: Arrays) -> Offsets | None:
    """The sums for releases of a file; None where it was written before there were any."""
    if version is None:
        return None
    if version != RELEASE:
        raise FileError(f"its sums for releases are of version {str(version)[:20]!r}, expected {RELEASE}")
    return _offsets(arrays["release.lessons"], arrays["release.frames"])


def _offsets(lessons: NDArray[Any], frames: NDArray[Any]) -> Offsets:
    if any(values.dtype != np.int64 or values.shape != (N_SUMS,) for values in (lessons, frames)):
        raise FileError("its sums for releases are of another kind: they were altered")
    return Offsets(lessons, frames)
