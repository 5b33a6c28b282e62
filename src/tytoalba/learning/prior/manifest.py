"""What ships: every prior of the package with its digest, its recipe, the speech in it and its judgement.

`tyto prior ARRAY --ship` makes, judges and installs a prior and writes `manifest.json` beside the priors
anew. The tests compare it with the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import tytoalba
from tytoalba.errors import TytoError
from tytoalba.learning.prior.make import MadePrior, PriorSettings, make_prior
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.judge import Row
from tytoalba.learning.prior.shared.make import AnySettings, make_any
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import builtin_arrays, load_array
from tytoalba.storage.writing import write_json

ABOUT = (
    "Weights of networks that learned from simulated rooms, and simulated frames. The speech in these rooms "
    "is a synthetic voice and, where it says so, 36 people of AudioMNIST; never a user's sound."
)
AUDIO_MNIST = {
    "name": "AudioMNIST",
    "speakers": 36,
    "licence": "MIT, (c) 2018 soerenab",
    "source": "github.com/soerenab/AudioMNIST",
    "citation": "Becker et al., arXiv 1807.03418",
}
"""The real speech that shipped priors learned from."""
ANY = "any"
"""The network for every array, beside the names of arrays."""


def checkout() -> Path:
    """The root of the source that this package runs from; refused where it is installed without."""
    root = Path(tytoalba.__file__).parents[2]
    if not (root / "pyproject.toml").is_file() or not (root / "results").is_dir():
        raise TytoError(
            "priors are shipped from a checkout of the source: clone it, pip install -e '.[train,sim]', "
            "and run the command there"
        )
    return root


def ship_prior(
    name: str, settings: PriorSettings, command: str, root: Path | None = None, **how: Any
) -> MadePrior:
    """Make the prior of a built-in array, judge it, put both into the source and renew the manifest.

    command: what brings it again, for the manifest. root: of the source, if it is not this package's.
    how: for `make_prior`.
    """
    if name not in builtin_arrays():
        raise TytoError(f"only built-in arrays have shipped priors; {name!r} is none of them")
    root = root or checkout()
    folder, results = shipped_folder(root), root / "results" / "priors"
    made = make_prior(
        load_array(name),
        settings,
        output=folder / f"{name}.safetensors",
        results=results / f"{name}.json",
        **how,
    )
    write_manifest(root, {name: [command]})
    return made


def shipped_folder(root: Path) -> Path:
    """Where the priors of a source lie."""
    return root / "src" / "tytoalba" / "resources" / "priors"


def write_manifest(root: Path, commands: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Write the manifest of all priors of a source anew, and return it.

    commands: what made a prior, by name; the others keep the commands that the manifest has.
    """
    path = shipped_folder(root) / "manifest.json"
    known = json.loads(path.read_text(encoding="utf-8"))["priors"] if path.exists() else {}
    priors = {}
    for file in sorted(shipped_folder(root).glob("*.safetensors")):
        name = file.stem
        results = root / "results" / "priors" / f"{name}.json"
        about = Prior.load(file).about
        priors[name] = {
            "sha256": _digest(file),
            "commands": [*commands.get(name, known.get(name, {}).get("commands", []))],
            "recipe": about,
            "speech": _speech(about),
            "results": f"results/priors/{name}.json",
            "results_sha256": _digest(results),
        }
    manifest: dict[str, Any] = {"about": ABOUT, "priors": priors}
    if (file := any_file(root)).exists():
        results = root / "results" / "priors" / "any.json"
        about = SharedWeights.load(file).about
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        kept = stored.get("every_array", {}).get("commands", [])
        manifest["every_array"] = {
            "sha256": _digest(file),
            "commands": [*commands.get(ANY, kept)],
            "recipe": about,
            "speech": _speech(about),
            "results": "results/priors/any.json",
            "results_sha256": _digest(results),
        }
    write_json(manifest, path)
    return manifest


def ship_any(
    settings: AnySettings, folder: Path, command: str, root: Path | None = None, **how: Any
) -> tuple[SharedWeights, list[Row]]:
    """Make the network for every array, put it and its judgement into the source and renew the manifest.

    folder: for simulated frames. command: what brings it again. how: for `make_any`.
    """
    root = root or checkout()
    results = root / "results" / "priors" / "any.json"
    made = make_any(settings, folder, any_file(root), results=results, **how)
    write_manifest(root, {ANY: [command]})
    return made


def any_file(root: Path) -> Path:
    """Where the network for every array lies in a source."""
    return shipped_folder(root) / "any" / "any.safetensors"


def _speech(about: Mapping[str, Any]) -> list[Any]:
    return ["synthetic", *([AUDIO_MNIST] if "real" in about.get("speech", "") else [])]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
