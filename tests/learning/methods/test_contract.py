"""Every method keeps the contract of `Method`, and the contract notices who does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Method, Task, checked_features
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.contract import (
    CHECKS,
    ContractError,
    Factory,
    check_learning,
    check_memory_is_all,
    check_memory_size,
    check_method,
    check_no_aliasing,
    check_one_frame_phases,
    check_posterior,
    check_refusals,
    check_same_seed,
    check_untaught_directions,
    toy_task,
)
from tytoalba.learning.methods.ssil import SsIl
from tytoalba.learning.phases import Phase
from tytoalba.learning.tyto import Tyto

NETWORK = {"width": 8, "epochs": 2}
QUICK: dict[str, dict[str, Any]] = {
    "tyto": {"n_features": 20},
    "ssl-cil": {"n_features": 20, **NETWORK},
    "ssl-cil-random": {"n_features": 20, "width": 8},
    "acil": {"n_features": 20, **NETWORK},
    "ds-al": {"n_features": 20, **NETWORK},
    "gkeal": {"n_centres": 20, **NETWORK},
    **dict.fromkeys(("mlp-gcc", "joint", "fine-tune", "lwf", "ewc", "lfl"), NETWORK),
    **{name: {"budget": 40, **NETWORK} for name in ("icarl", "ss-il", "replay")},
}
"""Settings that make a method quick; one that is not named here is tried as it comes."""
TRAINED = {"width": 32, "epochs": 60}
GRADIENT = {**TRAINED, "batch": 32, "lr": 1e-2, "dropout": 0.0}
ENOUGH: dict[str, dict[str, Any]] = {
    "tyto": {"n_features": 200},
    "ssl-cil": {"n_features": 200, **TRAINED},
    "ssl-cil-random": {"n_features": 200, "width": 32},
    "acil": {"n_features": 200, **TRAINED},
    "ds-al": {"n_features": 200, **TRAINED},
    "gkeal": {"n_centres": 200, **TRAINED},
    **dict.fromkeys(("mlp-gcc", "joint", "fine-tune", "lwf", "ewc", "lfl"), GRADIENT),
    **{name: {"budget": 720, **GRADIENT} for name in ("icarl", "ss-il", "replay")},
}
"""Settings with which a method learns; the same for all, and not tuned."""
ANALYTIC = ("ssl-cil", "acil", "ds-al", "gkeal")
CASES = [
    *((name, {}) for name in METHODS),
    *((name, {"backbone": "random"}) for name in ANALYTIC),
]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(("name", "more"), CASES, ids=str)
def test_every_method_keeps_the_contract(
    name: str, more: dict[str, Any], check: Callable[[Factory, Task], None]
) -> None:
    settings = (ENOUGH if check is check_learning else QUICK).get(name, {})
    check(lambda task: METHODS[name](task, **settings, **more), toy_task())


def test_settings_are_for_methods_that_exist() -> None:
    assert QUICK.keys() | ENOUGH.keys() <= METHODS.keys()


def test_methods_do_not_import_torch() -> None:
    code = "import sys, tytoalba.learning.methods.contract; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Small(Tyto):
    """A method that keeps the contract, to be broken in one place by each of the following."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, n_features=10)


class Diary(Small):
    """Writes down every frame."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.frames = np.empty((0, task.n_inputs), np.float32)

    def learn(self, phase: Phase) -> None:
        super().learn(phase)
        self.frames = np.concatenate([self.frames, phase.X])

    def memory(self) -> Memory:
        return super().memory() | {"frames": self.frames.copy()}

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self.frames = memory["frames"].copy()


class Hoarder(Diary):
    """Says that it keeps a few, keeps all."""

    keeps = "exemplars"
    budget = 10


class Secretive(Small):
    """Keeps more than it lists."""

    gain = 0.0

    def learn(self, phase: Phase) -> None:
        super().learn(phase)
        self.gain += 1.0

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.float32(self.gain) * super().posterior(X)


class Counting(Small):
    """Changes when it is asked."""

    asked = 0.0

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        self.asked += 1.0
        return super().posterior(X) + np.float32(self.asked)


class Gambler(Small):
    """Throws dice of its own."""

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return super().posterior(X) * np.float32(id(self) % 1000003)


class Borrower(Small):
    """Keeps what it was given instead of a copy."""

    def learn(self, phase: Phase) -> None:
        super().learn(phase)
        self.last = phase.X[:1]

    def memory(self) -> Memory:
        return super().memory() | {"last": self.last.copy()}

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self.last = memory["last"].copy()


class Narrow(Small):
    """Knows no directions but those it was taught."""

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return super().posterior(X)[:, :120]


class Fragile(Small):
    """Divides by the spread of a phase's first column."""

    spread = 1.0

    def learn(self, phase: Phase) -> None:
        super().learn(phase)
        self.spread = float(phase.X[:, 0].std())

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(all="ignore"):
            return super().posterior(X) / np.float32(self.spread)


