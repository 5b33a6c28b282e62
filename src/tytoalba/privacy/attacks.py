"""What somebody can find out from what a learner keeps: attacks over plain arrays, to run before others do.

Letters as in the head: H (n_frames, D) features, Y (n_frames, C) labels, G = sum H'H, Q = sum H'Y,
W = (G + eta I)^-1 Q. Features and sums must be in the same unit. Every score is larger for what speaks for
"this frame was learned".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from tytoalba.errors import TytoError
from tytoalba.learning.sums import SCALE
from tytoalba.localizer.release import REACH

Float = NDArray[np.float64]
BLOCK = 4096
"""Frames taken at a time."""
TINY = 1e-6
"""Ridge of an attack, as a share of the mean of G's diagonal: enough to factorise a singular G."""
SHRINKAGE = 0.01
"""The same for a reference, which has frames of its own and not many."""
FRAMES = "frames of people"
"""The purpose of an array that is samples of somebody's data."""
UNDECLARED = "not declared"


@dataclass(frozen=True)
class Membership:
    """How well scores tell frames that were learned from others; intervals are of 95 %.

    auc: chance that a member scores higher than another (0.5: no better than a coin). advantage: largest
    difference of true and false positive rates. tpr: share of members found at a false positive rate `fpr`.
    """

    auc: float
    auc_interval: tuple[float, float]
    advantage: float
    fpr: float
    tpr: float
    tpr_interval: tuple[float, float]


def membership(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    groups_in: ArrayLike | None = None,
    groups_out: ArrayLike | None = None,
    fpr: float = 0.01,
    n_bootstrap: int = 200,
    seed: int = 0,
) -> Membership:
    """Judge an attack by its scores of members and of others; larger must mean "member". Ties count half.

    groups_in, groups_out: which recording each comes from. Frames of a recording are alike, so that the
    bootstrap draws whole recordings.

    >>> membership([3.0, 2.0], [2.0, 1.0]).auc
    0.875
    """
    inside, outside = _scores(scores_in), _scores(scores_out)
    if not 0 <= fpr < 1:
        raise TytoError(f"the false positive rate must be in [0, 1), got {fpr}")
    rng = np.random.default_rng(seed)
    units = [_rows_of(groups_in, len(inside)), _rows_of(groups_out, len(outside))]
    drawn = []
    for _ in range(n_bootstrap):
        a, b = (_drawn(u, rng) for u in units)
        drawn.append([_auc(inside[a], outside[b]), _rate(inside[a], outside[b], fpr)])
    ends = np.quantile(drawn, [0.025, 0.975], axis=0) if drawn else np.full((2, 2), np.nan)
    levels = np.unique(np.concatenate([inside, outside]))
    found, wrong = (1 - np.searchsorted(np.sort(s), levels) / len(s) for s in (inside, outside))
    return Membership(
        auc=_auc(inside, outside),
        auc_interval=(float(ends[0, 0]), float(ends[1, 0])),
        advantage=float(np.max(found - wrong, initial=0.0)),
        fpr=fpr,
        tpr=_rate(inside, outside, fpr),
        tpr_interval=(float(ends[0, 1]), float(ends[1, 1])),
    )


def by_group(scores: ArrayLike, groups: ArrayLike) -> Float:
    """Mean score of each recording: what is known of all its frames together."""
    values, (_, which) = _scores(scores), np.unique(np.asarray(groups), return_inverse=True)
    if len(which) != len(values):
        raise TytoError(f"{len(values)} scores need as many groups, got {len(which)}")
    return np.asarray(np.bincount(which, values) / np.bincount(which))


