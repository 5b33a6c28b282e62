"""One ONNX graph from frames of raw sound to scores of 360 directions, and what it says of itself.

What comes out is `Finder.scores` of the method prior, or of a localizer: the scores in which `tyto locate`
and the tracker look for directions, before anything is decided.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.inputs import views_of
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import fitting_prior
from tytoalba.localizer.frontend import STEADY
from tytoalba.localizer.model import Model, task_of
from tytoalba.localizer.onnx import features, learner, network
from tytoalba.localizer.onnx.builder import Builder, Name, Precision, check_precision
from tytoalba.signal.alignment import Fit, fit
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import SILENCE_DB
from tytoalba.signal.symmetry import Symmetry, symmetries

INPUT, OUTPUT = "frames", "scores"
FORMAT, VERSION = "tytoalba-onnx", 1
SECRET = "as secret as the state that it was made from"
PUBLIC = "public: the prior alone, which no user taught"
PRIVATE = "private: may be shared, as promised in private"


@dataclass(frozen=True)
class Known:
    """Whose scores a graph computes: an array's prior, or a model of a localizer.

    array: as it is mounted. fit: how its microphones are those of the prior.
    """

    array: MicArray
    prior: Prior
    fit: Fit
    model: Model | None = None

    @classmethod
    def of_array(cls, array: MicArray) -> Known:
        """The prior of an array alone."""
        prior, how = fitting_prior(array)
        return cls(array, prior, how)

    @classmethod
    def of_model(cls, model: Model) -> Known:
        """What a model knows; one that ignores steady noise is refused."""
        if model.frontend == STEADY:
            raise TytoError(
                "this localizer ignores steady noise, for which it must remember the last seconds; a graph "
                "takes each frame by itself. Export one that was made without --ignore-steady"
            )
        how = fit(model.prior.array, model.array)
        assert how
        return cls(model.array, model.prior, how, model)

    @property
    def secrecy(self) -> str:
        """Who may have the file."""
        if self.model is None:
            return PUBLIC
        return PRIVATE if self.model.private is not None else SECRET

    @property
    def views(self) -> list[Symmetry]:
        """From which sides each frame is looked at; the answers are averaged."""
        if self.model is None:
            return list(symmetries(self.prior.array)[:2])
        task = task_of(self.prior, int(self.model.options["seed"]))
        return [view for view, _ in views_of(task)[: int(self.model.options["views"])]]


def onnx_bytes(known: Known, precision: Precision = "same") -> bytes:
    """The content of an ONNX file: the same bytes for the same knowledge.

    Input `frames`: float32 (n_frames, n_mics, frame_length), finite, in [-1, 1], at the array's rate, its
    microphones in its order. Output `scores`: float32 (n_frames, 360), by degree as the array is mounted.
    """
    check_precision(precision)
    g = Builder(precision)
    array = known.array
    scores = _scores(g, known), np.float32, ("n_frames", N_DIRECTIONS)
    frames = ("n_frames", array.n_mics, array.frame_length)
    return g.to_bytes({INPUT: frames}, {OUTPUT: scores}, metadata(known, precision))


def metadata(known: Known, precision: Precision) -> dict[str, str]:
    """What the file says of itself, as text: nothing needs to be guessed, and nothing of it is secret."""
    array, model = known.array, known.model
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "array": array.name,
        "array_toml": array.to_toml(),
        "sample_rate": array.sample_rate,
        "n_mics": array.n_mics,
        "frame_length": array.frame_length,
        "hop": array.frame_length // 2,
        "silence_db": SILENCE_DB,
        "scores": "azimuth in degrees is the index: 0 the front as mounted, 90 its left; higher is likelier",
        "source": "prior" if model is None else "localizer",
        "secrecy": known.secrecy,
        "precision": precision,
        "prior_digest": known.prior.digest.tobytes().hex(),
    }
    if array.mirror_axis is not None:
        about["images"] = "-inf: directions that sound as another one does, on an array on a line"
    if model is not None:
        about["model_sha256"] = hashlib.sha256(model.to_bytes()).hexdigest()
        if model.private is not None:
            about["private"] = json.dumps(model.private, sort_keys=True)
    return {name: str(value) for name, value in about.items()}


def _scores(g: Builder, known: Known) -> Name:
    frames, order, model = INPUT, known.fit.order, known.model
    if order != tuple(range(len(order))):
        frames = g.take(frames, order, 1)
    codes = features.codes(g, frames, known.prior.gcc)
    views = known.views
    seen = g.join([_seen(g, codes, view, known.prior) for view in views], axis=0)
    logits = network.logits(g, seen, known.prior)
    maps = network.scores_of(g, logits)
    if model is None:
        total = g.sum_of(*_apart(g, maps, views))
        mean = g.op("Div", total, _single(g, len(views))) if len(views) > 1 else total
    else:
        mean = _learned(g, model, views, logits, maps, seen)
    return _mounted(g, mean, known)


def _learned(
    g: Builder, model: Model, views: Sequence[Symmetry], logits: Name, maps: Name, seen: Name
) -> Name:
    """Scores of a model, (n_frames, 360), in the frame of its prior (`Model.scores`)."""
    sides = _apart(g, maps, views)
    weight = _single(g, model.weight)
    terms = [g.op("Mul", side, weight) for side in sides]
    if model.W.any():  # a private model has none
        found = learner.found(g, logits, seen, model)
        n = N_DIRECTIONS
        answers = _apart(g, g.cut(found, 1, 0, n), views)
        expected = _apart(g, g.op("Sub", maps, g.cut(found, 1, n, 2 * n)), views)
        terms = [
            g.op("Add", answer, g.op("Mul", rest, weight))
            for answer, rest in zip(answers, expected, strict=True)
        ]
    scores = g.sum_of(*(g.op("Div", term, _single(g, len(views))) for term in terms))
    if model.offset is None:
        return scores
    at = (np.arange(360.0) + model.offset) % 360.0
    low = np.floor(at)
    part, place = (at - low).astype(np.float32), low.astype(np.intp) % 360
    return _between(g, scores, place, (place + 1) % 360, 1 - part, part)


def _seen(g: Builder, codes: Name, view: Symmetry, prior: Prior) -> Name:
    """Codes (n_frames, looks, maps, lags) as they would be in a mirrored or turned world."""
    if not view.mirrored and not view.turn:
        return codes
    gcc = prior.gcc
    n_pairs, n_lags = len(gcc.pairs), gcc.n_lags
    order = view.order(gcc).reshape(gcc.n_looks, -1)[0]  # the same for every look
    flat = g.reshape(codes, -1, 1 + gcc.n_windows, len(gcc.band_list), n_pairs * n_lags)
    return g.reshape(g.take(flat, order, 3), -1, 1 + gcc.n_windows, len(gcc.band_list) * n_pairs, n_lags)


def _apart(g: Builder, maps: Name, views: Sequence[Symmetry]) -> list[Name]:
    """Maps (views x n_frames, 360) of each view, turned back."""
    if len(views) == 1:
        return [maps]
    by_view = g.reshape(maps, len(views), -1, N_DIRECTIONS)
    degrees = np.arange(float(N_DIRECTIONS))[None]
    parts = [g.take(by_view, k, 0) for k in range(len(views))]
    return [
        g.take(part, view.back(degrees)[0].astype(np.intp), 1) if view.mirrored or view.turn else part
        for part, view in zip(parts, views, strict=True)
    ]


def _mounted(g: Builder, maps: Name, known: Known) -> Name:
    """Maps in the frame of the prior as the array is mounted, mirror images at -inf."""
    whole, rest = divmod(known.fit.turn, 1.0)
    degrees = np.arange(N_DIRECTIONS)
    once = (degrees - int(whole)) % N_DIRECTIONS
    if rest:
        one = np.full(N_DIRECTIONS, 1 - rest), np.full(N_DIRECTIONS, rest)
        maps = _between(g, maps, once, (once - 1) % N_DIRECTIONS, *one)
    elif whole:
        maps = g.take(maps, once, 1)
    images = np.isinf(known.array.without_images(np.zeros((1, N_DIRECTIONS), np.float32)))
    if not images.any():
        return maps
    return g.op("Where", g.constant(images, np.bool_), _single(g, -np.inf), maps)


def _between(
    g: Builder, maps: Name, first: NDArray[Any], second: NDArray[Any], a: NDArray[Any], b: NDArray[Any]
) -> Name:
    """maps[:, first] a + maps[:, second] b, float32."""
    parts = (g.op("Mul", g.take(maps, at, 1), _single(g, factor)) for at, factor in ((first, a), (second, b)))
    return g.op("Add", *parts)


def _single(g: Builder, values: Any) -> Name:
    return g.constant(values, np.float32)
