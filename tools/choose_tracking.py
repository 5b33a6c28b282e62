"""Choose `tytoalba.live.settings.Settings` on validation scenes: `python tools/choose_tracking.py`.

One setting at a time, from those that are in the code, each value of GRID, one round; the loss is
`tytoalba.bench.tracking.loss`. Validation scenes are of other rooms and other speakers than test scenes, at
which this never looks. Prints every step, and writes the choice to results/tracking/search.json.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tytoalba.bench.tracking import prepare_scenes, search
from tytoalba.live.settings import Settings
from tytoalba.signal.array import load_array
from tytoalba.storage.writing import write_json

GRID = {
    "most": (6.0, 8.0, 12.0, 16.0),
    "born": (0.05, 0.07, 0.1, 0.15),
    "shown": (0.5, 0.6, 0.7, 0.8),
    "drift": (3.0, 4.0, 5.0),
    "lead": (0.1, 0.15, 0.2),
    "sharpness": (1.0, 1.5),
    "even": (0.3, 0.4, 0.5),
    "place": (0.15, 0.25, 0.4),
    "trust": (0.8, 1.0),
    "missed": (0.4, 0.5, 0.6),
    "talk": (3.0, 5.0, 8.0),
}
"""Values to try. The others are not: `kept` and `memory` follow from how long somebody should be remembered,
which scenes of 12 seconds do not measure; `stride` and `pause` hardly matter, `near` and `merge` not at all
in these scenes."""
SEEDS = (10, 11, 12)


def main() -> None:
    """Search, print, write."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--array", default="respeaker-usb-4")
    options.add_argument("--method", default="prior")
    options.add_argument("--scenes", type=int, default=4, help="of each kind and seed")
    options.add_argument("--speech", default=None)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--output", type=Path, default=Path("results/tracking/search.json"))
    given = options.parse_args()
    scenes = prepare_scenes(
        load_array(given.array), given.method, given.scenes, SEEDS, given.speech, given.processes
    )
    steps: list[dict[str, float | str | bool]] = []

    def step(name: str, value: float, loss: float, kept: bool) -> None:
        steps.append({"setting": name, "value": value, "loss": round(loss, 4), "kept": kept})
        print(f"{name} {value:g}: {loss:.3f}{' kept' if kept else ''}", flush=True)

    best, least = search(scenes, GRID, 1, on_step=step)
    print(best, least)
    write_json(
        {
            "array": given.array,
            "method": given.method,
            "part": "valid",
            "seeds": list(SEEDS),
            "scenes": len(scenes),
            "start": asdict(Settings()),
            "best": asdict(best),
            "loss": round(least, 4),
            "steps": steps,
        },
        given.output,
    )


if __name__ == "__main__":
    main()
