from __future__ import annotations

import pytest

from tytoalba.errors import TytoError
from tytoalba.live.outputs.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", Address("127.0.0.1", 9000)),
        ("robot.local:1", Address("robot.local", 1)),
        ("[fe80::1]:65535", Address("fe80::1", 65535)),
        ("localhost", Address("localhost", 8765)),
    ],
)
def test_addresses_are_read_and_written_alike(text: str, address: Address) -> None:
    assert parse_address(text, "--websocket", 8765) == address
    assert parse_address(str(address), "--websocket") == address


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("9000:", "HOST:PORT"),
        ("", "HOST:PORT"),
        ("host:port", "HOST:PORT"),
        ("host:0", "from 1 to 65535, got 0"),
        ("host:65536", "from 1 to 65535"),
        ("::1:9000", "in brackets"),
        ("[robot]:9000", "no IPv6"),
        ("a b:9000", "not a host name or address"),
        ("-h:9000", "not a host name or address"),
        ("a..b:9000", "not a host name or address"),
        (64 * "a" + ":9000", "not a host name or address"),
        ("host", "without a port"),
    ],
)
def test_what_is_no_address_is_refused(text: str, says: str) -> None:
    with pytest.raises(TytoError, match=says) as refused:
        parse_address(text, "--odas")
    assert "--odas" in str(refused.value)


def test_only_loopback_is_loopback() -> None:
    assert Address("127.8.8.8", 1).is_loopback
    assert not Address("0.0.0.0", 1).is_loopback
    assert not Address("127.0.0.1.example.org", 1).is_loopback
