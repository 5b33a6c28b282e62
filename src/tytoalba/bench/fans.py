"""How well a talker is located beside a machine that runs at another place, and whether pauses stay silent.

Scenes are those of `data.simulation.beside_machines`: one talker with pauses, and a fan, pump, hum, ... Each
is heard beside its machine, beside noise from everywhere, both at several levels, and in quiet; with steady
noise located like the rest, and with it ignored (`SteadyNoise`). Settings are chosen on the part "valid";
machines of the part "test" are other kinds, in other rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.beside_machines import KINDS, MachineScene, machine_scene
from tytoalba.data.simulation.room import Sound
from tytoalba.data.simulation.voice import choose_voices
from tytoalba.errors import TytoError
from tytoalba.localizer.locate import METHODS, MapFinder
from tytoalba.localizer.stream import Stream
from tytoalba.signal.angles import Float, distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import Framer
from tytoalba.signal.metrics import bootstrap, within
from tytoalba.signal.neighbours import Neighbours
from tytoalba.storage.parallel import parallel_map

NOISES: tuple[tuple[str, float], ...] = (
    ("machine", 10.0),
    ("machine", 5.0),
    ("machine", 0.0),
    ("diffuse", 5.0),
    ("quiet", 0.0),
)
"""What a scene is heard beside, and the dB of speech over it."""
CONTEXTS = (0, 4)
AT_MACHINE = 10.0
"""Degrees from the machine within which a direction is taken for it."""
SETTLED = 2.0
"""Seconds after which the floor is known."""
COLUMNS = {
    "acc5": "frames with speech located within 5 degrees, %",
    "absent": "frames with speech in which nobody was reported, %",
    "machine": "pauses in which the machine was reported (within 10 degrees), %",
    "machine_later": "the same without the first two seconds of a scene, %",
    "anybody": "pauses in which anybody was reported, %",
}
Counts = dict[str, tuple[int, int]]
"""Of each column how many frames it is true of, and of how many."""


def measure_fans(
    array: MicArray | str | Path = "respeaker-usb-4",
    *,
    methods: Sequence[str] = tuple(METHODS),
    part: str = "valid",
    n_scenes: int = 24,
    seconds: float = 40.0,
    seed: int = 0,
    speech: str | Path | None = None,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Each method beside machines, with intervals over scenes; plain, for JSON. part: "valid" or "test"."""
    mics = array if isinstance(array, MicArray) else load_array(array)
    if part not in KINDS:
        raise TytoError(f"no part called {part!r}; known: {', '.join(KINDS)}")
    if not 2 <= n_scenes < 1000 or not 5 <= seconds <= 600 or seed < 0:
        raise TytoError(
            "scenes must be 2 to 999, of 5 to 600 seconds, the seed 0 or more; got "
            f"{n_scenes}, {seconds:g} and {seed}"
        )
    for method in methods:
        MapFinder(mics, method)  # says what is wrong before any work
    work = partial(_judged, mics, tuple(methods), speech, part, seed, seconds)
    scenes: list[dict[str, Counts]] = []
    for scene in parallel_map(work, list(range(n_scenes)), processes):
        scenes.append(scene)
        if on_progress:
            on_progress(len(scenes), n_scenes)
    return {
        "array": mics.name,
        "part": part,
        "kinds": list(KINDS[part]),
        "speech": "synthetic" if speech is None else Path(speech).name,
        "seed": seed,
        "scenes": n_scenes,
        "seconds": seconds,
        "columns": COLUMNS,
        "rows": [
            {
                **_named(key),
                **{column: _interval([scene[key][column] for scene in scenes]) for column in COLUMNS},
            }
            for key in scenes[0]
        ],
    }


def _judged(
    array: MicArray,
    methods: tuple[str, ...],
    speech: str | Path | None,
    part: str,
    seed: int,
    seconds: float,
    number: int,
) -> dict[str, Counts]:
    """Of one scene, by method, whether steady noise is ignored, context, noise and dB."""
    scene = machine_scene(array, choose_voices(speech), part, seed, number, seconds)
    found = {}
    for noise, snr in NOISES:
        sound = scene.heard(noise, snr)
        for method in methods:
            plain: dict[int, Float] = {}
            for ignore in (False, True):
                finder = MapFinder(array, method, ignore_steady=ignore)
                if not (ignore and _all_count(finder, sound)):  # or it is the same to the bit
                    plain = _azimuths(finder, sound)
                for context, azimuth in plain.items():
                    found[f"{method} {int(ignore)} {context} {noise} {snr:g}"] = _counted(scene, azimuth)
    return found


def _all_count(finder: MapFinder, sound: Sound) -> bool:
    """Whether no bin of a sound is taken for steady noise."""
    array, steady = finder.array, finder.steady_noise()
    assert steady
    weighed = steady.add(Framer(array.frame_length, array.frame_length // 2).add(sound))
    return finder.method == "prior" and bool(weighed.speech.all() and (weighed.weights == 1).all())


def _azimuths(finder: MapFinder, sound: Sound) -> dict[int, Float]:
    """What is found in each frame (n_frames,), NaN for nobody, with each context."""
    stream, found = Stream(finder), {}
    heard = list(stream.run_heard([sound]))
    for context in CONTEXTS:
        neighbours = Neighbours(context)
        maps = neighbours.add([frame.maps for frame in heard]) + neighbours.rest()
        means = zip(heard, maps, strict=True)
        located = stream.decide([frame._replace(maps=own.maps, n=own.n) for frame, own in means])
        found[context] = np.array([(*one.azimuth, np.nan)[0] for one in located])
    return found


def _counted(scene: MachineScene, azimuth: Float) -> Counts:
    azimuth = azimuth[: len(scene.talking)]
    talking, pausing = scene.talking, scene.pausing
    array = scene.array
    later = np.arange(len(talking)) * (array.frame_length // 2) >= SETTLED * array.sample_rate
    machine = within(distance(azimuth, scene.machine_azimuth), AT_MACHINE)

    def of(which: NDArray[np.bool_], true: NDArray[np.bool_]) -> tuple[int, int]:
        return int((which & true).sum()), int(which.sum())

    return {
        "acc5": of(talking, within(distance(azimuth, scene.azimuth))),
        "absent": of(talking, np.isnan(azimuth)),
        "machine": of(pausing, machine),
        "machine_later": of(pausing & later, machine),
        "anybody": of(pausing, np.isfinite(azimuth)),
    }


def _named(key: str) -> dict[str, Any]:
    method, ignore, context, noise, snr = key.split()
    return {
        "method": method,
        "ignore_steady": ignore == "1",
        "context": int(context),
        "noise": noise,
        "snr": None if noise == "quiet" else float(snr),
    }


def _interval(counts: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Per cent over scenes, with an interval of 95 %."""
    rows = np.array(counts)

    def per_cent(drawn: Float) -> float:
        return 100 * float(drawn[:, 0].sum()) / max(float(drawn[:, 1].sum()), 1.0)

    found = bootstrap(rows, np.arange(len(rows)), per_cent, rng=np.random.default_rng(0))
    return {name: round(value, 2) for name, value in asdict(found).items()}
