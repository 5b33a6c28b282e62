"""How a prior is made, in one call: simulate rooms, mix frames, train, calibrate, save, judge.

Everything that can be refused is refused before the first room is simulated, which takes minutes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from tytoalba import __version__
from tytoalba.data.features import FeatureSet, Progress
from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.stems import Stems, gather_stems
from tytoalba.data.simulation.voice import SyntheticVoices, Voices, choose_voices
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.judge import Judgement, by_family, calibrated, judge, leave_one_out
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import prior_folder
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.learning.prior.train import FURTHER, RECIPE, train_prior
from tytoalba.learning.training import Recipe
from tytoalba.signal.alignment import same_places
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.writing import write_json

TURNS = ("hybrid", "anechoic", "hybrid", "hybrid", "pyroom")
"""Families of acoustics in the turn that scenes take: a scene of pyroomacoustics costs five of the others."""
Stage = Callable[[str], AbstractContextManager[Progress]]
"""From the title of a piece of work to what shows its progress, a function of (done, total)."""
Simulated = TypeVar("Simulated", FeatureSet, Stems)


@dataclass(frozen=True)
class PriorSettings:
    """How large a prior is and how long it learns.

    scenes: simulated rooms, each with four places for talkers. frames: mixed in them, others for every second
    epoch. width, blocks: channels and depth of the network. epochs: passes over the frames. rate: learning
    rate to begin with; 0.002, or 0.0005 to go on from another prior, if not given. calm: share of rooms that
    are quiet, with a well-built device. families: acoustics that scenes take in turn. seed: of everything.
    """

    scenes: int = 1000
    frames: int = 40000
    width: int = 64
    blocks: int = 4
    epochs: int = 8
    rate: float | None = None
    calm: float = 0.5
    families: tuple[str, ...] = TURNS
    seed: int = 0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.families if name not in FAMILIES]:
            raise TytoError(f"no acoustics called {unknown[0]!r}; known: {', '.join(FAMILIES)}")
        least = 10 * len(self.families)
        if self.scenes < least or min(self.frames, self.width, self.blocks) < 1:
            raise TytoError(f"scenes must be at least {least}, and frames, width and blocks at least 1")
        if min(self.seed, self.epochs) < 0:
            raise TytoError(f"epochs and seed must not be negative, got {self.epochs} and {self.seed}")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise TytoError(f"rate must be a positive number, got {self.rate:g}")
        if not 0 <= self.calm <= 1:
            raise TytoError(f"the share of calm scenes must be from 0 to 1, got {self.calm:g}")

    def training(self, further: bool) -> dict[str, Any]:
        """What `train_prior` takes. further: whether it goes on from another prior."""
        recipe: Recipe = FURTHER if further else RECIPE
        recipe = replace(recipe, epochs=self.epochs, lr=self.rate or recipe.lr)
        return {"width": self.width, "n_blocks": self.blocks, "recipe": recipe, "seed": self.seed}


@dataclass(frozen=True)
class MadePrior:
    """A prior, the file that it is in, and how well it does by family of acoustics.

    left_out: the same for priors of the recipe that were trained without that family; None if not asked for.
    """

    prior: Prior
    path: Path
    judged: dict[str, list[Judgement]]
    left_out: dict[str, list[Judgement]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For a result file."""
        found = {"array": self.prior.array.name, "about": self.prior.about, "judged": _plain(self.judged)}
        return found if self.left_out is None else found | {"left_out": _plain(self.left_out)}


@contextmanager
def silent(title: str) -> Iterator[Progress]:  # noqa: ARG001
    """Progress that nobody is shown."""
    yield lambda *_: None


