"""The manifest of shipped priors says what lies beside it, and what ships a prior renews it."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.priors import RESPEAKER
from tests.learning.prior.shared.helpers import weights
from tytoalba.errors import TytoError
from tytoalba.learning.prior import manifest as manifest
from tytoalba.learning.prior.make import MadePrior, PriorSettings
from tytoalba.learning.prior.manifest import any_file, checkout, ship_prior, shipped_folder, write_manifest
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.learning.prior.shared.make import AnySettings
from tytoalba.learning.prior.shared.prior import SharedWeights

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    text = (shipped_folder(ROOT) / "manifest.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def test_the_manifest_is_that_of_the_files(stored: dict[str, Any]) -> None:
    assert stored["priors"].keys() == shipped_priors().keys()
    for name, entry in stored["priors"].items():
        file, results = shipped_priors()[name], ROOT / entry["results"]
        prior = Prior.load(file)
        assert entry["sha256"] == sha256(file.read_bytes()).hexdigest(), name
        assert entry["results_sha256"] == sha256(results.read_bytes()).hexdigest(), name
        assert (prior.array.name, prior.about) == (name, entry["recipe"])
        judged = json.loads(results.read_text(encoding="utf-8"))
        assert (judged["array"], judged["about"]) == (name, prior.about)
        assert all(command.startswith(f"tyto prior {name} ") for command in entry["commands"][-1:])


def test_the_network_for_every_array_is_in_it(stored: dict[str, Any]) -> None:
    entry, file = stored["every_array"], any_file(ROOT)
    results = ROOT / entry["results"]
    assert entry["sha256"] == sha256(file.read_bytes()).hexdigest()
    assert entry["results_sha256"] == sha256(results.read_bytes()).hexdigest()
    assert entry["recipe"] == SharedWeights.load(file).about
    assert json.loads(results.read_text(encoding="utf-8"))["about"] == entry["recipe"]
    assert file.stat().st_size < 3_000_000
    assert entry["speech"][0] == "synthetic"


def test_shipping_the_network_for_every_array_writes_its_entry(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(settings: AnySettings, folder: Path, output: Path, *, results: Path, **how: Any) -> Any:
        assert (folder, how) == (Path("frames"), {"processes": 3})
        output.parent.mkdir()
        made = SharedWeights(weights().weights, {"arrays": settings.arrays, "speech": "synthetic"}, {})
        made.save(output)
        results.write_text("{}")
        return made, []

    monkeypatch.setattr(manifest, "make_any", make)
    manifest.ship_any(AnySettings(arrays=5), Path("frames"), "tyto prior-any", source, processes=3)
    path = shipped_folder(source) / "manifest.json"
    entry = json.loads(path.read_text(encoding="utf-8"))["every_array"]
    assert (entry["commands"], entry["recipe"]["arrays"]) == (["tyto prior-any"], 5)
    assert entry["speech"] == ["synthetic"]
    write_manifest(source, {"linear-4": ["first"]})  # the others keep theirs
    assert json.loads(path.read_text(encoding="utf-8"))["every_array"] == entry


def test_the_manifest_names_the_speech_and_its_licence(stored: dict[str, Any]) -> None:
    for entry in stored["priors"].values():
        synthetic, real = entry["speech"]
        assert synthetic == "synthetic"
        assert (real["name"], real["speakers"]) == ("AudioMNIST", 36)
        assert real["licence"].startswith("MIT")
    assert "never a user's sound" in stored["about"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source with two priors and their results."""
    for name in ("respeaker-usb-4", "linear-4"):
        for part in ("src/tytoalba/resources/priors", "results/priors"):
            (tmp_path / part).mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped_priors()[name], shipped_folder(tmp_path))
        (tmp_path / "results" / "priors" / f"{name}.json").write_text("{}")
    return tmp_path


def test_commands_are_kept_until_there_are_new_ones(source: Path) -> None:
    write_manifest(source, {"linear-4": ["first", "second"]})
    found = write_manifest(source, {"respeaker-usb-4": ["third"]})["priors"]
    assert {name: entry["commands"] for name, entry in found.items()} == {
        "linear-4": ["first", "second"],
        "respeaker-usb-4": ["third"],
    }
    path = shipped_folder(source) / "manifest.json"
    assert json.loads(path.read_text(encoding="utf-8"))["priors"] == found


def test_shipping_installs_the_prior_and_renews_the_manifest(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def make(array: Any, settings: PriorSettings, **how: Any) -> MadePrior:
        asked.update(how, array=array, settings=settings)
        how["results"].write_text('{"new": 1}')
        return MadePrior(Prior.load(how["output"]), how["output"], {})

    monkeypatch.setattr(manifest, "make_prior", make)
    settings = PriorSettings(width=32)
    made = ship_prior("respeaker-usb-4", settings, "tyto prior respeaker-usb-4 --ship", source, device="cpu")
    assert (asked["array"], asked["settings"], asked["device"]) == (RESPEAKER, settings, "cpu")
    assert made.path == shipped_folder(source) / "respeaker-usb-4.safetensors"
    entry = json.loads((shipped_folder(source) / "manifest.json").read_text())["priors"]["respeaker-usb-4"]
    assert entry["commands"] == ["tyto prior respeaker-usb-4 --ship"]
    assert entry["results_sha256"] == sha256(b'{"new": 1}').hexdigest()


def test_only_built_in_arrays_ship_from_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert checkout() == ROOT
    with pytest.raises(TytoError, match="only built-in arrays have shipped priors; 'mine' is none"):
        ship_prior("mine", PriorSettings(), "")
    monkeypatch.setattr("tytoalba.__file__", str(tmp_path / "a" / "b" / "__init__.py"))
    with pytest.raises(TytoError, match="from a checkout of the source"):
        ship_prior("pepper", PriorSettings(), "")
