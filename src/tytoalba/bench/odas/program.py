"""`odaslive` run on sound of ours: in a folder of its own, for a limited time, with limited output."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.odas.configuration import HOP, RATE, configuration
from tytoalba.bench.odas.settings import OdasSettings
from tytoalba.bench.odas.tracks import LONGEST, Heard, Report, parse_potential, parse_tracks
from tytoalba.bench.programs import find_program, run_program
from tytoalba.errors import TytoError
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import resample

PATIENCE, PER_SECOND = 30.0, 5.0
"""Seconds that it may take, and more for each second of sound, of which it usually needs a hundredth."""
SHORTEST = 2 * HOP
TRACKS, POTENTIAL = "tracks.json", "potential.json"
HINT = "; is it odaslive of introlab/odas?"
AnyReport = TypeVar("AnyReport", Report, Heard)


def find_odas(binary: str | Path) -> Path:
    """The program `odaslive`, by its path or its name; TytoError where there is none that can be run."""
    return find_program(binary, "build it from introlab/odas, and give the path of odaslive")


def run_odas(
    program: Path, array: MicArray, samples: NDArray[np.float32], settings: OdasSettings
) -> list[Report]:
    """Tracks that ODAS reports of some sound, hop by hop.

    samples: (n_mics, n_samples) at the array's rate, in [-1, 1]; ODAS gets them as 16-bit integers at 16 kHz.
    Every report that it wrote is taken, and the sound has to be through.
    """
    return _reports(program, array, samples, settings, TRACKS, parse_tracks)


def run_odas_localizer(
    program: Path, array: MicArray, samples: NDArray[np.float32], settings: OdasSettings
) -> list[Heard]:
    """Potential sources that ODAS finds before it tracks them, hop by hop; as `run_odas`."""
    return _reports(program, array, samples, settings, POTENTIAL, parse_potential)


def _reports(
    program: Path,
    array: MicArray,
    samples: NDArray[np.float32],
    settings: OdasSettings,
    file: str,
    parse: Callable[[str], list[AnyReport]],
) -> list[AnyReport]:
    sound = resample(samples, array.sample_rate, RATE)
    if sound.shape[0] != array.n_mics or sound.shape[1] < SHORTEST or not np.isfinite(sound).all():
        raise TytoError(f"ODAS needs {array.n_mics} channels and {SHORTEST} samples, got {sound.shape}")
    n_hops = sound.shape[1] // HOP
    integers = np.clip(np.round(sound.T * 32768.0), -32768, 32767).astype("<i2")
    with tempfile.TemporaryDirectory(prefix="tyto-odas-") as name:
        folder = Path(name)
        (folder / "sound.raw").write_bytes(integers.tobytes())
        text = configuration(
            array, settings, "sound.raw", TRACKS, potential=POTENTIAL if file == POTENTIAL else None
        )
        (folder / "odas.cfg").write_text(text, "utf-8")
        allowed = PATIENCE + PER_SECOND * sound.shape[1] / RATE
        most = dict.fromkeys((TRACKS, POTENTIAL), LONGEST * (n_hops + 2))
        run_program([program, "-s", "-c", "odas.cfg"], folder, allowed, most_written=most, hint=HINT)
        try:
            written = (folder / file).read_bytes().decode("ascii")
        except FileNotFoundError as why:
            raise TytoError(f"{program.name} wrote no {Path(file).stem}{HINT}") from why
        except UnicodeDecodeError as why:
            raise TytoError(f"what {program.name} wrote to {file} is not text") from why
    reports = parse(written)
    if not reports or reports[-1].hop < n_hops:
        last = reports[-1].hop if reports else 0
        raise TytoError(f"{program.name} reported {last} of {n_hops} hops; did it stop early?")
    return reports
