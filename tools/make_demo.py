"""Make the recording that ships with tytoalba: `python tools/make_demo.py`.

A ReSpeaker USB 4 in a small, quiet room. One synthetic voice talks, then another at another direction, then
both. Nobody's speech is in it. The seed is fixed, so the recording can be made again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from tytoalba.data.demo import DEMO_ARRAY, RESOURCES, Segment
from tytoalba.data.simulation.home import Home
from tytoalba.data.simulation.microphones import CALM
from tytoalba.data.simulation.room import Sound, convolved
from tytoalba.data.simulation.voice import SyntheticVoices, say
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import write_audio

SEED = 18
SECONDS = 7.0
SNR = (38.0, 38.0)
PEAK, BITS = 0.2, 12
"""Largest sample, and bits of each: FLAC leaves out low bits that are never set, so the file is small."""
SPEAKERS = (5, 20)
SEGMENTS = (
    Segment(0.3, 2.5, 40.0),
    Segment(3.3, 5.0, 250.0),
    Segment(5.0, 6.7, 40.0),
    Segment(5.0, 6.7, 250.0),
)


def make() -> Sound:
    """The recording, (n_mics, n_samples)."""
    rng = np.random.default_rng(SEED)
    array = load_array(DEMO_ARRAY)
    home = Home.draw(array, 1, rng, smallest=(4.0, 3.5), rt60=lambda _: 0.25, conditions=CALM)
    total = np.zeros((array.n_mics, int(SECONDS * array.sample_rate)), np.float32)
    for azimuth, speaker in zip(dict.fromkeys(s.azimuth for s in SEGMENTS), SPEAKERS, strict=True):
        response = home.response(home.talker(azimuth, rng, nearest=0.8, heights=(0.1, 0.3)), rng)
        dry = say(SyntheticVoices(), speaker, SECONDS, array.sample_rate, rng)
        talks = np.zeros(dry.shape, np.float32)
        for segment in SEGMENTS:
            if segment.azimuth == azimuth:
                talks[int(segment.start * array.sample_rate) : int(segment.end * array.sample_rate)] = 1.0
        total += convolved(dry * talks, response)
    sound = home.recording(total, SNR, rng)
    steps = 2 ** (BITS - 1)
    return np.round(sound * np.float32(PEAK / np.abs(sound).max() * steps)) / np.float32(steps)


def main() -> None:
    """Write the recording and its truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RESOURCES)
    folder = parser.parse_args().folder
    write_audio(folder / "demo.flac", make(), load_array(DEMO_ARRAY).sample_rate)
    about = {
        "array": DEMO_ARRAY,
        "licence": "MIT, as tytoalba; simulated by tools/make_demo.py, nobody's speech",
        "segments": [segment._asdict() for segment in SEGMENTS],
    }
    (folder / "demo.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
