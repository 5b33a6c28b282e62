"""What commands that listen have in common: where the sound comes from, and who tells where it is from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tytoalba.cli.console import chosen_array
from tytoalba.cli.tracks import background_of
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.live.inputs.input import Input
    from tytoalba.live.tracking import Following
    from tytoalba.signal.array import MicArray
    from tytoalba.storage.age import Keys

StandardInput = Annotated[
    str | None,
    typer.Argument(metavar="[-]", help="Sound without a header on standard input; needs the next three."),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device", "-d", help="Sound card: name or number (`tyto devices`); default: the one that fits."
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option("--from", help="Play a recording, sealed or plain, as if it were heard now."),
]
Demo = Annotated[
    bool, typer.Option("--demo", help="Play the recording that comes with tyto: two talkers, 7 s.")
]
Loop = Annotated[bool, typer.Option("--loop", help="With --from: again and again.")]
RawEncoding = Annotated[
    str | None, typer.Option("--raw", help="With -: s16le, s24le, s32le or f32le, channels interleaved.")
]
RawChannels = Annotated[int | None, typer.Option("--channels", help="With -: channels of the sound.")]
RawRate = Annotated[int | None, typer.Option("--rate", help="With -: its sample rate in Hz.")]
ModelFile = Annotated[
    Path | None, typer.Option("--model", "-M", help="A localizer of your own (`tyto new`), or a model.")
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", "-m", help="prior (default where the array has one), srp or music."),
]
BackgroundSound = Annotated[
    str | None,
    typer.Option(
        "--background",
        help="Leave out what sounds all the time (a fan, a TV): seconds at the start in which nobody talks, "
        "a recording of it, or auto.",
    ),
]
Silence = Annotated[
    float, typer.Option("--silence", help="Frames below this level (dB of full scale) are silent.")
]


class Source(NamedTuple):
    """Where the sound comes from, as it was asked for.

    A file, or raw sound on standard input, or else a sound card: its name or number, None for the one that
    fits the array.
    """

    device: str | None = None
    file: Path | None = None
    loop: bool = False
    raw: tuple[str, int, int] | None = None


def chosen_source(
    standard_input: str | None,
    device: str | None,
    file: Path | None,
    loop: bool,
    encoding: str | None,
    channels: int | None,
    rate: int | None,
) -> Source:
    """One source, or a refusal that says how to name one; nothing is opened yet."""
    if standard_input not in (None, "-"):
        raise TytoError(
            f"{standard_input} is not a source: --from FILE plays a recording, --device NAME is a sound card "
            "and - is standard input"
        )
    raw = (encoding, channels, rate)
    given = [standard_input is not None, device is not None, file is not None]
    if sum(given) > 1:
        raise TytoError("one sound at a time: give --device NAME, or --from FILE, or - for standard input")
    if standard_input is None and any(value is not None for value in raw):
        raise TytoError("--raw, --channels and --rate are for standard input: say - as well")
    if loop and file is None:
        raise TytoError("--loop is for a recording: say --from FILE as well")
    if standard_input is None:
        return Source(device, file, loop)
    if encoding is None or channels is None or rate is None:
        raise TytoError(
            "standard input has no header: say how it sounds, all three: - --raw s16le --channels 6 "
            "--rate 16000"
        )
    from tytoalba.storage.soundfiles import check_raw

    check_raw(encoding, channels, rate, "standard input")
    return Source(raw=(encoding, channels, rate))


def with_demo(
    demo: bool, file: Path | None, array: str | None, model: Path | None
) -> tuple[Path | None, str | None]:
    """The recording to play and the array, those of the demo if that is asked for; a model has an array."""
    if not demo:
        return file, array
    if file is not None or array is not None:
        raise TytoError("--demo has its own recording and array: leave out --from and --array")
    from tytoalba.data.demo import DEMO_ARRAY, demo_recording

    return demo_recording()[0], None if model else DEMO_ARRAY


def open_following(
    source: Source,
    *,
    model: Path | None,
    array: str | None,
    method: str | None,
    background: str | None,
    silence: float,
    ignore_steady: bool,
    keys: Keys,
    unsigned: bool,
) -> Following:
    """What follows people: with a model, or an array that is named and never guessed."""
    from tytoalba.live.tracking import Following

    by: Any
    if model is not None:
        if method or array:
            raise TytoError("a model has its own array and method: leave out --array and --method")
        from tytoalba.localizer.store import read

        left_out = background_of(background)
        by = read(model, keys, unsigned)
    else:
        name = "standard input" if source.raw else str(source.file) if source.file else None
        by = chosen_array(array, name, source.raw and source.raw[1:])
        left_out = background_of(background)
    return Following(
        by, method, background=left_out, silence_db=silence, ignore_steady=ignore_steady, keys=keys
    )


def open_input(source: Source, array: MicArray, keys: Keys, *, fast: bool = False) -> Input:
    """The sound itself. array: what it is for. fast: a file as fast as it is taken."""
    if source.file is not None:
        from tytoalba.live.inputs.files import PlayedFile

        return PlayedFile(source.file, keys, loop=source.loop, fast=fast)
    if source.raw is not None:
        from tytoalba.live.inputs.pcm import PcmInput

        if sys.stdin is None or sys.stdin.isatty():
            raise TytoError("standard input is a terminal, no sound: pipe it in, as from arecord -t raw")
        encoding, channels, rate = source.raw
        return PcmInput(sys.stdin.buffer, encoding, n_channels=channels, sample_rate=rate)
    from tytoalba.live.inputs.devices import choose_device
    from tytoalba.live.inputs.soundcard import SoundCard

    return SoundCard(choose_device(source.device, array), array)
