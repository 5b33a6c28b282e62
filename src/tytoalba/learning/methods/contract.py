"""The contract of `Method` as checks that run: for ours in the tests, for yours wherever you like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Method, Task
from tytoalba.learning.phases import Phase, groups
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat

Factory = Callable[[Task], Method]
LEARNED, BEHIND, KEPT, REMEMBERED = 0.4, 0.1, 0.3, 0.6
"""What `check_learning` asks for, as shares of frames."""


class ContractError(AssertionError):
    """A method does not keep the contract of `Method`."""


def check_method(factory: Factory, task: Task | None = None) -> None:
    """Run the contract of `Method` on the methods that a factory makes.

    Parameters
    ----------
    factory : callable
        Makes a fresh method for a task. Give it quick settings, each check learns a few times, but such that
        it learns 250 frames: the last check looks at what it has learned.
    task : Task, optional
        A small one with 30 inputs if not given.

    Raises
    ------
    ContractError
        If the method breaks the contract; the message says how.

    Examples
    --------
    >>> from tytoalba.learning.tyto import Tyto
    >>> check_method(lambda task: Tyto(task, n_features=20))
    """
    for check in CHECKS:
        check(factory, task or toy_task())


def toy_task(seed: int = 0, device: str = "cpu") -> Task:
    """A small task: 30 inputs, which count as GCC-PHAT of a real array."""
    array = load_array("pepper")
    gcc = GccPhat.for_array(array, n_samples=64, max_lag=2)
    return Task(gcc.n_features, seed=seed, device=device, array=array, gcc=gcc)


def toy_phases(task: Task, n_phases: int = 3, repeats: int = 3, seed: int = 0) -> list[Phase]:
    """Sectors, with `repeats` noisy frames from each of 40 directions; every fourth has two sources."""
    rng = np.random.default_rng([seed, n_phases, repeats])
    phases = []
    for k, directions in enumerate(groups(n_phases, n_directions=task.n_directions)):
        first = np.repeat(directions[:: max(1, task.n_directions // 40)], repeats)
        azimuth = np.stack([first, np.full(len(first), np.nan)], axis=1) * (360.0 / task.n_directions)
        known = task.n_directions * (k + 1) // n_phases  # a second source is one of a direction seen by then
        azimuth[::4, 1] = rng.integers(known, size=len(azimuth[::4])) * (360.0 / task.n_directions)
        phases.append(Phase(toy_features(task, azimuth, rng), azimuth, directions))
    return phases


def toy_features(
    task: Task, azimuth: NDArray[np.float64], rng: np.random.Generator, noise: float = 0.1
) -> NDArray[np.float32]:
    """Frames (n_frames, n_inputs) of azimuths (n_frames, n_sources): waves around the circle, and noise."""
    waves = np.random.default_rng(0).integers(1, 5, task.n_inputs)
    shifts = np.linspace(0, 2 * np.pi, task.n_inputs, endpoint=False)
    clean = np.cos(np.deg2rad(azimuth)[..., None] * waves + shifts)  # (F, S, inputs)
    noisy = np.nansum(clean, axis=1) + noise * rng.standard_normal((len(azimuth), task.n_inputs))
    return np.asarray(noisy, np.float32)


def check_same_seed(factory: Factory, task: Task) -> None:
    """The same phases and the same seed give the same memory and the same scores."""
    phases = toy_phases(task)
    first, second = (_taught(factory(task), phases) for _ in range(2))
    _same_state(first, second, phases, "two runs with the same seed differ")


def check_posterior(factory: Factory, task: Task) -> None:
    """Scores are finite, of the right shape and type, the same each time, and asking changes nothing."""
    phases = toy_phases(task)
    method, X = _taught(factory(task), phases[:2]), _all_frames(phases)
    before, given = _saved(method.memory()), X.copy()
    scores = method.posterior(X)
    expected = (len(X), task.n_directions)
    _require(
        scores.shape == expected and scores.dtype == np.float32,
        f"posterior must be float32 {expected}, got {scores.dtype} {scores.shape}",
    )
    _require(bool(np.isfinite(scores).all()), "posterior holds NaN or infinity")
    _require(np.array_equal(scores, method.posterior(X)), "the second call of posterior gives other scores")
    _require(_saved(method.memory()) == before, "posterior changed the memory")
    _require(np.array_equal(X, given), "posterior changed the features that it was given")
    none = method.posterior(X[:0])
    _require(none.shape == (0, task.n_directions), f"no frames must give no scores, got shape {none.shape}")
    rules = method.posteriors(X)
    _require(np.array_equal(next(iter(rules.values())), scores), "the first of posteriors must be posterior")


def check_untaught_directions(factory: Factory, task: Task) -> None:
    """A method that knows one sector scores all directions, also for frames from elsewhere."""
    phases = toy_phases(task)
    method = _taught(factory(task), phases[:1])
    scores = method.posterior(phases[-1].X)
    expected = (len(phases[-1]), task.n_directions)
    _require(scores.shape == expected, f"posterior must be {expected} from the start, got {scores.shape}")
    _require(bool(np.isfinite(scores).all()), "scores of frames from untaught directions are not finite")


def check_memory_is_all(factory: Factory, task: Task) -> None:
    """Memory, written as a file and restored into a fresh method, gives the same scores and goes on alike."""
    from safetensors.numpy import load

    phases = toy_phases(task)
    method, fresh = factory(task), factory(task)
    _taught(method, phases if method.sees_everything else phases[:2])
    fresh.restore(load(_saved(method.memory())))
    _same_state(method, fresh, phases, "after restore(memory()) on a fresh method")
    if not method.sees_everything:
        method.learn(phases[2])
        fresh.learn(phases[2])
        _same_state(method, fresh, phases, "a restored method goes on learning in another way")


def check_one_frame_phases(factory: Factory, task: Task) -> None:
    """A phase may have one frame, from the first on."""
    phases = [replace(phase, X=phase.X[1:2], azimuth=phase.azimuth[1:2]) for phase in toy_phases(task)]
    scores = _taught(factory(task), phases).posterior(_all_frames(phases))
    _require(bool(np.isfinite(scores).all()), "after phases of one frame the scores are not finite")


def check_no_aliasing(factory: Factory, task: Task) -> None:
    """Arrays given to `learn` or `restore`, or returned by `memory`, are not the method's own."""
    phases, own = toy_phases(task), toy_phases(task)
    method, control = factory(task), _taught(factory(task), phases[:2])
    _taught(method, own[:2])
    for phase, untouched in zip(own[:2], phases[:2], strict=True):
        _require(
            np.array_equal(phase.X, untouched.X)
            and np.array_equal(phase.azimuth, untouched.azimuth, equal_nan=True)
            and np.array_equal(phase.directions, untouched.directions),
            "learn changed the arrays that it was given",
        )
        _scramble(phase.X, phase.azimuth, phase.directions)
    _same_state(method, control, phases, "changing the arrays after learn changed the method")
    _scramble(*method.memory().values())
    _same_state(method, control, phases, "changing what memory() returned changed the method")
    given = {name: array.copy() for name, array in control.memory().items()}
    method = factory(task)
    method.restore(given)
    _scramble(*given.values())
    _same_state(method, control, phases, "changing what restore was given changed the method")


