"""`Localizer`: it tells where a sound comes from, is taught, forgets, merges and saves itself.

>>> import numpy as np
>>> from tytoalba import Localizer
>>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
>>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1  # a second, from everywhere
>>> found = localizer.locate(noise)
>>> found[0].n_sources, 0 <= found[0].azimuth[0] < 360, 0 < found[0].probability[0] < 1
(1, True, True)
>>> localizer.teach(noise, 135.0).n_frames
10
>>> localizer.forget(noise, 135.0).n_frames, localizer.n_frames
(10, 0)
"""

from __future__ import annotations

import secrets
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.data.recording import Recording
from tytoalba.errors import FileError, TytoError, UnknownLessonError
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.learning.prior.decisions import Decision, count_sources, decide, known
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import fitting_prior, is_newest
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.learning.tyto import Sums
from tytoalba.localizer.frontend import STEADY, USUAL, FrontEnd
from tytoalba.localizer.model import KIND as MODEL
from tytoalba.localizer.model import Model
from tytoalba.localizer.offsets import Offsets
from tytoalba.localizer.state import KIND as STATE
from tytoalba.localizer.state import Kept, State
from tytoalba.localizer.stream import Finder, Found, Located, Sound, Sources, Stream, sound_blocks
from tytoalba.signal.angles import Float, distance, refine, to_class, turned, wrap
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import SILENCE_DB
from tytoalba.signal.steady import SteadyNoise, Weighed
from tytoalba.storage.age import Keys
from tytoalba.storage.tensors import kind_of
from tytoalba.texts.printing import plural

LONGEST_NAME = 200
SAME_PLACE = 0.5
"""Degrees within which a kept lesson counts as taught at a direction."""


class Averaging(TypedDict, total=False):
    """What any method can be asked for."""

    context: int
    at_least: float
    silence_db: float


class Options(Averaging, total=False):
    """What a `Localizer` can be asked for; `Localizer.locate` says what it means."""

    n_sources: Sources
    taught_only: bool


@dataclass(frozen=True)
class Change:
    """What was done to a state. what: "learned", "forgot" or "merged"; lessons: their digests.

    spent: by private releases of what was merged (`budget`).
    remarks: what to know of it, such as that a recording may not be known again.
    """

    what: str
    n_frames: int
    lessons: tuple[str, ...]
    spent: float = 0.0
    remarks: tuple[str, ...] = ()


