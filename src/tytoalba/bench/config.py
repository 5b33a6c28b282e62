"""What a benchmark is: data, methods, seeds, phases, conditions; as a TOML file says it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tytoalba.data.simulation.noise import NOISES, Noise
from tytoalba.errors import TytoError
from tytoalba.learning.method import Scaling
from tytoalba.learning.methods import METHODS
from tytoalba.learning.phases import ORDERS, Order
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.gcc import Band
from tytoalba.storage.files import read_toml
from tytoalba.texts.parsing import parse_toml

SEES = ("windows", "plain", "noisy")
"""Options that say what a method sees of the features; the method itself does not get them."""
ROW = ", "
"""Between a method and the name of its variant."""
MOST_BASES = 4
MOST_JOBS = 100_000


@dataclass(frozen=True)
class Config:
    """A benchmark, as its TOML file says it.

    methods: names in `METHODS`. options: hyper-parameters by method. variants: for a method, a list of
    options to run one after another (a sweep, or rows of a table); those with a `name` are called by it.
    Three options are for any method, which does not get them: windows = false shows it whole frames alone,
    without the windows that `parts` adds; plain = true shows it whole frames and all bands as one, as the
    paper's methods see them; noisy = true lets it learn in the noises that priors are trained in.
    chosen: options by row ("joint", or "joint, NAME" of a variant), as a search found them; in a file,
    options_from names the file that has them.
    array: for simulations; that of the preset where there is none.
    bands, parts: of GCC-PHAT, as `GccPhat` takes them. noises and snr: test conditions beside the quiet one.
    max_sources: training frames with more sources than this are left out.
    context: further conditions: scores averaged over this many neighbouring frames on each side.
    judged_on: "valid" for choosing hyper-parameters, so that the test rooms stay unseen.
    verify: check at every phase of the first seed that what was accumulated equals the joint closed form.
    """

    name: str
    about: str = ""
    data: str = "simulated:quick"
    array: str = ""
    methods: tuple[str, ...] = ("srp-phat", "tyto")
    seeds: tuple[int, ...] = (0,)
    n_phases: int = 10
    orders: tuple[Order, ...] = ("contiguous",)
    overlap: float = 0.0
    imbalance: float = 1.0
    bands: tuple[Band, ...] = ((100.0, 8000.0),)
    parts: int = 1
    scaling: Scaling = "frame"
    noises: tuple[str, ...] = ()
    snr: tuple[float, ...] = (-20.0, -10.0, 0.0, 10.0)
    noise_share: float = 0.25
    context: tuple[int, ...] = ()
    size: float = 1.0
    max_sources: int = 2
    judged_on: Literal["test", "valid"] = "test"
    verify: bool = False
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lists = ("methods", "seeds", "orders", "bands", "noises", "snr", "context")
        if single := [key for key in lists if not isinstance(getattr(self, key), tuple)]:
            raise TytoError(f"{single[0]} must be a list, got {getattr(self, single[0])!r:.200}")
        of_rows = [str(row).split(ROW)[0] for row in self.chosen]
        refuse_unknown("method", [*self.methods, *self.options, *self.variants, *of_rows], METHODS)
        refuse_unknown("noise", self.noises, NOISES)
        refuse_unknown("order", self.orders, ORDERS)
        refuse_unknown("scaling", [self.scaling], get_args(Scaling))
        refuse_unknown("part to judge on", [self.judged_on], ("test", "valid"))
        if not self.methods or not self.seeds or not self.orders or not self.bands:
            raise TytoError("a benchmark needs at least one method, one seed, one order and one band")
        tables = [*self.options.values(), *self.chosen.values()]
        tables += [table for listed in self.variants.values() for table in listed]
        wanted = {
            "name": ("a file name", Path(str(self.name)).name == self.name and self.name.isprintable()),
            "data": ("text", isinstance(self.data, str)),
            "array": ("text", isinstance(self.array, str)),
            "seeds": ("whole numbers from 0", all(isinstance(s, int) and s >= 0 for s in self.seeds)),
            "n_phases": (f"from 1 to {N_DIRECTIONS}", self.n_phases in range(1, N_DIRECTIONS + 1)),
            "max_sources": ("at least 1", isinstance(self.max_sources, int) and self.max_sources >= 1),
            "overlap": ("from 0 to less than 1", 0 <= self.overlap < 1),
            "imbalance": ("at least 1", self.imbalance >= 1),
            "bands": ("each [low, high] in Hz", all(0 <= low < high for low, high in self.bands)),
            "parts": ("a whole number from 1", type(self.parts) is int and self.parts >= 1),
            "snr": ("decibels", all(-1000 <= snr <= 1000 for snr in self.snr)),
            "noise_share": ("above 0, at most 1", 0 < self.noise_share <= 1),
            "context": ("whole numbers from 1", all(isinstance(c, int) and c >= 1 for c in self.context)),
            "size": ("a positive factor", 0 < self.size < np.inf),
            "options": ("tables of options, as in variants", all(isinstance(t, dict) for t in tables)),
        }
        if wrong := [key for key, (_, right) in wanted.items() if not right]:
            raise TytoError(f"{wrong[0]} must be {wanted[wrong[0]][0]}; got {getattr(self, wrong[0])!r:.200}")
        for key in SEES:
            if odd := [t[key] for t in tables if not isinstance(t.get(key, True), bool)]:
                raise TytoError(f"the option {key} must be true or false; got {odd[0]!r}")
        named = [t["name"] for listed in self.variants.values() for t in listed if "name" in t]
        if odd := [name for name in named if not isinstance(name, str) or not name.isprintable()]:
            raise TytoError(f"the name of a variant must be text; got {odd[0]!r:.80}")
        variants = sum(len(self.variants.get(method, [{}])) for method in self.methods)
        if not variants:
            raise TytoError("every method has an empty list of variants: there is nothing to run")
        if len(self.seeds) * len(self.orders) * variants > MOST_JOBS:
            raise TytoError(f"more than {MOST_JOBS} runs: fewer methods, variants, orders or seeds, please")
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
                        own = {key: value for key, value in variant.items() if key != "name"}
                        name = variant.get("name", "")
                        chosen = self.chosen.get(row_of(method, name), {})
                        options = {**self.options.get(method, {}), **chosen, **own}
                        label = [name] if name else []
                        if "name" not in variant:
                            label = [f"{key}={value}" for key, value in own.items()]
                        label += [f"order={order}"] if len(self.orders) > 1 else []
                        made.append(Job(method, ", ".join(label), order, seed, options))
        return made

    @property
    def learns_in_noise(self) -> bool:
        """Whether any method learns from training frames in noise."""
        return any(job.options.get("noisy", False) for job in self.jobs())


def refuse_unknown(what: str, names: Iterable[Any], known: Collection[str]) -> None:
    """Refuse what is not among the known names."""
    if unknown := [name for name in names if name not in known]:
        raise TytoError(f"no {what} called {unknown[0]!r:.80}; known: {', '.join(known)}")


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


def row_of(method: str, name: str) -> str:
    """What a row of a table is called where its options are chosen.

    >>> row_of("joint", ""), row_of("joint", "from the prior")
    ('joint', 'joint, from the prior')
    """
    return f"{method}{ROW}{name}" if name else method


def as_json(table: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: lists for tuples, infinity as text."""
    return dict(json.loads(json.dumps(table), parse_constant=str))


