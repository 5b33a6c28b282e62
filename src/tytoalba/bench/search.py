"""One search for every row of a table: the same knobs, values and number of passes, on validation rooms only.

A search is a benchmark's TOML file with three keys more. `families` are rows that are tuned alike, with the
values of each knob, and where they start if not at those that their methods have by themselves; `own` are the
knobs that only one row has; `passes` is how often each row goes through all of its knobs. One knob after
another takes the value by which the row finds most: overall ACC, the mean over the phases. The result file
has every trial.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tytoalba.bench.cells import Table
from tytoalba.bench.config import Config, Job, as_json, config_of, file_of, read_table, row_of
from tytoalba.bench.continual import average_incremental_accuracy
from tytoalba.bench.data import CLEAN, Announce, BenchData
from tytoalba.bench.formats import markdown
from tytoalba.bench.job import run_job
from tytoalba.bench.results import LARGEST
from tytoalba.bench.run import machine, prepared_data, shared_data, versions
from tytoalba.errors import TytoError
from tytoalba.learning.methods import METHODS
from tytoalba.storage.age import Keys
from tytoalba.storage.files import read_json
from tytoalba.storage.parallel import available_cores, parallel_map
from tytoalba.storage.writing import write_whole

FORMAT, VERSION = "tytoalba-search", 1
Options = dict[str, Any]
Knobs = dict[str, list[Any]]
"""Values of each knob."""
Trial = tuple[str, Options]
"""A row, and the values of its knobs."""
_NUMBER = (int, float)
_ACC = (int, float, type(None))
_RESULT: dict[str, tuple[type, ...]] = {"machine": (str,), "command": (str,), "passes": (int,)}
_RESULT |= {"seconds": _NUMBER, "data": (dict,), "rows": (list,), "trials": (list,)}
_DATA: dict[str, tuple[type, ...]] = {"name": (str,), "train": (int,), "valid": (int,)}
_ROW: dict[str, tuple[type, ...]] = {"row": (str,), "family": (str,), "trials": (int,), "seconds": _NUMBER}
_ROW |= {"chosen": (dict,), "done": (bool,), "start_acc": _ACC, "acc": _ACC}
_TRIAL: dict[str, tuple[type, ...]] = {"row": (str,), "options": (dict,), "acc": _NUMBER, "seconds": _NUMBER}
"""Types of what a result file has."""


@dataclass(frozen=True)
class Search:
    """What is tried. rows: of the table, by name; knobs: of each row, with their values; family: of each row.

    config: the benchmark that judges a trial. begin: of each row, the values of knobs to start from, where
    they are not those of its method or of the table.
    """

    config: Config
    passes: int
    rows: dict[str, Job]
    knobs: dict[str, Knobs]
    family: dict[str, str]
    begin: dict[str, Options]

    @property
    def most_trials(self) -> int:
        """Trials at most: those that come again are not repeated."""
        return sum(1 + self.passes * sum(len(v) for v in knobs.values()) for knobs in self.knobs.values())

    def only(self, rows: Sequence[str] | None) -> list[str]:
        """These rows, or all; one that is not there is refused."""
        for row in rows or ():
            if row not in self.rows:
                raise TytoError(f"no row called {row!r:.80} is searched; there are: {'; '.join(self.rows)}")
        return [row for row in self.rows if rows is None or row in rows]

    def start(self, row: str) -> Options:
        """The values that a row starts from."""
        job = self.rows[row]
        given = {**job.options, **self.begin[row]}
        return {
            knob: given[knob] if knob in given else _default(job.method, knob) for knob in self.knobs[row]
        }

    def job(self, trial: Trial) -> Job:
        """A trial as a job of the benchmark."""
        row, values = trial
        return replace(self.rows[row], options={**self.rows[row].options, **values})

    def described(self) -> dict[str, Any]:
        """What the result file says of it."""
        config = {key: value for key, value in vars(self.config).items() if key != "array" or value}
        search = {"passes": self.passes, "knobs": self.knobs, "family": self.family, "begin": self.begin}
        return as_json({"config": config, **search})


def shipped_searches() -> dict[str, Path]:
    """The searches that come with tytoalba, by name."""
    folder = Path(str(resources.files("tytoalba") / "resources" / "searches"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_search(name_or_path: str, changes: Sequence[str] = ()) -> Search:
    """A search by its name, or from a TOML file, changed as benchmarks are."""
    path = file_of("search", name_or_path, shipped_searches())
    table = read_table(path, changes)
    table.pop("options_from", None)  # what is searched for
    families, own = table.pop("families", {}), table.pop("own", {})
    passes = table.pop("passes", 1)
    config = config_of({**table, "judged_on": "valid", "noises": [], "context": [], "verify": False}, path)
    if len(config.seeds) != 1 or len(config.orders) != 1:
        raise TytoError(f"{path}: a search has one seed and one order")
    if type(passes) is not int or passes < 1:
        raise TytoError(f"{path}: passes must be a whole number from 1, got {passes!r:.80}")
    jobs = {row_of(job.method, job.variant): job for job in config.jobs()}
    family, knobs = _knobs(path, jobs, families, own)
    begin = {row: families[family[row]].get("start", {}) for row in knobs}
    if odd := [start for start in begin.values() if not isinstance(start, dict)]:
        raise TytoError(f"{path}: the start of a family must be a table of values, got {odd[0]!r:.80}")
    search = Search(config, passes, {row: jobs[row] for row in knobs}, knobs, family, begin)
    for row in knobs:
        search.start(row)  # says which knob a method does not have
    return search


def _knobs(
    path: Path, jobs: dict[str, Job], families: Any, own: Any
) -> tuple[dict[str, str], dict[str, Knobs]]:
    """The family and the knobs of each row that has one."""
    family: dict[str, str] = {}
    knobs: dict[str, Knobs] = {}
    try:
        for name, told in families.items():
            shared = {knob: list(values) for knob, values in told["knobs"].items()}
            for row in told["rows"]:
                if row in family:
                    raise TytoError(f"{path}: the row {row!r} is in two families")
                family[row] = name
                knobs[row] = {**shared, **{knob: list(v) for knob, v in own.get(row, {}).items()}}
        unknown = [row for row in [*family, *own] if row not in jobs or row not in family]
    except (TypeError, AttributeError, KeyError) as error:
        raise TytoError(f"{path}: families need rows and knobs, each knob a list: {error!r}") from error
    if unknown:
        known = "; ".join(jobs)
        raise TytoError(f"{path}: {unknown[0]!r:.80} is no row in a family; the table has: {known}")
    if not knobs:
        raise TytoError(f"{path} has no families: nothing is searched")
    if empty := [row for row in knobs if not knobs[row] or not all(knobs[row].values())]:
        raise TytoError(f"{path}: the row {empty[0]!r} has no knob, or one without values")
    return family, knobs


def _default(method: str, knob: str) -> Any:
    """The value that a method has for an option if nobody says another."""
    for cls in METHODS[method].__mro__:
        found = inspect.signature(vars(cls).get("__init__", object)).parameters.get(knob)
        if found is not None and found.default is not inspect.Parameter.empty:
            return found.default
    raise TytoError(f"{method} has no option {knob!r} to search")


def run_search(
    name_or_file: str,
    *,
    data: str | None = None,
    size: float | None = None,
    rows: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    speech: Path | None = None,
    output: Path = Path("out") / "search",
    cache: Path | None = None,
    device: str = "cpu",
    jobs: int = 1,
    processes: int = 1,
    keys: Keys = None,
    command: str = "",
    on_data: Announce | None = None,
    on_trial: Callable[[int, int], None] | None = None,
) -> Path:
    """Run a search, or what is left of it; gives its result file.

    data, size: instead of the file's; rows: only these, for now; changes: any other key. cache: a file that
    keeps the prepared data. jobs: trials at a time, processes: for simulations; 0: one per core. on_trial:
    called with (trials done, trials at most, of all rows).
    """
    search = load_search(name_or_file, changes)
    search.only(rows)
    given: dict[str, Any] = {"data": data, "size": size}
    given = {key: value for key, value in given.items() if value is not None}
    search = replace(search, config=replace(search.config, **given))
    result_file = output / f"{search.config.name}.json"
    _earlier(search, result_file)
    prepared = prepared_data(search.config, cache, speech, processes, keys, on_data)
    searched(
        search, prepared, result_file,
        rows=rows, device=device, command=command, processes=jobs, kept=cache, on_trial=on_trial,
    )  # fmt: skip
    return result_file


def searched(
    search: Search,
    data: BenchData,
    output: Path,
    *,
    rows: Sequence[str] | None = None,
    device: str = "cpu",
    command: str = "",
    processes: int = 1,
    kept: Path | None = None,
    on_trial: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run what is not yet in the result file; returns the whole result, as `run_search` writes it.

    rows: only these; a later run of the others goes on with the same file.
    """
    start, sizes = time.perf_counter(), {"train": len(data.train), "valid": len(data.valid or ())}
    result: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "name": search.config.name, **search.described(),
        "versions": versions(), "machine": machine(device), "command": command, "seconds": 0.0,
        "data": {"name": data.name, **sizes}, "rows": [], "trials": [],
    }  # fmt: skip
    if found := _earlier(search, output):
        if found["data"] != result["data"]:
            raise _other(output)
        result |= {"seconds": found["seconds"], "trials": found["trials"]}
    earlier = result["seconds"]
    with TemporaryDirectory() as folder:
        processes = processes or available_cores()
        shared = shared_data(data, kept, Path(folder), processes)
        work = partial(_tried, search=search, data=shared, device=device)
        known = {_key(trial["row"], trial["options"]): trial for trial in result["trials"]}
        while batch := [
            (row, values) for row in search.only(rows) for values in reached(search, row, known)[1]
        ]:
            each = map(work, batch) if processes == 1 else parallel_map(work, batch, processes)
            for trial in each:
                known[_key(trial["row"], trial["options"])] = trial
                result["trials"].append(trial)
                result["seconds"] = round(earlier + time.perf_counter() - start, 1)
                result["rows"] = [_outcome(search, row, known) for row in search.rows]
                _write(result, output)
                if on_trial:
                    on_trial(len(result["trials"]), search.most_trials)
        result["rows"] = [_outcome(search, row, known) for row in search.rows]
        _write(result, output)
    return result