def leverage(G: ArrayLike, ridge: float, H: ArrayLike) -> Float:
    """h (G + ridge I)^-1 h' of each frame, (n_frames,): how far it lies from what was learned.

    Small for a member: its own h h' is part of G, which makes it l / (1 + l), below 1, where it would be l.
    """
    A, rows = np.array(G, np.float64), np.asarray(H)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or rows.ndim != 2 or rows.shape[1] != len(A):
        raise TytoError(f"G must be (D, D) and H (n_frames, D), got shapes {A.shape} and {rows.shape}")
    A[np.diag_indices_from(A)] += ridge
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        raise TytoError(f"G + ridge I is not positive definite with a ridge of {ridge:g}; raise it") from None
    blocks = [rows[i : i + BLOCK].astype(np.float64).T for i in range(0, len(rows), BLOCK)]
    parts = [np.square(solve_triangular(L, h, lower=True)).sum(axis=0) for h in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


def leverages(
    G: ArrayLike, n: int, reference_G: ArrayLike, reference_n: int, H: ArrayLike
) -> tuple[Float, Float]:
    """Leverage under the sums G of n frames, and what to expect of a frame that is not among them.

    The latter is under sums of others' frames (of the attacker's own, say), as if there were n of those.
    """
    if min(n, reference_n) < 1:
        raise TytoError(f"both sums must be of at least one frame, got {n} and {reference_n}")
    own, reference = np.asarray(G, np.float64), np.asarray(reference_G, np.float64) * (n / reference_n)
    return tuple(  # type: ignore[return-value]
        leverage(A, share * float(np.trace(A)) / len(A), H)
        for A, share in ((own, TINY), (reference, SHRINKAGE))
    )


def loss(W: ArrayLike, H: ArrayLike, Y: ArrayLike) -> Float:
    """|y - h W|^2 of each frame, (n_frames,): small for a member, which W was fitted to."""
    return residual(np.asarray(H, np.float64) @ np.asarray(W, np.float64), Y)


def residual(scores: ArrayLike, Y: ArrayLike) -> Float:
    """|y - score|^2 of each frame, (n_frames,)."""
    P, labels = np.asarray(scores, np.float64), np.asarray(Y, np.float64)
    if P.shape != labels.shape or P.ndim != 2:
        raise TytoError(f"scores and labels must both be (n_frames, C), got {P.shape} and {labels.shape}")
    return np.asarray(np.square(P - labels).sum(axis=1))


def evidence(own: ArrayLike, reference: ArrayLike) -> Float:
    """log(reference / own): how much better a frame is known than it should be.

    Of leverages, for Gaussian features, this orders frames as the likelihood ratio of "learned" and "not
    learned" does, to first order in 1 / n; of losses it takes out that some frames are hard for everybody.
    What both say can be added.
    """
    floor = np.finfo(np.float64).tiny
    a, b = (np.maximum(np.asarray(v, np.float64), floor) for v in (own, reference))
    return np.asarray(np.log(b) - np.log(a))


def presence(columns: ArrayLike, sigma: float | None = None, n_rounds: int = 200) -> Float:
    """Where people stood, as shares (C,), from counts or y2 (C,), or from Q or W (D, C) by column norms.

    sigma: degrees; undoes the width of labels exp(-d^2 / sigma^2) by Richardson-Lucy iterations. For y2,
    whose labels are squared, give sigma / sqrt(2).
    """
    values = np.asarray(columns, np.float64)
    profile = np.linalg.norm(values, axis=0) if values.ndim == 2 else np.abs(values)
    if profile.ndim != 1 or not len(profile) or not np.isfinite(profile).all():
        raise TytoError(f"columns must be finite, (C,) or (D, C), got shape {values.shape}")
    if sigma is not None:
        if not 0 < sigma < np.inf:
            raise TytoError(f"sigma must be positive degrees, got {sigma}")
        steps = np.arange(len(profile))
        apart = np.minimum(steps, len(profile) - steps) * (360.0 / len(profile))
        kernel = np.exp(-((apart / sigma) ** 2))[(steps[:, None] - steps) % len(profile)]  # symmetric
        guess = np.full(len(profile), profile.sum() / kernel.sum())
        for _ in range(n_rounds if profile.any() else 0):
            guess *= kernel @ (profile / np.maximum(kernel @ guess, 1e-300)) / kernel.sum(axis=0)
        profile = guess
    return profile / profile.sum() if profile.any() else profile


def counts_from_weight(weight: ArrayLike, prior_frames: float) -> Float:
    """How often each direction was taught, (C,), from how much the prior still counts there.

    w = prior_frames / (prior_frames + n), n of the frames within REACH degrees: a sum over a window that
    has an inverse, so that the counts of single degrees come out of a model to the last one.
    """
    w = np.asarray(weight, np.float64)
    if w.ndim != 1 or not len(w) or not ((w > 0) & (w <= 1)).all() or not 0 < prior_frames < np.inf:
        raise TytoError(f"weights must be (C,), above 0 and at most 1, with prior_frames, got {w.shape}")
    reach = round(REACH * len(w) / 360.0)
    window = np.zeros(len(w))
    window[np.arange(-reach, reach + 1)] = 1.0
    spectrum = np.fft.rfft(np.rint(prior_frames * (1 / w - 1))) / np.fft.rfft(window)
    return np.asarray(np.rint(np.fft.irfft(spectrum, len(w))))


@dataclass(frozen=True)
class PresenceMatch:
    """A profile beside the true counts: correlation, and AUC of taught against untaught directions."""

    correlation: float
    auc: float


def presence_match(profile: ArrayLike, counts: ArrayLike) -> PresenceMatch:
    """How well a profile (C,) tells the true counts of directions (C,)."""
    found, true = np.asarray(profile, np.float64), np.asarray(counts, np.float64)
    taught = true > 0
    if found.shape != true.shape or taught.all() or not taught.any():
        raise TytoError(
            "profile and counts must be of the same directions, of which some are taught and some are not; "
            f"got shapes {found.shape} and {true.shape}, {int(taught.sum())} taught"
        )
    flat = found.std() == 0 or true.std() == 0
    correlation = 0.0 if flat else float(np.corrcoef(found, true)[0, 1])
    return PresenceMatch(correlation, _auc(found[taught], found[~taught]))


@dataclass(frozen=True)
class Difference:
    """What a state tells that came right after another.

    rank: of the difference of G: the number of rows learned between them, if they are independent and fewer
    than D. basis: (D, rank), orthonormal; the rows lie in its span. features, labels: of the row itself,
    where it is one (or one repeated): exact but for rounding.
    """

    rank: int
    basis: Float
    features: Float | None
    labels: Float | None


def difference(
    G_before: ArrayLike,
    G_after: ArrayLike,
    Q_before: ArrayLike,
    Q_after: ArrayLike,
    n_rows: int = 1,
) -> Difference:
    """Compare two consecutive states. n_rows: how many rows came between them, n after less n before.

    Labels are not negative, which tells the sign of the features. To look at what was forgotten, swap the
    states.
    """
    old, new = np.asarray(G_before), np.asarray(G_after)
    dQ = np.asarray(np.asarray(Q_after) - np.asarray(Q_before), np.float64)
    D = len(new)
    if old.shape != (D, D) or new.shape != (D, D) or len(dQ) != D or n_rows < 1:
        raise TytoError(
            f"states must be of the same size and n_rows at least 1, got G {old.shape} and {new.shape}, "
            f"Q {dQ.shape}, n_rows {n_rows}"
        )
    values, vectors = np.linalg.eigh(np.asarray(new - old, np.float64))
    exact = new.dtype.kind in "iu" and old.dtype.kind in "iu"
    rounding = 0.0 if exact else float(np.abs(new).max(initial=0.0))
    slack = 8 * D * np.finfo(np.float64).eps * max(float(np.abs(values).max()), rounding)
    if values[0] < -slack:
        raise TytoError(
            "the second state is not the first with rows learned: swap them to see what was forgotten, and "
            "check that they belong to one learner"
        )
    kept = values > slack
    basis = vectors[:, kept]
    if kept.sum() != 1:
        return Difference(int(kept.sum()), basis, None, None)
    h = basis[:, 0] * np.sqrt(values[kept][0] / n_rows)
    h = -h if float((h @ dQ).sum()) < 0 else h
    return Difference(1, basis, h, h @ dQ / (n_rows * float(h @ h)))


def real_sums(memory: Mapping[str, NDArray[Any]], name: str) -> Float:
    """Sums of a memory as real numbers: those of an exact head are in steps of 1 / 127^2."""
    values = memory[name]
    return np.asarray(values, np.float64) / (SCALE**2 if values.dtype.kind == "i" else 1)


def between(
    before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]], H: ArrayLike
) -> tuple[Float, int]:
    """What two consecutive memories tell: `in_span` of candidates H, and the rank of the difference."""
    (G, G_after), (Q, Q_after) = ([real_sums(m, name) for m in (before, after)] for name in ("G", "Q"))
    gained = difference(G, G_after, Q, Q_after, int(after["n"]) - int(before["n"]))
    return in_span(gained.basis, H), gained.rank


