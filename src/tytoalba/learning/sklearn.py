"""The analytic head as scikit-learn estimators, for any features and classes.

`AnalyticClassifier` is ridge regression to one-hot labels on random features. Unlike other estimators with a
`partial_fit`, it need not know all classes at the first call, it can unlearn, and fitted ones can be
merged; each gives what `fit` on the rows that are left would give, up to rounding.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import HeadError, MissingExtraError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.random_features import RandomFourier, RandomReLU

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError("scikit-learn estimators", "train") from error

Float = NDArray[np.floating[Any]]
FLOATS = (np.float64, np.float32)


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Random features as a transformer, for a Pipeline.

    n_features: how many; expansion: "fourier" (cos, in [-1, 1]) or "relu"; bandwidth: that of the cosines, in
    the unit of X, None for sqrt(number of columns), which suits standardised columns.
    """

    expansion_: RandomFourier | RandomReLU

    def __init__(
        self,
        n_features: int = 1000,
        *,
        expansion: str = "fourier",
        bandwidth: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.expansion = expansion
        self.bandwidth = bandwidth
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, scikit-learn passes y
        """Draw the features; of X only the number of columns counts."""
        n_inputs = validate_data(self, X, dtype=FLOATS).shape[1]
        self.expansion_ = _draw(self.expansion, n_inputs, self)
        return self

    def transform(self, X: ArrayLike) -> Float:
        """Features (n, n_features) of X (n, columns), float32 or float64 as X."""
        check_is_fitted(self)
        Z = validate_data(self, X, dtype=FLOATS, reset=False)
        H: Float = self.expansion_.transform(Z).astype(Z.dtype, copy=False)
        return H

    @property
    def _n_features_out(self) -> int:
        return self.expansion_.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AnalyticClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression to one-hot labels on random features and a constant, by accumulated sums.

    ridge: what scikit-learn's ridge regression calls alpha.
    expansion: "fourier", "relu", or None for the columns of X as they are; the rest as in
    `RandomFeatures`. Learned: `classes_` (sorted), `head_` (the sums) and `expansion_`.

    >>> model = AnalyticClassifier(ridge=1e-3, expansion=None)
    >>> model.partial_fit([[-2.0], [-1.0]], ["left", "left"]).classes_.tolist()
    ['left']
    >>> model.partial_fit([[1.0], [2.0]], ["right", "right"]).predict([[-3.0], [3.0]]).tolist()
    ['left', 'right']
    >>> model.unlearn([[1.0], [2.0]], ["right", "right"]).classes_.tolist()
    ['left']
    """

    classes_: NDArray[Any]
    expansion_: RandomFourier | RandomReLU | None
    head_: AnalyticHead

    def __init__(
        self,
        ridge: float = 0.1,
        *,
        n_features: int = 1000,
        expansion: str | None = "fourier",
        bandwidth: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.ridge = ridge
        self.n_features = n_features
        self.expansion = expansion
        self.bandwidth = bandwidth
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn X (n, columns) and its classes y (n,), and keep nothing of what came before."""
        return self._learn(X, y, None, fresh=True)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more rows; y may hold classes never seen. `classes` may announce some still to come."""
        return self._learn(X, y, classes, fresh=not hasattr(self, "head_"))

    def unlearn(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Take away rows that were learned; a class goes with its last row, the fit with its last class."""
        check_is_fitted(self, "head_")
        Z, labels = self._rows(X, y, reset=False)
        strange = np.setdiff1d(labels, self.classes_)
        if strange.size:
            raise HeadError(f"classes that were never learned cannot be unlearned: {strange.tolist()}")
        head = _grown(self, self.classes_)  # a copy: this model changes only once all has gone well
        head.forget(_features(Z, self.expansion_), _one_hot(labels, self.classes_))
        rows_left = head.memory()["y2"]  # the sum of squares of one-hot labels
        kept = ~np.isin(self.classes_, labels) | (rows_left > 0.5)
        if kept.any():
            self.classes_, self.head_ = self.classes_[kept], head.rearranged(np.flatnonzero(kept).tolist())
        else:
            del self.classes_, self.head_, self.expansion_
        return self

    def merge(self, other: AnalyticClassifier) -> Self:
        """Add all that another classifier with the same random features has learned."""
        check_is_fitted(self, "head_")
        check_is_fitted(other, "head_")
        if _identity(self) != _identity(other):
            raise HeadError(
                f"these classifiers see different features: {_identity(self)} and {_identity(other)}; "
                "give both the same settings and the same whole number as random_state"
            )
        classes = np.union1d(self.classes_, other.classes_)
        self.head_ = _grown(self, classes).merge(_grown(other, classes))
        self.classes_ = classes
        return self

    def decision_function(self, X: ArrayLike) -> Float:
        """Scores (n, n_classes); for two classes (n,), positive for `classes_[1]`."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of the highest score of each row, (n,)."""
        best = np.argmax(self._scores(X), axis=1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def _learn(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, fresh: bool) -> Self:
        Z, labels = self._rows(X, y, reset=fresh)
        known = np.unique(labels) if classes is None else np.union1d(labels, np.asarray(classes))
        if fresh:
            expansion = None if self.expansion is None else _draw(self.expansion, Z.shape[1], self)
            width = Z.shape[1] if expansion is None else expansion.n_features
            head = AnalyticHead(width + 1, len(known), self.ridge)
        else:
            known, expansion = np.union1d(known, self.classes_), self.expansion_
            head = _grown(self, known)
        head.learn(_features(Z, expansion), _one_hot(labels, known))
        self.classes_, self.expansion_, self.head_ = known, expansion, head
        return self

    def _rows(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Float, NDArray[Any]]:
        Z, labels = validate_data(self, X, y, dtype=FLOATS, reset=reset)
        check_classification_targets(labels)
        return Z, labels

    def _scores(self, X: ArrayLike) -> Float:
        check_is_fitted(self, "head_")
        Z = validate_data(self, X, dtype=FLOATS, reset=False)
        scores: Float = self.head_.scores(_features(Z, self.expansion_), ridge=self.ridge)
        return scores


def _draw(
    kind: str, n_inputs: int, settings: RandomFeatures | AnalyticClassifier
) -> RandomFourier | RandomReLU:
    """The random features that an estimator's settings ask for."""
    seed = int(check_random_state(settings.random_state).randint(2**31 - 1))
    if kind == "relu":
        return RandomReLU(n_inputs, settings.n_features, seed)
    if kind != "fourier":
        raise HeadError(f"expansion must be 'fourier' or 'relu', got {kind!r}")
    bandwidth = float(np.sqrt(n_inputs)) if settings.bandwidth is None else settings.bandwidth
    return RandomFourier(n_inputs, settings.n_features, bandwidth, seed)


def _features(Z: Float, expansion: RandomFourier | RandomReLU | None) -> Float:
    """H (n, width + 1): the features, and a constant for the offset."""
    H: Float = Z if expansion is None else expansion.transform(Z)
    return np.hstack([H, np.ones((len(H), 1), dtype=H.dtype)])


def _one_hot(labels: NDArray[Any], classes: NDArray[Any]) -> Float:
    Y = np.zeros((len(labels), len(classes)))
    Y[np.arange(len(labels)), np.searchsorted(classes, labels)] = 1.0
    return Y


def _grown(model: AnalyticClassifier, classes: NDArray[Any]) -> AnalyticHead:
    """The model's head with one output for each of `classes`: all of its own, and perhaps more."""
    source = np.full(len(classes), -1)
    source[np.searchsorted(classes, model.classes_)] = np.arange(len(model.classes_))
    return model.head_.rearranged([int(j) for j in source])


def _identity(model: AnalyticClassifier) -> tuple[Any, ...]:
    """What must agree for two classifiers to see the same features."""
    expansion = model.expansion_
    if expansion is None:
        return "columns of X", model.n_features_in_
    name, bandwidth = type(expansion).__name__, getattr(expansion, "bandwidth", None)
    return name, expansion.n_inputs, expansion.n_features, expansion.seed, bandwidth
