"""A real PulseAudio in user space, with sinks that stand for sound cards; no hardware is needed.

What is played into a sink comes out of its monitor, which ALSA, and so PortAudio, has as a device of that
name. Programs find it by the variables in `environment` only, so tests beside each other do not meet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.updates import wait_until

NEEDED = ("pulseaudio", "pacat", "pactl")
ALSA_PLUGIN = "libasound_module_pcm_pulse.so"


def _missing() -> str:
    """What is not installed, in words; empty where nothing is missing."""
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}: apt install pulseaudio pulseaudio-utils"
    if find_library("portaudio") is None:
        return "needs PortAudio: apt install libportaudio2"
    if not any(Path("/usr").glob(f"lib*/**/alsa-lib/{ALSA_PLUGIN}")):
        return "needs ALSA's plugin for PulseAudio: apt install libasound2-plugins"
    return ""


needs_pulse = pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")

SURROUND = "front-left,front-right,rear-left,rear-right,front-center,lfe"
"""The order in which ALSA's plugin asks for channels: with it, what is captured is what was played."""


class Pulse:
    """A server with sinks; `environment` is what programs need to find it."""

    def __init__(self, folder: Path, devices: Sequence[str]) -> None:
        self.folder = folder
        for name in ("run", "home"):
            (folder / name).mkdir(mode=0o700)
        entries = (f"pcm.{name} {{ type pulse device {name}.monitor }}\n" for name in devices)
        (folder / "home" / ".asoundrc").write_text("".join(entries))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PULSE_", "ALSA_"))}
        self.environment = kept | {
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "home" / ".config"),
            "HOME": str(folder / "home"),
        }
        self._server: subprocess.Popen[bytes] | None = None
        self._modules: dict[str, str] = {}
        self._players: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the server, without a sink."""
        command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes"]
        with (self.folder / "pulse.log").open("ab") as log:
            self._server = subprocess.Popen(
                [*command, "-L", "module-native-protocol-unix"], env=self.environment, stdout=log, stderr=log
            )
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, (self.folder / "pulse.log").read_text()
        return self._control("info", check=False).returncode == 0

    def stop(self) -> None:
        """End players and server, however they are."""
        for one in (*self._players, self._server):
            if one is not None:
                one.kill()
                one.wait(10)
        self._players, self._server = [], None
        self._modules.clear()

    def signal(self, number: int) -> None:
        """Send a signal to the server, such as SIGSTOP."""
        assert self._server is not None
        self._server.send_signal(number)

    def plug_in(self, name: str, channels: int, sample_rate: int, channel_map: str = SURROUND) -> None:
        """Add a sink. channel_map: PulseAudio's names; empty for its own default."""
        how = [f"sink_name={name}", f"rate={sample_rate}", f"channels={channels}"]
        if channel_map:
            names = channel_map.split(",")[:channels]
            how.append(f"channel_map={','.join(names)}")
        self._modules[name] = self._control("load-module", "module-null-sink", *how).stdout.strip()

    def plug_out(self, name: str) -> None:
        """Take a sink away."""
        self._control("unload-module", self._modules.pop(name))

    def _control(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pactl", *arguments],
            env=self.environment,
            check=check,
            capture_output=True,
            text=True,
            timeout=20,
        )

    def play(
        self, name: str, samples: NDArray[Any], sample_rate: int, channel_map: str = SURROUND
    ) -> subprocess.Popen[bytes]:
        """Begin to play samples (n_channels, any length) into a sink, channel by channel if the maps agree.

        channel_map: of the samples; empty for PulseAudio's default.
        """
        n_channels = len(samples)
        what = self.folder / f"played-{len(self._players)}.raw"
        what.write_bytes(np.ascontiguousarray(samples.T, dtype="<f4").tobytes())
        named = [f"--channel-map={','.join(channel_map.split(',')[:n_channels])}"] if channel_map else []
        player = subprocess.Popen(
            [
                "pacat",
                "--playback",
                "--raw",
                "--format=float32le",
                f"--rate={sample_rate}",
                f"--channels={n_channels}",
                *named,
                f"--device={name}",
                str(what),
            ],
            env=self.environment,
            stderr=subprocess.DEVNULL,
        )
        self._players.append(player)
        return player


@contextmanager
def pulse(*devices: str) -> Iterator[Pulse]:
    """A server that runs. devices: names of sinks that will be plugged in at times.

    Its folder has a short name: sockets have no long ones.
    """
    with tempfile.TemporaryDirectory(prefix="pulse-") as folder:
        server = Pulse(Path(folder), devices)
        try:
            server.start()
            yield server
        finally:
            server.stop()
