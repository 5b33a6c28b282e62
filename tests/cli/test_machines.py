"""What one machine taught another forgets: kernels of OpenBLAS and numbers of threads stand for machines."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden import codes
from tests.helpers.states import ARRAY, write_wave
from tytoalba.learning.inputs import views_of
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer.frontend import FrontEnd
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import builtin_arrays, load_array

KERNELS = ("Haswell", "Prescott", "SkylakeX", "Sandybridge", "Nehalem", "Zen", "NEOVERSEN1", "ARMV8")
SMALL = ("respeaker-usb-4", "respeaker-4mic-hat", "pepper", "respeaker-core-v2")
KERNEL_OF = """
import os, sys, numpy
from threadpoolctl import threadpool_info
a = numpy.ones((40, 40)); assert (a @ a == 40).all()
print({info.get("architecture") for info in threadpool_info() if info["internal_api"] == "openblas"})
"""
TEACH = """
import sys
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
store.create("k.tyto", Localizer.new(sys.argv[1], n_features=200, seed=1))
with store.edit("k.tyto") as localizer:
    localizer.teach("b.wav", 40.0)
open("before.tyto", "wb").write(open("k.tyto", "rb").read())
with store.edit("k.tyto") as localizer:
    localizer.teach("a.wav", 135.0)
"""


def machine(kernel: str, threads: int = 1) -> dict[str, str]:
    """The environment of a process that computes with this kernel."""
    own = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return os.environ | own | {"PYTHONPATH": os.pathsep.join(["src", "."])}


def run(*command: str, env: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *command], env=env, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def kernels() -> list[str]:
    """Kernels that this CPU runs and that are not one another's, by trying."""
    found: dict[str, str] = {}
    for kernel in KERNELS:
        done = subprocess.run(
            [sys.executable, "-c", KERNEL_OF],
            env=machine(kernel),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode == 0:
            found.setdefault(done.stdout, kernel)
    return list(found.values())


def teach_and_forget(folder: Path, teaching: dict[str, str], forgetting: dict[str, str]) -> None:
    """Taught on one machine, `tyto forget` on another: the file is as if the lesson had never been."""
    write_wave(folder / "a.wav", 135.0, 1.0)
    write_wave(folder / "b.wav", 40.0, 1.0)
    home = {"XDG_DATA_HOME": str(folder), "PYTHONPATH": str(Path.cwd() / "src")}
    teaching, forgetting = (
        {name: value for name, value in env.items() if not name.startswith("TYTO_")} | home
        for env in (teaching, forgetting)
    )
    run("-c", TEACH, ARRAY, env=teaching, cwd=folder)
    before = state_of(folder / "before.tyto")
    assert state_of(folder / "k.tyto") != before
    forget = ("forget", "k.tyto", "a.wav", "--at", "135")
    run("-m", "tytoalba", *forget, env=forgetting, cwd=folder)
    assert state_of(folder / "k.tyto") == before


def state_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these kernels are for x86-64")
def test_a_lesson_of_one_cpu_type_is_forgotten_on_another(tmp_path: Path) -> None:
    teach_and_forget(tmp_path, machine("Prescott"), machine("Haswell", threads=2))


@pytest.mark.end_to_end
def test_lessons_of_every_kernel_are_forgotten_with_every_other(tmp_path: Path) -> None:
    names = kernels()
    for number, (one, other) in enumerate(zip(names, names[1:] + names[:1], strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        teach_and_forget(folder, machine(one, 2), machine(other))


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SMALL else pytest.mark.end_to_end) for name in builtin_arrays()],
)
def test_codes_are_what_they_were_on_any_machine(name: str, device: str | None) -> None:
    stored = json.loads(codes.STORED.read_text(encoding="utf-8"))
    assert stored.keys() == builtin_arrays().keys()
    assert {"codes", "scores"} <= stored[name].keys()
    assert codes.codes(name, device) == stored[name]


def test_an_array_without_a_prior_of_its_own_has_codes_by_the_prior_that_fits() -> None:
    """As a localizer of that array has them, whose microphones have another order than the prior's."""
    array = load_array("respeaker-core-v2")
    assert array.name not in shipped_priors()
    localizer = Localizer.new(array, n_features=codes.N_CODES, seed=codes.SEED)
    front = FrontEnd(array, localizer.state.prior)
    assert front.fit.order != tuple(range(array.n_mics))
    inputs, found = localizer.state.learner.inputs, list[Any]()
    for _, order in views_of(inputs.task)[:2]:
        found += inputs.codes(front.features(codes.sound(array))[:, order])
    stored = json.loads(codes.STORED.read_text(encoding="utf-8"))[array.name]
    assert codes._sha256(*found[::2]) == stored["codes"]
    assert codes._sha256(*found[1::2]) == stored["scores"]


@pytest.mark.end_to_end
@pytest.mark.parametrize("threads", [1, 2])
def test_codes_are_the_same_with_every_kernel(threads: int) -> None:
    for kernel in kernels():
        told = run("-m", "tests.golden.codes", env=machine(kernel, threads))
        assert told.splitlines() == [f"{name}: the same" for name in builtin_arrays()]
