"""Attacks on models: exact weights give places, G and lessons away; noise of a private release hides them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from tytoalba.errors import TytoError
from tytoalba.learning.sums import SCALE, gaussian_labels
from tytoalba.privacy.attacks import Float, leverage
from tytoalba.privacy.model_attacks import (
    Known,
    between_models,
    gram_from_weights,
    most_found,
    places,
    relative_error,
    unused,
)

quick = settings(max_examples=20)
C, D = 90, 30
LABELS = gaussian_labels(np.arange(C)[:, None] * (360.0 / C), 8.0, C) / SCALE
"""Of every direction, four degrees apart."""


class Taught(NamedTuple):
    """Sums of lessons at some places, and all that belongs to them."""

    G: Float
    Q: Float
    known: Known
    where: list[int]

    @property
    def weights(self) -> Float:
        """The weights as a file has them."""
        W = np.linalg.solve(self.G + self.known.A, self.Q + self.known.Q)
        return W.astype(np.float32).astype(np.float64)

    def and_lesson(self, H: Float, Y: Float) -> Taught:
        return self._replace(G=self.G + H.T @ H, Q=self.Q + H.T @ Y)


def lesson(rng: np.random.Generator, where: int, n: int = 8) -> tuple[Float, Float]:
    """Features and labels of some frames from one place."""
    H = np.rint(SCALE * np.cos(rng.uniform(0, 7, D) + 0.5 * rng.standard_normal((n, D)))) / SCALE
    return H, np.repeat(LABELS[where : where + 1], n, axis=0)


def some_taught(seed: int, n_places: int) -> Taught:
    rng = np.random.default_rng(seed)
    where = sorted(rng.choice(C, n_places, replace=False).tolist())
    H, Y = (np.concatenate(p) for p in zip(*(lesson(rng, w) for w in where), strict=True))
    S, B = np.cos(rng.uniform(0, 7, (600, D))), rng.integers(0, SCALE, (600, C)) / SCALE
    return Taught(H.T @ H, H.T @ Y, Known(S.T @ S + np.eye(D), S.T @ B), where)


@quick
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_weights_tell_every_taught_place_and_no_other(seed: int, n_places: int) -> None:
    taught = some_taught(seed, n_places)
    found = places(taught.weights, taught.known, LABELS)
    assert found.found.tolist() == taught.where
    assert found.rank == 2 * n_places


@quick
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_labels_that_nobody_uses_give_the_sums(seed: int, n_places: int) -> None:
    taught = some_taught(seed, n_places)
    N = unused(LABELS[taught.where])
    assert N.shape == (C, C - n_places)
    assert np.abs(LABELS[taught.where] @ N).max() < 1e-12
    found = gram_from_weights(taught.weights, taught.known, N)
    assert found.found
    assert len(found.G) == D
    assert relative_error(found, taught.G) < 1e-4
    H = lesson(np.random.default_rng(seed + 1), 3)[0]
    assert leverage(found.G, 1.0, H @ found.basis) == pytest.approx(leverage(taught.G, 1.0, H), rel=1e-3)


def test_with_few_free_labels_the_sums_are_known_on_as_many_directions() -> None:
    taught = some_taught(1, 10)
    found = gram_from_weights(taught.weights, taught.known, unused(LABELS[taught.where])[:, :12])
    assert found.found
    assert found.basis.shape == (D, 12)
    assert relative_error(found, taught.G) < 1e-4


@quick
@given(st.integers(0, 2**32))
def test_two_models_name_the_lesson_between_them(seed: int) -> None:
    rng, before = np.random.default_rng(seed + 1), some_taught(seed, 6)
    candidates = [lesson(rng, int(rng.integers(C))) for _ in range(10)]
    after = before.and_lesson(*candidates[4])
    everywhere = [*before.where, int(np.argmax(candidates[4][1][0]))]
    W = [np.concatenate([t.weights, t.weights], axis=1) for t in (before, after)]
    both = [(H, np.concatenate([Y, Y], axis=1)) for H, Y in candidates]
    missed = between_models(W[0], W[1], before.known, unused(LABELS[everywhere]), both)
    assert missed[4] < 1e-3
    assert np.delete(missed, 4).min() > 0.1


def noisy(taught: Taught, rng: np.random.Generator, sigma: float) -> Taught:
    """Gaussian noise on both sums."""
    E = np.triu(rng.standard_normal((D, D)))
    symmetric = sigma * (E + np.triu(E, 1).T)
    return taught._replace(G=taught.G + symmetric, Q=taught.Q + sigma * rng.standard_normal((D, C)))


def test_noise_on_the_sums_stops_all_three() -> None:
    """As much of it as hides a lesson at noise 1, and less."""
    rng, taught = np.random.default_rng(0), some_taught(0, 6)
    candidates = [lesson(rng, int(rng.integers(C))) for _ in range(10)]
    sensitivity = max(np.hypot(np.linalg.norm(H.T @ H), np.linalg.norm(H.T @ Y)) for H, Y in candidates)
    for sigma in (0.1 * sensitivity, sensitivity):
        big = taught._replace(known=Known(taught.known.A + 30 * sigma * np.eye(D), taught.known.Q))
        V = noisy(big, rng, sigma).weights
        found = places(V, big.known, LABELS)
        assert (found.rank, len(found.found)) == (2 * D, 0)
        G = gram_from_weights(V, big.known, unused(LABELS[taught.where]))  # who is told the places
        assert not G.found
        assert relative_error(G, taught.G) > 1
        V2 = noisy(big.and_lesson(*candidates[4]), rng, sigma).weights
        missed = between_models(V, V2, big.known, unused(LABELS[taught.where]), candidates)
        assert missed.min() > 0.5


@given(st.floats(1e-4, 0.5), st.floats(0, 10), st.floats(0, 0.1), st.floats(0.05, 50))
def test_the_bound(fpr: float, epsilon: float, delta: float, noise: float) -> None:
    most = most_found(fpr, epsilon, delta)
    assert fpr * (1 - 1e-12) <= most <= 1
    assert most_found(fpr, epsilon, delta, noise) <= most
    assert most_found(fpr, 1e3, 0.0, noise) == pytest.approx(ndtr(ndtri(fpr) + 1 / noise))
    assert most_found(fpr, 0.0, 0.0) == pytest.approx(fpr)


def test_what_cannot_be_attacked() -> None:
    taught = some_taught(0, 3)
    with pytest.raises(TytoError, match=r"\(D, C\) as Qsim is"):
        places(taught.weights[:, 1:], taught.known, LABELS)
    with pytest.raises(TytoError, match="labels must be"):
        places(taught.weights, taught.known, LABELS[:, 1:])
    wrong: list[tuple[Any, ...]] = [(0.0, 1.0, 0.0), (0.5, -1.0, 0.0), (0.5, 1.0, 2.0)]
    for arguments in wrong:
        with pytest.raises(TytoError, match="epsilon"):
            most_found(*arguments)
    with pytest.raises(TytoError, match="noise"):
        most_found(0.01, 1.0, 0.0, noise=0.0)
    assert unused(np.empty((0, 4))).tolist() == np.eye(4).tolist()
