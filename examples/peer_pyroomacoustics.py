"""A peer for `tyto bench peers`: MUSIC of pyroomacoustics on every frame of a recording.

    tyto bench peers --data home --peer 'theirs=python peer_pyroomacoustics.py {wav} {array} {sources}'

Copy it, and put another localizer between reading and printing. For each frame it prints the time of its
middle in seconds, and azimuths in degrees: 0 is the front of the array, 90 its left.
"""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pyroomacoustics as pra
import soundfile

FFT, HOP = 512, 256  # samples, of pyroomacoustics


def main(wav: str, array: str, sources: int) -> None:
    """Locate, and print."""
    positions = np.array(tomllib.loads(Path(array).read_text("utf-8"))["positions"], float)  # metres
    sound, rate = soundfile.read(wav, dtype="float32", always_2d=True)
    frame = round(0.17 * rate)
    doa = pra.doa.MUSIC(positions[:, :2].T, rate, FFT, num_src=sources, azimuth=np.radians(np.arange(360)))
    for start in range(0, len(sound) - frame + 1, frame // 2):
        spectra = pra.transform.stft.analysis(sound[start : start + frame], FFT, HOP)
        doa.locate_sources(spectra.transpose(2, 1, 0), num_src=sources, freq_range=[300.0, 4000.0])
        found = np.degrees(doa.azimuth_recon) % 360
        strongest = np.argsort(-doa.grid.values[np.round(found).astype(int) % 360])
        print(f"{(start + frame / 2) / rate:.4f}", *(f"{azimuth:.1f}" for azimuth in found[strongest]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
