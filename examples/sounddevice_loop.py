"""Who speaks where, from a microphone array: `python examples/sounddevice_loop.py --device ReSpeaker`.

The callback of the sound card only puts blocks into a queue; the loop below does the work. All channels of
the device are opened: sound servers mix channels when only some of them are.
"""

from __future__ import annotations

import argparse
import queue
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sounddevice
from numpy.typing import NDArray

from tytoalba import Following, Track, load_array

LONGEST_QUEUE = 50
"""Blocks of a tenth of a second that wait at most. Who falls behind loses sound, and not all memory."""
PATIENCE = 5.0
"""Seconds without a block after which it gives up."""
MOVED = 5
"""Degrees: who moves by less is not told again."""


def blocks(device: int | str | None, sample_rate: int, seconds: float) -> Iterator[NDArray[np.float32]]:
    """Blocks (n_channels, n_samples) of all channels of a device. seconds: when to stop; 0: never."""
    waiting: queue.Queue[NDArray[np.float32]] = queue.Queue(LONGEST_QUEUE)
    n_lost = n_said = 0

    def enqueue(samples: NDArray[np.float32], _n_samples: int, _time: Any, _status: Any) -> None:
        nonlocal n_lost
        try:
            waiting.put_nowait(samples.T.copy())  # a copy: the memory belongs to the sound card
        except queue.Full:
            n_lost += 1

    n_channels = int(sounddevice.query_devices(device, "input")["max_input_channels"])
    with sounddevice.InputStream(
        device=device,
        channels=n_channels,
        samplerate=sample_rate,
        blocksize=sample_rate // 10,
        dtype="float32",
        callback=enqueue,
    ):
        n_samples = 0
        while not seconds or n_samples < seconds * sample_rate:
            try:
                block = waiting.get(timeout=PATIENCE)
            except queue.Empty:
                raise SystemExit("the sound card gives no sound any more: was it unplugged?") from None
            n_samples += block.shape[1]
            yield block
            if n_lost > n_said:
                n_said = n_lost
                print(f"{n_lost} blocks were lost so far: this machine is too slow")


def has_changed(speaking: Sequence[Track], told: Sequence[Track]) -> bool:
    """Whether somebody else speaks, or from somewhere else."""
    if [one.id for one in speaking] != [one.id for one in told]:
        return True
    moves = [(now.azimuth - then.azimuth + 180) % 360 - 180 for now, then in zip(speaking, told, strict=True)]
    return any(abs(move) >= MOVED for move in moves)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print who speaks where, whenever it changes."""
    parser = argparse.ArgumentParser(description="Who speaks where.")
    parser.add_argument(
        "--array", default="respeaker-usb-4", help="a name that `tyto array list` shows, or a file"
    )
    parser.add_argument("--device", help="name or number of a sound card; the default one if not given")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this much sound")
    options = parser.parse_args(arguments)
    device = int(options.device) if options.device and options.device.isdigit() else options.device

    array = load_array(options.array)
    following = Following(array)
    microphones = list(array.channels)  # of the ReSpeaker's six channels, the microphones are 1 to 4
    told: list[Track] = []
    for block in blocks(device, array.sample_rate, options.seconds):
        for moment in following.feed(block[microphones]):
            speaking = [one for one in moment.tracks if one.speaking]
            if has_changed(speaking, told):
                told = speaking
                who = ", ".join(f"talker {one.id} at {one.azimuth:.0f} degrees" for one in speaking)
                print(f"{moment.time:6.1f} s: {who or 'nobody speaks'}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
