"""What shows in sums and weights: who was learned, by their number; and the frame between two states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tytoalba.bench.data import BenchData
from tytoalba.bench.privacy import CANDIDATES, plain, side_of
from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.method import Task
from tytoalba.learning.random_features import RandomFourier
from tytoalba.learning.sums import SCALE, quantize_labels
from tytoalba.privacy.attacks import (
    by_group,
    difference,
    evidence,
    in_span,
    invert_fourier,
    leverages,
    membership,
    residual,
)
from tytoalba.signal.angles import encode

RATIOS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
SEEDS = ("seed", "other_seed")
"""The seed of the random features, and one that is not theirs."""


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
    the latter over whole recordings. ridge, bandwidth: as alpha and bandwidth of `tyto`. Ratios for which
    there are too few frames beside the n_out that are not learned are left out.
    """
    everything = side_of(data.train, max_sources=2)
    if data.valid is None or not len(data.valid):
        raise TytoError(f"{data.name} has no validation part, which the attacker needs as a reference")
    task, other = Task(data.n_inputs), side_of(data.valid, max_sources=2)
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
                **plain({key: value for key, value in vars(found).items() if key != "fpr"}),
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
    side, task = side_of(data.train, max_sources=2), Task(data.n_inputs)
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
