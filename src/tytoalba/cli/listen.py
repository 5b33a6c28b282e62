"""`tyto listen`: live sound in, who is where now out; to a person, to files, to other programs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tytoalba.cli.console import note, say
from tytoalba.cli.live import (
    BackgroundSound,
    Demo,
    DeviceName,
    FromFile,
    Loop,
    MethodName,
    ModelFile,
    RawChannels,
    RawEncoding,
    RawRate,
    Silence,
    StandardInput,
    chosen_source,
    open_following,
    open_input,
    with_demo,
)
from tytoalba.cli.options import ArrayOption, IdentityFile, IgnoreSteady, Unsigned
from tytoalba.cli.outputs import (
    MqttAuthorities,
    MqttPassword,
    MqttUrl,
    OdasPotential,
    OdasTracks,
    OscAddress,
    TokenFile,
    WebSocketAddress,
    asked_outputs,
    opened_outputs,
)
from tytoalba.cli.stopping import stopped_by_signals
from tytoalba.cli.telling import ChangeLines, JsonLines, Summary, Telling
from tytoalba.errors import SealError, TytoError

if TYPE_CHECKING:
    from tytoalba.live.listening import Listener
    from tytoalba.live.segments import Moment
    from tytoalba.storage.sealed_sound import SealedSound


def listen(
    standard_input: StandardInput = None,
    device: DeviceName = None,
    file: FromFile = None,
    demo: Demo = False,
    loop: Loop = False,
    raw: RawEncoding = None,
    channels: RawChannels = None,
    rate: RawRate = None,
    array: ArrayOption = None,
    model: ModelFile = None,
    method: MethodName = None,
    background: BackgroundSound = None,
    silence: Silence = -60.0,
    ignore_steady: IgnoreSteady = False,
    record_sealed: Annotated[
        Path | None,
        typer.Option(
            "--record-sealed",
            help="Also record the microphones into NAME.wav.age, or NAME.w64.age for more than 4 GB, "
            "encrypted as it arrives.",
        ),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            "-t",
            help="With --record-sealed: public key (age1..., ssh-...) or a file of them; may be repeated.",
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds of sound; default: at Ctrl-C.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per frame.")] = False,
    screen: Annotated[
        bool | None,
        typer.Option(
            "--screen/--lines",
            help="Draw who is where (default on a terminal), or print a line per change.",
        ),
    ] = None,
    odas: OdasTracks = None,
    odas_potential: OdasPotential = None,
    mqtt: MqttUrl = None,
    mqtt_password_file: MqttPassword = None,
    mqtt_ca: MqttAuthorities = None,
    websocket: WebSocketAddress = None,
    token_file: TokenFile = None,
    osc: OscAddress = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    fast: Annotated[bool, typer.Option("--fast", hidden=True)] = False,
) -> None:
    """Follow people live: who is where now, on the terminal and for other programs.

    On a terminal it draws; elsewhere it prints a line when somebody starts or stops speaking. Ctrl-C ends it.
    Sound is never kept, unless you ask for a sealed recording.

    Examples:

      tyto listen --demo

      tyto listen --array respeaker-usb-4

      tyto listen --device hw:1 --model kitchen.tyto --background 3

      tyto listen --from talk.wav --array respeaker-usb-4 --json

      arecord -D hw:1 -t raw -f S16_LE -c 6 -r 16000 | tyto listen - --raw s16le --channels 6 --rate 16000

      tyto listen --array respeaker-usb-4 --record-sealed night.w64.age

      tyto listen --array respeaker-usb-4 --odas 127.0.0.1:9000 --mqtt mqtt://homeassistant.local
    """
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.live.listening import Listener

    file, array = with_demo(demo, file, array, model)
    source = chosen_source(standard_input, device, file, loop, raw, channels, rate)
    draws = _draws(screen, json)
    recipients = _recipients(record_sealed, to)
    if seconds is not None and not 0 < seconds < float("inf"):
        raise TytoError(f"--seconds takes seconds above 0, got {seconds:g}")
    keys = keys_at_hand(identity)
    following = open_following(
        source,
        model=model,
        array=array,
        method=method,
        background=background,
        silence=silence,
        ignore_steady=ignore_steady,
        keys=keys,
        unsigned=unsigned,
    )
    mics = following.array
    asked = asked_outputs(
        odas, odas_potential, mqtt, mqtt_password_file, mqtt_ca, websocket, token_file, osc, name=mics.name
    )
    if mics.mirror_axis is not None:
        note(f"{mics.name} cannot tell {mics.ambiguities[0]}")
    with ExitStack() as stack:
        telling: Telling = JsonLines() if json else ChangeLines()

        def remark(text: str) -> None:
            telling.say(text)

        outputs = opened_outputs(asked, remark, stack)
        sound = open_input(source, mics, keys, fast=fast)
        stack.callback(sound.close)
        recording = None
        if record_sealed is not None:
            from tytoalba.storage.sealed_sound import SealedSound

            recording = SealedSound(record_sealed, mics.n_mics, sound.sample_rate, recipients, remark)
            stack.callback(recording.abandon)  # what is finished stays
        listener = stack.enter_context(Listener(sound, following, outputs, keep=recording, say=remark))
        stopped = stack.enter_context(stopped_by_signals(listener.stop))
        if draws:
            from tytoalba.cli.screen import Screen

            kept = " (recorded, sealed)" if recording is not None else ""
            telling = Screen(f"tyto listen: {mics.name}, {sound.name}{kept}")
        stack.callback(telling.close)
        try:
            summary = _told(listener, telling, seconds)
        finally:
            telling.close()
            if recording is not None:
                _finish(recording)
    with suppress(OSError):  # a terminal that was closed
        say(summary.text)
    if stopped.signal:
        raise typer.Exit(stopped.code)


def _recipients(record_sealed: Path | None, to: list[str] | None) -> list[str]:
    """For whom the recording is sealed; what cannot be is refused."""
    if record_sealed is None:
        if to:
            raise TytoError("--to needs --record-sealed NAME.wav.age")
        return []
    from tytoalba.storage.keys import default_recipients, parse_recipients
    from tytoalba.storage.sealed_sound import checked_target

    checked_target(record_sealed)
    found = parse_recipients(to) if to else default_recipients()
    if not found:
        raise SealError("nobody to seal for: give --to age1..., or make your own key first: tyto keygen")
    return found


def _finish(recording: SealedSound) -> None:
    if recording.finish():
        say(f"recorded: {recording.path}, {recording.seconds:.1f} s, sealed")
    else:
        say(f"nothing was recorded: {recording.path} was not written")


def _told(listener: Listener, telling: Telling, seconds: float | None) -> Summary:
    """Listen to the end, showing each frame; who was there."""
    from tytoalba.live.segments import segments

    summary = Summary()

    def moments() -> Iterator[Moment]:
        for update, moment in listener:
            if seconds is not None and update.time > seconds:
                return
            summary.seconds = update.time
            telling.tell(update, moment)
            yield moment

    try:
        for one in segments(moments()):
            summary.add(one)
    except BrokenPipeError:  # who read the lines has gone: that ends it, and is nothing wrong
        _forget_output()
    except OSError as error:
        if error.errno != errno.EIO:  # a terminal that was closed
            raise
        _forget_output()
    return summary


def _forget_output() -> None:
    """Nobody reads standard output any more: what is left in it must not fail when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _draws(screen: bool | None, json: bool) -> bool:
    """Whether to draw: on a terminal that can, unless something else is asked for."""
    if screen and json:
        raise TytoError("--json prints lines for programs, --screen draws for people: leave out one of them")
    has_letters = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"  # for braille
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and has_letters
    if screen and not is_terminal:
        raise TytoError("--screen needs a terminal of UTF-8 on standard output; --lines prints lines")
    return is_terminal and not json if screen is None else screen
