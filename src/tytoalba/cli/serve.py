"""`tyto serve`: the page, and the interface for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tytoalba.cli.console import chosen_array, note, print_error, say
from tytoalba.cli.keys import keys_at_hand
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
    Source,
    StandardInput,
    chosen_source,
    open_input,
    with_demo,
)
from tytoalba.cli.options import ArrayOption, IdentityFile, Unsigned
from tytoalba.cli.outputs import TOKEN, TokenFile, secret
from tytoalba.cli.stopping import stopped_by_signals
from tytoalba.cli.tracks import background_of
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.live.outputs.addresses import Address
    from tytoalba.live.tracking import Following
    from tytoalba.live.web.guard import Guard
    from tytoalba.live.web.server import Tls
    from tytoalba.live.web.sound import LiveSound
    from tytoalba.live.web.stored import Stored
    from tytoalba.signal.array import MicArray
    from tytoalba.storage.age import Keys


def serve(
    standard_input: StandardInput = None,
    device: DeviceName = None,
    file: FromFile = None,
    demo: Demo = False,
    loop: Loop = False,
    raw: RawEncoding = None,
    channels: RawChannels = None,
    rate: RawRate = None,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="No live sound: only recordings, and what is stored.")
    ] = False,
    model: ModelFile = None,
    array: ArrayOption = None,
    method: MethodName = None,
    background: BackgroundSound = None,
    silence: Silence = -60.0,
    host: Annotated[
        str, typer.Option(help="Address: 127.0.0.1 serves this machine alone, 0.0.0.0 everybody.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to serve at.", min=0, max=65535)] = 8010,
    token_file: TokenFile = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate (PEM), for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Serve other machines without TLS: others on the way can read."),
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Site whose pages may ask, such as https://home.example; may be repeated."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also show this page of `tyto bench`.")] = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
) -> None:
    """Serve a page that shows who speaks where, and can teach, check and locate; and REST for programs.

    Open the address that is printed, on this machine. With --model the page can teach a direction by
    speaking, and forget it again. Sound stays in memory; what is learned goes into the file of the model.
    Ctrl-C ends it.

    For a phone, or another machine, serve with TLS and a token (docs/serve.md). The token is in a file or in
    TYTO_TOKEN, never on the command line, where others could see it.

    Examples:

      tyto serve --demo

      tyto serve --array respeaker-usb-4

      tyto serve --model kitchen.tyto

      tyto serve --model kitchen.tyto --from talk.wav --loop

      tyto serve --model kitchen.tyto --host 0.0.0.0 --token-file token.txt --tls-cert c.pem --tls-key k.pem

      curl http://127.0.0.1:8010/api/state/doa
    """
    from tytoalba.live.outputs.access import checked_token
    from tytoalba.live.outputs.addresses import Address
    from tytoalba.live.web.server import Server, Tls, load_uvicorn, open_port

    load_uvicorn()
    address, token = Address(host, port), secret(token_file, TOKEN, "--token-file")
    if token is not None:
        checked_token(token)
    if (tls_cert is None) != (tls_key is None):
        raise TytoError("a certificate comes with its key: give both --tls-cert and --tls-key")
    tls = Tls(tls_cert, tls_key) if tls_cert and tls_key else None
    _require_safe(address, token, tls, insecure)
    file, array = with_demo(demo, file, array, model)
    loop = loop or demo
    source = None if no_input else chosen_source(standard_input, device, file, loop, raw, channels, rate)
    if no_input and (standard_input or device or file or background):
        raise TytoError("--no-input takes no sound: leave out --device, --from, --demo, - and --background")
    keys = keys_at_hand(identity)
    stored = _stored(model, array, method, keys, unsigned)
    mics = stored.localizer.array if stored else _array(array, source)
    with open_port(address) as taken:
        following = _following(stored, mics, method, background, silence, keys)
        sound = _sound(source, following, keys) if source else None
        parts = {"following": following, "method": method, "sound": sound, "stored": stored}
        served = Server(_application(parts, report, address, origin or [], token, tls), taken, tls)
        with stopped_by_signals(served.stop) as stopped:
            served.run(lambda: _say_where(Address(host, served.port), tls, token))
    say("stopped; nothing of the sound was kept")
    if stopped.signal:
        raise typer.Exit(stopped.code)


def _require_safe(address: Address, token: str | None, tls: Tls | None, insecure: bool) -> None:
    """Refuse to serve other machines without a token, and without TLS unless that is wanted."""
    if tls is not None:
        tls.check()
    if address.is_loopback:
        return
    if token is None:
        raise TytoError(
            f"{address} can be reached from other machines and needs a token: --token-file FILE, or {TOKEN}; "
            "for this machine alone: --host 127.0.0.1"
        )
    if tls is None and not insecure:
        raise TytoError(
            f"{address} can be reached from other machines and needs TLS: --tls-cert and --tls-key "
            "(docs/serve.md makes them in one line). --insecure serves without, and anybody on the way can "
            "read the token and where people are"
        )


def _stored(
    model: Path | None, array: str | None, method: str | None, keys: Keys, unsigned: bool
) -> Stored | None:
    from tytoalba.live.web.stored import Stored

    if model is None:
        return None
    if array or method:
        raise TytoError("a model has its own array and method: leave out --array and --method")
    return Stored(model, keys, unsigned=unsigned)


def _array(array: str | None, source: Source | None) -> MicArray:
    if source is None:
        return chosen_array(array)
    name = "standard input" if source.raw else str(source.file) if source.file else None
    return chosen_array(array, name, source.raw and source.raw[1:])


def _following(
    stored: Stored | None,
    mics: MicArray,
    method: str | None,
    background: str | None,
    silence: float,
    keys: Keys,
) -> Following:
    from tytoalba.live.tracking import Following

    by = stored.localizer if stored else mics
    return Following(by, method, background=background_of(background), silence_db=silence, keys=keys)


def _sound(source: Source, following: Following, keys: Keys) -> LiveSound:
    """The input, and what hears it."""
    from tytoalba.live.web.sound import LiveSound

    found = open_input(source, following.array, keys)
    return LiveSound(found, following, live=source.file is None, say=note)


def _application(
    parts: dict[str, Any],
    report: Path | None,
    address: Address,
    origins: Sequence[str],
    token: str | None,
    tls: Tls | None,
) -> Guard:
    from tytoalba.cli.check import check_samples
    from tytoalba.live.web.app import make_app
    from tytoalba.live.web.hosts import Hosts
    from tytoalba.live.web.pages import report_file
    from tytoalba.live.web.sessions import Sessions
    from tytoalba.live.web.station import Parts, Station

    shown = report_file(report) if report else None
    station = Station(Parts(**parts, check=check_samples, report=shown), print_error, needs_token=bool(token))
    secure = tls is not None
    return make_app(station, Hosts(address, origins, secure=secure), Sessions(token, secure=secure))


def _say_where(address: Address, tls: Tls | None, token: str | None) -> None:
    """How to open the page."""
    scheme = "https" if tls else "http"
    if address.is_loopback:
        say(f"open {scheme}://{address}/ on this machine; Ctrl-C stops")
    else:
        import socket

        everywhere = address.host in ("0.0.0.0", "::", "")
        host = f"{socket.gethostname().partition('.')[0]}.local" if everywhere else address.host
        say(
            f"open {scheme}://{address._replace(host=host)}/ from any machine that reaches this one; "
            "Ctrl-C stops"
        )
        if tls is None:
            note("WITHOUT TLS: who is on the way can read the token, hear where people are, and teach")
    if token:
        say("the page asks for the token; programs send it as Authorization: Bearer TOKEN")
