"""Benchmarks: methods learn phase after phase and are tested after each; TOML says what, JSON what came.

The result file is written after every finished job (one method, one variant, one seed), so that a run that
was stopped goes on where it was. Its format is told in docs/results.md; tables and figures need nothing else.
"""

from __future__ import annotations

import json
import platform
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import metadata, resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tytoalba import __version__
from tytoalba.angles import N_DIRECTIONS, Float, decode, decode_two
from tytoalba.benchdata import CLEAN, BenchData, Frames
from tytoalba.data.noise import NOISES, Noise
from tytoalba.errors import TytoError
from tytoalba.files import written_whole
from tytoalba.gcc import Band
from tytoalba.methods import METHODS, Method, Task
from tytoalba.methods.method import Scaling
from tytoalba.metrics import match
from tytoalba.parallel import parallel_map
from tytoalba.phases import ORDERS, Order, Phase, generalised, groups, phase_of, split

FORMAT, VERSION = "tytoalba-results", 1
TOLERANCE = 5.0
SECTOR = 15
LARGEST_DEVIATION = 1e-6
"""Of accumulated weights from the joint closed form, relative; rounding in float64 stays below it."""


@dataclass(frozen=True)
class Config:
    """A benchmark, as its TOML file says it.

    methods: names in `METHODS`. options: hyper-parameters by method. variants: for a method, a list of
    options to run one after another (a sweep). noises and snr: test conditions beside the quiet one.
    judged_on: "valid" for choosing hyper-parameters, so that the test rooms stay unseen.
    verify: check at every phase of the first seed that what was accumulated equals the joint closed form.
    """

    name: str
    about: str = ""
    data: str = "simulated:quick"
    methods: tuple[str, ...] = ("srp-phat", "tyto")
    seeds: tuple[int, ...] = (0,)
    n_phases: int = 10
    orders: tuple[Order, ...] = ("contiguous",)
    overlap: float = 0.0
    imbalance: float = 1.0
    bands: tuple[Band, ...] = ((100.0, 8000.0),)
    scaling: Scaling = "frame"
    noises: tuple[str, ...] = ()
    snr: tuple[float, ...] = (-20.0, -10.0, 0.0, 10.0)
    noise_share: float = 0.25
    size: float = 1.0
    judged_on: Literal["test", "valid"] = "test"
    verify: bool = False
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lists = ("methods", "seeds", "orders", "bands", "noises", "snr")
        if single := [key for key in lists if not isinstance(getattr(self, key), tuple)]:
            raise TytoError(f"{single[0]} must be a list, got {getattr(self, single[0])!r}")
        _refuse_unknown("method", [*self.methods, *self.options, *self.variants], METHODS)
        _refuse_unknown("noise", self.noises, NOISES)
        _refuse_unknown("order", self.orders, ORDERS)
        _refuse_unknown("scaling", [self.scaling], get_args(Scaling))
        _refuse_unknown("part to judge on", [self.judged_on], ("test", "valid"))
        if not self.methods or not self.seeds or not self.orders or not self.bands:
            raise TytoError("a benchmark needs at least one method, one seed, one order and one band")
        tables = [*self.options.values(), *(table for listed in self.variants.values() for table in listed)]
        wanted = {
            "name": ("a file name", Path(str(self.name)).name == self.name and self.name.isprintable()),
            "data": ("text", isinstance(self.data, str)),
            "seeds": ("whole numbers from 0", all(isinstance(s, int) and s >= 0 for s in self.seeds)),
            "n_phases": (f"from 1 to {N_DIRECTIONS}", self.n_phases in range(1, N_DIRECTIONS + 1)),
            "overlap": ("from 0 to less than 1", 0 <= self.overlap < 1),
            "imbalance": ("at least 1", self.imbalance >= 1),
            "bands": ("each [low, high] in Hz", all(0 <= low < high for low, high in self.bands)),
            "snr": ("decibels", all(-1000 <= snr <= 1000 for snr in self.snr)),
            "noise_share": ("above 0, at most 1", 0 < self.noise_share <= 1),
            "size": ("a positive factor", 0 < self.size < np.inf),
            "options": ("tables of options, as in variants", all(isinstance(t, dict) for t in tables)),
        }
        if wrong := [key for key, (_, right) in wanted.items() if not right]:
            raise TytoError(f"{wrong[0]} must be {wanted[wrong[0]][0]}; got {getattr(self, wrong[0])!r}")
        if len({job.key for job in self.jobs()}) < len(self.jobs()):
            raise TytoError("a method, seed, order or variant is listed twice")

    @property
    def noise_conditions(self) -> list[Noise]:
        """The noises to test under."""
        return [Noise(kind, snr) for kind in self.noises for snr in self.snr]

    def jobs(self) -> list[Job]:
        """Every (method, variant, order, seed); seeds last, so that a stopped run has whole columns."""
        made = []
        for seed in self.seeds:
            for order in self.orders:
                for method in self.methods:
                    for variant in self.variants.get(method, [{}]):
                        options = {**self.options.get(method, {}), **variant}
                        label = [f"{key}={value}" for key, value in variant.items()]
                        label += [f"order={order}"] if len(self.orders) > 1 else []
                        made.append(Job(method, ", ".join(label), order, seed, options))
        return made