def in_span(basis: ArrayLike, H: ArrayLike) -> Float:
    """Share of each candidate's |h|^2 that lies in a span, (n_frames,): 1 for a frame that was learned."""
    B, rows = np.asarray(basis, np.float64), np.asarray(H, np.float64)
    length = np.square(rows).sum(axis=1)
    return np.asarray(np.square(rows @ B).sum(axis=1) / np.maximum(length, np.finfo(np.float64).tiny))


def invert_fourier(
    h: ArrayLike, weights: ArrayLike, phases: ArrayLike, bandwidth: float, n_rounds: int = 20
) -> Float:
    """The input z (n_inputs,) of Fourier features h = cos(z W / bandwidth + b), (D,), as far as they tell.

    weights: W (n_inputs, D), phases: b (D,): they follow from the seed. A cosine leaves two angles (and whole
    turns): the one nearer to what the others say is believed, more so if the other is far; then least
    squares.
    """
    A = np.asarray(weights, np.float64).T / bandwidth  # (D, n_inputs)
    b, angle = np.asarray(phases, np.float64), np.arccos(np.clip(np.asarray(h, np.float64), -1, 1))
    if A.shape[0] != len(angle) or b.shape != angle.shape:
        raise TytoError(
            f"h, phases and weights must agree in D, got {angle.shape}, {b.shape}, {A.shape[::-1]}"
        )
    z = np.zeros(A.shape[1])
    small = 1e-5 * float(np.square(A).sum()) / A.shape[1] * np.eye(A.shape[1])
    for _ in range(n_rounds):
        u = A @ z
        off = (np.stack([angle - b, -angle - b]) - u + np.pi) % (2 * np.pi) - np.pi  # (2, D)
        first = np.abs(off[0]) < np.abs(off[1])
        near, far = np.where(first, off[0], off[1]), np.where(first, off[1], off[0])
        spread = max(float(np.mean(near**2)), 4e-4)
        sure = np.tanh((far**2 - near**2) / (4 * spread)) ** 2 * (np.sin(angle) ** 2 + 1e-4)
        z = np.linalg.solve(A.T @ (A * sure[:, None]) + small, A.T @ (sure * (u + near)))
    return z


