"""What each method of the benchmark gives away to somebody who holds its memory: measured, not declared.

Training recordings are split at random: half are learned, half are not. Both halves come from the same rooms
and speakers, so that nothing but having been learned tells them apart. The attacker holds the memory and
has frames of other rooms (the validation part) as a reference of what is usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.config import Config, load_config
from tytoalba.bench.data import BenchData, Frames
from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.analytic import Analytic
from tytoalba.learning.methods.gkeal import Gkeal
from tytoalba.learning.phases import Phase, groups, split
from tytoalba.learning.sums import SCALE
from tytoalba.learning.tyto import Tyto
from tytoalba.privacy.attacks import (
    FRAMES,
    by_group,
    difference,
    evidence,
    in_span,
    inventory,
    kept_rows,
    leverages,
    membership,
    presence,
    presence_match,
    residual,
)
from tytoalba.signal.angles import Float, count_directions, encode, to_class

if TYPE_CHECKING:
    from rich.table import Table

SUMS, WEIGHTS = "sums over frames", "weights that frames shaped"
PURPOSES: Mapping[str, str] = {
    "X": FRAMES,
    "azimuth": "where the kept frames came from",
    "exemplars.X": FRAMES,
    "exemplars.azimuth": "where the kept frames came from",
    "exemplars.direction": "what the kept frames stand for",
    "centres": FRAMES,
    "kernel_width": "one number, of the distances between kept frames",
    "G": SUMS,
    "Q": SUMS,
    "y2": SUMS,
    "n": "how many frames",
    "held.": SUMS,
    "compensation.": SUMS,
    "counts": "how often each direction was taught",
    "seen": "directions taught",
    "phase_of_column": "directions taught, and when",
    "n_phases": "how many lessons",
    "seed": "of the random features",
    "prior": "digest of the prior, which is of simulations",
    "network.": WEIGHTS,
    "backbone.": WEIGHTS,
    "importance.": "weights that mattered",
}
"""What the arrays of the methods' memories are for."""
SUMMED = ("G", "Q", "y2", "n", "counts")
CANDIDATES = 200
"""Recorded frames among which an attacker looks for the one that was learned between two states."""
EXACT = 1 - 1e-9


@dataclass(frozen=True)
class Side:
    """Frames that were learned, or were not, or the attacker's own: as `Frames`, with their recordings."""

    X: NDArray[np.float32]
    azimuth: Float
    recording: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Side:
        """Some of them."""
        return Side(self.X[rows], self.azimuth[rows], self.recording[rows])