def check_memory_size(factory: Factory, task: Task) -> None:
    """Memory does not grow with the number of frames; one of exemplars stays within `method.budget`."""
    few, many = (_taught(factory(task), toy_phases(task, repeats=n)) for n in (2, 8))
    if few.keeps == "everything":
        return
    small, large = few.memory(), many.memory()
    grown = [name for name, array in large.items() if name not in small or array.nbytes > small[name].nbytes]
    if few.keeps == "nothing":
        _require(not grown, f"an exemplar-free method's memory grew with the frames: {', '.join(grown)}")
        return
    budget = getattr(many, "budget", None)
    _require(isinstance(budget, int), "a method that keeps exemplars needs `budget`, the most that it keeps")
    for name in grown:
        rows = large[name].shape[0] if large[name].ndim else 1
        _require(rows <= int(budget or 0), f"{name} has {rows} rows, the budget is {budget}")


def check_refusals(factory: Factory, task: Task) -> None:
    """Wrong shapes and NaN raise a ValueError (such as `TytoError`) and leave the method as it was."""
    phases = toy_phases(task)
    method = factory(task)
    _taught(method, phases if method.sees_everything else phases[:2])
    before, good = _saved(method.memory()), phases[2]
    damaged = good.X.copy()
    damaged[-1, -1] = np.nan
    bad_features = {
        "too many columns": np.hstack([good.X, good.X[:, :1]]),
        "a single row as a vector": good.X[0],
        "NaN": damaged,
    }
    for what, X in bad_features.items():
        _refuses(f"posterior with {what}", partial(method.posterior, X))
        _refuses(f"learn with {what}", partial(method.learn, replace(good, X=X)))
    _refuses("learn with an azimuth too few", lambda: method.learn(replace(good, azimuth=good.azimuth[1:])))
    _require(_saved(method.memory()) == before, "a phase that was refused changed the memory")