class Hasty(Small):
    """Learns what it then refuses."""

    def learn(self, phase: Phase) -> None:
        super().learn(Phase(np.nan_to_num(phase.X), phase.azimuth, phase.directions))
        if np.isnan(phase.X).any():
            raise ValueError("too late")


class Trusting(Small):
    """Takes NaN for a number."""

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return super().posterior(np.nan_to_num(X))


class Finished(Small):
    """Learns the first phase and no other."""

    taught = False

    def learn(self, phase: Phase) -> None:
        if not self.taught:
            super().learn(phase)
        self.taught = True


class Forgetful(Small):
    """Begins again with every phase."""

    def learn(self, phase: Phase) -> None:
        self.restore(type(self)(self.task).memory())
        super().learn(phase)


class Resigned(Tyto):
    """Says that it forgets, and does not."""

    forgets = True

    def __init__(self, task: Task) -> None:
        super().__init__(task, n_features=50)


@pytest.mark.parametrize(
    ("broken", "check", "complaint"),
    [
        (Diary, check_memory_size, "grew with the frames: frames"),
        (Hoarder, check_memory_size, "the budget is 10"),
        (Secretive, check_memory_is_all, "scores are not the same"),
        (Counting, check_posterior, "second call of posterior"),
        (Gambler, check_same_seed, "scores are not the same"),
        (Borrower, check_no_aliasing, "after learn changed the method"),
        (Narrow, check_untaught_directions, "from the start"),
        (Fragile, check_one_frame_phases, "not finite"),
        (Hasty, check_refusals, "refused changed the memory"),
        (Trusting, check_refusals, "posterior with NaN must raise"),
        (Finished, check_learning, "newest phase is hardly learned"),
        (Forgetful, check_learning, "older phase is lost: .* forgets = True"),
        (Resigned, check_learning, "Resigned says that it forgets, but"),
    ],
)
def test_the_contract_notices(
    broken: type[Tyto], check: Callable[[Factory, Task], None], complaint: str
) -> None:
    with pytest.raises(ContractError, match=complaint):
        check(broken, toy_task())
    with pytest.raises(ContractError):
        check_method(broken)


@pytest.mark.parametrize("labels", ["cut", "one-hot"])
def test_the_contract_notices_a_newest_phase_that_is_never_compared(labels: Any) -> None:
    """SS-IL without its comparison answers new frames in old directions."""
    settings = {**ENOUGH["ss-il"], "comparison": 0.0}
    with pytest.raises(ContractError, match="newest phase stands behind the older ones"):
        check_learning(lambda task: SsIl(task, labels=labels, **settings), toy_task())


def test_what_forgets_says_so() -> None:
    assert {name for name, method in METHODS.items() if method.forgets} == {"fine-tune", "lwf", "ewc", "lfl"}


def test_a_fixed_rule_need_not_learn() -> None:
    method = METHODS["srp-phat"](toy_task())
    assert not method.memory()
    check_learning(METHODS["srp-phat"], toy_task())


def test_a_method_of_ones_own_task() -> None:
    def factory(task: Task) -> Method:
        return Tyto(task, n_features=10)

    check_method(factory, Task(n_inputs=12, seed=3, scaling="min-max", n_directions=72))


# ---- features: what is refused, and how they are scaled ----


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_value_that_is_not_finite_is_found(bad: float, dtype: Any) -> None:
    for place in ((0, 0), (99, 2)):
        X = np.ones((100, 3), dtype)
        X[place] = bad
        with pytest.raises(TytoError, match="NaN or infinity"):
            checked_features(Task(3), X)
    X[0, 0] = -X[99, 2]  # infinities that cancel
    with pytest.raises(TytoError, match="NaN or infinity"):
        checked_features(Task(3), X)


@pytest.mark.parametrize(
    "X",
    [
        np.full((4, 3), 3e38, np.float32),
        np.array([[3e38] * 3, [-3e38] * 3], np.float32),
        np.full((2, 3), 6e4, np.float16),
        np.full((3, 3), np.iinfo(np.int64).max),
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.empty((0, 3)),
    ],
)
def test_large_values_whole_numbers_and_nothing_are_finite(X: NDArray[Any]) -> None:
    checked = checked_features(Task(3), X)
    assert checked.dtype == np.float32
    np.testing.assert_array_equal(checked, X.astype(np.float32))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 4, 5, 9, 33])
def test_scaling_in_blocks_is_scaling_at_once(monkeypatch: pytest.MonkeyPatch, n: int, order: Any) -> None:
    monkeypatch.setattr("tytoalba.learning.method.BLOCK", 4)
    X = np.random.default_rng(n).standard_normal((n, 700)).astype(np.float32) * 3 + 5
    X[n // 2 : n // 2 + 1] = 7.0  # a frame without spread
    X = np.asarray(X, order=order)
    given = X.copy()
    centred = X - X.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
    expected = centred / np.where(spread > 0, spread, 1.0)
    scaled = Task(700).scale(X)
    assert scaled.dtype == np.float32
    assert scaled.flags.c_contiguous == X.flags.c_contiguous
    np.testing.assert_array_equal(scaled, expected)
    np.testing.assert_array_equal(X, given)
