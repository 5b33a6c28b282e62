"""Golden files open, verify and answer as they did when they were written; golden values are what they were.

A failure here says that today's program behaves in another way than the one that wrote tests/golden. If that
is on purpose, tests/golden/make.py says when it may be run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from tests.golden.contents import (
    ARRAY,
    CLOSE,
    EXACT,
    GOLDEN,
    IDENTITY,
    NOW,
    SIGNING_KEY,
    VARYING,
    at_home,
    bench_result,
    copied,
    lesson,
    read_values,
    small_features,
    small_prior,
    small_stems,
)
from tytoalba.bench.data import BenchData
from tytoalba.bench.results import load_results
from tytoalba.cli.keys import keys_at_hand
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.stems import Stems
from tytoalba.errors import TytoError
from tytoalba.learning.prior.prior import Prior
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.store import open_store
from tytoalba.storage.signatures import read_manifest, verify_bytes

pytest.importorskip("pyrage")
pytest.importorskip("cryptography")

STORED = load_file(GOLDEN / "close.safetensors")
SIXTEEN_BITS = 2.0**-15
TIME, AZIMUTH, CONFIDENCE = [1e-9], [0.05], [3e-3]
"""By how much answers may differ: seconds, degrees (written to 0.01), and a chance or the height of a map."""


@pytest.fixture
def golden(tmp_path: Path) -> Iterator[Path]:
    """The golden files in a folder of their own, in the hands of who has the test keys."""
    with at_home(tmp_path):
        yield copied(tmp_path)


def read(path: Path) -> Localizer:
    return store.read(path, keys_at_hand())


def equal(a: Any, b: Any) -> bool:
    """Whether all that two records hold is the same, arrays by type and value."""
    assert vars(a).keys() == vars(b).keys()
    return all(same(value, vars(b)[name]) for name, value in vars(a).items())


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[name]) for name, value in a.items())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return bool(a == b)


# ---- files ----


def test_there_are_no_other_golden_files() -> None:
    """What is here is looked at below; and altogether it stays small."""
    found = [path for path in GOLDEN.iterdir() if path.is_file() and path.suffix != ".py"]
    assert {path.name for path in found} == {
        "plain.tyto", "plain.tyto.ledger", "sealed.tyto.age", "sealed.tyto.age.ledger", "model.tyto",
        "model.tyto.sig", "prior.safetensors", "features.safetensors", "sealed-features.age",
        "stems.safetensors", "bench.safetensors", "results.json", "wave.wav", "values.json",
        "close.safetensors", "codes.json", SIGNING_KEY, IDENTITY,
        "plain-1.tyto", "plain-1.tyto.ledger", "features-1.safetensors",  # before features were exact
    }  # fmt: skip
    assert sum(path.stat().st_size for path in found) < 6e6


@pytest.mark.parametrize("name", ["plain.tyto", "sealed.tyto.age", "plain-1.tyto"])
def test_states_open_and_their_ledgers_are_true(golden: Path, name: str) -> None:
    opened = open_store(golden / name, keys_at_hand())
    localizer, (told, verdict) = opened.localizer, opened.steps()
    assert verdict == "verified"
    assert [(step["what"], step["n_frames"], step["time"]) for step in told] == [
        ("created", 0, NOW), ("learned", 9, NOW), ("forgot", 3, NOW), ("merged", 3, NOW),
    ]  # fmt: skip
    plain = golden / name.replace("sealed.tyto.age", "plain.tyto")
    assert localizer.to_bytes() == plain.read_bytes()
    assert localizer.state.frontend == (1 if name == "plain-1.tyto" else 2)
    assert localizer.array == ARRAY
    assert (localizer.n_frames, sorted(localizer.state.lessons.values())) == (9, [3, 3, 3])
    assert [kept.who for kept in localizer.state.kept.values()] == ["anna"]
    assert np.flatnonzero(localizer.evidence).tolist() == [0, 75, 112, 212]


@pytest.mark.parametrize("name", ["plain.tyto", "sealed.tyto.age", "plain-1.tyto"])
def test_states_can_be_changed_further(golden: Path, name: str) -> None:
    with store.edit(golden / name, keys_at_hand()) as localizer:
        localizer.forget(who="anna")
    opened = open_store(golden / name, keys_at_hand())
    localizer, (told, verdict) = opened.localizer, opened.steps()
    assert (localizer.n_frames, len(told), verdict) == (6, 5, "verified")


@pytest.mark.parametrize("name", ["plain.tyto", "plain-1.tyto"])
def test_states_know_their_lessons_again(golden: Path, name: str) -> None:
    """By the digests that the file has, of rows in the order that its version takes."""
    state = Localizer.from_bytes((golden / name).read_bytes()).state
    for k in (0, 2, 3):
        state.forget(lesson(small_features(), k))
    assert not state.lessons
    assert not state.kept


def test_old_and_new_states_cannot_be_merged(golden: Path) -> None:
    old, new = (Localizer.from_bytes((golden / f"plain{k}.tyto").read_bytes()) for k in ("-1", ""))
    with pytest.raises(TytoError, match=r"version of their front end \(1 and 2\).*Teach the lessons"):
        old.merge(new)
    assert old.merge(Localizer.like(old)).n_frames == 0


def test_the_model_opens_and_its_signature_holds(golden: Path) -> None:
    path = golden / "model.tyto"
    model = read(path)
    assert model.to_bytes() == path.read_bytes()
    assert (model.can_learn, model.n_frames) == (False, 9)
    signature = (golden / "model.tyto.sig").read_bytes()
    signer = read_manifest(signature).signer
    manifest = verify_bytes(path.read_bytes(), signature, path.name, "model", trusted=[signer])
    assert (manifest.sequence, manifest.time, manifest.size) == (NOW, NOW, path.stat().st_size)
    assert manifest.about == {"frames": 9, "released against": "few frames"}
    assert signer == read(golden / "plain.tyto").owner


def test_the_model_is_that_of_the_state(golden: Path) -> None:
    state, model = (read(golden / f"{name}.tyto").model for name in ("plain", "model"))
    assert np.abs(state.W - model.W).max() < 1e-5
    assert np.array_equal(state.coarse().weight, model.weight)
    assert (state.options, state.array) == (model.options, model.array)


@pytest.mark.parametrize(
    "name", ["plain.tyto", "plain.tyto.ledger", "sealed.tyto.age", "model.tyto", "model.tyto.sig"]
)
def test_altered_ones_are_refused(golden: Path, name: str) -> None:
    """Or all of the above could pass without anything having been looked at."""
    path = golden / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(TytoError):
        read(golden / name.removesuffix(".ledger").removesuffix(".sig"))


def test_the_prior_opens() -> None:
    prior = Prior.load(GOLDEN / "prior.safetensors")
    assert same(prior.weights, small_prior().weights)
    assert same(prior.frames, small_prior().frames)
    for name in ("array", "gcc", "steps", "about", "constants"):
        assert getattr(prior, name) == getattr(small_prior(), name), name
    X = FeatureSet.load(GOLDEN / "features.safetensors").flat
    assert np.array_equal(prior.logits(X[:2]), small_prior().logits(X[:2]))


def test_features_open(golden: Path) -> None:
    for name in ("features.safetensors", "sealed-features.age"):
        assert equal(FeatureSet.load(golden / name, keys_at_hand()), small_features()), name
    old = FeatureSet.load(golden / "features-1.safetensors")
    assert equal(old, replace(small_features(), gcc=replace(small_features().gcc, exact=False)))


def test_stems_open() -> None:
    assert equal(Stems.load(GOLDEN / "stems.safetensors"), small_stems())


def test_the_bench_cache_opens() -> None:
    data = BenchData.load(GOLDEN / "bench.safetensors")
    assert (data.name, data.array, data.n_inputs) == ("simulated:quick", ARRAY, 78)
    assert {key: len(frames) for key, frames in data.tests.items()} == {
        ("clean", "test"): 86,
        ("white -10 dB", "test"): 43,
    }
    assert len(data.train) == 167
    assert data.train.place is not None
    assert np.array_equal(data.train.place, STORED["bench data/train at"])
    assert np.array_equal(data.train.X[::9], STORED["bench data/train X"])
    assert np.array_equal(data.train.azimuth, STORED["bench data/train azimuth"], equal_nan=True)


def test_results_open_and_a_run_over_the_same_data_hits_as_often(tmp_path: Path) -> None:
    stored = load_results(GOLDEN / "results.json")
    told = json.loads((GOLDEN / "results.json").read_text(encoding="utf-8"))
    result = json.loads(json.dumps(bench_result(tmp_path / "results.json")))
    assert {row.method for row in stored.rows} == {"srp-phat", "tyto"}
    assert len(stored.rows) == len(told["rows"]) == 18
    anywhere = [row for row in result["rows"] if not row["mask"]]  # the file is older than the mask
    for row, before in zip(anywhere, told["rows"], strict=True):
        newer = {"mask", "had", "answer_seconds", "recordings", "front_back", "separation"}
        assert row.keys() - newer == before.keys()
        errors = ("mae", "sectors")
        assert {k: v for k, v in row.items() if k not in (*errors, *newer)} == {
            k: v for k, v in before.items() if k not in errors
        }
        assert flat(row["mae"]) == pytest.approx(flat(before["mae"]), abs=2e-4, nan_ok=True)
        for metric in before.get("sectors", ()):
            found, wanted = row["sectors"][metric], before["sectors"][metric]
            assert flat(found) == pytest.approx(flat(wanted), abs=2e-4, nan_ok=True)
    for name in told.keys() - {"rows", *VARYING}:
        assert result[name] == told[name], name
    assert result.keys() == told.keys()


def flat(values: Any) -> NDArray[np.float64]:
    """Numbers of a list of lists, NaN for null."""
    return np.array(values, np.float64).ravel()


# ---- values ----


def test_all_values_are_stored() -> None:
    assert read_values().keys() == EXACT.keys()
    assert {name.split("/")[0] for name in STORED} == CLOSE.keys()


@pytest.mark.parametrize("name", EXACT)
def test_exact_values_are_what_they_were(name: str) -> None:
    assert EXACT[name]() == read_values()[name]


@pytest.mark.parametrize("group", CLOSE)
def test_close_values_are_what_they_were(group: str) -> None:
    stored = {name.split("/")[1]: v for name, v in STORED.items() if name.split("/")[0] == group}
    found = CLOSE[group]()
    assert found.keys() == stored.keys()
    for name, values in found.items():
        wanted = stored[name]
        assert (values.dtype, values.shape) == (wanted.dtype, wanted.shape), name
        assert np.array_equal(np.isnan(values), np.isnan(wanted)), name
        apart = np.nan_to_num(np.abs(np.asarray(values, np.float64) - wanted))
        assert (apart <= tolerance(group, name)).all(), f"{name}: {apart.max()} apart"


def tolerance(group: str, name: str) -> Any:
    """What machines may differ by: more where they round, which turns the last bit into a step."""
    if group == "located":
        return TIME + 3 * AZIMUTH + 3 * CONFIDENCE
    if group == "gathered stems":
        return 2e-3  # float16, up to 3
    if name.endswith("X"):
        return 5e-3  # PHAT raises the last bits of simulated sound where there is next to none
    return 1.01 * SIXTEEN_BITS if name == "sound" else 1e-5
