"""Whole graphs: frames of sound in, the scores of `Finder.scores` out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.onnx_graphs import noise, scores_of
from tytoalba.bench.onnx import open_session, random_frames
from tytoalba.errors import TytoError
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.model import Model
from tytoalba.localizer.onnx import graph
from tytoalba.localizer.onnx.builder import PRECISIONS, Precision
from tytoalba.localizer.onnx.graph import Known, onnx_bytes
from tytoalba.signal.array import MicArray, load_array

onnx = pytest.importorskip("onnx")

USB = load_array("respeaker-usb-4")
ROTATED, BETWEEN = USB.rotated(30.0), USB.rotated(17.3)
SWAPPED = replace(USB, positions=tuple(USB.positions[k] for k in (2, 0, 3, 1)))
PROMISE = {"unit": "lesson", "epsilon": 3.0, "delta": 1e-6, "noise": 2.0, "features": 3}


def frames_of(array: MicArray, n: int = 3) -> np.ndarray:
    (frames,) = random_frames(array, n, seed=4)
    frames[-1] = 0.0
    return frames


def taught(array: MicArray, **options: Any) -> Localizer:
    localizer = Localizer.new(array, n_features=40, seed=3, **options)
    localizer.teach(noise((array.n_mics, array.sample_rate)), 135.0)
    return localizer


@pytest.mark.parametrize(
    "array",
    [USB, ROTATED, BETWEEN, SWAPPED, load_array("linear-4").rotated(30.0)],
    ids=["as built", "turned", "turned by a part", "other order", "a line, turned"],
)
def test_scores_of_a_prior_are_those_of_its_finder(array: MicArray) -> None:
    finder, x = MapFinder(array, "prior"), frames_of(array)
    wanted = finder.scores(finder.maps(x))
    assert np.array_equal(scores_of(Known.of_array(array), x), wanted)
    assert np.isinf(wanted).any() == (array.name == "linear-4")


@pytest.mark.parametrize(
    ("array", "options"),
    [(USB, {}), (BETWEEN, {"views": 3}), (load_array("linear-4"), {}), (USB, {"views": 1, "sound": 0.0})],
)
def test_scores_of_a_localizer_are_those_of_its_finder(array: MicArray, options: dict[str, Any]) -> None:
    localizer, x = taught(array, **options), frames_of(array, 2)
    finder = localizer.finder
    wanted = finder.scores(finder.maps(x))
    assert np.array_equal(scores_of(Known.of_model(localizer.model), x), wanted)


def private_model(offset: float = 3.25) -> Model:
    known = taught(USB).model
    curve = np.full(360, offset, np.float32) + np.linspace(-1, 1, 360, dtype=np.float32)
    W, options = np.zeros((1, 720), np.float32), known.options | {"n_features": 1, "seed": 0}
    return replace(known, W=W, weight=np.ones(360, np.float32), options=options, n_frames=0,
                   offset=curve, private=dict(PROMISE))  # fmt: skip


def test_a_private_model_is_the_prior_put_right() -> None:
    model, x = private_model(), frames_of(USB)
    finder = Localizer(model).finder
    wanted = finder.scores(finder.maps(x))
    assert np.array_equal(scores_of(Known.of_model(model), x), wanted)
    plain = MapFinder(USB, "prior")
    assert not np.array_equal(wanted, plain.scores(plain.maps(x)))


def test_scores_point_where_the_sound_comes_from() -> None:
    """Without tytoalba to compare with: the index is the azimuth as the array is mounted."""
    n, hertz = ROTATED.frame_length, np.fft.rfftfreq(ROTATED.frame_length, 1 / ROTATED.sample_rate)
    phase = np.exp(2j * np.pi * np.random.default_rng(1).uniform(size=len(hertz)))
    azimuth = np.array([30.0, 120.0, 301.0])
    delay = ROTATED.arrival_times(azimuth)[..., None]
    x = np.fft.irfft(phase * np.exp(-2j * np.pi * hertz * delay), n).astype(np.float32)
    for precision in PRECISIONS:
        top = scores_of(Known.of_array(ROTATED), x, precision).argmax(axis=1)
        assert np.abs(top - azimuth).max() <= 3


def test_frames_do_not_know_their_batch() -> None:
    x, session = frames_of(USB, 3), open_session(onnx_bytes(Known.of_array(USB)))
    together, first = (np.asarray(session.run(None, {"frames": part})[0]) for part in (x, x[:1]))
    assert np.array_equal(together[:1], first)


@pytest.mark.parametrize("of", ["array", "model"])
def test_fast_scores_are_near(of: str) -> None:
    known = Known.of_array(USB) if of == "array" else Known.of_model(taught(USB).model)
    x = frames_of(USB)
    same, fast = scores_of(known, x), scores_of(known, x, "fast")
    assert 0 < np.abs(same - fast).max() < 0.02
    assert np.abs(same - fast).mean() < 5e-4


def test_the_largest_shipped_prior_is_below_10_megabytes() -> None:
    largest = max(shipped_priors(), key=lambda name: load_array(name).n_pairs * load_array(name).max_lag)
    assert len(onnx_bytes(Known.of_array(load_array(largest)))) < 10e6


def test_a_localizer_of_usual_size_is_below_10_megabytes() -> None:
    model = taught(USB).model
    full = replace(model, options=model.options | {"n_features": 2000}, W=noise((2000, 720)))
    assert len(onnx_bytes(Known.of_model(full))) < 10e6


def told(known: Known, precision: Precision = "same") -> dict[str, str]:
    made = onnx.load_model_from_string(onnx_bytes(known, precision))
    return {entry.key: entry.value for entry in made.metadata_props}


def test_a_file_says_what_it_takes_and_gives() -> None:
    facts = told(Known.of_array(ROTATED), "fast")
    assert MicArray.from_toml(facts["array_toml"]) == ROTATED
    expected = {"format": "tytoalba-onnx", "version": "1", "array": "respeaker-usb-4", "sample_rate": "16000",
                "n_mics": "4", "frame_length": "2730", "hop": "1365", "silence_db": "-60.0",
                "precision": "fast", "source": "prior", "secrecy": graph.PUBLIC}  # fmt: skip
    assert facts.items() >= expected.items()
    assert facts["prior_digest"] == Known.of_array(USB).prior.digest.tobytes().hex()
    assert "images" in told(Known.of_array(load_array("linear-4")))


def test_a_file_says_how_private_it_is_and_nothing_secret() -> None:
    private, exact = Known.of_model(private_model()), Known.of_model(taught(USB).model)
    facts = told(private)
    assert (json.loads(facts["private"]), facts["secrecy"]) == (PROMISE, graph.PRIVATE)
    facts = told(exact)
    assert facts["secrecy"] == graph.SECRET
    assert not {"private", "seed", "n_frames", "options"} & facts.keys()


def test_a_private_file_holds_nothing_of_the_state_but_the_promise() -> None:
    """Beside the prior, its constants are those of the offset, which the promise is about."""
    model = private_model()
    made = onnx.load_model_from_string(onnx_bytes(Known.of_model(model)))
    public = onnx.load_model_from_string(onnx_bytes(Known.of_array(USB)))
    large = [t.raw_data for t in made.graph.initializer if len(t.raw_data) > 64]  # no shapes and axes
    own = set(large) - {t.raw_data for t in public.graph.initializer}
    offset = np.asarray(model.offset)
    part = ((np.arange(360.0) + offset) % 360.0 % 1.0).astype(np.float32)
    assert {part.tobytes(), (1 - part).astype(np.float32).tobytes()} <= own
    assert len(own) <= 5  # two tables of degrees, two of shares, and weights of 1


def test_the_same_knowledge_is_the_same_bytes() -> None:
    known = Known.of_model(taught(USB).model)
    assert onnx_bytes(known) == onnx_bytes(known)


def test_refusals() -> None:
    with pytest.raises(TytoError, match="precision must be"):
        onnx_bytes(Known.of_array(USB), "half")  # type: ignore[arg-type]
    wider = replace(USB, positions=tuple((20 * x, 20 * y, z) for x, y, z in USB.positions))
    with pytest.raises(TytoError, match="srp and music need no prior"):
        Known.of_array(wider)
