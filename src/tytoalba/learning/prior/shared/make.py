"""How the network for every array is made, in one call that can be stopped and goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tytoalba.data.features import Progress
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.data.simulation.voice import SyntheticVoices, Voices, choose_voices
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.frames import FrameRecipe, make_frames
from tytoalba.learning.prior.shared.judge import Row, calibrated_weights, judged
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import MicArray, builtin_arrays
from tytoalba.storage.writing import write_json

Stage = Callable[[str], AbstractContextManager[Progress]]
TRAIN, HELD, STRANGE = 0, 1, 2
"""Seeds of the random arrays to learn from, to calibrate on and to judge on."""


@dataclass(frozen=True)
class AnySettings:
    """How much the network for every array learns from, and how it is judged.

    arrays: drawn at random to learn from. held: others to calibrate on. rooms, frames: of each array.
    scenes: calm ones and as many wild ones, for each array that is judged. strange: random arrays among them.
    training: fields of `train.SharedRecipe`.
    """

    arrays: int = 300
    held: int = 30
    rooms: int = 15
    frames: int = 600
    scenes: int = 40
    strange: int = 8
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.arrays, self.held, self.frames) < 1 or self.rooms < 5:
            raise TytoError("arrays, held and frames must be at least 1, and rooms at least 5")
        if self.scenes < 0 or self.strange < 0:
            raise TytoError("scenes and strange must not be negative")


@contextmanager
def _silent(title: str) -> Iterator[Progress]:  # noqa: ARG001
    yield lambda *_: None


def _nothing(array: MicArray) -> Prior | None:  # noqa: ARG001
    return None


def make_any(
    settings: AnySettings,
    folder: str | Path,
    output: str | Path,
    *,
    speech: str | Path | None = None,
    results: str | Path | None = None,
    own: Callable[[MicArray], Prior | None] = _nothing,
    device: str = "cpu",
    processes: int = 0,
    stage: Stage = _silent,
) -> tuple[SharedWeights, list[Row]]:
    """Simulate, train, calibrate, save and judge. folder: keeps frames and checkpoints for a second run.

    speech: folder of real speech beside the synthetic voice. results: file for the judgement. own: gives the
    own prior of an array, to be judged beside.
    """
    try:
        from tytoalba.learning.prior.shared.train import SharedRecipe, train_shared
    except ImportError as error:
        raise MissingExtraError("new priors", "train") from error
    recipe = SharedRecipe(**settings.training)
    synthetic, real = SyntheticVoices(), choose_voices(speech)
    voices: tuple[Voices, ...] = (real, synthetic) if speech else (synthetic,)
    frames = FrameRecipe(voices, "train", TRAIN, rooms=settings.rooms, frames=settings.frames)
    folder = Path(folder)
    with stage("arrays to learn from") as steps:
        paths = make_frames(folder, settings.arrays, frames, processes=processes, on_progress=steps)
    with stage("steps of training") as steps:
        checkpoint = folder / "checkpoint.safetensors"
        weights = train_shared(paths, recipe, checkpoint=checkpoint, device=device, on_progress=steps)
    about = {
        "arrays": settings.arrays,
        "rooms": settings.rooms,
        "frames": settings.frames,
        "speech": "real and synthetic" if speech else "synthetic",
        "recipe": asdict(recipe),
    }
    held = replace(frames, voices=(real,), speakers="valid", seed=HELD, calm=0.0)
    with stage("arrays to calibrate on") as steps:
        others = make_frames(folder, settings.held, held, processes=processes, on_progress=steps)
        made = calibrated_weights(weights, others, about)
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    made.save(output)
    with stage("arrays to judge on") as steps:
        rows = judge_any(made, (real,), settings, own=own, processes=processes, on_progress=steps)
    if results:
        write_json({"about": about, "judged": [asdict(row) for row in rows]}, results)
    return made, rows


def judge_any(
    weights: SharedWeights,
    voices: Sequence[Voices],
    settings: AnySettings,
    *,
    own: Callable[[MicArray], Prior | None] = _nothing,
    speakers: str = "test",
    processes: int = 0,
    on_progress: Progress | None = None,
) -> list[Row]:
    """The network on every built-in array, and on random ones that it has not met."""
    arrays = [replace(array, yaw=0.0) for array in builtin_arrays().values()]
    arrays += [random_array(STRANGE, number) for number in range(settings.strange)]
    rows: list[Row] = []
    jobs = [(array, calm) for array in arrays for calm in (True, False)] if settings.scenes else []
    for done, (array, calm) in enumerate(jobs, 1):
        rows += judged(
            weights,
            array,
            voices,
            own=own(array),
            n_scenes=settings.scenes,
            calm=calm,
            speakers=speakers,
            seed=STRANGE + 10 * done,
            processes=processes,
        )
        if on_progress:
            on_progress(done, len(jobs))
    return rows
