"""Files of priors: what was altered, cut short or is something else is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.helpers.networks import MINE, Alter, altered, prior_of_mine
from tytoalba.errors import PriorError
from tytoalba.learning.prior.confidence import usual_confidence
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import find_prior

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def prior() -> Prior:
    return prior_of_mine()


def telling(**entries: Any) -> Alter:
    return lambda told, _: told.update(entries)


def without(name: str) -> Alter:
    def change(told: dict[str, Any], arrays: dict[str, Any]) -> None:
        (arrays if name in arrays else told).pop(name)

    return change


def without_blocks(first: int) -> Alter:
    """Blocks from this one on are gone; of later ones than the first an array is left."""

    def change(told: dict[str, Any], arrays: dict[str, Any]) -> None:
        for k in range(first, 4):
            for kind in ("near", "around", "offset", "mix", "bias")[first > 0 :]:
                told["steps"].pop(f"{kind}{k}")
                arrays.pop(f"{kind}{k}")

    return change


def having(name: str, become: Callable[[Any], Any]) -> Alter:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = np.ascontiguousarray(become(arrays[name]))

    return change


def stepping(step: Any) -> Alter:
    return lambda told, _: told["steps"].update(mix1=step)


def test_an_unchanged_file_passes(prior: Prior, tmp_path: Path) -> None:
    assert Prior.load(altered(prior, tmp_path, telling())).n_weights == prior.n_weights


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (telling(format="tytoalba-head"), "holds no prior; `tyto prior ARRAY` makes one"),
        (without("format"), "holds no prior"),
        (telling(version=1), "has version 1; this program reads 2"),
        (telling(version=3), "has version 3; this program reads 2"),
        (without("version"), "has version None"),
        (without("array"), "is damaged or no prior"),
        (without("steps"), "is damaged or no prior"),
        (without("constants"), "is damaged or no prior"),
        (telling(array="name = "), "not valid TOML"),
        (telling(array=7), "is damaged or no prior"),
        (telling(array=replace(MINE, positions=MINE.positions[:3], channels=()).to_toml()), "do not fit"),
        (having("mix0", lambda w: w.astype(np.int32)), "must be int16; it was altered"),
        (having("mix0", lambda w: w.astype(np.float32)), "must be int16; it was altered"),
        (having("mix0", lambda w: w[1:]), "do not fit each other"),
        (having("leave", lambda w: w[1:]), "do not fit each other"),
        (having("hear", lambda w: w[1:]), "do not fit each other"),
        (having("heard", lambda w: w[1:]), "do not fit each other"),
        (having("enter", lambda w: w[:-1]), "do not fit each other"),
        (without("hear"), "do not fit each other"),
        (without("heard"), "do not fit each other"),
        (having("leave", lambda w: w[:, 0]), "do not fit each other"),
        (having("enter", lambda w: w[:, :, None]), "do not fit each other"),
        (without("level"), "do not fit each other"),
        (without_blocks(0), "do not fit each other"),
        (without_blocks(3), "do not fit each other"),
        (without("leave"), "do not fit each other"),
        (lambda _, arrays: arrays.update(extra=arrays["mix0"]), "do not fit each other"),
        (lambda told, _: told["steps"].pop("mix1"), "do not fit each other"),
        (stepping(0.3), "must be powers of two; it was altered"),
        (stepping(2.0), "must be powers of two"),
        (stepping(0.0), "must be powers of two"),
        (stepping(-0.5), "must be powers of two"),
        (stepping(float("nan")), "must be powers of two"),
        (stepping("much"), "is damaged or no prior"),
        (stepping(None), "is damaged or no prior"),
        (telling(steps=[1.0]), "is damaged or no prior"),
        (without("frames.sound"), "simulated frames of this prior do not fit it"),
        (without("frames.logits"), "simulated frames of this prior do not fit it"),
        (having("frames.sound", lambda f: f[1:]), "simulated frames of this prior do not fit it"),
        (having("frames.sound", lambda f: f[:, 1:]), "simulated frames of this prior do not fit it"),
        (having("frames.logits", lambda f: f[:, :300]), "simulated frames of this prior do not fit it"),
        (having("frames.logits", lambda f: f.astype(np.int16)), "simulated frames of this prior do not fit"),
        (having("frames.logits", lambda f: f.ravel()), "simulated frames of this prior do not fit it"),
        (lambda _, a: a.update({"frames.more": a["frames.sound"]}), "simulated frames of this prior"),
    ],
)
def test_altered_files_are_refused(prior: Prior, tmp_path: Path, change: Alter, complaint: str) -> None:
    path = altered(prior, tmp_path, change)
    with pytest.raises(PriorError, match=complaint):
        Prior.load(path)


def test_a_prior_of_version_1_is_refused_by_its_version(
    prior: Prior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those had no windows; that is said, and not that the file is damaged."""

    def old(told: dict[str, Any], arrays: dict[str, Any]) -> None:
        told["version"] = 1
        for name in ("hear", "heard"):
            del arrays[name], told["steps"][name]
        arrays["enter"] = np.ascontiguousarray(arrays["enter"][: -prior.width])

    path = altered(prior, tmp_path, old)
    told = r"altered\.safetensors has version 1; this program reads 2"
    with pytest.raises(PriorError, match=told):
        Prior.load(path)
    monkeypatch.setenv("TYTO_PRIORS", str(tmp_path))
    with pytest.raises(PriorError, match=told):
        find_prior(MINE)


