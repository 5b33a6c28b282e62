from __future__ import annotations

import socket

import pytest

from tytoalba.live.outputs.addresses import Address
from tytoalba.live.web.hosts import Hosts

HERE = Address("127.0.0.1", 8010)
EVERYWHERE = Address("0.0.0.0", 8010)


@pytest.mark.parametrize(
    ("host", "here", "everywhere"),
    [
        ("localhost:8010", True, True),
        ("LOCALHOST", True, True),
        ("127.0.0.1:8010", True, True),
        ("127.9.9.9", True, True),
        ("[::1]:8010", True, True),
        ("192.0.2.7:8010", False, True),
        ("home.example", True, True),
        ("evil.test:8010", False, False),
        ("localhost.evil.test", False, False),
        ("127.0.0.1.evil.test", False, False),
        ("localhost@evil.test", False, False),
        ("", False, False),
        ("[::1", False, False),
        ("[fe80::1%25eth0]", False, True),
    ],
)
def test_names_that_belong_here(host: str, here: bool, everywhere: bool) -> None:
    origins = ["https://home.example/"]
    assert Hosts(HERE, origins).knows(host) == here
    assert Hosts(EVERYWHERE, origins).knows(host) == everywhere


def test_the_name_of_this_machine_is_known_where_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Barn.lan")
    assert [Hosts(EVERYWHERE).knows(name) for name in ("barn.local:8010", "barn.lan")] == [True, True]
    assert not Hosts(HERE).knows("barn.local")


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        ("http://localhost:8010", True),
        ("http://LOCALHOST:8010", True),
        ("https://home.example", True),
        ("https://localhost:8010", False),  # another scheme
        ("http://localhost:8011", False),  # another program of this machine
        ("http://127.0.0.1:8010", False),  # not the name in Host
        ("https://evil.test", False),
        ("null", False),
        ("", False),
    ],
)
def test_pages_that_may_ask(origin: str, welcome: bool) -> None:
    assert Hosts(HERE, ["https://home.example/"]).welcomes(origin, "localhost:8010") == welcome