def _refuse_unknown(what: str, names: Iterable[Any], known: Collection[str]) -> None:
    if unknown := [name for name in names if name not in known]:
        raise TytoError(f"no {what} called {unknown[0]!r}; known: {', '.join(known)}")


@dataclass(frozen=True)
class Job:
    """One method, with its options, on one order of phases and one seed."""

    method: str
    variant: str
    order: Order
    seed: int
    options: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from the others of its benchmark."""
        return self.method, self.variant, self.seed


def shipped_configs() -> dict[str, Path]:
    """The benchmarks that come with tytoalba, by name."""
    folder = Path(str(resources.files("tytoalba") / "experiments"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_config(name_or_path: str, changes: Sequence[str] = ()) -> Config:
    """A benchmark by its name, or from a TOML file, changed by such as "seeds=[0,1]"."""
    path = shipped_configs().get(name_or_path, Path(name_or_path))
    if not path.is_file():
        known = ", ".join(shipped_configs())
        raise TytoError(f"no benchmark called {name_or_path!r} and no such file; shipped: {known}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for change in changes:
            table = _merged(table, _change(change))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise TytoError(f"{path} is not valid TOML: {error}") from error
    known_keys = set(Config.__dataclass_fields__)
    if unknown := sorted(set(table) - known_keys):
        raise TytoError(f"{path}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known_keys))}")
    table.setdefault("name", path.stem)
    try:
        table["bands"] = tuple((float(low), float(high)) for low, high in table.get("bands", [(100, 8000)]))
        frozen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in table.items()}
        return Config(**frozen)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, TytoError) else TytoError(f"{path}: {error}") from error


def _change(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise TytoError(f"a change is KEY=VALUE, such as seeds=[0,1]; got {text!r}")
    try:
        return tomllib.loads(f"{key.strip()} = {value}")
    except tomllib.TOMLDecodeError:  # a word without quotes
        return tomllib.loads(f"{key.strip()} = {json.dumps(value.strip(), ensure_ascii=False)}")


def _merged(table: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A table with some values changed, those of inner tables one by one."""
    inner = {k: _merged(table[k], v) for k, v in change.items() if isinstance(v, dict) and k in table}
    return table | change | inner