def _tried(trial: Trial, search: Search, data: BenchData | Path, device: str) -> dict[str, Any]:
    """How a trial does: overall ACC in %, and what it cost."""
    start = time.perf_counter()
    rows = run_job(search.job(trial), search.config, data, device)
    return {
        "row": trial[0],
        "options": as_json(trial[1]),
        "acc": round(100 * overall(rows), 3),
        "seconds": round(time.perf_counter() - start, 1),
        "learn_seconds": round(sum(rows[0]["learn_seconds"]), 1),
    }


def overall(rows: Sequence[dict[str, Any]]) -> float:
    """Overall ACC as tables have it: the mean over the phases, one and two sources by their frames.

    Of the rows of one job: in quiet, by the method's own decision, answers anywhere.
    """
    own = [
        row
        for row in rows
        if (row["condition"], row.get("mask") or "", row["decision"]) == (CLEAN, "", rows[0]["decision"])
    ]
    found = [average_incremental_accuracy(np.array(row["acc"], float), row["counts"]) for row in own]
    return float(np.average(found, weights=[sum(row["counts"]) for row in own]))


def reached(search: Search, row: str, known: Mapping[str, Any]) -> tuple[Options, list[Options]]:
    """The best values of a row as far as its trials are known, and the trials that it needs next.

    None are needed at its end. known: trials by `_key`.
    """
    best = search.start(row)
    if _key(row, best) not in known:
        return best, [best]
    for knob, values in [*search.knobs[row].items()] * search.passes:
        tried = [{**best, knob: value} for value in values if value != best[knob]]
        if unknown := [options for options in tried if _key(row, options) not in known]:
            return best, unknown
        best = max([best, *tried], key=lambda options: float(known[_key(row, options)]["acc"]))
    return best, []


