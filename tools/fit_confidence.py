"""Fit how far priors can be trusted, on simulated scenes of validation speakers, and write that down.

    python tools/fit_confidence.py --speech SPEECH

For the arrays' own priors on some built-in arrays, into `resources/priors/confidence.json`; for the network
for every array on random arrays, into its file. `tyto bench confidence` measures both on other scenes. It
takes a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from tytoalba.bench.confidence import simulated_maps
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.learning.prior.confidence_fit import fitted_confidence
from tytoalba.learning.prior.manifest import any_file, checkout, shipped_folder, write_manifest
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import load_array
from tytoalba.storage.writing import write_json

BUILT_IN = ("respeaker-usb-4", "respeaker-6mic", "pepper", "matrix-voice")
RANDOM = [(1, number) for number in (0, 3, 6, 9, 12)]
"""Seed and number of random arrays: of those that the network for every array is calibrated on."""


def main() -> None:
    """Simulate, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--speech", required=True, help="folder of real speech, one file per speaker")
    parser.add_argument(
        "--scenes", type=int, default=40, help="calm scenes, and as many wild ones, per array"
    )
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--processes", type=int, default=0)
    given = parser.parse_args()
    arrays = [load_array(name) for name in BUILT_IN] + [random_array(*one) for one in RANDOM]
    maps = simulated_maps(
        arrays,
        part="valid",
        n_scenes=given.scenes,
        seed=given.seed,
        speech=given.speech,
        processes=given.processes,
        on_progress=lambda done, n: print(f"{done} of {n} scenes") if done % 100 == 0 else None,
    )
    root = checkout()
    chosen = {"own": BUILT_IN, "any": [random_array(*one).name for one in RANDOM]}
    found = {
        who: fitted_confidence(
            [scene for (name, _, w), scenes in maps.items() if w == who and name in names for scene in scenes]
        )
        for who, names in chosen.items()
    }
    write_json(found["own"].to_dict(), shipped_folder(root) / "confidence.json")
    weights = SharedWeights.load(any_file(root))
    constants = {name: value for name, value in weights.constants.items() if name != "blends"}
    replace(weights, constants=constants | {"confidence": found["any"].to_dict()}).save(any_file(root))
    write_manifest(root, {})
    for who, confidence in found.items():
        print(who, confidence.to_dict())


if __name__ == "__main__":
    main()
