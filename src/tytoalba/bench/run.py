"""Benchmarks: methods learn phase after phase and are tested after each; TOML says what, JSON what came.

The result file is written after every finished job (one method, one variant, one seed), so that a run that
was stopped goes on where it was. Tables and figures need nothing else (`tytoalba.bench.results` reads it).
"""

from __future__ import annotations

import inspect
import json
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tytoalba import __version__
from tytoalba.bench.config import SEES, Config, Job, as_json, load_config
from tytoalba.bench.data import Announce, BenchData, data_name, load_benchdata
from tytoalba.bench.job import run_job
from tytoalba.bench.page import render
from tytoalba.bench.plots import check_drawing
from tytoalba.bench.results import LARGEST
from tytoalba.errors import TytoError
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.analytic import Analytic
from tytoalba.learning.methods.finetune import Gradient
from tytoalba.learning.phases import groups
from tytoalba.storage.age import Keys
from tytoalba.storage.files import read_json
from tytoalba.storage.parallel import available_cores, parallel_map
from tytoalba.storage.writing import write_whole

FORMAT, VERSION = "tytoalba-results", 1
Worked = Callable[[Config, list[Job], Path, str], Iterator[list[dict[str, Any]]]]
"""Gives the rows of jobs in order, of the data in a file, on a device."""


