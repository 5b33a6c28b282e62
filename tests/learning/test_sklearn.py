"""The scikit-learn estimators: its own contract, and growing, unlearning and merging as if fitted at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tytoalba.errors import TytoError
from tytoalba.learning.sklearn import AnalyticClassifier, RandomFeatures

quick = settings(max_examples=20, deadline=None)


@parametrize_with_checks(
    [
        AnalyticClassifier(n_features=100),
        AnalyticClassifier(n_features=50, expansion="relu"),
        AnalyticClassifier(expansion=None),
        RandomFeatures(n_features=20),
        RandomFeatures(n_features=20, expansion="relu"),
    ]
)  # type: ignore[untyped-decorator]
def test_contract_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def blobs(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Points around the corners of a square, named."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 4, n)
    corner[: min(n, 4)] = np.arange(min(n, 4))
    X = np.stack([corner % 2, corner // 2], axis=1) * 4.0 + rng.standard_normal((n, 2))
    return X, np.array(["south", "east", "west", "north"])[corner]


def model(**settings: Any) -> AnalyticClassifier:
    return AnalyticClassifier(n_features=30, random_state=0, **settings)


def agree(a: AnalyticClassifier, b: AnalyticClassifier) -> bool:
    X, _ = blobs(20, seed=99)
    close = np.allclose(a.decision_function(X), b.decision_function(X), rtol=0, atol=1e-8)
    return bool(close and a.classes_.tolist() == b.classes_.tolist())


@given(st.integers(0, 1000), st.lists(st.integers(1, 39), unique=True, max_size=4))
@quick
def test_partial_fit_in_any_split_is_fit(seed: int, cuts: list[int]) -> None:
    """No class is announced: they come as they come."""
    X, y = blobs(40, seed)
    order = np.argsort(y, kind="stable")[::-1]  # class after class
    grown = model()
    for part in np.split(order, sorted(cuts)):
        grown.partial_fit(X[part], y[part])
    assert agree(grown, model().fit(X, y))


@given(st.integers(0, 1000), st.integers(1, 39))
@quick
def test_unlearning_and_merging_are_as_if_fitted_so(seed: int, cut: int) -> None:
    X, y = blobs(40, seed)
    order = np.argsort(y, kind="stable")
    a, b = order[:cut], order[cut:]
    both = model().fit(X, y)
    assert agree(model().fit(X[a], y[a]).merge(model().fit(X[b], y[b])), both)
    assert agree(both.unlearn(X[b], y[b]), model().fit(X[a], y[a]))


@pytest.mark.parametrize("expansion", ["fourier", "relu", None])
def test_expansions_classify(expansion: str | None) -> None:
    X, y = blobs(400)
    test_X, test_y = blobs(400, seed=1)
    assert model(expansion=expansion).fit(X, y).score(test_X, test_y) > 0.9


def test_it_is_ridge_regression() -> None:
    X, y = blobs(50)
    ours = AnalyticClassifier(ridge=0.7, expansion=None).fit(X, y)
    extended = np.hstack([X, np.ones((50, 1))])
    ridge = Ridge(alpha=0.7, fit_intercept=False).fit(extended, (y[:, None] == ours.classes_) * 1.0)
    assert ours.decision_function(X) == pytest.approx(ridge.predict(extended), abs=1e-8)
    ours.ridge = 7.0  # needs no new fit
    assert agree(ours, AnalyticClassifier(ridge=7.0, expansion=None).fit(X, y))


def test_announced_classes_may_come_later() -> None:
    X, y = blobs(40)
    south = y == "south"
    announced = model().partial_fit(X[south], y[south], classes=["north", "east", "south"])
    assert announced.classes_.tolist() == ["east", "north", "south"]
    announced.partial_fit(X[~south], y[~south])
    assert agree(announced, model().fit(X, y))


def test_a_class_goes_with_its_last_row_and_the_fit_with_its_last_class() -> None:
    X, y = blobs(40)
    south = y == "south"
    fitted = model().fit(X, y).unlearn(X[south], y[south])
    assert "south" not in fitted.classes_
    fitted.unlearn(X[~south], y[~south])
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    assert agree(fitted.partial_fit(X, y), model().fit(X, y))


def test_refusals_leave_it_as_it_was() -> None:
    X, y = blobs(20)
    fitted = model().fit(X, y)
    strange = np.full(20, "above")
    with pytest.raises(TytoError, match="never learned"):
        fitted.unlearn(X, strange)
    with pytest.raises(TytoError, match="not all of these rows"):
        fitted.unlearn(np.vstack([X, X]), np.concatenate([y, y]))
    for other in (
        AnalyticClassifier(n_features=30, random_state=1),
        AnalyticClassifier(expansion=None),
        model(bandwidth=9.0),
        model(expansion="relu"),
    ):
        with pytest.raises(TytoError, match="different features"):
            fitted.merge(other.fit(X, y))
    with pytest.raises(NotFittedError):
        fitted.merge(model())
    with pytest.raises(TytoError, match="bandwidths"):
        fitted.partial_fit(X * 1e6, strange)
    assert agree(fitted, model().fit(X, y))
    for wrong in (model(expansion="sine"), RandomFeatures(expansion="sine")):
        with pytest.raises(TytoError, match="'fourier' or 'relu'"):
            wrong.fit(X, y)


def test_random_features_in_a_pipeline() -> None:
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(
        StandardScaler(),
        RandomFeatures(400, random_state=0),
        AnalyticClassifier(ridge=1.0, expansion=None),
    )
    assert pipeline.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
    names = pipeline[:-1].get_feature_names_out()
    assert names[:2].tolist() == ["randomfeatures0", "randomfeatures1"]
    assert len(names) == 400