@dataclass(frozen=True)
class Item:
    """One array of a memory. raw: it holds samples of somebody's data, not sums or weights."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    purpose: str
    raw: bool


def inventory(memory: Mapping[str, NDArray[Any]], purpose: Mapping[str, str]) -> list[Item]:
    """Everything that is kept. purpose: by name, or by how names begin where that ends with a dot."""

    def purpose_of(name: str) -> str:
        exact = purpose.get(name)
        starts = [text for start, text in purpose.items() if start.endswith(".") and name.startswith(start)]
        return exact or (starts[0] if starts else UNDECLARED)

    return [
        Item(name, a.shape, str(a.dtype), int(a.nbytes), purpose_of(name), purpose_of(name) == FRAMES)
        for name, a in memory.items()
    ]


def kept_rows(kept: NDArray[Any], X: NDArray[Any]) -> NDArray[np.bool_]:
    """Which frames of X (n_frames, n_inputs) stand in a kept array to the bit, (n_frames,)."""
    if kept.ndim != 2 or kept.dtype != X.dtype or kept.shape[1:] != X.shape[1:]:
        return np.zeros(len(X), np.bool_)
    known = {row.tobytes() for row in np.ascontiguousarray(kept)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(X)], np.bool_)


def rounded(found: Membership | PresenceMatch) -> dict[str, Any]:
    """A finding as JSON has it, to four digits."""
    return {
        key: [round(float(v), 4) for v in value] if isinstance(value, tuple) else round(float(value), 4)
        for key, value in vars(found).items()
    }


def _scores(values: ArrayLike) -> Float:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        raise TytoError(f"scores must be (n_frames,), at least one and none NaN, got shape {scores.shape}")
    return scores


def _drawn(units: int | Sequence[NDArray[np.intp]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of as many units as there are, drawn with replacement."""
    if isinstance(units, int):
        return rng.integers(units, size=units)
    return np.concatenate([units[k] for k in rng.integers(len(units), size=len(units))])


def _rows_of(groups: ArrayLike | None, n: int) -> int | Sequence[NDArray[np.intp]]:
    """Rows of each unit that the bootstrap draws; how many there are where each row is one."""
    if groups is None:
        return n
    which = np.asarray(groups)
    if which.shape != (n,):
        raise TytoError(f"{n} scores need as many groups, got shape {which.shape}")
    return [np.flatnonzero(which == g) for g in np.unique(which)]


def _auc(inside: Float, outside: Float) -> float:
    ranked = np.sort(outside)
    below = np.searchsorted(ranked, inside), np.searchsorted(ranked, inside, side="right")
    return float(np.mean(below) / len(outside))


def _rate(inside: Float, outside: Float, fpr: float) -> float:
    """Share of members above the lowest threshold that lets at most that share of the others pass."""
    ranked = np.sort(outside)[::-1]
    passing = int(np.floor(fpr * len(ranked) + 1e-9))
    return float(np.mean(inside > ranked[passing]))
