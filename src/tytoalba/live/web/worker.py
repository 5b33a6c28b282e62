"""What is done with an uploaded recording, in a process of its own: `python -m tytoalba.live.web.worker`.

A damaged or hostile file may end this process, and nothing else. It gets a line of JSON, then the localizer,
then the recording on standard input, and gives a line of JSON, then what was asked for, on standard output.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from tytoalba.errors import AudioError, TytoError
from tytoalba.live.segments import Moment, in_words, segments
from tytoalba.live.tracking import follow
from tytoalba.live.web.messages import Map
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import Samples
from tytoalba.storage.soundfiles import HOP, stream_audio

_LIBSNDFILE = re.compile(r" \((?:Error opening )?<[^>]*>[^)]*\)")
"""What libsndfile says of a file without a name."""
NICE = 5
"""How much the live sound goes before uploads."""
MOST_MEMORY = 4 * 2**30
"""Bytes of address space."""


class TooLongError(AudioError):
    """A recording that is longer than what is taken."""


def limited(sound: BinaryIO, array: MicArray, seconds: float) -> Iterator[Samples]:
    """A recording in blocks at the array's rate; TooLongError where it goes on."""
    left = round(seconds * array.sample_rate)
    for block in stream_audio(sound, array, block=array.sample_rate):
        left -= block.shape[1]
        if left < 0:
            raise TooLongError(f"the recording is longer than {seconds:g} seconds: cut it")
        yield block


def located(
    sound: BinaryIO, by: MicArray | Localizer, seconds: float, method: str | None = None
) -> dict[str, Any]:
    """Who is where in a recording: summary, segments, frames and a map of scores over time."""
    array = by if isinstance(by, MicArray) else by.array
    n_samples = 0

    def counted() -> Iterator[Samples]:
        nonlocal n_samples
        for block in limited(sound, array, seconds):
            n_samples += block.shape[1]
            yield block

    frames, moments, columns = list[dict[str, Any]](), list[Moment](), Map()
    for moment in follow(counted(), by, method):
        columns.add(moment.scores)
        frames.append(
            {"time": moment.time, "level": moment.level, "tracks": [asdict(one) for one in moment.tracks]}
        )
        moments.append(moment)
    kept = sorted(segments(moments), key=lambda one: (one.start, one.id))
    length = n_samples / array.sample_rate
    return {
        "array": array.name,
        "n_frames": len(frames),
        "seconds": round(length, 3),
        "hop": HOP,
        "summary": in_words(kept, length),
        "segments": [asdict(one) for one in kept],
        "frames": frames,
        "map": columns.told,
    }


def decoded(sound: BinaryIO, array: MicArray, seconds: float) -> Samples:
    """A recording as (n_mics, n_samples) at the array's rate."""
    return np.concatenate(list(limited(sound, array, seconds)), axis=1)


def answered(request: dict[str, Any], localizer: bytes, sound: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """A status, with a reason where it is a refusal, and what was asked for.

    That is JSON, or samples (n_mics times n_samples of four bytes).
    """
    array = MicArray.from_toml(request["array"], "the array")
    try:
        if request["what"] == "decode":
            samples = decoded(sound, array, request["seconds"])
            return {"status": 200}, np.ascontiguousarray(samples, "<f4").tobytes()
        by = Localizer.from_bytes(localizer) if localizer else array
        found = located(sound, by, request["seconds"], request["method"])
        return {"status": 200}, json.dumps(found, allow_nan=False).encode()
    except TooLongError as error:
        return {"status": 413, "error": str(error)}, b""
    except TytoError as error:
        return {"status": 400, "error": _LIBSNDFILE.sub("", str(error))}, b""
    except MemoryError:
        return {"status": 413, "error": "the recording does not fit into memory: cut it"}, b""


def _confine() -> None:
    """Go behind the live sound, and take no more memory than a recording needs."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        os.nice(NICE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def main() -> None:
    """Answer one request."""
    _confine()
    warnings.simplefilter("ignore")
    given, out = sys.stdin.buffer, sys.stdout.buffer
    request = json.loads(given.readline())
    localizer = given.read(request["localizer"])
    sound = io.BytesIO(given.read())
    sound.name = "the recording"
    head, body = answered(request, localizer, sound)
    out.write(json.dumps(head).encode() + b"\n" + body)
    out.flush()


if __name__ == "__main__":
    main()
