"""What was altered or cut short after it was sealed is refused, and nothing is half written."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyrage")

from tests.helpers.seals import CHUNK, Keys, names, public, sealed_with_passphrase
from tytoalba.errors import SealError
from tytoalba.storage.age import Passphrase, open_bytes, seal_bytes
from tytoalba.storage.sealed import open_file, rewrap


def test_every_altered_byte_is_refused(keys: Keys) -> None:
    data = os.urandom(2 * CHUNK + 100)
    sealed = seal_bytes(data, [public(keys[0])])
    header = sealed.index(b"\n---") + 60
    far = [header + 16, header + CHUNK, header + 2 * CHUNK, len(sealed) - 17, len(sealed) - 1]
    for at in [*range(header), *(at + by for at in far for by in (-1, 0) if at + by < len(sealed))]:
        for bit in (0, 7):
            damaged = bytearray(sealed)
            damaged[at] ^= 1 << bit
            with pytest.raises(SealError):
                open_bytes(bytes(damaged), [keys[0]])


def test_every_length_is_refused_but_the_right_one(keys: Keys) -> None:
    sealed = seal_bytes(os.urandom(2 * CHUNK), [public(keys[0])])
    payload = len(sealed) - 2 * (CHUNK + 16)
    ends = [
        *range(payload + 40),
        payload + CHUNK,
        payload + CHUNK + 15,
        payload + CHUNK + 16,
        len(sealed) - 1,
    ]
    for end in ends:
        with pytest.raises(SealError):
            open_bytes(sealed[:end], [keys[0]])
    swapped = sealed[:payload] + sealed[payload + CHUNK + 16 :] + sealed[payload : payload + CHUNK + 16]
    for other in (sealed + b"x", sealed + sealed, sealed[: payload + CHUNK + 16] * 2, swapped):
        with pytest.raises(SealError, match="damaged"):
            open_bytes(other, [keys[0]])


def test_damaged_armor(keys: Keys) -> None:
    sealed = seal_bytes(bytes(1000), [public(keys[0])], armored=True)
    for end in range(0, len(sealed) - 1, 7):
        with pytest.raises(SealError):
            open_bytes(sealed[:end], [keys[0]])
    for at in range(0, len(sealed) - 40, 11):
        damaged = bytearray(sealed)
        damaged[at] ^= 2
        with pytest.raises(SealError):
            open_bytes(bytes(damaged), [keys[0]])


def test_a_header_that_takes_hours_to_read_is_refused_at_once(keys: Keys) -> None:
    """The attack: age reads its header anew for each recipient; 100 kB of them took minutes, 4 MB days."""
    sealed = seal_bytes(b"content", [public(keys[0])] * 600)
    assert open_bytes(sealed, [keys[0]]) == b"content"
    magic, began = b"age-encryption.org/v1\n", time.process_time()
    for header in (b"-> a\n\n" * 700_000, b"-> X25519 " + b"a" * 2**22, b"-> X25519 a\n" + b"A" * 64 * 2**16):
        armor = b"-----BEGIN AGE ENCRYPTED FILE-----\n" + base64.encodebytes(magic + header)
        for hostile in (magic + header, armor, magic + header + b"\n--- " + b"A" * 43 + b"\n"):
            with pytest.raises(SealError, match="its header has more than 1000 recipients or"):
                open_bytes(hostile, [keys[0]])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", r"x\.age is empty"),
        (b"RIFF and so on", r"x\.age is not sealed"),
        (b"age-encryption.org/v9\n-> X25519 abc\n", "not age v1"),
        (b"age-encryption.org/v1\n", "damaged"),
        (sealed_with_passphrase(b"", "a").replace(b" 8\n", b" 40\n", 1), "Excessive work|damaged"),
    ],
)
def test_what_is_no_seal(tmp_path: Path, keys: Keys, data: bytes, why: str) -> None:
    path, target = tmp_path / "x.age", tmp_path / "x"
    path.write_bytes(data)
    attempts: list[Callable[[], object]] = [
        lambda: open_file(path, target, [keys[0], Passphrase("a")]),
        lambda: rewrap(path, [keys[0], Passphrase("a")], [public(keys[0])]),
    ]
    for attempt in attempts:
        with pytest.raises(SealError, match=why):
            attempt()
        assert names(tmp_path) == ["x.age"]
        assert path.read_bytes() == data
