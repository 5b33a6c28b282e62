"""What CONTRIBUTING.md shows is what works: its example keeps the contract and runs in a benchmark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tytoalba
from tytoalba.bench.config import Config
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.bench.page import render
from tytoalba.bench.run import run
from tytoalba.learning.method import Method
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.contract import check_method, toy_features, toy_task

GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def block() -> str:
    """The only Python block of the guide."""
    (found,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    return str(found)


@pytest.fixture(scope="module")
def example() -> type[Method]:
    """The class that the block defines."""
    names: dict[str, Any] = {"__name__": "contributing"}
    exec(compile(block(), str(GUIDE), "exec"), names)
    (made,) = [
        value for value in names.values()
        if isinstance(value, type) and issubclass(value, Method) and value is not Method
    ]  # fmt: skip
    return made


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_the_example_can_be_added_under_any_name(name: str, tmp_path: Path) -> None:
    """As a file among the methods and a line in `METHODS`; sorted imports must not go in a circle."""
    package = tmp_path / "tytoalba"
    skipped = shutil.ignore_patterns("__pycache__", "resources")
    shutil.copytree(Path(tytoalba.__file__).parent, package, ignore=skipped)
    methods = package / "learning" / "methods"
    (methods / f"{name}.py").write_text(block(), encoding="utf-8")
    registry = (methods / "__init__.py").read_text(encoding="utf-8")
    line = f"from tytoalba.learning.methods.{name} import NearestMean\n"
    first = registry.index("from tytoalba.learning." + ("methods.acil" if name == "aaa" else "tyto"))
    registry = registry[:first] + line + registry[first:] + 'METHODS["nearest-mean"] = NearestMean\n'
    (methods / "__init__.py").write_text(registry, encoding="utf-8")
    program = (
        f"import tytoalba.learning.methods.{name} as own; from tytoalba.learning.methods import METHODS; "
        "assert METHODS['nearest-mean'] is own.NearestMean; print(own.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_the_example_keeps_the_contract(example: type[Method]) -> None:
    check_method(example)


def test_the_example_runs_in_a_benchmark(
    example: type[Method], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "nearest-mean", example)
    task = toy_task()

    def frames(n: int, seed: int) -> Frames:
        rng = np.random.default_rng(seed)
        azimuth = rng.uniform(0, 360, (n, 1))
        return Frames(toy_features(task, azimuth, rng), azimuth)

    data = BenchData("toy", frames(2000, 0), None, {(CLEAN, "test"): frames(200, 1)}, task.array, task.gcc)
    config = Config("mine", methods=("srp-phat", "nearest-mean"), n_phases=3)
    result = run(config, data, tmp_path / "mine.json")
    ours = next(row for row in result["rows"] if row["method"] == "nearest-mean")
    assert ours["acc"][0][0] > 0.8
    assert ours["acc"][2][0] > 0.8  # it forgets nothing
    assert set(ours["kept_bytes"]) == {"total", "count"}
    render(tmp_path / "mine.json", tmp_path)
    assert "| nearest-mean |" in (tmp_path / "tables.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert json.dumps("nearest-mean") in page


def test_the_files_that_the_guide_names_are_there() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    root = GUIDE.parent
    named = re.findall(r"`((?:src|tests)/[\w/.]+)`", text)
    assert "tests/test_contributing.py" in named
    for name in [*named, "Makefile", "pyproject.toml"]:
        assert (root / name).exists(), name
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", text, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