class Localizer:
    """Tells where a sound comes from, and can be taught.

    It holds a state, which can be taught and can forget, or a model, which can only locate. Azimuth is in
    degrees as the array is mounted: 0 its front, 90 its left. `new` makes one, `load` reads one.

    Parameters
    ----------
    known : State or Model
        What it knows.

    Examples
    --------
    >>> Localizer.new("respeaker-usb-4", n_features=50, seed=0)
    <Localizer of respeaker-usb-4 (4 microphones, 16000 Hz), 0 frames taught>
    """

    def __init__(self, known: State | Model) -> None:
        self._known = known
        self._model: Model | None = None
        self._frontend = FrontEnd(known.array, known.prior, known.frontend)
        self._feeding: tuple[Options, Stream] | None = None
        self.on_change: Callable[[Change, State], None] | None = None
        """Called after every change with what was done and the state afterwards: the store listens."""
        self.spent = 0.0
        """What private releases of it, or of what was merged into it, had spent when that was read to be
        merged (`store.incoming`). Files without a ledger cannot say it."""

    @classmethod
    def new(
        cls,
        array: MicArray | str | Path,
        *,
        n_features: int | None = None,
        seed: int | None = None,
        prior: Prior | None = None,
        on_progress: Progress | None = None,
        ignore_steady: bool = False,
        **options: Any,
    ) -> Localizer:
        """Make one that knows what simulations of its array taught it, and nothing else yet.

        Parameters
        ----------
        array : MicArray, str or Path
            An array, the name of a built-in one, or its TOML file.
        n_features : int, optional
            Random features of the learner; 2000 if not given.
        seed : int, optional
            Of the random features. By default a secret one, without which nobody can read what was learned.
            Localizers that shall be merged need the same: see `like`.
        prior : Prior, optional
            What to start from; by default the one that fits the array.
        on_progress : callable, optional
            Is told (done, total): for an array that has no prior of its own some rooms are simulated, which
            takes ten to twenty seconds.
        ignore_steady : bool
            Steady noise from one place, such as a fan, is taken for silence: it is neither located nor
            taught, and frequencies in which it is as loud as speech count less. Settled for good: a state
            that knows its lessons must hear them again as they were.
        **options
            Those of `tytoalba.localizer.state.DEFAULTS`.

        Returns
        -------
        Localizer

        Raises
        ------
        PriorError
            The array is far from all that priors know; the message says what is left.

        Examples
        --------
        >>> Localizer.new("respeaker-usb-4", n_features=50).n_frames
        0
        """
        mics = load_array(array)
        known = prior or fitting_prior(mics)[0]
        if isinstance(known, SharedPrior) and not known.frames:
            known = known.with_simulated_frames(on_progress=on_progress)
        if n_features is not None:
            options["n_features"] = n_features
        secret = secrets.randbits(62) if seed is None else seed
        return cls(State.new(mics, known, secret, frontend=STEADY if ignore_steady else USUAL, **options))

    @classmethod
    def like(cls, other: Localizer) -> Localizer:
        """Make a new one that can be merged with the other: same array, prior, options and seed.

        Parameters
        ----------
        other : Localizer
            A state; what it was taught is not taken over.

        Returns
        -------
        Localizer

        Raises
        ------
        TytoError
            The other is a model.

        Examples
        --------
        >>> first = Localizer.new("respeaker-usb-4", n_features=50)
        >>> first.merge(Localizer.like(first)).n_frames
        0
        """
        state = other.state
        options = {name: value for name, value in state.options.items() if name != "seed"}
        seed, frontend = state.options["seed"], state.frontend
        return cls(State.new(state.array, state.prior, seed, frontend=frontend, **options))

    @classmethod
    def load(cls, path: str | Path, keys: Keys = None) -> Localizer:
        """Read a state or a model as it is: ledger and signature are not looked at, as `open_store` does.

        Parameters
        ----------
        path : str or Path
            Its file, sealed or plain.
        keys : sequence of identities, optional
            What opens a sealed one.

        Returns
        -------
        Localizer

        Raises
        ------
        FileError
            No such file, or one that is damaged, altered or foreign.
        WrongKeyError, SealError
            A sealed file that the keys do not open.
        """
        from tytoalba.storage.sealed import read_secret

        return cls.from_bytes(read_secret(path, keys), str(path))

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "this file") -> Localizer:
        """Read the content of a file."""
        kind = kind_of(data)
        if kind == STATE:
            return cls(State.from_bytes(data, what))
        if kind == MODEL:
            return cls(Model.from_bytes(data, what))
        raise FileError(
            f"{what} is neither a state nor a model of tytoalba{f' but {kind}' if kind else ''}; "
            "`tyto new` makes one"
        )

    def save(self, path: str | Path, recipients: Any = None) -> None:
        """Write it whole or not at all, for its owner only; sealed if there are recipients.

        A state that `tyto new` made has a ledger, which must know of every change: see `open_store`.

        Parameters
        ----------
        path : str or Path
            Where to; a file that is there is replaced.
        recipients : sequence of recipients, optional
            Whose keys open the file. Plain if not given.

        Raises
        ------
        TytoError
            It cannot be written there, the state has a ledger, or it needs one: private models were released
            of a state that was merged into it.
        """
        from tytoalba.storage.files import locked
        from tytoalba.storage.sealed import write_secret

        if self.owner:
            raise TytoError(
                "this state has a ledger, which must know of every change: "
                "`with open_store(path).edit() as localizer: localizer.teach(...)`, or save it `owned_by('')`"
            )
        if self.spent:
            raise TytoError(
                "private models were released of what was merged here, and only a state with a ledger can "
                "remember what they have spent: `tyto new`, then merge into that, or "
                "`with open_store(path).edit() as localizer: localizer.merge(...)`"
            )
        with locked(path):
            write_secret(path, self.to_bytes(), recipients)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return self._known.to_bytes()

    def owned_by(self, owner: str) -> Localizer:
        """The same, under another owner's ledger (`store`)."""
        other = Localizer(replace(self.state.copy(), owner=owner))
        other.spent = self.spent
        return other

    @property
    def state(self) -> State:
        """What was learned; a model has none."""
        if isinstance(self._known, Model):
            raise TytoError(
                "this is a model: it locates and cannot learn or forget; use the state it is from"
            )
        return self._known

    @property
    def model(self) -> Model:
        """What answers are made with, solved when first needed."""
        if isinstance(self._known, Model):
            return self._known
        if self._model is None:
            self._model = self._known.model()
        return self._model

    @property
    def array(self) -> MicArray:
        """The array, as it is mounted."""
        return self._known.array

    @property
    def can_learn(self) -> bool:
        """Whether it is a state; a model only locates."""
        return isinstance(self._known, State)

    @property
    def owner(self) -> str:
        """Fingerprint of whose ledger it stands in; "" for none, and for a model."""
        return "" if isinstance(self._known, Model) else self._known.owner

    @property
    def n_frames(self) -> int:
        """Frames learned and not forgotten."""
        return self._known.n_frames

    @property
    def prior_is_newest(self) -> bool:
        """Whether its prior is the one that a new localizer of its array would get.

        It keeps the prior that it was made with, works and can be taught as ever. Only a new one starts from
        another prior: lessons are taught to it again, from their recordings.
        """
        return is_newest(self._known.prior, self.array)

    def __repr__(self) -> str:
        array, what = self.array, "Localizer" if self.can_learn else "Localizer, a model,"
        mics = f"{array.n_mics} microphones, {array.sample_rate} Hz"
        return f"<{what} of {array.name} ({mics}), {plural(self.n_frames, 'frame')} taught>"

    # ---- locating ----

    def locate(
        self,
        source: Sound,
        *,
        n_sources: Sources = 1,
        context: int = 0,
        at_least: float = 0.0,
        taught_only: bool = False,
        silence_db: float = SILENCE_DB,
        sample_rate: int | None = None,
        keys: Keys = None,
    ) -> list[Located]:
        """Tell where the sound of a recording comes from, frame by frame.

        Parameters
        ----------
        source : path, list of paths, binary file object or array
            As for `tytoalba.locate`.
        n_sources : {1, 2, 3, "auto"}
            How many sources to report per frame; "auto" finds up to three, and where there is sound but no
            direction is likely, `Located.unsure` says so.
        context : int
            Frames on each side that are averaged with a frame's own: much surer for what stands still.
        at_least : float
            Leave out directions whose chance to be within 5 degrees is smaller, 0 to 1.
        taught_only : bool
            Leave out directions more than 10 degrees from all that was taught.
        silence_db : float
            Frames below this level, in dB of full scale, have no direction.
        sample_rate : int, optional
            Hz, of samples in memory that are not at the array's rate.
        keys : sequence of identities, optional
            What opens a sealed recording.

        Returns
        -------
        list of Located
            One for each frame of 171 ms, every 85 ms.

        Raises
        ------
        AudioError
            The recording cannot be used.

        Examples
        --------
        >>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
        >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
        >>> len(localizer.locate(noise, context=2))
        10
        """
        stream = self.new_stream(
            n_sources=n_sources,
            context=context,
            at_least=at_least,
            taught_only=taught_only,
            silence_db=silence_db,
        )
        return list(stream.run(sound_blocks(source, self.array, sample_rate, keys)))

    def stream(self, blocks: Iterable[NDArray[Any]], **options: Unpack[Options]) -> Iterator[Located]:
        """Tell where sound comes from that comes in blocks, as an iterator gives them.

        Each frame is answered as soon as it is complete, and `context` frames later where there is one.

        Parameters
        ----------
        blocks : iterable of array, (n_mics, any length)
            Floats in [-1, 1] at the array's rate.
        **options
            Those of `locate` but for `sample_rate` and `keys`.

        Returns
        -------
        iterator of Located
            One for each frame.

        Raises
        ------
        AudioError
            A block that cannot be right, or sound too short for one frame.

        Examples
        --------
        >>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
        >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
        >>> len(list(localizer.stream(np.split(noise, 5, axis=1))))
        10
        """
        return self.new_stream(**options).run(blocks)

    def feed(self, block: NDArray[Any], **options: Unpack[Options]) -> list[Located]:
        """Take a block of sound, as a callback gets it, and give the frames that are now complete.

        Parameters
        ----------
        block : array, (n_mics, any length)
            Floats in [-1, 1] at the array's rate. Libraries that give (n_samples, n_mics) need `block.T`.
        **options
            Those of `locate` but for `sample_rate` and `keys`, the same for all blocks of a recording.

        Returns
        -------
        list of Located
            Often empty: a frame begins every 85 ms.

        Raises
        ------
        AudioError
            A block that cannot be right; what was fed before is not lost.

        Examples
        --------
        >>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
        >>> noise = np.random.default_rng(0).standard_normal((4, 4096)) * 0.1
        >>> [len(localizer.feed(block)) for block in np.split(noise, 4, axis=1)], localizer.finish()
        ([0, 0, 1, 1], [])
        """
        if self._feeding is None:
            self._feeding = options, self.new_stream(**options)
        first, stream = self._feeding
        if first != options:
            raise TytoError("the options of feed must stay the same; finish() ends a recording")
        return stream.feed(block)

    def finish(self) -> list[Located]:
        """End what was fed; the next `feed` begins a new recording.

        Returns
        -------
        list of Located
            The frames that still waited for their neighbours: as many as `context`, or fewer.

        Examples
        --------
        >>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
        >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
        >>> len(localizer.feed(noise, context=2)), len(localizer.finish())
        (8, 2)
        """
        feeding, self._feeding = self._feeding, None
        return feeding[1].finish() if feeding else []

    def new_stream(
        self, *, n_sources: Sources = 1, taught_only: bool = False, **options: Unpack[Averaging]
    ) -> Stream:
        """What `locate`, `stream` and `feed` run on."""
        if n_sources not in (1, 2, 3, "auto"):
            raise TytoError(f"n_sources must be 1, 2, 3 or 'auto', got {n_sources!r}")
        if taught_only and not self.can_learn:
            raise TytoError("a model does not tell where it was taught: ask the state that it was made from")
        return Stream(_Decider(self, n_sources, taught_only), **options)

    @property
    def finder(self) -> Finder:
        """What finds one source per frame; `Finder.scores` are its scores."""
        return _Decider(self, 1, False)

    def answers(self, recording: Recording, n_sources: Literal[1, 2]) -> Decision:
        """What is found in the frames of a labelled recording with that many sources, without context."""
        X, azimuth = self._frontend.labelled(recording)
        X = X[np.isfinite(azimuth).sum(axis=1) == n_sources]
        maps = self.model.scores(X)
        maps = np.maximum(maps, self.model.lone_waves(X, maps))
        decision = self._decision(maps, n_sources, 1)
        return replace(decision, azimuth=self._mounted(maps, decision.azimuth))

    def _decision(self, maps: Float, n_sources: Sources, n_averaged: NDArray[np.intp] | int) -> Decision:
        """Directions in the frame of the prior, in scores of the learner (n_frames, 360)."""
        prior = self.model.prior
        once = prior.array.without_images(maps)
        if n_sources == "auto":
            return count_sources(once, prior.confidence, n_averaged)
        return decide(once, prior.confidence, n_sources, n_averaged)

    def _mounted(self, maps: Float, azimuth: Float) -> Float:
        """Degrees between those of the grid, as the array is mounted, of what was found in maps."""
        return np.asarray(wrap(np.round(self.array.fold(refine(maps, azimuth) + self._frontend.fit.turn), 2)))

    # ---- learning and forgetting ----

    def teach(
        self,
        audio: Sound,
        azimuth: float | Sequence[float],
        *,
        who: str = "",
        keep: bool = False,
        when: int | None = None,
        sample_rate: int | None = None,
        keys: Keys = None,
    ) -> Change:
        """Learn that this sound comes from there.

        Parameters
        ----------
        audio : path, list of paths, binary file object or array
            The recording; pauses in it are not learned.
        azimuth : float or sequence of float
            Degrees, as the array is mounted: of one source, or of two that sound at the same time.
        who : str
            Who teaches; written down only with `keep`.
        keep : bool
            Keep the rows of this lesson, so that it can be forgotten without its recording. Who taught it,
            where and when are then written down too.
        when : int, optional
            Seconds since 1970; now if not given.
        sample_rate, keys
            As for `locate`.

        Returns
        -------
        Change
            How many frames were learned, and the digest of the lesson.

        Raises
        ------
        AudioError
            A recording that cannot be used, or is silent.
        TytoError
            It was taught already, or this is a model; nothing was changed.

        Examples
        --------
        >>> localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
        >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
        >>> localizer.teach(noise, 135.0, who="anna", keep=True).n_frames
        10
        >>> localizer.forget(who="anna").n_frames, localizer.n_frames
        (10, 0)
        """
        places = self._frontend.places(azimuth)
        if who and not keep:
            raise TytoError("a name is written down only with what is kept: add keep, or leave the name out")
        if len(who) > LONGEST_NAME or not who.isprintable():
            raise TytoError(
                f"a name is one line of up to {LONGEST_NAME} printable characters, got {who[:40]!r}"
            )
        taught_at = int(time.time() if when is None else when)
        given = tuple(np.atleast_1d(np.asarray(azimuth, np.float64)).tolist())
        kept = Kept(str(who), given, taught_at) if keep else None
        varies: list[str] = []
        blocks = self._frontend.lesson_blocks(audio, sample_rate, keys, varies)
        return self._taught([((_phase(X, places) for X in blocks), kept)], varies)

    def learn(
        self, recordings: Sequence[Recording], on_progress: Callable[[int, int], None] | None = None
    ) -> Change:
        """Learn labelled recordings, each a lesson: all of them, or none.

        Parameters
        ----------
        recordings : sequence of Recording
            Of this array as it is mounted; frames without a source are not learned.
        on_progress : callable, optional
            Called after each recording with how many are done and how many there are.

        Returns
        -------
        Change
            How many frames were learned, and the digests of the lessons.

        Raises
        ------
        TytoError
            A recording of another array, one that was taught already, no frame with a source, or this is a
            model; nothing was changed.
        """

        def lessons() -> Iterator[tuple[Iterable[Phase], None]]:
            for number, recording in enumerate(recordings, 1):
                yield self.phases(recording), None
                if on_progress:
                    on_progress(number, len(recordings))

        return self._taught(lessons())

    def learn_sums(self, lessons: Iterable[tuple[str, int]], part: Sums, release: Offsets) -> Change:
        """Learn lessons of which there are only sums, as `State.add_sums` takes them."""
        trial, given = self.state.copy(), list(lessons)
        trial.add_sums(given, part, release)
        return self._become("learned", trial, [name for name, _ in given])

    def forget(
        self,
        audio: Sound | None = None,
        azimuth: float | Sequence[float] | None = None,
        *,
        who: str | None = None,
        since: int | None = None,
        lesson: str | None = None,
        sample_rate: int | None = None,
        keys: Keys = None,
    ) -> Change:
        """Forget exactly, as if it had never been taught: a recording, or lessons that were kept.

        Parameters
        ----------
        audio : path, list of paths, binary file object or array, optional
            The recording as it was taught, with its `azimuth` and nothing else. Without it all kept lessons
            are meant for which the rest is true.
        azimuth : float or sequence of float, optional
            Degrees, where it was taught.
        who : str, optional
            Who taught it.
        since : int, optional
            Seconds since 1970, when it was taught at the earliest.
        lesson : str, optional
            Digest of one lesson, as `teach` gives it.
        sample_rate, keys
            As for `locate`.

        Returns
        -------
        Change
            How many frames were forgotten, of which lessons.

        Raises
        ------
        TytoError
            Nothing was taught that fits; nothing was changed.
        """
        if audio is not None:
            if azimuth is None or any(one is not None for one in (who, since, lesson)):
                raise TytoError("to forget a recording, say at which azimuth it was taught, and nothing else")
            places, varies = self._frontend.places(azimuth), list[str]()
            blocks = self._frontend.lesson_blocks(audio, sample_rate, keys, varies)
            return self._forgot([(_phase(X, places) for X in blocks)], varies)
        if all(one is None for one in (azimuth, who, since, lesson)):
            raise TytoError("say what to forget: a recording and its azimuth, or an azimuth, a name, a time")
        at = None if azimuth is None else wrap(self._frontend.places(azimuth) + self._frontend.fit.turn)
        trial = self.state.copy()
        only = None if lesson is None else trial.kept.get(lesson)
        names = trial.forget_kept(
            lambda kept: _meant(kept, at, who, since) and (lesson is None or kept is only)
        )
        if not names:
            raise TytoError(self._why_not(at))
        return self._become("forgot", trial, names)

    def forget_recordings(self, recordings: Iterable[Recording]) -> Change:
        """Forget labelled recordings that were learned: all of them, or none.

        Parameters
        ----------
        recordings : iterable of Recording
            As they were given to `learn`.

        Returns
        -------
        Change
            How many frames were forgotten, of which lessons.

        Raises
        ------
        TytoError
            One of them was not learned here; nothing was changed.
        """
        return self._forgot(map(self.phases, recordings))

    def merge(self, other: Localizer) -> Change:
        """Add all that another one has learned.

        Parameters
        ----------
        other : Localizer
            One with the same array, prior, options and seed: see `like`.

        Returns
        -------
        Change
            How many frames were added, of which lessons.

        Raises
        ------
        TytoError
            They are not alike, or share a lesson.
        """
        trial = self.state.copy()
        trial.merge(other.state)
        self.spent = max(self.spent, other.spent)
        return self._become("merged", trial, other.state.lessons, spent=other.spent)

    @property
    def evidence(self) -> NDArray[np.int64]:
        """How often each direction was taught, (360,), as the array is mounted; zeros for a model.

        An array on a line is taught at a direction and its mirror image alike.
        """
        if isinstance(self._known, Model):
            return np.zeros(self._known.prior.n_directions, np.int64)
        return np.roll(self._known.learner.counts, round(self._frontend.fit.turn))

    def inventory(self) -> Iterator[tuple[str, NDArray[Any], str]]:
        """Every array that its file holds: name, values, purpose."""
        return self._known.inventory()

    def phases(self, recording: Recording) -> Iterable[Phase]:
        """A labelled recording as a lesson, in blocks of frames; an empty list if no frame has a source."""
        self._frontend.refuse_others(recording)
        if not recording.n_sources.any():
            return []
        return (_phase(X, azimuth) for X, azimuth in self._frontend.labelled_blocks(recording) if len(X))

    def _taught(
        self, lessons: Iterable[tuple[Phase | Iterable[Phase], Kept | None]], varies: Sequence[str] = ()
    ) -> Change:
        """Learn all lessons, or none. varies: why other programs may read other samples, once known."""
        trial = self.state.copy()
        names = [trial.teach(phase, keep) for phase, keep in lessons if phase]
        if not names:
            raise TytoError("there is nothing to learn: no frame has a source")
        return self._become("learned", trial, names, remarks=_remarks(varies, self.array))

    def _forgot(self, lessons: Iterable[Phase | Iterable[Phase]], varies: Sequence[str] = ()) -> Change:
        """Forget all lessons, or none."""
        trial = self.state.copy()
        try:
            return self._become("forgot", trial, [trial.forget(phase) for phase in lessons if phase])
        except UnknownLessonError as error:
            raise UnknownLessonError(" ".join([f"{error}.", *_remarks(varies, self.array)])) from error

    def _become(
        self,
        what: str,
        trial: State,
        names: Iterable[str],
        *,
        spent: float = 0.0,
        remarks: tuple[str, ...] = (),
    ) -> Change:
        """Take a changed state for one's own, and say what was done."""
        change = Change(what, abs(trial.n_frames - self.n_frames), tuple(names), spent, remarks)
        self._known, self._model = trial, None
        if self.on_change:
            self.on_change(change, trial)
        return change

    def _why_not(self, azimuth: Float | None) -> str:
        n_kept = len(self.state.kept)
        reason = f"none of the kept lessons ({n_kept}) is meant"
        if azimuth is not None:
            near = to_class(wrap(azimuth - self._frontend.fit.turn))
            n_frames = int(self.state.learner.counts[near].sum())
            reason += f"; {plural(n_frames, 'frame was', 'frames were')} taught there without keeping"
        return (
            f"{reason}. What was not kept can only be taken away with its recording: give it again, with its "
            "azimuth (nobody else's sound can stand for it)"
        )


