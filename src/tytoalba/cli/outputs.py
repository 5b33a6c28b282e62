"""Where `tyto listen` hands its updates: options to outputs, and what is refused of them before any work."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tytoalba.cli.console import note
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tytoalba.live.outputs.addresses import Address
    from tytoalba.live.outputs.mqtt import Broker
    from tytoalba.live.outputs.output import Output, Say

TOKEN = "TYTO_TOKEN"
"""Environment variable with the token."""
OdasTracks = Annotated[
    str | None,
    typer.Option("--odas", help="HOST:PORT of a client for ODAS's tracked sources (SST); often 9000."),
]
OdasPotential = Annotated[
    str | None, typer.Option("--odas-potential", help="The same for potential sources (SSL); often 9001.")
]
MqttUrl = Annotated[
    str | None,
    typer.Option("--mqtt", help="Broker, mqtt://HOST or mqtts://USER@HOST/PREFIX; Home Assistant finds it."),
]
MqttPassword = Annotated[
    Path | None,
    typer.Option("--mqtt-password-file", help="File with the broker's password; or TYTO_MQTT_PASSWORD."),
]
MqttAuthorities = Annotated[
    Path | None, typer.Option("--mqtt-ca", help="With mqtts: certificates (PEM) to check the broker's with.")
]
WebSocketAddress = Annotated[
    str | None,
    typer.Option("--websocket", help="HOST:PORT to serve updates at; other machines need a token."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help=f"File with the token that clients must show; or {TOKEN}."),
]
OscAddress = Annotated[
    str | None, typer.Option("--osc", help="HOST:PORT of a program that reads Open Sound Control (UDP).")
]
LARGEST_SECRET = 4096
"""Bytes of a file with a password or a token."""


class Asked(NamedTuple):
    """Outputs as they were asked for, checked, and not yet opened."""

    odas: Address | None
    odas_potential: Address | None
    broker: Broker | None
    websocket: Address | None
    token: str | None
    osc: Address | None


def asked_outputs(
    odas: str | None,
    odas_potential: str | None,
    mqtt: str | None,
    mqtt_password_file: Path | None,
    mqtt_ca: Path | None,
    websocket: str | None,
    token_file: Path | None,
    osc: str | None,
    *,
    name: str,
) -> Asked:
    """Read and check what was asked for; name: of the array, a part of MQTT's topics."""
    from tytoalba.live.outputs.addresses import parse_address

    if mqtt is None and (mqtt_password_file or mqtt_ca):
        raise TytoError("--mqtt-password-file and --mqtt-ca are for --mqtt URL, which is not there")
    if websocket is None and token_file is not None:
        raise TytoError("--token-file is for --websocket HOST:PORT, which is not there")

    def address(text: str | None, option: str) -> Address | None:
        return None if text is None else parse_address(text, option)

    broker = None
    if mqtt is not None:
        from tytoalba.live.outputs.mqtt import Broker

        password = secret(mqtt_password_file, "TYTO_MQTT_PASSWORD", "--mqtt-password-file")
        user = os.environ.get("TYTO_MQTT_USER") or None
        topic = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
        broker = Broker.of_url(mqtt, name=topic, user=user, password=password, authorities=mqtt_ca)
        for remark in broker.remarks(mqtt):
            note(remark)
    return Asked(
        address(odas, "--odas"),
        address(odas_potential, "--odas-potential"),
        broker,
        address(websocket, "--websocket"),
        secret(token_file, TOKEN, "--token-file") if websocket is not None else None,
        address(osc, "--osc"),
    )


def opened_outputs(asked: Asked, say: Say, stack: ExitStack) -> list[Output]:
    """Open them; stack: closes those that were opened where a later one is refused.

    Servers listen, and others connect, when this returns; peers that are not there yet are tried again.
    """
    found: list[Output] = []

    def opened(make: Callable[[], Output]) -> None:
        output = make()
        stack.callback(output.close)
        found.append(output)

    if asked.websocket is not None:
        from tytoalba.live.outputs.websocket import WebSocket

        address, token = asked.websocket, asked.token
        opened(lambda: WebSocket(address, token=token))
    if asked.osc is not None:
        from tytoalba.live.outputs.osc import Osc

        target = asked.osc
        opened(lambda: Osc(target, say))
    if asked.broker is not None:
        from tytoalba.live.outputs.mqtt import Mqtt

        broker = asked.broker
        opened(lambda: Mqtt(broker, say))
    if asked.odas is not None or asked.odas_potential is not None:
        from tytoalba.live.outputs.odas import Odas

        opened(lambda: Odas(asked.odas, asked.odas_potential, say))
    return found


def secret(path: Path | None, variable: str, option: str) -> str | None:
    """The first line of a file that others cannot read, else what the environment says; None for neither."""
    if path is None:
        return os.environ.get(variable, "").strip() or None
    from tytoalba.storage.files import read_bytes

    data = read_bytes(path, LARGEST_SECRET, forbidden=0o037 if _is_credential(path) else 0o077)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise TytoError(f"{path} is no text; {option} takes a file with one line") from error
    if not lines or not lines[0].strip():
        raise TytoError(f"{path} is empty; {option} takes a file with one line")
    return lines[0].strip()


def _is_credential(path: Path) -> bool:
    """Whether systemd handed the file over (LoadCredential): its group seems to read it, and nobody does."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return bool(folder) and path.resolve().parent == Path(str(folder)).resolve()