def shipped_configs() -> dict[str, Path]:
    """The benchmarks that come with tytoalba, by name."""
    folder = Path(str(resources.files("tytoalba") / "resources" / "experiments"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def shipped_choices() -> dict[str, Path]:
    """Options that a search chose (`tyto bench search`), by the name of the search."""
    folder = Path(str(resources.files("tytoalba") / "resources" / "chosen"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_config(name_or_path: str, changes: Sequence[str] = ()) -> Config:
    """A benchmark by its name, or from a TOML file, changed by such as "seeds=[0,1]".

    A file may name another benchmark as its `base`: it then holds only what differs.
    """
    path = file_of("benchmark", name_or_path, shipped_configs())
    return config_of(read_table(path, changes), path)


def read_table(path: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a TOML file, upon those of its `base`, changed by such as "seeds=[0,1]"."""
    try:
        table = _table(path)
        for change in changes:
            table = _merged(table, _change(change))
    except (TypeError, AttributeError, KeyError) as error:  # a value where its base has a table, or none
        raise TytoError(f"{path} does not fit the benchmark that is its base: {error}") from error
    return table


def config_of(table: dict[str, Any], path: Path) -> Config:
    """A benchmark of its keys, which a file has."""
    known_keys = set(Config.__dataclass_fields__)
    if unknown := sorted(set(table) - known_keys - {"options_from"}):
        raise TytoError(f"{path}: unknown key {unknown[0]!r:.80}; known: {', '.join(sorted(known_keys))}")
    table.setdefault("name", path.stem)
    try:
        _take_chosen(table)
        table["bands"] = tuple((float(low), float(high)) for low, high in table.get("bands", [(100, 8000)]))
        as_json(table)  # TypeError for what no result file can say, such as a date
        frozen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in table.items()}
        return Config(**frozen)
    except TytoError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TytoError(f"{path}: a value is of another kind than expected: {error}") from error


def file_of(what: str, name_or_path: str, shipped: dict[str, Path]) -> Path:
    """The file of something that is shipped under this name, or that is there under this path."""
    path = shipped.get(name_or_path, Path(name_or_path))
    try:
        there = path.is_file()
    except (OSError, ValueError):  # no name that a file can have
        there = False
    if not there:
        known = ", ".join(shipped)
        raise TytoError(f"no {what} called {name_or_path[:80]!r} and no such file; shipped: {known}")
    return path


def _table(path: Path, n_bases: int = 0) -> dict[str, Any]:
    """The keys of a file, upon those of the benchmark that it names as its `base`."""
    table = read_toml(path, TytoError)
    if "base" not in table:
        return table
    if n_bases == MOST_BASES:
        raise TytoError(f"{path}: more than {MOST_BASES} files stand on each other's `base`")
    base = table.pop("base")
    table = _merged(_table(file_of("benchmark", str(base), shipped_configs()), n_bases + 1), table)
    for kind in {"options", "variants"} & table.keys():  # those of methods that only the base has
        table[kind] = {name: value for name, value in table[kind].items() if name in table["methods"]}
    return table


def _take_chosen(table: dict[str, Any]) -> None:
    """Put the options that were chosen for the rows of these methods where the file says where they are."""
    name = table.pop("options_from", None)
    if name is None:
        return
    path = file_of("options", str(name), shipped_choices())
    found = read_toml(path, TytoError)
    if odd := [row for row, options in found.items() if not isinstance(options, dict)]:
        raise TytoError(f"{path}: {odd[0]!r:.80} must be a table of options")
    methods = table.get("methods", Config.__dataclass_fields__["methods"].default)
    kept = {row: options for row, options in found.items() if row.split(ROW)[0] in methods}
    table["chosen"] = _merged(kept, table.get("chosen", {}))


def _change(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise TytoError(f"a change is KEY=VALUE, such as seeds=[0,1]; got {text!r}")
    try:
        try:
            return parse_toml(f"{key.strip()} = {value}")
        except tomllib.TOMLDecodeError:  # a word without quotes
            return parse_toml(f"{key.strip()} = {json.dumps(value.strip(), ensure_ascii=False)}")
    except ValueError as error:
        raise TytoError(f"{text[:80]!r} is not valid TOML: {error}") from error


def _merged(table: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A table with some values changed, those of inner tables one by one."""
    inner = {k: _merged(table[k], v) for k, v in change.items() if isinstance(v, dict) and k in table}
    return table | change | inner
