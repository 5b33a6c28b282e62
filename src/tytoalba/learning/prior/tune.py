"""The network for every array, trained on for one: simulate its rooms, tune, calibrate, compare, save.

The file has the network with its changed weights, in eight bits as before, and what it is told of the array.
It is written only where the tuned network is better on scenes that it has not learned from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tytoalba.errors import TytoError
from tytoalba.learning.prior.make import Stage, check_extras, checked_paths, silent
from tytoalba.learning.prior.registry import fitting_prior, shared_weights
from tytoalba.learning.prior.shared.frames import TURNS
from tytoalba.learning.prior.shared.judge import Gain, Row, rows_of
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.learning.prior.shared.tuning import TuneSettings, Tuning
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.writing import write_json


@dataclass(frozen=True)
class TunedPrior:
    """The tuned network for an array, and how it compares with the unchanged one.

    written: whether it is better, or was forced, and so lies at `path`. gain: of ACC, on validation scenes.
    judged: SRP-PHAT, MUSIC, the network for every array ("any") and the tuned one, on test scenes.
    """

    prior: SharedPrior
    path: Path
    written: bool
    gain: Gain
    judged: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """For a result file."""
        rows = [asdict(row) for row in self.judged]
        gain = {"points": self.gain.points, "interval": list(self.gain.interval)}
        told = {"array": self.prior.array.name, "about": self.prior.about, "written": self.written}
        return told | {"gain": gain, "judged": rows}


def tune_prior(
    array: MicArray | str | Path,
    settings: TuneSettings | None = None,
    *,
    output: str | Path | None = None,
    results: str | Path | None = None,
    force: bool = False,
    speech: str | Path | None = None,
    cache: str | Path | None = None,
    device: str = "cpu",
    processes: int = 0,
    stage: Stage = silent,
) -> TunedPrior:
    """Train the network for every array on for one, and save it where that made it better.

    Parameters
    ----------
    array : MicArray, str or Path
        The array, the name of a built-in one, or a TOML file.
    settings : TuneSettings, optional
        How much it learns from and for how long.
    output : path, optional
        File to write; else where `locate` and the learner look for priors by themselves.
    results : path, optional
        File for the comparison, as JSON; written in any case.
    force : bool
        Write the prior even if it is not better, or if the array has a prior of its own.
    speech : path, optional
        Folder of real speech, one file per speaker, beside the synthetic voice.
    cache : path, optional
        Folder for simulated frames and checkpoints: a second run goes on there.
    device : str
        "cpu", "cuda", ...: where the network is trained.
    processes : int
        Processes that simulate; 0: one per core.
    stage : callable, optional
        From the title of a piece of work to a context manager that gives a function of (done, total).

    Returns
    -------
    TunedPrior
        The tuned network, whether it was written, and the comparison.

    Raises
    ------
    TytoError
        Before any work, if settings, paths, extras, the array or the device will not do.
    """
    settings = settings or TuneSettings()
    mics = replace(load_array(array), yaw=0.0)
    path = checked_paths(mics, output, results, cache)
    if processes < 0:
        raise TytoError(f"processes must not be negative, got {processes}")
    start = shared_weights()
    start.prior(mics)  # refuses arrays that it is not for
    if not (output or force):
        _check_own(mics)
    check_extras(device, TURNS)
    work = Tuning(start, mics, settings, speech, processes, stage)
    with _folder(cache) as folder:
        made = work.calibrated(folder, work.trained(folder, device))
    tuned = made.prior(mics)
    parts = [work.answers("scenes to compare on", tuned, "valid", calm) for calm in (True, False)]
    gain = Gain.of([*parts[0], *parts[1]], "own", "any")
    if written := gain.sure or force:
        tuned = work.trusted(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        tuned.save(path)
    rows = []
    for calm in (True, False):
        rows += rows_of(work.answers("scenes to judge on", tuned, "test", calm), mics.name, calm)
    rows = [replace(row, who="tuned") if row.who == "own" else row for row in rows]
    result = TunedPrior(tuned, path, written, gain, rows)
    if results:
        write_json(result.to_dict(), results)
    return result


def _check_own(array: MicArray) -> None:
    """Refuse arrays whose own prior would no longer be found."""
    if not isinstance(fitting_prior(array)[0], SharedPrior):
        raise TytoError(
            f"{array.name} has a prior of its own, which would no longer be used: write to another file "
            "(-o), or insist (--force)"
        )


@contextmanager
def _folder(cache: str | Path | None) -> Iterator[Path]:
    if cache:
        yield Path(cache)
        return
    with TemporaryDirectory() as folder:
        yield Path(folder)
