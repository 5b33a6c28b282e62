"""What each method of the benchmark gives away to somebody who holds its memory: measured, not declared.

Training recordings are split at random: half are learned, half are not. Both halves come from the same rooms
and speakers, so that nothing but having been learned tells them apart. The attacker holds the memory and
has frames of other rooms (the validation part) as a reference of what is usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.config import Config, load_config, refuse_unknown
from tytoalba.bench.data import Announce, BenchData, Frames, load_benchdata
from tytoalba.bench.privacy_models import attack_models
from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.method import Memory, Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.analytic import Analytic
from tytoalba.learning.methods.gkeal import Gkeal
from tytoalba.learning.phases import Phase, groups, split
from tytoalba.learning.random_features import RandomFourier
from tytoalba.learning.sums import SCALE, quantize_labels
from tytoalba.learning.tyto import Tyto
from tytoalba.privacy.attacks import (
    FRAMES,
    Membership,
    between,
    by_group,
    difference,
    evidence,
    in_span,
    inventory,
    invert_fourier,
    kept_rows,
    leverages,
    membership,
    presence,
    presence_match,
    real_sums,
    residual,
    rounded,
)
from tytoalba.signal.angles import Float, count_directions, encode, to_class

TableName = Literal["methods", "size", "states", "models"]
TABLES = get_args(TableName)
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
    "shift": "one number, of the kept frames",
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
RATIOS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
MORE_FRAMES = 5.0
"""Times the recordings of the preset: what the largest of `RATIOS` needs."""
SEEDS = ("seed", "other_seed")
"""The seed of the random features, and one that is not theirs."""


def audit_methods(
    table: TableName = "methods",
    methods: Sequence[str] | None = None,
    *,
    seed: int = 0,
    on_data: Announce | None = None,
    on_method: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Attack methods on the data of the shipped benchmark `privacy`: a table of docs/privacy.md.

    table: "methods" (each method's memory, `privacy_rows`), "size" (members by the number of frames,
    `leak_by_size`), "states" (the frame between two states, `frame_between_states`) or "models" (exact and
    private ones, `privacy_models`, on scenes of its own). methods: for the first; all of them if not given.
    seed: for the last.
    """
    config = load_config("privacy")
    chosen = list(config.methods if methods is None else methods)
    refuse_unknown("method", chosen, METHODS)
    refuse_unknown("table", [table], TABLES)
    if methods is not None and table != "methods":
        raise TytoError(f"the table {table!r} is not of methods: leave them out")
    if table == "models":
        return attack_models(seed, on_progress=partial(on_data, "scenes") if on_data else None)
    size = MORE_FRAMES if table == "size" else 1.0
    data = load_benchdata(config.data, bands=config.bands, size=size, announce=on_data)
    if table == "methods":
        rows = privacy_rows(data, config, methods=chosen, on_method=on_method)
    else:
        rows = leak_by_size(data) if table == "size" else frame_between_states(data)
    return {"data": data.name, "rows": rows}


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
    refuse_unknown("method", chosen, METHODS)
    inside, outside = split_recordings(data.train, config.max_sources, config.seeds[0])
    reference = _reference(data, config.max_sources)
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
    name: str, data: BenchData, config: Config, inside: Frames, outside: Frames, reference: Frames
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


def _reference(data: BenchData, max_sources: int) -> Frames:
    """The attacker's own frames."""
    if data.valid is None or not len(data.valid):
        raise TytoError(f"{data.name} has no validation part, which the attacker needs as a reference")
    return data.valid.with_sources(max_sources)


