"""How the network for every array is trained on for one: frames, training, calibration, comparison."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tytoalba import __version__
from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import SyntheticVoices, Voices, choose_voices
from tytoalba.errors import TytoError
from tytoalba.learning.prior.shared.exact import Weights, sizes
from tytoalba.learning.prior.shared.frames import TURNS, FrameRecipe, make_frames
from tytoalba.learning.prior.shared.judge import Answers, answered, calibrated_weights, trusted_weights
from tytoalba.learning.prior.shared.make import Stage
from tytoalba.learning.prior.shared.prior import SharedPrior, SharedWeights
from tytoalba.signal.array import MicArray

if TYPE_CHECKING:
    from tytoalba.learning.prior.shared.train import SharedRecipe

ROOMS = 15
"""Simulated rooms in a file of frames; all are of one family of acoustics."""
TRUSTED_BY = 60
"""Calm scenes, and as many wild ones, that say how far answers can be trusted."""
FAR = 1_000_003
"""From the seeds of scenes of one kind to those of the next."""


@dataclass(frozen=True)
class TuneSettings:
    """How long the network for every array is trained on for one.

    scenes: simulated rooms, each with four places for talkers. frames: mixed in them. epochs: passes over the
    frames. rate: learning rate to begin with; 0.0003 if not given. calm: share of rooms that are quiet, with
    a well-built device. seed: of everything. judged: calm scenes, and as many wild ones, on which it is
    compared, and others on which it is judged.
    """

    scenes: int = 1000
    frames: int = 40000
    epochs: int = 8
    rate: float | None = None
    calm: float = 0.5
    seed: int = 0
    judged: int = 80

    def __post_init__(self) -> None:
        least = ROOMS * len(TURNS)
        if self.scenes < least or self.frames < 1:
            raise TytoError(f"scenes must be at least {least}, and frames at least 1")
        if self.epochs < 1 or self.judged < 2 or self.seed < 0:
            raise TytoError("epochs must be at least 1, judged at least 2, and seed not negative")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise TytoError(f"rate must be a positive number, got {self.rate:g}")
        if not 0 <= self.calm <= 1:
            raise TytoError(f"the share of calm scenes must be from 0 to 1, got {self.calm:g}")

    @property
    def files(self) -> int:
        """Of frames to learn from."""
        return self.scenes // ROOMS


@dataclass(frozen=True)
class Tuning:
    """The pieces of work that tune the network `start` for an array, each with its progress.

    speech: folder of real speech, if there is one. processes: that simulate.
    """

    start: SharedWeights
    array: MicArray
    settings: TuneSettings
    speech: str | Path | None
    processes: int
    stage: Stage

    @property
    def real(self) -> Voices:
        """Real voices, or synthetic ones where there is no speech."""
        return choose_voices(self.speech)

    @property
    def voices(self) -> tuple[Voices, ...]:
        """Those to learn from."""
        return (self.real, SyntheticVoices()) if self.speech else (self.real,)

    def trained(self, folder: Path, device: str) -> Weights:
        """Tuned weights, from frames in a folder, where training also leaves checkpoints."""
        from tytoalba.learning.prior.shared.train import train_shared

        recipe = self._frames(self.voices, "train")
        paths = self._simulated(folder, "files of frames to learn from", self.settings.files, recipe)
        key = str(asdict(self.recipe)), self.start.prior(self.array).digest.tobytes()
        checkpoint = paths[0].parent / f"checkpoint-{_digest(key)}.safetensors"
        with self.stage("steps of training") as steps:
            return train_shared(
                paths,
                self.recipe,
                start=self.start.weights,
                checkpoint=checkpoint,
                device=device,
                on_progress=steps,
            )

    @cached_property
    def recipe(self) -> SharedRecipe:
        """How it is trained."""
        from tytoalba.learning.prior.shared.train import SharedRecipe

        usual, settings = SharedRecipe(), self.settings
        steps = settings.epochs * settings.frames // (usual.arrays * usual.frames)
        rate = settings.rate or usual.rounded_rate
        width, pair_width, window_width, blocks = sizes(self.start.weights)
        return replace(
            usual,
            width=width,
            pair_width=pair_width,
            window_width=window_width,
            blocks=blocks,
            steps=max(10, steps),
            rounded_rate=rate,
            seed=settings.seed,
            tuning=True,
        )

    def calibrated(self, folder: Path, weights: Weights) -> SharedWeights:
        """The same with calibrations, from frames that it has not learned from."""
        recipe = self._frames((self.real,), "valid")
        paths = self._simulated(folder, "files of frames to calibrate on", 2 * len(TURNS), recipe)
        about = {
            "array": self.array.name,
            "scenes": self.settings.scenes,
            "frames": self.settings.frames,
            "calm": self.settings.calm,
            "speech": "real and synthetic" if self.speech else "synthetic",
            "recipe": asdict(self.recipe),
            "start": self.start.about,
        }
        return calibrated_weights(weights, paths, about)

    def answers(self, title: str, tuned: SharedPrior, speakers: str, calm: bool) -> list[Answers]:
        """SRP-PHAT, MUSIC, the network as it was ("any") and the tuned one ("own")."""
        seed = self._seed(2 * (speakers == "test") + calm)
        scenes = Scenes(self.array, (self.real,), tuple(FAMILIES), speakers, seed, calm=float(calm))
        with self.stage(f"{'calm' if calm else 'wild'} {title}") as steps:
            return answered(
                self.start,
                scenes,
                self.settings.judged,
                own=tuned,
                processes=self.processes,
                on_progress=steps,
            )

    def trusted(self, weights: SharedWeights) -> SharedPrior:
        """The prior of the array, with how far its answers can be trusted and with simulated frames."""
        with self.stage("scenes to be trusted by") as steps:
            made = trusted_weights(
                weights,
                [self.array],
                (self.real,),
                families=tuple(FAMILIES),
                n_scenes=TRUSTED_BY,
                seed=self._seed(4),
                processes=self.processes,
                on_progress=steps,
            )
        with self.stage("scenes to keep frames of") as steps:
            return made.prior(self.array).with_simulated_frames(self.settings.seed, steps)

    def _seed(self, kind: int) -> int:
        """Of scenes that are neither learned from nor calibrated on."""
        return (3 * self.settings.seed + 2) * FAR + kind

    def _frames(self, voices: tuple[Voices, ...], speakers: str) -> FrameRecipe:
        """What is simulated to learn from, or, of speakers for validation, to calibrate on."""
        settings, learns = self.settings, speakers == "train"
        return FrameRecipe(
            voices,
            speakers,
            3 * settings.seed + (not learns),
            rooms=ROOMS,
            frames=math.ceil(settings.frames / settings.files),
            calm=settings.calm if learns else 0.0,
        )

    def _simulated(self, folder: Path, title: str, n: int, recipe: FrameRecipe) -> list[Path]:
        spoken = [(voice, voice.n_speakers) for voice in recipe.voices]
        key = __version__, self.array.to_toml(), replace(recipe, voices=()), spoken
        with self.stage(title) as steps:
            return make_frames(
                folder / f"frames-{_digest(key)}",
                n,
                recipe,
                array=self.array,
                processes=self.processes,
                on_progress=steps,
            )


def _digest(key: object) -> str:
    return sha256(repr(key).encode()).hexdigest()[:16]
