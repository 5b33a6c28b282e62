"""PortAudio, by way of the package sounddevice: loaded when it is needed, quiet, and read anew.

PortAudio lists the sound cards once, when it is initialised, and writes what it thinks to standard error.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tytoalba.errors import MissingExtraError, TytoError

REMEDIES = {
    "linux": "apt install libportaudio2 (Debian, Ubuntu, Raspberry Pi OS), dnf install portaudio (Fedora) or "
    "pacman -S portaudio (Arch)",
    "darwin": "brew install portaudio, or pip install --force-reinstall sounddevice",
    "win32": "pip install --force-reinstall sounddevice",
}
"""How the library PortAudio is installed, by `sys.platform`."""

_USE = threading.RLock()
"""PortAudio must not be initialised by two threads at once."""


def load_sounddevice() -> Any:
    """The package sounddevice, with the library PortAudio; or how to install what is missing."""
    try:
        with _USE, quiet():
            return importlib.import_module("sounddevice")
    except ImportError as error:
        raise MissingExtraError("sound cards", "live") from error
    except OSError as error:  # the package is there, and the library is not
        remedy = REMEDIES.get(sys.platform, "install it with the packages of your system")
        raise TytoError(f"sound cards need the library PortAudio, which was not found: {remedy}") from error


def rescan() -> None:
    """Let PortAudio look for sound cards again; only while no stream is open."""
    sounddevice = load_sounddevice()
    with _USE:
        sounddevice._terminate()
        sounddevice._initialize()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what C libraries write to standard error, such as "ALSA lib ...", off it meanwhile."""
    with _USE:
        try:
            kept = os.dup(2)
        except OSError:  # no standard error
            yield
            return
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            with suppress(Exception):
                sys.stderr.flush()
            os.dup2(nothing, 2)
            os.close(nothing)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def close_stream(stream: Any, patience: float) -> bool:
    """Close a stream of sounddevice; False if it does not within so many seconds.

    Closing waits for ever where a sound server is frozen. Then the stream is left to a thread of its own.
    """

    def close() -> None:
        with suppress(Exception):  # what is gone cannot be closed in order; `close` alone waits for its end
            stream.abort()
        with suppress(Exception):
            stream.close()

    thread = threading.Thread(target=close, name="closing a sound card", daemon=True)
    thread.start()
    thread.join(patience)
    return not thread.is_alive()


def abandon() -> None:
    """Leave PortAudio as it is when Python ends: a stream that does not close would keep it for ever."""
    atexit.unregister(load_sounddevice()._exit_handler)