def make_prior(
    array: MicArray | str | Path,
    settings: PriorSettings | None = None,
    *,
    output: str | Path | None = None,
    results: str | Path | None = None,
    start: Prior | None = None,
    speech: str | Path | None = None,
    leave_out: bool = False,
    cache: str | Path | None = None,
    device: str = "cpu",
    processes: int = 0,
    stage: Stage = silent,
) -> MadePrior:
    """Make, save and judge the prior of an array.

    Parameters
    ----------
    array : MicArray, str or Path
        The array, the name of a built-in one, or a TOML file.
    settings : PriorSettings, optional
        Sizes, learning rate, acoustics and seed.
    output : path, optional
        File to write; else where `locate` and the learner look for priors by themselves.
    results : path, optional
        File for the judgement, as JSON.
    start : Prior, optional
        Prior to go on from, of these or of other microphones. With `epochs=0` it is only calibrated.
    speech : path, optional
        Folder of real speech, one file per speaker, beside the synthetic voice.
    leave_out : bool
        Also judge the recipe on acoustics that it was not trained on.
    cache : path, optional
        Folder for simulated scenes, which are then not simulated again.
    device : str
        "cpu", "cuda", ...: where the network is trained.
    processes : int
        Processes that simulate; 0: one per core.
    stage : callable, optional
        From the title of a piece of work to a context manager that gives a function of (done, total).

    Returns
    -------
    MadePrior
        The prior, its file and the judgement. The file is written before the judging begins.

    Raises
    ------
    TytoError
        Before any work, if settings, paths, extras or the device will not do.
    """
    settings = settings or PriorSettings()
    mics = load_array(array)
    path = checked_paths(mics, output, results, cache)
    _check(settings, mics, start, leave_out, processes, device)
    at_home = start is not None and same_places(start.array, mics)
    if start and not at_home:
        start = start.moved(mics)
    synthetic, real = SyntheticVoices(), choose_voices(speech)
    simulated = _Simulator(mics, settings.families, processes, Path(cache) if cache else None, stage)
    seed, few = 3 * settings.seed, max(100, min(400, settings.scenes // 8))
    stems = None
    if start and at_home and not settings.epochs:  # nothing is learned: all stays but how far it is trusted
        made = replace(start, array=mics)
    else:
        voices = (real, synthetic) if speech else (synthetic,)
        stems = simulated(Stems, "rooms to mix in", voices, settings.scenes, "train", seed, settings.calm)
        made = _trained(stems, settings, start, device, stage)
        made.about.update(
            families=list(settings.families),
            n_scenes=settings.scenes,
            calm=settings.calm,
            speech="real and synthetic" if speech else "synthetic",
        )
    n_held = max(200, few)  # fewer calibrate badly
    held = simulated(FeatureSet, "scenes to calibrate on", (real,), n_held, "valid", seed + 1)
    made = calibrated(made, held, device)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    strange = simulated(FeatureSet, "scenes to judge on", (real,), 3 * few, "test", seed + 2)
    hold, meet = (by_family(frames, settings.families) for frames in (held, strange))
    judged = {name: judge(made, part, device) for name, part in meet.items()}
    left_out = None
    if leave_out and stems:
        with stage("families left out") as steps:
            how = settings.training(further=False)
            left_out = leave_one_out(
                stems, settings.frames, hold, meet, device=device, on_progress=steps, **how
            )
    result = MadePrior(made, path, judged, left_out)
    if results:
        write_json(result.to_dict(), results)
    return result


def checked_paths(
    array: MicArray, output: str | Path | None, results: str | Path | None, cache: str | Path | None
) -> Path:
    """The file to write; refuses paths that cannot be written, before anything is made."""
    if output is None and Path(array.name).name != array.name:
        raise TytoError(f"an array called {array.name!r} gives no name for a file; choose one (-o)")
    path = Path(output) if output else prior_folder() / f"{array.name}.safetensors"
    for file in (path, *([Path(results)] if results else [])):
        if file.is_dir():
            raise TytoError(f"{file} is a folder, not a file to write")
        folder = next(parent for parent in file.absolute().parents if parent.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise TytoError(f"{file} cannot be written: {folder} is not a folder that you may write to")
    if cache and Path(cache).exists() and not Path(cache).is_dir():
        raise TytoError(f"{cache} is a file, not a folder to keep scenes in")
    return path


def _check(
    settings: PriorSettings,
    array: MicArray,
    start: Prior | None,
    leave_out: bool,
    processes: int,
    device: str,
) -> None:
    """Refuse what cannot end well, before minutes of simulation."""
    if processes < 0:
        raise TytoError(f"processes must not be negative, got {processes}")
    if not settings.epochs and not start:
        raise TytoError("epochs 0 learns nothing: that needs a prior to start from")
    if start and leave_out:
        raise TytoError(
            "leaving families out judges priors that start anew; one to start from knows them all"
        )
    if leave_out and len(set(settings.families)) < 2:
        raise TytoError("leaving one out needs at least two families of acoustics")
    if isinstance(start, SharedPrior):
        raise TytoError(
            "the prior to start from is of the network for every array: --from-any trains that on"
        )
    check_extras(device, settings.families)
    import torch

    n_features = prior_gcc(array).n_features
    try:
        torch.empty(settings.frames, n_features, device=device)
    except RuntimeError:
        size = 4e-9 * settings.frames * n_features
        raise TytoError(
            f"{settings.frames} frames take {size:.0f} GB, more than there is: mix fewer frames"
        ) from None


def check_extras(device: str, families: Sequence[str]) -> None:
    """Refuse a device that is not there, and acoustics or training whose packages are not installed."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("new priors", "train") from error
    if "pyroom" in families and find_spec("pyroomacoustics") is None:
        raise MissingExtraError("rooms of pyroomacoustics", "sim")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter from a torch built without CUDA
        raise TytoError(f"no device {device!r} here; try cpu") from error


def _trained(stems: Stems, settings: PriorSettings, start: Prior | None, device: str, stage: Stage) -> Prior:
    """A prior from frames mixed of stems; not calibrated yet."""
    from tytoalba.data.simulation.mixer import Mixer

    mixer = Mixer(stems, prior_gcc(stems.array), seed=settings.seed, device=device)
    with stage("epochs") as steps:
        how = settings.training(further=start is not None)
        return train_prior(mixer, settings.frames, start=start, on_progress=steps, **how)


@dataclass(frozen=True)
class _Simulator:
    """Gives what some scenes give; with a cache from there, if the same was simulated before."""

    array: MicArray
    families: tuple[str, ...]
    processes: int
    cache: Path | None
    stage: Stage

    def __call__(
        self,
        kind: type[Simulated],
        title: str,
        voices: tuple[Voices, ...],
        n: int,
        speakers: str,
        seed: int,
        calm: float = 0.0,
    ) -> Simulated:
        spoken = [(voice, voice.n_speakers) for voice in voices]
        key = (
            __version__,
            kind.__name__,
            self.array.to_toml(),
            self.families,
            n,
            speakers,
            seed,
            calm,
            spoken,
        )
        name = f"{speakers}-{n}-{sha256(repr(key).encode()).hexdigest()[:16]}.safetensors"
        if self.cache and (self.cache / name).exists():
            return kind.load(self.cache / name)
        with self.stage(title) as steps:
            scenes = scenes_of(
                self.array, voices, families=self.families, speakers=speakers, seed=seed, calm=calm
            )
            simulate_kind: Callable[..., Any] = gather_stems if kind is Stems else simulate
            made: Simulated = simulate_kind(scenes, n, processes=self.processes, on_progress=steps)
        if self.cache:
            self.cache.mkdir(parents=True, exist_ok=True)
            made.save(self.cache / name)
        return made


def scenes_of(
    array: MicArray,
    voices: Sequence[Voices],
    *,
    families: Sequence[str] = TURNS,
    speakers: str = "train",
    seed: int = 0,
    calm: float = 0.0,
) -> Scenes:
    """Scenes of an array: to frames by `simulate`, to what frames are mixed from by `gather_stems`."""
    return Scenes(array, voices, tuple(families), speakers, seed, calm=calm)


def simulate(
    scenes: Scenes, n_scenes: int, *, processes: int = 1, on_progress: Progress | None = None
) -> FeatureSet:
    """Frames of `n_scenes` scenes, as the prior of their array takes them."""
    gcc = prior_gcc(scenes.array)
    return scene_features(scenes, range(n_scenes), gcc, processes=processes, on_progress=on_progress)


def _plain(judged: dict[str, list[Judgement]]) -> dict[str, Any]:
    return {name: [asdict(row) for row in rows] for name, rows in judged.items()}