def privacy_rows(
    data: BenchData,
    config: Config | None = None,
    *,
    methods: Sequence[str] | None = None,
    n_trials: int = 3,
    on_method: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Audit methods; a row of plain numbers and text for each, as JSON takes it.

    config: phases, seed and options of the methods; `privacy` of the shipped ones if not given. methods:
    those of the config if not given. n_trials: frames that are taught alone and looked for between two
    states.
    on_method: called with (methods done, methods in all).
    """
    config = config or load_config("privacy")
    chosen = list(config.methods if methods is None else methods)
    if unknown := [name for name in chosen if name not in METHODS]:
        raise TytoError(f"no method called {unknown[0]!r}; known: {', '.join(METHODS)}")
    inside, outside = split_recordings(data.train, config.max_sources, config.seeds[0])
    if data.valid is None or not len(data.valid):
        raise TytoError(f"{data.name} has no validation part, which the attacker needs as a reference")
    reference = side_of(data.valid, config.max_sources)
    audits = (_audited(name, data, config, inside, outside, reference) for name in chosen)
    rows = []
    with _one_thread():
        for number, audit in enumerate(audits, 1):
            rows.append({**audit.kept(), **audit.members(), **audit.places()})
            rows[-1]["two_states"] = audit.two_states(n_trials)
            if on_method:
                on_method(number, len(chosen))
    return rows


def _audited(
    name: str, data: BenchData, config: Config, inside: Side, outside: Side, reference: Side
) -> _Audit:
    """A method that has learned, and its shadow that learned the attacker's frames instead."""
    task = Task(data.n_inputs, config.seeds[0], scaling=config.scaling, array=data.array, gcc=data.gcc)

    def fresh() -> Method:
        return METHODS[name](task, **config.options.get(name, {}))

    method, shadow, directions = fresh(), fresh(), np.arange(task.n_directions)
    shadow.learn(Phase(reference.X, reference.azimuth, directions))
    phases = [Phase(inside.X, inside.azimuth, directions)]
    if not method.sees_everything:
        phases = split(inside.X, inside.azimuth, groups(config.n_phases, config.orders[0]))
    for phase in phases:
        method.learn(phase)
    return _Audit(name, method, shadow, fresh, inside, outside, reference)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Threads that wait for each other take ten times as long on networks this small."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def split_recordings(train: Frames, max_sources: int, seed: int) -> tuple[Side, Side]:
    """Half of the recordings to learn, half to leave, at random."""
    everything = side_of(train, max_sources)
    recordings = np.random.default_rng(seed).permutation(np.unique(everything.recording))
    if len(recordings) < 2:
        raise TytoError(f"an audit needs two recordings at least, got {len(recordings)}")
    learned = np.isin(everything.recording, recordings[: len(recordings) // 2])
    return everything.take(learned), everything.take(~learned)


def side_of(frames: Frames, max_sources: int) -> Side:
    """Frames with one source to `max_sources`; where recordings are not known each frame is its own."""
    n_sources = np.isfinite(frames.azimuth).sum(axis=1)
    recording = np.arange(len(frames)) if frames.place is None else frames.place[:, 0]
    rows = (n_sources >= 1) & (n_sources <= max_sources)
    return Side(frames.X[rows], frames.azimuth[rows], recording[rows].astype(np.int64))


class _Audit:
    """One taught method, and what the attacker has beside its memory."""

    def __init__(
        self,
        name: str,
        method: Method,
        shadow: Method,
        fresh: Callable[[], Method],
        inside: Side,
        outside: Side,
        reference: Side,
    ) -> None:
        self.name, self.method, self.shadow, self.fresh = name, method, shadow, fresh
        self.inside, self.outside, self.reference = inside, outside, reference
        self.memory = method.memory()
        self.X = np.concatenate([inside.X, outside.X])
        self.Y = [encode(side.azimuth, method.task.sigma) for side in (inside, outside)]

    def kept(self) -> dict[str, Any]:
        """What the memory holds, and how much of it is people's frames."""
        items = inventory(self.memory, PURPOSES)
        return {
            "method": self.name,
            "keeps": self.method.keeps,
            "bytes": sum(item.bytes for item in items),
            "frames_learned": len(self.inside.X),
            "frames_kept": sum(item.shape[0] for item in items if item.raw),
            "arrays": [vars(item) | {"shape": list(item.shape)} for item in items],
        }

    def members(self) -> dict[str, Any]:
        """The best attack with the method's answers alone, and the best with all that it keeps."""
        answers = dict(self._from_answers())
        memory = dict(self._from_memory(answers))
        return {"answers": self._judged(answers), "memory": self._judged(answers | memory)}

    def _judged(self, attacks: Mapping[str, Float]) -> dict[str, Any]:
        n, a, b = len(self.inside.X), self.inside.recording, self.outside.recording
        best = max(attacks, key=lambda k: membership(attacks[k][:n], attacks[k][n:], n_bootstrap=0).auc)
        found = membership(attacks[best][:n], attacks[best][n:], groups_in=a, groups_out=b)
        scores = np.clip(attacks[best], -1e6, 1e6)  # what is certain stays so when averaged
        whole = membership(by_group(scores[:n], a), by_group(scores[n:], b), n_bootstrap=0)
        judged = {key: value for key, value in vars(found).items() if key != "fpr"}
        return {"attack": best, **plain(judged), "recording_auc": round(whole.auc, 4)}

    def _from_answers(self) -> Iterator[tuple[str, Float]]:
        """Scores of all frames, those learned first, from what the method says of them."""
        Y = np.concatenate(self.Y)
        rules, usual = self.method.posteriors(self.X), self.shadow.posteriors(self.X)
        for rule, scores in rules.items():
            own, expected = residual(scores, Y), residual(usual[rule], Y)
            suffix = f" ({rule})" if rule else ""
            yield "loss" + suffix, -own
            yield "loss against a reference" + suffix, evidence(own, expected)
            yield "confidence" + suffix, np.asarray((scores * Y).sum(axis=1), np.float64)

    def _from_memory(self, answers: Mapping[str, Float]) -> Iterator[tuple[str, Float]]:
        """The same from what it keeps: frames themselves, and leverage where there are sums."""
        found = np.zeros(len(self.X), np.bool_)
        for item in inventory(self.memory, PURPOSES):
            if item.raw:
                found |= kept_rows(self.memory[item.name], self.X)
        H = expanded(self.method, self.X)
        if isinstance(self.method, Gkeal) and H is not None:
            found |= H.max(axis=1) >= EXACT  # the kernel of a frame to itself is 1
        for name, scores in answers.items() if found.any() else ():
            yield f"look-up, then {name}", np.where(found, np.inf, scores)
        if H is None:
            return
        G, n = _sums(self.memory, "G"), int(self.memory["n"])
        G_usual, n_usual = _sums(shadow := self._usual(), "G"), int(shadow["n"])
        own, expected = leverages(G, n, G_usual, n_usual, H)
        yield "leverage", -own
        yield "leverage against a reference", evidence(own, expected)
        both = evidence(own, expected) + answers["loss against a reference"]
        yield "leverage and loss against a reference", both

    def _usual(self) -> Memory:
        """Memory of the method before it learned anybody, with the attacker's frames learned instead."""
        nobody = {name: np.zeros_like(a) if name in SUMMED else a for name, a in self.memory.items()}
        usual = self.fresh()
        usual.restore(nobody)
        usual.learn(Phase(self.reference.X, self.reference.azimuth, np.arange(usual.task.n_directions)))
        return usual.memory()

    def places(self) -> dict[str, Any]:
        """How well the memory tells where people stood: the best of what it holds."""
        task, memory = self.method.task, self.memory
        counts = count_directions(self.inside.azimuth, task.n_directions)
        if not memory or not 0 < np.count_nonzero(counts) < len(counts):
            return {"places": None}
        profiles: dict[str, Float] = {}
        if any(name.startswith("network.") for name in memory):
            profiles["mean answer"] = presence(self.method.posterior(self.reference.X).mean(axis=0).clip(0))
        if "counts" in memory:
            profiles["counts"] = presence(memory["counts"])
        for name in ("azimuth", "exemplars.azimuth"):
            if name in memory:
                profiles[name] = presence(count_directions(memory[name], task.n_directions))
        if "Q" in memory:
            sigma = float(getattr(self.method, "sigma", task.sigma))
            profiles["Q"] = presence(_sums(memory, "Q")[:, : task.n_directions], sigma)
            profiles["y2"] = presence(_sums(memory, "y2")[: task.n_directions], sigma / np.sqrt(2))
        matches = {name: presence_match(profile, counts) for name, profile in profiles.items()}
        best = max(matches, key=lambda name: (matches[name].auc, matches[name].correlation))
        return {"places": {"from": best, **plain(vars(matches[best]))}}

    def two_states(self, n_trials: int) -> dict[str, Any] | None:
        """Teach one more frame; is it found among recorded candidates from the memories before and after?"""
        if self.method.sees_everything or not self.memory:
            return None
        rng = np.random.default_rng(self.method.task.seed)
        chosen = rng.permutation(len(self.outside.X))[:CANDIDATES]
        candidates = self.outside.take(chosen)
        n_trials = min(n_trials, len(chosen))
        found, by, rank = 0, "", None
        for k in range(n_trials):
            one = candidates.take(np.array([k]))
            after = self.fresh()
            after.restore(self.memory)
            heard = to_class(one.azimuth[np.isfinite(one.azimuth)], after.task.n_directions)
            after.learn(Phase(one.X, one.azimuth, np.unique(heard)))
            by, scores, rank = self._between(after, candidates)
            found += int(np.flatnonzero(scores == scores.max()).tolist() == [k])
        return {
            "by": by,
            "found": found,
            "trials": n_trials,
            "candidates": len(chosen),
            "rank": rank,
        }

    def _between(self, after: Method, candidates: Side) -> tuple[str, Float, int | None]:
        """Name of the attack, a score of every candidate, and the rank of the difference of sums."""
        new = after.memory()
        for item in inventory(new, PURPOSES):
            if item.raw and (held := kept_rows(new[item.name], candidates.X)).any():
                return "look-up", held.astype(np.float64), None
        H = expanded(self.method, candidates.X)
        if H is None:
            Y = encode(candidates.azimuth, after.task.sigma)
            before, later = (residual(m.posterior(candidates.X), Y) for m in (self.method, after))
            return "loss", before - later, None
        G, Q = ([_sums(memory, name) for memory in (self.memory, new)] for name in ("G", "Q"))
        seen = difference(G[0], G[1], Q[0], Q[1], int(new["n"]) - int(self.memory["n"]))
        return "difference of sums", in_span(seen.basis, H).round(6), seen.rank


def expanded(method: Method, X: NDArray[np.float32]) -> Float | None:
    """Features H (n_frames, D) of raw features X as a method's sums have them; None where it has no sums.

    Whoever holds the memory can compute them: seed and backbone are in it.
    """
    if isinstance(method, Tyto):
        return np.asarray(method.inputs.codes(method.turned(X))[0], np.float64) / SCALE
    if isinstance(method, Analytic):
        parts = [method._expand(Z).cpu().numpy() for _, Z in method._backbone_features(X)]
        return np.concatenate(parts)
    return None


def _sums(memory: Memory, name: str) -> Float:
    """Sums as real numbers: those of an exact head are in steps of 1 / 127^2."""
    values = memory[name]
    return np.asarray(values, np.float64) / (SCALE**2 if values.dtype.kind == "i" else 1)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as JSON has them, to four digits."""
    return {
        key: [round(float(v), 4) for v in value] if isinstance(value, tuple) else round(float(value), 4)
        for key, value in values.items()
    }


HEADER = ("method", "keeps", "kB", "frames", "answers: AUC", "memory: AUC", "TPR at 1 %", "recording: AUC",
          "best attack", "places: AUC", "two states: found")  # fmt: skip


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row of `privacy_rows` as text, in the order of `HEADER`."""
    memory, places, states = row["memory"], row["places"], row["two_states"]
    low, high = memory["auc_interval"]
    found = "-"
    if states:
        found = f"{states['found']} of {states['trials']} by {states['by']}"
    return [
        row["method"],
        row["keeps"],
        f"{row['bytes'] / 1000:.0f}",
        str(row["frames_kept"]),
        f"{row['answers']['auc']:.2f}",
        f"{memory['auc']:.2f} ({low:.2f}-{high:.2f})",
        f"{memory['tpr']:.2f}",
        f"{memory['recording_auc']:.2f}",
        memory["attack"],
        f"{places['auc']:.2f} ({places['from']})" if places else "-",
        found,
    ]


def privacy_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows for the eye, as a rich table."""
    from rich.table import Table

    table = Table(*HEADER)
    for row in rows:
        table.add_row(*cells(row))
    return table


def privacy_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = [HEADER, ["---"] * len(HEADER), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