def split_recordings(train: Frames, max_sources: int, seed: int) -> tuple[Frames, Frames]:
    """Half of the recordings to learn, half to leave, at random."""
    everything = train.with_sources(max_sources)
    recordings = np.random.default_rng(seed).permutation(np.unique(everything.recording))
    if len(recordings) < 2:
        raise TytoError(f"an audit needs two recordings at least, got {len(recordings)}")
    learned = np.isin(everything.recording, recordings[: len(recordings) // 2])
    return everything.take(learned), everything.take(~learned)


class _Audit:
    """One taught method, and what the attacker has beside its memory."""

    def __init__(
        self,
        name: str,
        method: Method,
        shadow: Method,
        fresh: Callable[[], Method],
        inside: Frames,
        outside: Frames,
        reference: Frames,
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
        return {"attack": best, **_without_fpr(found), "recording_auc": round(whole.auc, 4)}

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
        G, n = real_sums(self.memory, "G"), int(self.memory["n"])
        G_usual, n_usual = real_sums(shadow := self._usual(), "G"), int(shadow["n"])
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
            profiles["Q"] = presence(real_sums(memory, "Q")[:, : task.n_directions], sigma)
            profiles["y2"] = presence(real_sums(memory, "y2")[: task.n_directions], sigma / np.sqrt(2))
        matches = {name: presence_match(profile, counts) for name, profile in profiles.items()}
        best = max(matches, key=lambda name: (matches[name].auc, matches[name].correlation))
        return {"places": {"from": best, **rounded(matches[best])}}

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
            directions = to_class(one.azimuth[np.isfinite(one.azimuth)], after.task.n_directions)
            after.learn(Phase(one.X, one.azimuth, np.unique(directions)))
            by, scores, rank = self._between(after, candidates)
            found += int(np.flatnonzero(scores == scores.max()).tolist() == [k])
        return {
            "by": by,
            "found": found,
            "trials": n_trials,
            "candidates": len(chosen),
            "rank": rank,
        }

    def _between(self, after: Method, candidates: Frames) -> tuple[str, Float, int | None]:
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
        share, rank = between(self.memory, new, H)
        return "difference of sums", share.round(6), rank


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


def _without_fpr(found: Membership) -> dict[str, Any]:
    return {key: value for key, value in rounded(found).items() if key != "fpr"}


def leak_by_size(
    data: BenchData,
    *,
    n_features: int = 250,
    ratios: Sequence[float] = RATIOS,
    n_out: int = 3000,
    ridge: float = 0.1,
    bandwidth: float = 1.5,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """How members show less the more frames there are for each feature: a row for each N / D.

    Random Fourier features as `tyto` has them without a prior, Gaussian labels. "state": who holds G, by
    leverage; "model": who holds W, by loss; each alone and against a reference (the validation part), and
    the latter over whole recordings. ridge, bandwidth: as those of `tyto`. Ratios for which
    there are too few frames beside the n_out that are not learned are left out.
    """
    everything, other, task = data.train.with_sources(2), _reference(data, 2), Task(data.n_inputs)
    expansion = RandomFourier(data.n_inputs, n_features, bandwidth * float(np.sqrt(data.n_inputs)), seed)
    H, H_ref = (expansion.transform(task.scale(s.X)).astype(np.float64) for s in (everything, other))
    Y, Y_ref = (encode(side.azimuth).astype(np.float64) for side in (everything, other))
    eta = ridge * n_features / 2 * np.eye(n_features)
    G_ref = H_ref.T @ H_ref
    expected = residual(H @ np.linalg.solve(G_ref + eta, H_ref.T @ Y_ref), Y)
    recordings = np.random.default_rng(seed).permutation(np.unique(everything.recording))
    order = np.concatenate([np.flatnonzero(everything.recording == r) for r in recordings])
    rows = []
    for ratio in ratios:
        n = round(ratio * n_features)
        if n + n_out > len(order) or n < 1:
            continue
        both, R = np.concatenate([order[:n], order[-n_out:]]), everything.recording
        h, y = H[both[:n]], Y[both[:n]]
        G = h.T @ h
        own, usual = leverages(G, n, G_ref, len(H_ref), H[both])
        off = residual(H[both] @ np.linalg.solve(G + eta, h.T @ y), Y[both])
        attacks = {
            "state": (-own, evidence(own, usual)),
            "model": (-off, evidence(off, expected[both])),
        }
        row: dict[str, Any] = {"ratio": ratio, "n_frames": n, "n_recordings": len(np.unique(R[both[:n]]))}
        for name, (alone, against) in attacks.items():
            found = membership(against[:n], against[n:], groups_in=R[both[:n]], groups_out=R[both[n:]])
            whole = by_group(against[:n], R[both[:n]]), by_group(against[n:], R[both[n:]])
            row[name] = {
                "alone_auc": round(membership(alone[:n], alone[n:], n_bootstrap=0).auc, 4),
                **_without_fpr(found),
                "recording_auc": round(membership(*whole, n_bootstrap=0).auc, 4),
            }
        rows.append(row)
    return rows


def frame_between_states(
    data: BenchData,
    *,
    sizes: Sequence[int] = (300, 600, 1000, 2000),
    n_trials: int = 20,
    bandwidth: float = 1.5,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """What two states of an exact head tell of the one frame between them: a row for each number of features.

    exact: trials in which features and labels come out to the bit. found: trials in which the frame is the
    nearest of recorded candidates, with the seed of the random features and with another one. cosine: median
    over trials of that between the frame's scaled GCC-PHAT and the one computed back, again for both seeds.
    """
    rng = np.random.default_rng(seed)
    side, task = data.train.with_sources(2), Task(data.n_inputs)
    side = side.take(rng.permutation(len(side.X))[: CANDIDATES + 1])
    X, Y = task.scale(side.X), quantize_labels(encode(side.azimuth))
    n_trials = min(n_trials, len(X) - 1)
    rows = []
    for D in sizes:
        width = bandwidth * float(np.sqrt(data.n_inputs))
        maps = {name: RandomFourier(data.n_inputs, D, width, seed + k) for k, name in enumerate(SEEDS)}
        H = {name: drawn.codes(X) for name, drawn in maps.items()}
        own = H["seed"]
        before = AnalyticHead(D, Y.shape[1], exact=True).learn(own[-1:], Y[-1:]).memory()
        exact, found = 0, dict.fromkeys(SEEDS, 0)
        cosine: dict[str, list[float]] = {name: [] for name in SEEDS}
        for k in range(n_trials):
            rows_after = np.array([len(X) - 1, k])
            after = AnalyticHead(D, Y.shape[1], exact=True).learn(own[rows_after], Y[rows_after]).memory()
            seen = difference(before["G"], after["G"], before["Q"], after["Q"])
            assert seen.features is not None
            assert seen.labels is not None
            exact += np.array_equal(np.rint(seen.features), own[k]) & np.array_equal(
                np.rint(seen.labels), Y[k]
            )
            for name, drawn in maps.items():
                found[name] += int(np.argmax(in_span(seen.basis, H[name][:-1])) == k)
                z = invert_fourier(seen.features / SCALE, drawn.weights, drawn.phases, drawn.bandwidth)
                cosine[name].append(float(z @ X[k] / np.linalg.norm(z) / np.linalg.norm(X[k])))
        row = {"n_features": D, "trials": n_trials, "candidates": len(X) - 1, "exact": int(exact)}
        medians = {f"cosine_{name}": round(float(np.median(c)), 4) for name, c in cosine.items()}
        rows.append(row | {f"found_{name}": n for name, n in found.items()} | medians)
    return rows