def run_benchmark(
    name_or_file: str,
    *,
    data: str | None = None,
    array: str | None = None,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    size: float | None = None,
    changes: Sequence[str] = (),
    speech: Path | None = None,
    output: Path = Path("out"),
    cache: Path | None = None,
    report: bool = True,
    device: str = "cpu",
    jobs: int = 1,
    processes: int = 1,
    keys: Keys = None,
    worked: Worked | None = None,
    on_data: Announce | None = None,
    on_job: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Run a benchmark from its name to its tables: the result file, then what was made of it.

    name_or_file: a shipped benchmark (`shipped_configs`) or a TOML file. data, array, methods, seeds, size:
    instead of those of the file; changes: any other key, such as "n_phases=5". speech: folder of real speech
    for simulations. cache: a file that keeps the prepared data for the next time. jobs: methods at a time,
    processes: for simulations; 0: one per core. keys: what opens sealed recordings. worked: works on the jobs
    elsewhere, and reads the data from the cache. What cannot work is refused before anything is prepared.
    """
    if worked is not None and cache is None:
        raise TytoError(
            "a cluster reads the data from a file: give --cache FILE on a disk that all machines see"
        )
    given: dict[str, Any] = {"data": data, "array": array, "size": size}
    given["methods"] = None if methods is None else tuple(methods)
    given["seeds"] = None if seeds is None else tuple(seeds)
    config = load_config(name_or_file, changes)
    config = replace(config, **{key: value for key, value in given.items() if value is not None})
    result_file = output / f"{config.name}.json"
    _refuse_early(config, result_file)
    if report:
        check_drawing()
    prepared = prepared_data(config, cache, speech, processes, keys, on_data)
    command = command_line([name_or_file], given, speech, changes, device, jobs)
    run(
        config,
        prepared,
        result_file,
        device=device,
        command=command,
        processes=jobs,
        kept=cache,
        worked=worked,
        on_job=on_job,
    )
    return [result_file, *(render([result_file], output / config.name) if report else [])]


def _refuse_early(config: Config, output: Path) -> None:
    """What would fail only after the data are prepared."""
    for job in config.jobs():
        try:
            own = {key: value for key, value in job.options.items() if key not in SEES}
            inspect.signature(METHODS[job.method]).bind(None, **own)
        except TypeError as error:
            raise TytoError(f"{job.method} cannot be made with options {job.options}: {error}") from error
    if any(issubclass(METHODS[name], (Analytic, Gradient)) for name in config.methods):
        import tytoalba.learning.network  # noqa: F401 - says which extra is missing
    _earlier(config, output)


def prepared_data(
    config: Config,
    cache: Path | None,
    speech: Path | None,
    processes: int,
    keys: Keys,
    on_data: Announce | None,
) -> BenchData:
    """The data of a benchmark, from its cache if there is one."""
    if cache is not None and cache.exists():
        prepared = BenchData.load(cache)
        if why := _unfit(prepared, config):
            raise TytoError(f"{cache} {why}; choose another --cache")
        return prepared
    prepared = load_benchdata(
        config.data,
        keys=keys,
        bands=config.bands[0] if len(config.bands) == 1 else config.bands,
        parts=config.parts,
        noises=config.noise_conditions,
        noise_share=config.noise_share,
        noisy_train=config.learns_in_noise,
        size=config.size,
        array=config.array or None,
        speech=speech,
        processes=processes,
        announce=on_data,
    )
    if cache is not None:
        prepared.save(cache)
    return prepared


def _unfit(data: BenchData, config: Config) -> str:
    """Why kept data are not those that a benchmark asks for, or nothing; more noises do no harm."""
    if data.name != data_name(config.data):
        return f"holds {data.name}, not {config.data}"
    if config.data.startswith("simulated:") and data.gcc and data.array:
        if config.array and data.array.name != config.array:
            return f"holds recordings of {data.array.name}, not of {config.array}"
        if data.gcc.band_list != config.bands:
            return f"has the bands {data.gcc.band_list} Hz, not {config.bands}"
        if data.gcc.parts != config.parts:
            return f"has frames in {data.gcc.parts} parts, not {config.parts}"
    if config.learns_in_noise and data.noisy_train is None:
        return "lacks training frames in noise"
    there = {condition for condition, _ in data.tests}
    missing = [str(noise) for noise in config.noise_conditions if str(noise) not in there]
    return f"lacks the noise {missing[0]!r}" if missing else ""


def command_line(
    words: Sequence[str],
    given: dict[str, Any],
    speech: Path | None,
    changes: Sequence[str],
    device: str = "cpu",
    jobs: int = 1,
) -> str:
    """What makes these results again, without the folders of the machine that made them.

    words: what follows `tyto bench`.

    >>> given = {"data": None, "array": None, "size": 0.5, "methods": ("tyto", "joint"), "seeds": (0, 1)}
    >>> command_line(["quick"], given, Path("home/me"), ["n_phases=5"], jobs=3)
    'tyto bench quick --size 0.5 --methods tyto,joint --seeds 0,1 --speech SPEECH --jobs 3 --set n_phases=5'
    """
    data, size, array = given["data"], given["size"], given["array"]
    options = {
        "--data": data and data_name(data),
        "--array": array and Path(array).name,
        "--size": None if size is None else f"{size:g}",
        "--methods": _listed(given["methods"]),
        "--seeds": _listed(given["seeds"]),
        "--speech": speech and "SPEECH",
        "--device": device if device != "cpu" else None,
        "--jobs": str(jobs) if jobs != 1 else None,
    }
    more = [word for option, value in options.items() if value for word in (option, value)]
    more += [word for change in changes for word in ("--set", change)]
    named = [Path(word).name if not word.startswith("-") else word for word in words]
    return shlex.join(["tyto", "bench", *named, *more])


def _listed(values: Iterable[Any] | None) -> str | None:
    return None if values is None else ",".join(map(str, values))


def run(
    config: Config,
    data: BenchData,
    output: Path,
    *,
    device: str = "cpu",
    command: str = "",
    processes: int = 1,
    kept: Path | None = None,
    worked: Worked | None = None,
    on_job: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run what is not yet in the result file `output`; returns the whole result.

    processes: jobs at a time (0: one per core); a GPU that waits for small kernels serves several well.
    kept: a file that holds the data, where there is one: processes read it, and none is written for them.
    worked: works on the jobs elsewhere (`bench.cluster`), from that file.
    on_job: called with (jobs done, jobs in all).
    """
    start = time.perf_counter()
    result = _resume(config, data, output, command, device)
    earlier = result["seconds"]
    done = {(row["method"], row["variant"], row["seed"]) for row in result["rows"]}
    jobs = config.jobs()
    todo = [job for job in jobs if job.key not in done]
    with TemporaryDirectory() as folder:
        processes = min(processes or available_cores(), max(1, len(todo)))
        shared = data if worked is not None else shared_data(data, kept, Path(folder), processes)
        work = partial(run_job, config=config, data=shared, device=device)
        # one job after another with all threads, or several at a time with one thread each
        each = map(work, todo) if processes == 1 else parallel_map(work, todo, processes)
        if worked is not None and kept is not None:
            each = worked(config, todo, kept, device)
        for number, rows in enumerate(each, len(jobs) - len(todo) + 1):
            result["rows"] += rows
            result["seconds"] = round(earlier + time.perf_counter() - start, 1)
            _write(result, output)
            if on_job:
                on_job(number, len(jobs))
    return result


def shared_data(data: BenchData, kept: Path | None, folder: Path, processes: int) -> BenchData | Path:
    """The data, or for several processes a file that has them: the one that is kept, or one in the folder."""
    if processes == 1:
        return data
    if kept is None:
        data.save(kept := folder / "data.safetensors")
    return kept


def _resume(config: Config, data: BenchData, output: Path, command: str, device: str) -> dict[str, Any]:
    """A result without rows, or with those of an earlier run of the same benchmark."""
    fresh = {
        "format": FORMAT,
        "version": VERSION,
        "name": config.name,
        "config": _described(config),
        "versions": versions(),
        "machine": machine(device),
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
    found = _earlier(config, output)
    if found is None:
        return fresh
    if found["data"] != fresh["data"]:
        raise _other(output)
    return {**fresh, "seconds": found["seconds"], "rows": found["rows"]}


def _earlier(config: Config, output: Path) -> dict[str, Any] | None:
    """What an earlier run of this benchmark has written; any other file is refused."""
    if not output.exists():
        return None
    try:
        found = dict(read_json(output, LARGEST))
        same = found["format"] == FORMAT and found["version"] == VERSION
        as_before = _described(Config(config.name))  # what older files do not mention was not there
        may_differ = ("seeds", "data")  # the data themselves are compared
        comparable = {k: v for k, v in (as_before | found["config"]).items() if k not in may_differ}
        wanted = {k: v for k, v in _described(config).items() if k not in may_differ}
        missing = {"rows", "seconds", "data"} - found.keys()
        if missing:
            raise KeyError(*missing)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TytoError(f"{output} is not a result file ({error!r}); choose another --output") from error
    if not same or comparable != wanted:
        raise _other(output)
    return found


def _other(output: Path) -> TytoError:
    return TytoError(f"{output} holds another benchmark or other data; choose another --output, or remove it")


def _described(config: Config) -> dict[str, Any]:
    """A benchmark as its result file has it: not where the data lie, and nothing that was not chosen."""
    kept = {key: value for key, value in vars(config).items() if key not in ("array", "chosen") or value}
    return as_json({**kept, "data": data_name(config.data)})


def _write(result: dict[str, Any], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json.dumps(result, allow_nan=False, separators=(",", ":")).encode())


def versions() -> dict[str, str]:
    """What a result was made with."""
    found = {"tytoalba": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(device: str) -> str:
    """What a result was made on."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, CPU"