@dataclass(frozen=True)
class _Decider:
    """How a localizer finds directions in frames (`stream.Finder`)."""

    localizer: Localizer
    n_sources: Sources
    taught_only: bool
    calibrated: ClassVar[bool] = True

    @property
    def array(self) -> MicArray:
        return self.localizer.array

    def maps(self, frames: NDArray[np.float32], weighed: Weighed | None = None) -> Float:
        """Scores of the learner and lone waves, (n_frames, 2, 360), in the frame of the prior."""
        model, frontend = self.localizer.model, self.localizer._frontend
        X = frontend.features(frames) if weighed is None else frontend.flat(weighed)
        scores = model.scores(X)
        return np.stack([scores, model.lone_waves(X, scores)], axis=1)

    def steady_noise(self) -> SteadyNoise | None:
        return self.localizer._frontend.steady_noise()

    def decide(self, maps: Float, n_averaged: NDArray[np.intp] | int = 1) -> Found:
        localizer, learned = self.localizer, maps.max(axis=1)
        decision = localizer._decision(learned, self.n_sources, n_averaged)
        azimuth, array = decision.azimuth, localizer.array
        if self.taught_only:
            mounted = array.fold(azimuth + localizer._frontend.fit.turn)
            azimuth = np.where(known(mounted, localizer.evidence), azimuth, np.nan)
        index = to_class(np.nan_to_num(azimuth), learned.shape[1])
        score = np.take_along_axis(learned, index, axis=1)
        return Found(localizer._mounted(learned, azimuth), score, decision.probability)

    def scores(self, maps: Float) -> Float:
        """Scores of the learner, as the array is mounted, (n_frames, 360)."""
        return self.array.without_images(turned(maps[:, 0], self.localizer._frontend.fit.turn))

    @property
    def counting(self) -> Sequence[Calibration]:
        """How far peaks of the scores are sources."""
        return self.localizer.model.prior.counting()


def _phase(X: NDArray[np.float32], azimuth: Float) -> Phase:
    places = np.broadcast_to(azimuth, (len(X), azimuth.shape[-1]))
    return Phase(X, places, np.unique(to_class(places[np.isfinite(places)])))


def _remarks(varies: Sequence[str], array: MicArray) -> tuple[str, ...]:
    """What it means for forgetting that samples were resampled or decoded."""
    if not varies:
        return ()
    return (
        f"The recording was {' and '.join(varies)}: another version of that program, or another type of CPU, "
        "may give other samples, and then this recording is not known again when it shall be forgotten. Keep "
        f"the lesson (--keep), or make a WAV or FLAC file at {array.sample_rate} Hz, teach that and keep it.",
    )


def _meant(kept: Kept, azimuth: Float | None, who: str | None, since: int | None) -> bool:
    place = azimuth is None or all(
        float(distance(np.asarray(kept.azimuth), a).min()) <= SAME_PLACE for a in azimuth
    )
    named = who is None or unicodedata.normalize("NFC", kept.who) == unicodedata.normalize("NFC", who)
    return place and named and (since is None or kept.time >= since)