def check_learning(factory: Factory, task: Task) -> None:
    """Each phase is learned beside those before it, and none is lost unless the class says `forgets`.

    Six phases of reflected sound. Right is an error of at most 15 degrees, which guessing has in 8 % of
    frames. The newest phase must be right in LEARNED of its frames, and in as many as the older phases less
    BEHIND, on average over the phases. After the last one, every older phase must be right in KEPT of its
    frames; a method that `forgets` must not be right in REMEMBERED of each. A method without any memory is a
    fixed rule, and not asked.
    """
    method, phases, unheard = factory(task), *(_reflected(task, seed) for seed in (1, 2))
    if method.sees_everything:
        _taught(method, phases)
        accuracy = [_accuracy(method, unheard)]
    else:
        accuracy = [_accuracy(_taught(method, [phase]), unheard[: k + 1]) for k, phase in enumerate(phases)]
    if not method.memory():
        return
    after = [(a[-1], float(np.mean(a[:-1]))) for a in accuracy if len(a) > 1]
    newest, older = np.mean(after, axis=0)
    worst = min(accuracy[-1][:-1])
    name = type(method).__name__
    _require(
        newest >= LEARNED,
        f"the newest phase is hardly learned: {newest:.0%} of its frames are right; do the settings of "
        f"this {name} leave it time to learn 250 frames?",
    )
    _require(
        newest >= older - BEHIND,
        f"the newest phase stands behind the older ones: {newest:.0%} of its frames are right, {older:.0%} "
        "of theirs; is it compared with them?",
    )
    _require(
        method.forgets or worst >= KEPT,
        f"an older phase is lost: {worst:.0%} of its frames are right at the end; if that is how {name} is, "
        "say so: forgets = True",
    )
    _require(
        not method.forgets or worst < REMEMBERED,
        f"{name} says that it forgets, but {worst:.0%} of the frames of every older phase are right",
    )


CHECKS: tuple[Callable[[Factory, Task], None], ...] = (
    check_same_seed,
    check_posterior,
    check_untaught_directions,
    check_memory_is_all,
    check_one_frame_phases,
    check_no_aliasing,
    check_memory_size,
    check_refusals,
    check_learning,
)


def _reflected(task: Task, seed: int) -> list[Phase]:
    """Six phases of frames that also hold a reflection from anywhere, as rooms make them."""
    rng = np.random.default_rng(seed)
    heard = []
    for phase in toy_phases(task, 6, repeats=8, seed=seed):
        reflection = toy_features(task, rng.uniform(0, 360, (len(phase), 1)), rng, noise=0.0)
        heard.append(replace(phase, X=phase.X + np.float32(0.4) * reflection))
    return heard


def _accuracy(method: Method, phases: Sequence[Phase]) -> list[float]:
    """The share of each phase's frames of one source that are found."""
    shares = []
    for phase in phases:
        one = np.isnan(phase.azimuth[:, 1])
        errors = distance(decode(method.posterior(phase.X[one])), phase.azimuth[one, 0])
        shares.append(float(np.mean(errors <= 15)))
    return shares


def _require(kept: bool, message: str) -> None:
    if not kept:
        raise ContractError(message)


def _refuses(what: str, call: Callable[[], object]) -> None:
    try:
        call()
    except ValueError as error:
        _require(bool(str(error)), f"{what} is refused without a word")
    else:
        raise ContractError(f"{what} must raise a ValueError, it was accepted")


def _taught(method: Method, phases: Sequence[Phase]) -> Method:
    """The method after these phases; one that sees everything gets them as a single phase."""
    if method.sees_everything:
        together = (np.concatenate([getattr(p, name) for p in phases]) for name in Phase.__dataclass_fields__)
        phases = [Phase(*together)]
    for phase in phases:
        method.learn(phase)
    return method


def _all_frames(phases: Sequence[Phase]) -> NDArray[np.float32]:
    return np.concatenate([phase.X for phase in phases])


def _saved(memory: Memory) -> bytes:
    """Memory as the bytes of a safetensors file: the same bytes, the same memory."""
    from safetensors.numpy import save

    for name, array in memory.items():
        _require(isinstance(array, np.ndarray), f"memory {name!r} must be a numpy array, got {type(array)}")
    return save({name: np.array(memory[name], order="C") for name in sorted(memory)})


def _same_state(a: Method, b: Method, phases: Sequence[Phase], what: str) -> None:
    mine, theirs = a.memory(), b.memory()
    _require(mine.keys() == theirs.keys(), f"{what}: memory lists {sorted(mine)} and {sorted(theirs)}")
    for name, array in mine.items():
        other, may_be_nan = theirs[name], array.dtype.kind == "f"
        same = array.dtype == other.dtype and np.array_equal(array, other, equal_nan=may_be_nan)
        _require(same, f"{what}: memory {name!r} is not the same")
    X = _all_frames(phases)
    _require(np.array_equal(a.posterior(X), b.posterior(X)), f"{what}: scores are not the same")


def _scramble(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        if array.flags.writeable:
            array[...] = array[...] == 0  # ones where there were zeros, zeros elsewhere