def test_a_step_too_large_for_a_float_is_refused(prior: Prior, tmp_path: Path) -> None:
    path = altered(prior, tmp_path, stepping(10**400))
    with pytest.raises(PriorError):
        Prior.load(path)


@pytest.mark.parametrize(
    "constants",
    [
        [],
        None,
        {"logit_mean": "abc"},
        {"logit_mean": [0.0] * 7},
        {"logit_mean": [None] * 360},
        {"logit_spread": [0.0] * 360},
        {"confidence": []},
        {"counting": {}},
        {"counting": [5]},
        {"counting": [{}, {}]},
        {"confidence": {"asked": 5}},
        {"confidence": usual_confidence().to_dict() | {"least": [0.5, 0.5, 50]}},
        {"confidence": usual_confidence().to_dict() | {"asked": [[0, 0, -1, 0, 0]] * 3}},
    ],
)
def test_constants_that_were_altered_are_refused(prior: Prior, tmp_path: Path, constants: Any) -> None:
    path = altered(prior, tmp_path, telling(constants=constants))
    with pytest.raises(PriorError):
        Prior.load(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_cut_short_is_refused(prior: Prior, tmp_path: Path, share: float) -> None:
    path = tmp_path / "mine.safetensors"
    prior.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(PriorError, match=r"mine\.safetensors is damaged or no prior"):
        Prior.load(path)


class Malicious:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was executed",)


def test_what_is_no_prior_is_refused(prior: Prior, tmp_path: Path) -> None:
    with pytest.raises(PriorError, match=r"no such file: .*nowhere; `tyto prior ARRAY` makes a prior"):
        Prior.load(tmp_path / "nowhere")
    with pytest.raises(PriorError, match="no such file"):
        Prior.load(tmp_path)
    path = tmp_path / "mine.safetensors"
    for content in (pickle.dumps(Malicious()), b"\x93NUMPY", MINE.to_toml().encode(), b"\xff" * 4096):
        path.write_bytes(content)
        with pytest.raises(PriorError, match="damaged or no prior"):
            Prior.load(path)
    torch.save(prior.weights, path)
    with pytest.raises(PriorError, match="damaged or no prior"):
        Prior.load(path)
    save_file(prior.weights, path)  # another program's
    with pytest.raises(PriorError, match="holds no prior"):
        Prior.load(path)
    for told in ("[]", "7", '"tytoalba-prior"'):
        save_file(prior.weights, path, {"tytoalba": told})
        with pytest.raises(PriorError, match="holds no prior"):
            Prior.load(path)
    save_file(prior.weights, path, {"tytoalba": "{"})
    with pytest.raises(PriorError, match="damaged or no prior"):
        Prior.load(path)


def test_a_header_of_endless_brackets_is_refused(prior: Prior, tmp_path: Path) -> None:
    save_file(prior.weights, tmp_path / "deep.safetensors", {"tytoalba": "[" * 100_000})
    with pytest.raises(PriorError):
        Prior.load(tmp_path / "deep.safetensors")
