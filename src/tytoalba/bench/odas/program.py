"""`odaslive` run on sound of ours: in a folder of its own, for a limited time, with limited output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.odas.configuration import HOP, RATE, configuration
from tytoalba.bench.odas.settings import OdasSettings
from tytoalba.bench.odas.tracks import LONGEST, Report, parse_tracks
from tytoalba.errors import TytoError
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import resample

PATIENCE, PER_SECOND = 30.0, 5.0
"""Seconds that it may take, and more for each second of sound, of which it usually needs a hundredth."""
MOST_SAID = 2**20
"""Bytes that it may print."""
SHORTEST = 2 * HOP
LOOK = 0.02
"""Seconds between two looks at whether it is still running."""


def find_program(binary: str | Path) -> Path:
    """The program `odaslive`, by its path or its name; TytoError where there is none that can be run."""
    found = shutil.which(str(binary))
    if found is None:
        hint = "it is not executable: chmod +x" if Path(binary).is_file() else "build it from introlab/odas"
        raise TytoError(f"no program {binary} to run ODAS with: {hint}, and give the path of odaslive")
    return Path(found).resolve()


def run_odas(
    program: Path,
    array: MicArray,
    samples: NDArray[np.float32],
    settings: OdasSettings,
) -> list[Report]:
    """Tracks that ODAS reports of some sound, hop by hop.

    samples: (n_mics, n_samples) at the array's rate, in [-1, 1]; ODAS gets them as 16-bit integers at 16 kHz.
    Every report that it wrote is taken, and the sound has to be through.
    """
    sound = resample(samples, array.sample_rate, RATE)
    if sound.shape[0] != array.n_mics or sound.shape[1] < SHORTEST or not np.isfinite(sound).all():
        raise TytoError(f"ODAS needs {array.n_mics} channels and {SHORTEST} samples, got {sound.shape}")
    n_hops = sound.shape[1] // HOP
    integers = np.clip(np.round(sound.T * 32768.0), -32768, 32767).astype("<i2")
    with tempfile.TemporaryDirectory(prefix="tyto-odas-") as name:
        folder = Path(name)
        (folder / "sound.raw").write_bytes(integers.tobytes())
        text = configuration(array, settings, "sound.raw", "tracks.json")
        (folder / "odas.cfg").write_text(text, "utf-8")
        allowed = PATIENCE + PER_SECOND * sound.shape[1] / RATE
        written = _run(program, folder, allowed, LONGEST * (n_hops + 2))
    reports = parse_tracks(written)
    if not reports or reports[-1].hop < n_hops:
        last = reports[-1].hop if reports else 0
        raise TytoError(f"{program.name} reported {last} of {n_hops} hops; did it stop early?")
    return reports


def _run(program: Path, folder: Path, allowed: float, most_written: int) -> str:
    tracks, said = folder / "tracks.json", folder / "said.txt"
    with said.open("wb") as out:
        try:
            process = subprocess.Popen(
                [program, "-s", "-c", "odas.cfg"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as why:
            raise TytoError(f"cannot run {program}: {why.strerror}; is it made for this machine?") from why
    try:
        code = _wait(process, allowed, lambda: _size(tracks) > most_written or _size(said) > MOST_SAID)
    except TytoError as why:
        raise TytoError(f"{program.name} {why}{_last_words(said)}") from why
    finally:
        _end(process)
    if code:
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        raise TytoError(
            f"{program.name} failed with {how}{_last_words(said)}; is it odaslive of introlab/odas?"
        )
    if not tracks.is_file():
        raise TytoError(
            f"{program.name} wrote no tracks{_last_words(said)}; is it odaslive of introlab/odas?"
        )
    if _size(tracks) > most_written:
        raise TytoError(f"{program.name} wrote more than {most_written} bytes of tracks")
    try:
        return tracks.read_bytes().decode("ascii")
    except UnicodeDecodeError as why:
        raise TytoError(f"what {program.name} wrote of its tracks is not text") from why


def _wait(process: subprocess.Popen[bytes], allowed: float, too_much: Callable[[], bool]) -> int:
    end = time.monotonic() + allowed
    while True:
        try:
            return process.wait(LOOK)
        except subprocess.TimeoutExpired:
            pass
        if too_much():
            raise TytoError("writes without end, and was stopped")
        if time.monotonic() > end:
            raise TytoError(f"was not done after {allowed:.0f} s, and was stopped")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Whatever it has started ends with it."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _last_words(said: Path) -> str:
    words = said.read_bytes()[-300:].decode("utf-8", "replace").strip()
    return f": it said {' '.join(words.split())!r}" if words else ""
