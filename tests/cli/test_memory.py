"""An hour of sound is taught, learned and forgotten in the memory that a minute takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.helpers.commands import Tyto
from tests.helpers.states import ARRAY, settle
from tytoalba.data.folder import write_array
from tytoalba.signal.array import load_array

PEAK = """
import json, resource, subprocess, sys
subprocess.run([sys.executable, "-m", "tytoalba", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
print(json.dumps(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""


def peak(*arguments: str) -> float:
    """Megabytes that a command took at most."""
    ran = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return float(json.loads(ran.stdout)) / unit


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no getrusage")
def test_an_hour_of_sound_takes_less_than_500_megabytes(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    rng = np.random.default_rng(0)
    with soundfile.SoundFile("hour.wav", "w", 16000, 4, "PCM_16") as file:
        for _ in range(360):
            file.write((3000 * rng.standard_normal((160000, 4))).astype(np.int16))
    assert not tyto("new", "k.tyto", "--array", ARRAY, "--seed", "1").code
    empty = Path("k.tyto").read_bytes()
    assert peak("teach", "k.tyto", "hour.wav", "--at", "40") < 500
    assert peak("forget", "k.tyto", "hour.wav", "--at", "40") < 500
    assert Path("k.tyto").read_bytes() == empty
    part = Path("labelled/all")
    part.mkdir(parents=True)
    write_array("labelled", load_array(ARRAY))
    Path("hour.wav").rename(part / "hour.wav")
    (part / "hour.csv").write_text("frame,azimuth\n" + "".join(f"{frame},40\n" for frame in range(42000)))
    assert peak("learn", "k.tyto", "labelled") < 500
    assert peak("forget", "k.tyto", "--data", "labelled") < 500
    assert Path("k.tyto").read_bytes() == empty
    (part / "hour.wav").unlink()
