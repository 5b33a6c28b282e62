"""Kill points, full disks and whole commands as kinds: "kill teach", "disk teach", "command open"."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.slow import world
from tests.slow.orders import NUMBER, ORDERS
from tests.slow.scenes import SCENES
from tests.slow.work import Outcomes

FAMILIES = {"kill": list(SCENES), "disk": list(SCENES), "command": list(ORDERS)}
NEEDS = ("pyrage", "cryptography", "soundfile")
ROOT = Path(__file__).parents[2]


def names(family: str = "") -> list[str]:
    """Every kind of these, or those of one family."""
    return [
        f"{each} {own}" for each, all_of_it in FAMILIES.items() for own in all_of_it if family in ("", each)
    ]


def asked(name: str) -> int:
    """How many inputs there are; of kill points and full disks that is known when calls are counted."""
    return NUMBER if name.startswith("command ") else 0


def missing(name: str) -> list[str]:
    """What is not here and is needed."""
    needs = (*NEEDS, "dp_accounting") if "export" in name or "signature" in name else NEEDS
    needs = (*needs, "onnx") if "--onnx" in name else needs
    found = [module for module in needs if importlib.util.find_spec(module) is None]
    if sys.platform != "linux" or world.compiler() is None:
        found.append("a C compiler on Linux")
    return found


def run(name: str, tell: Callable[[int], None]) -> Outcomes:
    """All points of one command, in a process that has the faults loaded."""
    with TemporaryDirectory(prefix="tyto-slow-") as folder:
        return _run(name, Path(folder), tell)


def _run(name: str, folder: Path, tell: Callable[[int], None]) -> Outcomes:
    family, _, scene = name.partition(" ")
    library = world.build(folder)
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "tests.slow.server", family, scene, str(folder)]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as server:
        assert server.stdout
        for last in server.stdout:
            if last.strip().isdigit():
                tell(int(last))
    if server.returncode or not last.startswith("{"):
        raise RuntimeError(f"{name}: the run itself failed ({server.returncode}): {last[-1000:]}")
    found = json.loads(last)
    return Outcomes(Counter(found["counts"]), {}, found["findings"])
