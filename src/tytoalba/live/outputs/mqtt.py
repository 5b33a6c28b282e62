"""For smart homes: MQTT, with what Home Assistant needs to find it by itself.

Topics, below a prefix such as `tyto/kitchen`:

- `.../update`: every frame, as JSON (`Update.json`).
- `.../state`: where somebody speaks, whether, and how many are there, as JSON, when it changes.
- `.../availability`: `online`, or `offline`, which the broker says by itself when the process is killed.

The broker keeps what announces them to Home Assistant (`home_assistant.discovery`).
"""

from __future__ import annotations

import importlib
import re
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.addresses import Address, parse_address
from tytoalba.live.outputs.home_assistant import Publication, State, discovery
from tytoalba.live.outputs.output import Say
from tytoalba.live.outputs.peer import STUCK, Peer
from tytoalba.live.segments import Moment
from tytoalba.live.update import Update

PORTS = {"mqtt": 1883, "mqtts": 8883}
KEEP_ALIVE = 15
"""Seconds after which a broker that hears nothing says `offline`, half as long again at most."""


@dataclass(frozen=True)
class Broker:
    """Where a broker is, and who we are to it.

    Parameters
    ----------
    address : Address
        Host and port.
    prefix : str
        Topics begin with it.
    tls : bool
        Whether the connection is encrypted, and the broker's certificate checked.
    user, password : str or None
        Not shown by `repr`.
    authorities : Path or None
        A file with the certificates that the broker's is checked with; None: those of the system.

    Examples
    --------
    >>> Broker.of_url("mqtts://home.example/tyto/kitchen").address
    Address(host='home.example', port=8883)
    """

    address: Address
    prefix: str
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    authorities: Path | None = None

    @classmethod
    def of_url(
        cls,
        url: str,
        *,
        name: str = "tyto",
        user: str | None = None,
        password: str | None = None,
        authorities: Path | None = None,
    ) -> Broker:
        """Read mqtt://HOST, or mqtts://USER@HOST:PORT/PREFIX. name: the prefix if the URL has none.

        user, password: take the place of those in the URL.
        """
        kind, host, path, own_user, own_password = _parts(url)
        prefix = path or f"tyto/{name}"
        if not re.fullmatch(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*", prefix):
            raise TytoError(
                f"topics begin with letters, digits, _ and -, in parts between /, got {prefix!r}; such as "
                "mqtt://HOST/tyto/kitchen"
            )
        if authorities is not None and kind != "mqtts":
            raise TytoError("certificates are checked with mqtts:// only; is the URL right?")
        user, password = user or own_user, password or own_password
        if password and not user:
            raise TytoError("a password for the broker needs a user: mqtts://USER@HOST, or TYTO_MQTT_USER")
        return cls(
            parse_address(host, "--mqtt", PORTS[kind]), prefix, kind == "mqtts", user, password, authorities
        )

    def remarks(self, url: str) -> list[str]:
        """What to tell people of how safe this is."""
        found = []
        if _parts(url)[4]:
            found.append(
                "the password in the URL is seen by everybody on this machine, in the list of processes; "
                "better: TYTO_MQTT_PASSWORD, or --mqtt-password-file"
            )
        if not self.tls and not self.address.is_loopback:
            what = "the password and where people are go" if self.password else "where people are goes"
            found.append(f"{what} over the network in the clear; mqtts:// encrypts")
        return found


def _parts(url: str) -> tuple[str, str, str, str | None, str | None]:
    """Scheme, HOST:PORT, path, user and password of a URL."""
    try:
        parts = urlsplit(url.strip())
        host = parts.netloc.rpartition("@")[2]
        user, password = parts.username, parts.password
    except ValueError as error:
        raise TytoError(f"the broker's URL cannot be read: {error}") from error
    if parts.scheme not in PORTS or not host or set(url) & set("?#"):
        raise TytoError("a broker is mqtt://HOST, or mqtts://USER@HOST:PORT/PREFIX with encryption")
    path = parts.path.strip("/")
    return parts.scheme, host, path, user and unquote(user), password and unquote(password)


class Mqtt:
    """Updates to a broker. name: what people call this device; the topic, "tyto kitchen", if not given."""

    def __init__(self, broker: Broker, say: Say, *, name: str | None = None) -> None:
        load_paho()
        if broker.authorities is not None:
            _refuse_no_certificates(broker.authorities)
        self._prefix, self._state = broker.prefix, State()
        called = name or broker.prefix.replace("/", " ")
        self._peer = Peer(
            f"the MQTT broker at {broker.address}",
            lambda: _Connection(broker, discovery(broker.prefix, called)),
            say,
        )

    def send(self, update: Update, moment: Moment) -> None:  # noqa: ARG002, the scores are not sent
        """Hand over a frame."""
        self._peer.send(Publication(f"{self._prefix}/update", update.json))
        if (state := self._state.changed(update)) is not None:
            self._peer.send(Publication(f"{self._prefix}/state", state))

    def close(self) -> None:
        """Say that this device is offline, and disconnect."""
        self._peer.close(patience=3.0)


def _refuse_no_certificates(path: Path) -> None:
    """What can never work is refused at once, and not told as a broker that is gone."""
    if not path.is_file():
        raise TytoError(f"no file of certificates {path}")
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise TytoError(
            f"{path} has no certificates that can be read ({error.strerror or error}); --mqtt-ca takes a PEM "
            "file with those that the broker's is checked with"
        ) from error


class _Connection:
    """One connection to a broker: announced when it is made, `offline` when it ends, however it ends."""

    def __init__(self, broker: Broker, announcements: list[Publication]) -> None:
        paho = load_paho()
        self._availability = f"{broker.prefix}/availability"
        self._paho = paho
        client = self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311, reconnect_on_failure=False
        )
        client.will_set(self._availability, "offline", qos=1, retain=True)
        client.connect_timeout = STUCK
        if broker.user:
            client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            client.tls_set(broker.authorities and str(broker.authorities))
        client.on_connect = self._answered
        self._answer = threading.Event()
        self._refusal: str | None = None
        client.connect(broker.address.host, broker.address.port, keepalive=KEEP_ALIVE)
        client.loop_start()
        try:
            if not self._answer.wait(STUCK):
                raise TimeoutError("no answer to MQTT; is it another kind of server?")
            if self._refusal:
                raise ConnectionRefusedError(self._refusal)
            for one in (*announcements, Publication(self._availability, "online", retained=True)):
                self.send(one, qos=1)
        except OSError:
            self.close()
            raise

    def _answered(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._refusal = f"it refuses: {reason}" if reason.is_failure else None
        self._answer.set()

    def send(self, message: Publication, qos: int = 0) -> None:
        """Publish, and wait until it is on its way."""
        info = self._client.publish(message.topic, message.text, qos, message.retained)
        try:
            info.wait_for_publish(STUCK)
        except (RuntimeError, ValueError) as error:
            raise ConnectionError(self._paho.error_string(info.rc)) from error
        if not info.is_published():
            raise TimeoutError("it takes no messages any more")

    def close(self) -> None:
        """Say `offline`, and disconnect; a broker that does not hear it says it by itself."""
        if self._client.is_connected():
            with suppress(OSError):
                self.send(Publication(self._availability, "offline", retained=True), qos=1)
        self._client.disconnect()
        self._client.loop_stop()


def load_paho() -> Any:
    """The package that speaks MQTT, or how to install it."""
    try:
        return importlib.import_module("paho.mqtt.client")
    except ImportError as error:
        raise MissingExtraError("messages to MQTT brokers", "mqtt") from error