def run(
    config: Config,
    data: BenchData,
    output: Path,
    *,
    device: str = "cpu",
    command: str = "",
    processes: int = 1,
    on_job: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run what is not yet in the result file `output`; returns the whole result.

    processes: jobs at a time; a GPU that waits for small kernels serves several well.
    on_job: called with (jobs done, jobs in all).
    """
    start = time.perf_counter()
    result = _resume(config, data, output, command, device)
    earlier = result["seconds"]
    done = {(row["method"], row["variant"], row["seed"]) for row in result["rows"]}
    jobs = config.jobs()
    todo = [job for job in jobs if job.key not in done]
    with TemporaryDirectory() as folder:
        shared: BenchData | Path = data
        if processes > 1 and len(todo) > 1:
            shared = Path(folder) / "data.safetensors"
            data.save(shared)
        work = partial(run_job, config=config, data=shared, device=device)
        for number, rows in enumerate(_each(work, todo, processes), len(jobs) - len(todo) + 1):
            result["rows"] += rows
            result["seconds"] = round(earlier + time.perf_counter() - start, 1)
            _write(result, output)
            if on_job:
                on_job(number, len(jobs))
    return result


def _each(work: Callable[[Job], list[Any]], jobs: list[Job], processes: int) -> Iterator[list[Any]]:
    """One job after another with all threads, or several at a time with one thread each."""
    return map(work, jobs) if processes <= 1 else parallel_map(work, jobs, processes)


_shared_data = lru_cache(maxsize=1)(BenchData.load)


def run_job(job: Job, config: Config, data: BenchData | Path, device: str = "cpu") -> list[dict[str, Any]]:
    """Let one method learn all phases and test it after each; the rows of the result file."""
    data = _shared_data(data) if isinstance(data, Path) else data
    directions = groups(config.n_phases, job.order, job.seed)
    phases = _phases(config, data.train, directions, job.seed)
    task = Task(
        n_inputs=data.n_inputs,
        seed=job.seed,
        device=device,
        scaling=config.scaling,
        array=data.array,
        gcc=data.gcc,
    )
    method = _made(job, task)
    wanted = {CLEAN, *map(str, config.noise_conditions)}
    judged = {key: frames for key, frames in data.tests.items() if key[0] in wanted}
    if config.judged_on == "valid":
        judged = {(CLEAN, "test"): data.valid} if data.valid else {}
    tests = {key: _Test(frames, directions) for key, frames in judged.items() if len(frames)}
    if not tests:
        raise TytoError(f"{data.name} has no {config.judged_on} part to judge methods on")
    seconds, deviation = [], []
    if method.sees_everything:
        everything = Phase(data.train.X, data.train.azimuth, np.arange(task.n_directions))
        seconds.append(_timed(method, everything))
    for k, phase in enumerate(phases):
        if not method.sees_everything:
            seconds.append(_timed(method, phase))
        for test in tests.values():
            test.after(k, method)
        if (
            config.verify
            and job.seed == config.seeds[0]
            and any(map(len, phases[: k + 1]))
            and (from_joint := getattr(method, "deviation", None))
        ):
            deviation.append(from_joint(phases[: k + 1]))
            if not deviation[-1] <= LARGEST_DEVIATION:
                raise TytoError(f"{job.method} is {deviation[-1]:.2g} off its joint solution at phase {k}")
    kept = {name: int(values.nbytes) for name, values in method.memory().items()}
    shared = {
        "method": job.method,
        "variant": job.variant,
        "seed": job.seed,
        "options": job.options,
        "keeps": method.keeps,
        "kept_bytes": kept,
        "learn_seconds": [round(s, 3) for s in seconds],
    }
    if deviation:
        shared["joint_deviation"] = deviation
    return [
        {**shared, "condition": condition, "part": part, **row}
        for (condition, part), test in tests.items()
        for row in test.rows(with_sectors=condition == CLEAN)
    ]


def _made(job: Job, task: Task) -> Method:
    try:
        return METHODS[job.method](task, **job.options)
    except (TypeError, ValueError) as error:
        raise TytoError(f"{job.method} cannot be made with options {job.options}: {error}") from error


class _Test:
    """One test set: errors on every phase after every phase, by decision rule and number of sources."""

    def __init__(self, frames: Frames, directions: Sequence[NDArray[np.intp]]) -> None:
        self.n_phases = len(directions)
        n_sources = np.isfinite(frames.azimuth).sum(axis=1)
        phase = phase_of(frames.azimuth, directions)
        self.sets = {}
        for n in (1, 2):
            rows = np.flatnonzero((n_sources == n) & (phase >= 0))
            rows = rows[np.argsort(phase[rows], kind="stable")]  # earlier phases first: prefixes are slices
            if len(rows):
                true = np.sort(frames.azimuth[rows], axis=1)[:, :n]  # NaN sorts last
                self.sets[n] = frames.X[rows], true, phase[rows]
        self.errors: dict[tuple[int, str], list[Float]] = {}

    def after(self, k: int, method: Method) -> None:
        """Test on the frames of phases 0..k."""
        for n, (X, true, phase) in self.sets.items():
            seen = int(np.searchsorted(phase, k, side="right"))
            decoder = decode if n == 1 else decode_two
            scores = method.posteriors(X[:seen]) if seen else {}
            for decision, score in scores.items():
                errors = match(true[:seen], decoder(score).reshape(-1, n))
                self.errors.setdefault((n, decision), [np.empty((0, n))] * k).append(errors)
            if not seen:
                for (m, _), listed in self.errors.items():
                    if m == n:
                        listed.append(np.empty((0, n)))

    def rows(self, with_sectors: bool) -> Iterator[dict[str, Any]]:
        """What the result file keeps of it."""
        for (n, decision), listed in self.errors.items():
            _, true, phase = self.sets[n]
            counts = np.bincount(phase, minlength=self.n_phases)
            matrices = {"acc": [], "mae": []}  # type: dict[str, list[list[float | None]]]
            for errors in listed:
                here = phase[: len(errors)]
                matrices["acc"].append(_means((errors <= TOLERANCE).mean(axis=1), here, self.n_phases))
                matrices["mae"].append(_means(errors.mean(axis=1), here, self.n_phases))
            row = {"decision": decision, "n_sources": n, "counts": counts.tolist(), **matrices}
            if with_sectors and len(listed[-1]) == len(true):
                sector = (true // SECTOR).astype(np.intp).ravel() % (360 // SECTOR)
                hits, flat = (listed[-1] <= TOLERANCE).ravel().astype(float), listed[-1].ravel()
                row["sectors"] = {
                    "acc": _means(hits, sector, 360 // SECTOR),
                    "mae": _means(flat, sector, 360 // SECTOR),
                }
            yield row


def _means(values: Float, groups_of: NDArray[np.intp], n: int) -> list[float | None]:
    counts = np.bincount(groups_of, minlength=n)
    sums = np.bincount(groups_of, weights=values, minlength=n)
    return [round(float(s / c), 4) if c else None for s, c in zip(sums, counts, strict=True)]


def _phases(config: Config, train: Frames, directions: Sequence[NDArray[np.intp]], seed: int) -> list[Phase]:
    if config.overlap or config.imbalance > 1:
        rng = np.random.default_rng(seed)
        return generalised(
            train.X, train.azimuth, directions, rng, overlap=config.overlap, imbalance=config.imbalance
        )
    return split(train.X, train.azimuth, directions)


def _timed(method: Method, phase: Phase) -> float:
    start = time.perf_counter()
    method.learn(phase)
    return time.perf_counter() - start


def _resume(config: Config, data: BenchData, output: Path, command: str, device: str) -> dict[str, Any]:
    described = json.loads(json.dumps(config.__dict__), parse_constant=str)  # an endless band as text
    fresh = {
        "format": FORMAT,
        "version": VERSION,
        "name": config.name,
        "config": described,
        "versions": _versions(),
        "machine": _machine(device),
        "command": command,
        "seconds": 0.0,
        "data": {
            "name": data.name,
            "n_train": len(data.train),
            "n_valid": len(data.valid) if data.valid else 0,
            "n_test": {f"{part}, {condition}": len(f) for (condition, part), f in data.tests.items()},
        },
        "phases": [g.tolist() for g in groups(config.n_phases, config.orders[0], config.seeds[0])],
        "rows": [],
    }
    if not output.exists():
        return fresh
    try:
        found = json.loads(output.read_text(encoding="utf-8"))
        same = found["format"] == FORMAT and found["version"] == VERSION
        comparable = {k: v for k, v in found["config"].items() if k != "seeds"}
        wanted = {k: v for k, v in described.items() if k != "seeds"}
        if not same or comparable != wanted or found["data"] != fresh["data"]:
            raise TytoError(
                f"{output} holds another benchmark or other data; choose another --output, or remove it"
            )
        return {**fresh, "seconds": found["seconds"], "rows": found["rows"]}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise TytoError(f"{output} is not a result file ({error!r}); choose another --output") from error


def _write(result: dict[str, Any], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(output) as temporary:
        temporary.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")


def _versions() -> dict[str, str]:
    found = {"tytoalba": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, CPU"
