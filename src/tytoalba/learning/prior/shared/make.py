"""How the network for every array is made, in one call that can be stopped and goes on where it was."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tytoalba.data.features import Progress
from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.data.simulation.voice import SyntheticVoices, Voices, choose_voices
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.frames import TURNS, FrameRecipe, each_frames, make_frames
from tytoalba.learning.prior.shared.judge import Row, calibrated_weights, judged, trusted_weights
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import MicArray, builtin_arrays
from tytoalba.storage.writing import write_json

Stage = Callable[[str], AbstractContextManager[Progress]]
TRAIN, HELD, STRANGE = 0, 1, 2
"""Seeds of the random arrays to learn from, to calibrate on and to judge on."""
FIRST = 32
"""Arrays that training begins with where it overlaps with simulation."""
TRUSTED = 8
"""Arrays of those to calibrate on whose scenes say how far answers can be trusted."""


@dataclass(frozen=True)
class AnySettings:
    """How much the network for every array learns from, and how it is judged.

    arrays: drawn at random to learn from. held: others to calibrate on. rooms, frames: of each array.
    scenes: calm ones and as many wild ones, for each array that is judged. strange: random arrays among them.
    leave_out: a family of acoustics that is in no training, and the only one that is judged on.
    training: fields of `train.SharedRecipe`.
    """

    arrays: int = 300
    held: int = 30
    rooms: int = 15
    frames: int = 600
    scenes: int = 40
    strange: int = 8
    leave_out: str | None = None
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.arrays, self.held, self.frames) < 1 or self.rooms < 5:
            raise TytoError("arrays, held and frames must be at least 1, and rooms at least 5")
        if self.scenes < 0 or self.strange < 0:
            raise TytoError("scenes and strange must not be negative")
        if self.leave_out is not None and self.leave_out not in TURNS:
            raise TytoError(
                f"no acoustics called {self.leave_out!r}; known: {', '.join(dict.fromkeys(TURNS))}"
            )


class Arriving:
    """Files that are made in the background; an error of their making is raised where they are asked for."""

    def __init__(self, files: Generator[Path]) -> None:
        self._files, self._paths, self._given = files, list[Path](), 0
        self._error: BaseException | None = None
        self._changed, self._stop = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Arriving:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop = True
        self._thread.join()

    def first(self, n: int, on_progress: Callable[[int], None], until: float = math.inf) -> list[Path]:
        """The first `n`, or all if these are fewer; waits for them."""
        with self._changed:
            while len(self._paths) < n and self._thread.is_alive() and not self._error:
                if time.monotonic() >= until:
                    raise TytoError(
                        f"the time is over with {len(self._paths)} arrays; the same command goes on"
                    )
                self._changed.wait(timeout=0.2)
                on_progress(len(self._paths))
        return sorted(self.new())

    def new(self) -> list[Path]:
        """Those that have come since the last time."""
        with self._changed:
            if self._error:
                raise self._error
            found, self._given = self._paths[self._given :], len(self._paths)
        return found

    def _run(self) -> None:
        try:
            for path in self._files:
                with self._changed:
                    self._paths.append(path)
                    self._changed.notify()
                if self._stop:
                    break
        except BaseException as error:
            self._error = error
        finally:
            self._files.close()  # and its processes end


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
    overlap: bool = False,
    minutes: float = math.inf,
    device: str = "cpu",
    processes: int = 0,
    stage: Stage = _silent,
) -> tuple[SharedWeights, list[Row]]:
    """Simulate, train, calibrate, save and judge. folder: keeps frames and checkpoints for a second run.

    speech: folder of real speech beside the synthetic voice. results: file for the judgement. own: gives the
    own prior of an array, to be judged beside. overlap: training begins with the first arrays, and takes the
    others as they come: quicker, and never the same bytes again. minutes: after these training stops with a
    checkpoint, and an error says so; a second run goes on.
    """
    until = time.monotonic() + 60 * minutes
    try:
        from tytoalba.learning.prior.shared.train import SharedRecipe, train_shared
    except ImportError as error:
        raise MissingExtraError("new priors", "train") from error
    recipe = SharedRecipe(**settings.training)
    synthetic, real = SyntheticVoices(), choose_voices(speech)
    voices: tuple[Voices, ...] = (real, synthetic) if speech else (synthetic,)
    frames = FrameRecipe(voices, "train", TRAIN, rooms=settings.rooms, frames=settings.frames)
    folder = Path(folder)
    few = FIRST if overlap else settings.arrays
    arriving = Arriving(
        each_frames(folder, settings.arrays, frames, leave_out=settings.leave_out, processes=processes)
    )
    name = f"without-{settings.leave_out}" if settings.leave_out else "checkpoint"
    with arriving:
        with stage("arrays to learn from") as steps:
            paths = arriving.first(few, lambda done: steps(done, settings.arrays), until)
        with stage("steps of training") as steps:
            weights = train_shared(
                paths,
                recipe,
                checkpoint=folder / f"{name}.safetensors",
                device=device,
                more=arriving.new,
                until=until,
                on_progress=steps,
            )
    about = {
        "arrays": settings.arrays,
        "rooms": settings.rooms,
        "frames": settings.frames,
        "speech": "real and synthetic" if speech else "synthetic",
        "recipe": asdict(recipe),
    }
    held = replace(frames, voices=(real,), speakers="valid", seed=HELD, calm=0.0)
    with stage("arrays to calibrate on") as steps:
        others = make_frames(
            folder,
            settings.held,
            held,
            leave_out=settings.leave_out,
            processes=processes,
            on_progress=steps,
        )
        made = calibrated_weights(weights, others, about)
    with stage("scenes to be trusted by") as steps:
        arrays = [random_array(HELD, number) for number in range(min(settings.held, TRUSTED))]
        families = tuple(name for name in FAMILIES if name != settings.leave_out)
        made = trusted_weights(
            made, arrays, (real,), families=families, processes=processes, on_progress=steps
        )
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
            families=(settings.leave_out,) if settings.leave_out else tuple(FAMILIES),
            processes=processes,
        )
        if on_progress:
            on_progress(done, len(jobs))
    return rows