def _outcome(search: Search, row: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Where a row began and what was best, and what that cost; done: whether all of its trials are known."""
    start, (best, needed) = search.start(row), reached(search, row, known)
    found = [trial for trial in known.values() if trial["row"] == row]
    first, last = (known.get(_key(row, options), {}) for options in (start, best))
    return {
        "row": row,
        "family": search.family[row],
        "done": not needed,
        "trials": len(found),
        "seconds": round(sum(trial["seconds"] for trial in found), 1),
        "start": as_json(start),
        "start_acc": first.get("acc"),
        "chosen": as_json(best),
        "acc": last.get("acc"),
    }


def _key(row: str, options: Options) -> str:
    return row + json.dumps(as_json(options), sort_keys=True)


def _earlier(search: Search, output: Path) -> dict[str, Any] | None:
    """What an earlier run of this search has written; any other file is refused."""
    if not output.exists():
        return None
    found = read_search(output)
    if {key: found.get(key) for key in search.described()} != search.described():
        raise _other(output)
    return found


def read_search(path: str | Path) -> dict[str, Any]:
    """The result file of a search; anything else, and one that was cut or edited, is refused."""
    found = read_json(path, LARGEST)
    if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise TytoError(f"{path} is no result of a search; tyto bench search makes one")
    right = _holds(found, _RESULT) and _holds(found["data"], _DATA)
    for key, wanted in (("rows", _ROW), ("trials", _TRIAL)):
        right = right and all(type(one) is dict and _holds(one, wanted) for one in found[key])
    if not right:
        raise TytoError(f"{path} is damaged: a search writes more than it has; run the search again")
    return found


def _holds(table: Mapping[str, Any], wanted: Mapping[str, tuple[type, ...]]) -> bool:
    """Whether a table has these keys with values of these types."""
    return all(key in table and type(table[key]) in types for key, types in wanted.items())


def _other(output: Path) -> TytoError:
    return TytoError(f"{output} holds another search or other data; choose another --output, or remove it")


def _write(result: dict[str, Any], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json.dumps(result, allow_nan=False).encode())


def chosen_of(result: dict[str, Any]) -> dict[str, Options]:
    """The options that a search chose, by row: where it would start, for rows that were not searched.

    Without those that are as if nobody gave them.
    """
    return {
        row["row"]: {knob: value for knob, value in row["chosen"].items() if value is not None}
        for row in result["rows"]
    }


def as_toml(result: dict[str, Any]) -> str:
    """The options that a search chose, as benchmarks take them (`options_from`)."""
    lines = [
        f"# Chosen on validation rooms by: {result['command']}",
        "# Do not edit: the same search writes this file (--write).",
    ]
    done = {row["row"]: row["done"] for row in result["rows"]}
    for row, options in chosen_of(result).items():
        lines += ["", *([] if done[row] else ["# not searched to its end"])]
        lines += [f"[{json.dumps(row, ensure_ascii=False)}]"]
        lines += [f"{knob} = {json.dumps(value)}" for knob, value in options.items()]
    return "\n".join(lines) + "\n"


def table(result: dict[str, Any]) -> Table:
    """What was found for each row, and what it cost."""
    rows = [
        [
            row["row"], row["family"], str(row["trials"]), f"{row['seconds'] / 60:.1f}",
            _percent(row["start_acc"]), _percent(row["acc"]),
            ", ".join(f"{knob} {value}" for knob, value in row["chosen"].items()),
        ]
        for row in result["rows"]
    ]  # fmt: skip
    note = (
        f"Overall ACC in %, mean over the phases, on the validation part of {result['data']['name']} "
        f"({result['data']['valid']} frames; {result['data']['train']} to learn from), "
        f"{result['passes']} pass{'es' * (result['passes'] > 1)} through the knobs of every row. "
        "Minutes: of all trials, learning and answering, on "
        f"{result['machine']}; trials of more than one row may have run at a time."
    )
    header = ["row", "family", "trials", "minutes", "at first", "chosen", "options"]
    return Table("search", "Tuning", header, rows, note)


def _percent(acc: float | None) -> str:
    return "\N{EN DASH}" if acc is None else f"{acc:.1f}"


def is_search(path: str | Path) -> bool:
    """Whether a file is the result of a search, whole or not; one that cannot be read is none."""
    try:
        found = read_json(path, LARGEST)
    except (TytoError, OSError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def render_searches(paths: Sequence[Path], out: Path) -> list[Path]:
    """The tables of searches as Markdown, each in a file of its own; gives those files."""
    written = []
    for path in paths:
        target = out / f"search-{Path(path).stem}.md"
        out.mkdir(parents=True, exist_ok=True)
        write_whole(target, markdown([table(read_search(path))]).encode())
        written.append(target)
    return written
