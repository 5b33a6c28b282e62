"""What is sealed opens to the same bytes for each recipient and for nobody else; nothing plain is left."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyrage")

from tests.helpers.seals import (
    CHUNK,
    WRITES,
    Keys,
    mode,
    names,
    new_key,
    posix,
    public,
    sealed_with_passphrase,
)
from tytoalba.errors import FileError, MissingExtraError, SealError, WrongKeyError
from tytoalba.storage.age import (
    Passphrase,
    Unsealing,
    has_passphrase,
    is_sealed,
    open_bytes,
    open_start,
    open_stream,
    seal_bytes,
    seal_stream,
)
from tytoalba.storage.sealed import open_file, read_secret, rewrap, same_content, seal_file, write_secret

pytestmark = pytest.mark.usefixtures("no_threads_left")
MARK = b"a voice in the kitchen"


# Round trips

SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1]


@given(
    size=st.sampled_from(SIZES) | st.integers(0, 3 * CHUNK), armored=st.booleans(), seed=st.integers(0, 99)
)
@settings(max_examples=30)
def test_what_is_sealed_opens(keys: Keys, size: int, armored: bool, seed: int) -> None:
    data = np.random.default_rng(seed).bytes(size)
    sealed = seal_bytes(data, [public(keys[0])], armored=armored)
    assert is_sealed(sealed)
    assert is_sealed(io.BytesIO(sealed))
    assert not is_sealed(data)
    assert sealed.isascii() == armored
    assert open_bytes(sealed, [keys[0]]) == data
    with Unsealing(io.BytesIO(sealed), [keys[0]], "it") as plain:
        assert plain.read() == data
    assert open_start(io.BytesIO(sealed), [keys[0]], 10) == data[:10]


def test_each_recipient_opens_and_nobody_else(keys: Keys) -> None:
    a, b, c = keys
    sealed = seal_bytes(MARK, [public(a), public(b)])
    assert MARK not in sealed
    assert open_bytes(sealed, [a]) == open_bytes(sealed, [b]) == open_bytes(sealed, [c, b]) == MARK
    with pytest.raises(WrongKeyError, match=r"none of your keys opens x\.age.*--identity"):
        open_bytes(sealed, [c], "x.age")
    with pytest.raises(WrongKeyError, match="no key was given"):
        open_bytes(sealed, [Passphrase("words")])
    assert seal_bytes(MARK, [public(a)]) != seal_bytes(MARK, [public(a)])  # a new file key each time


def test_passphrase() -> None:
    sealed = seal_bytes(MARK, [Passphrase("correct horse")])
    assert has_passphrase(sealed)
    assert open_bytes(sealed, [Passphrase("correct horse")]) == MARK


@pytest.mark.parametrize("armored", [False, True])
def test_passphrase_of_another_writer(keys: Keys, armored: bool) -> None:
    sealed = sealed_with_passphrase(MARK, "correct horse", armored)
    assert is_sealed(sealed)
    assert has_passphrase(sealed)
    assert not has_passphrase(seal_bytes(MARK, [public(keys[0])], armored=armored))
    assert open_bytes(sealed, [keys[0], Passphrase("wrong"), Passphrase("correct horse")]) == MARK
    with pytest.raises(WrongKeyError, match="the passphrase does not open it"):
        open_bytes(sealed, [Passphrase("wrong")], "it")
    with pytest.raises(WrongKeyError, match="sealed with a passphrase"):
        open_bytes(sealed, [keys[0]])
    with pytest.raises(SealError, match="damaged"):
        open_bytes(sealed[:-40] + b"A" * 40, [Passphrase("correct horse")])


def test_passphrase_is_asked_for_when_needed_and_again_when_it_fails() -> None:
    questions, answers = [], iter(["wrong", "first", "second"])

    def prompt(question: str) -> str:
        questions.append(question)
        return next(answers)

    asked = Passphrase(prompt)
    first, second = sealed_with_passphrase(b"1", "first"), sealed_with_passphrase(b"2", "second")
    assert not questions
    with pytest.raises(WrongKeyError):
        open_bytes(first, [asked], "1.age")
    assert [open_bytes(first, [asked], "1.age") for _ in range(3)] == [b"1"] * 3
    assert open_bytes(second, [asked], "2.age") == b"2"
    assert questions == ["Passphrase of 1.age: "] * 2 + ["Passphrase of 2.age: "]
    with pytest.raises(SealError, match="no passphrase given"):
        open_bytes(first, [Passphrase(lambda _: "")])
    assert "first" not in repr(Passphrase("first"))


@pytest.mark.parametrize(
    ("recipients", "why"),
    [
        ([], "nobody to seal for"),
        (["age1qqqq"], "not a valid recipient"),
        (["you"], "'you' is not a recipient"),
        (["ssh-ed25519 AAAA"], "not a valid recipient"),
        ([Passphrase("a"), Passphrase("b")], "a passphrase seals alone"),
    ],
)
def test_bad_recipients(tmp_path: Path, recipients: list[Any], why: str) -> None:
    path = tmp_path / "x.age"
    path.write_bytes(b"old")
    with pytest.raises(SealError, match=why):
        write_secret(path, MARK, recipients)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x.age"]


def test_a_secret_key_is_no_recipient_and_is_not_shown(keys: Keys) -> None:
    with pytest.raises(SealError, match="that is a secret key") as caught:
        seal_bytes(MARK, [str(keys[0].secret)])
    assert str(keys[0].secret)[20:40] not in str(caught.value)
    assert str(keys[0].secret)[20:40] not in repr(keys[0])


def test_ssh_keys() -> None:
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from tytoalba.storage.keys import parse_identities

    secret = Ed25519PrivateKey.generate()
    pem = secret.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption())
    line = secret.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    sealed = seal_bytes(MARK, [line.decode() + " me@here\n"])
    assert open_bytes(sealed, parse_identities(pem.decode(), "id_ed25519")) == MARK


# What cannot be read or written


def test_missing_files_folders_and_text(tmp_path: Path, keys: Keys) -> None:
    to = [public(keys[0])]
    for attempt in (
        lambda: read_secret(tmp_path / "none"),
        lambda: rewrap(tmp_path / "none", keys, to),
        lambda: is_sealed(tmp_path / "none"),
        lambda: read_secret(tmp_path),
        lambda: write_secret(tmp_path / "no folder" / "x", b"", to),
        lambda: seal_stream(io.StringIO("text"), io.BytesIO(), to),  # type: ignore[arg-type]
        lambda: open_stream(io.StringIO("text"), io.BytesIO(), keys),  # type: ignore[arg-type]
        lambda: read_secret("\0"),
    ):
        with pytest.raises((FileError, SealError)) as caught:
            attempt()
        assert (caught.type is SealError) == ("binary mode" in str(caught.value))
    assert names(tmp_path) == []


def test_without_the_extra(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = seal_bytes(MARK, [public(keys[0])])
    monkeypatch.setitem(sys.modules, "pyrage", None)
    (tmp_path / "plain").write_bytes(MARK)
    assert read_secret(tmp_path / "plain") == MARK
    attempts: list[Callable[[], bytes]] = [
        lambda: seal_bytes(MARK, ["age1"]),
        lambda: open_bytes(sealed, keys),
    ]
    for attempt in attempts:
        with pytest.raises(MissingExtraError, match=r"pip install 'tytoalba\[privacy\]'"):
            attempt()


class Breaking(io.BytesIO):
    """Fails after some calls, as a full disk or a person at the keyboard."""

    def __init__(self, error: BaseException, data: bytes = b"", after: int = 3) -> None:
        super().__init__(data)
        self.error, self.left = error, after

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error

    def read(self, size: int | None = -1, /) -> bytes:
        self._count()
        return super().read(size)

    def write(self, data: Any, /) -> int:
        self._count()
        return super().write(data)


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt(), ZeroDivisionError()])
def test_errors_of_the_streams_stay_what_they_are(keys: Keys, error: BaseException) -> None:
    data = bytes(3 * CHUNK)
    sealed, to = seal_bytes(data, [public(keys[0])]), [public(keys[0])]
    attempts: list[Callable[[], None]] = [
        lambda: seal_stream(Breaking(error, data), io.BytesIO(), to),
        lambda: seal_stream(io.BytesIO(data), Breaking(error), to),
        lambda: open_stream(Breaking(error, sealed), io.BytesIO(), keys),
        lambda: open_stream(io.BytesIO(sealed), Breaking(error), keys),
    ]
    for attempt in attempts:
        with pytest.raises(type(error)):
            attempt()


# Files


@posix
def test_secret_files_are_for_their_owner(tmp_path: Path, keys: Keys) -> None:
    for name, recipients in (("plain", None), ("sealed", [public(keys[0])])):
        write_secret(tmp_path / name, MARK, recipients)
        assert mode(tmp_path / name) == 0o600
        assert is_sealed(tmp_path / name) == (name == "sealed")
        assert read_secret(tmp_path / name, keys) == MARK
    open_file(tmp_path / "sealed", tmp_path / "opened", keys)
    assert mode(tmp_path / "opened") == 0o600


def test_rotation(tmp_path: Path, keys: Keys) -> None:
    a, b, c = keys
    data = os.urandom(3 * CHUNK + 5)
    for armored in (False, True):
        path, link = tmp_path / "x.age", tmp_path / "link"
        path.write_bytes(seal_bytes(data, [public(a)], armored=armored))
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        rewrap(link, [a], [public(b), public(c)])
        assert link.is_symlink()
        assert path.read_bytes().isascii() == armored
        assert read_secret(path, [b]) == read_secret(path, [c]) == data
        before = path.read_bytes()
        with pytest.raises(WrongKeyError):
            read_secret(path, [a])
        with pytest.raises(WrongKeyError):
            rewrap(path, [a], [public(a)])
        assert path.read_bytes() == before


def test_rotation_of_a_damaged_file_changes_nothing(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "x.age"
    sealed = bytearray(seal_bytes(bytes(4 * CHUNK), [public(keys[0])]))
    sealed[-1] ^= 1
    path.write_bytes(sealed)
    with pytest.raises(SealError, match="damaged"):
        rewrap(path, keys, [public(keys[1])])
    assert path.read_bytes() == sealed
    assert names(tmp_path) == ["x.age"]


def test_rotation_from_a_passphrase(tmp_path: Path, keys: Keys) -> None:
    (tmp_path / "x.age").write_bytes(sealed_with_passphrase(MARK, "words"))
    rewrap(tmp_path / "x.age", [Passphrase("words")], [public(keys[0])])
    assert read_secret(tmp_path / "x.age", keys) == MARK


def test_sealing_twice_is_refused(tmp_path: Path, keys: Keys) -> None:
    write_secret(tmp_path / "x.age", MARK, [public(keys[0])])
    with pytest.raises(SealError, match="sealed already"):
        seal_file(tmp_path / "x.age", tmp_path / "x.age.age", [public(keys[0])])
    assert names(tmp_path) == ["x.age"]


def test_same_content(tmp_path: Path, keys: Keys) -> None:
    data = os.urandom(CHUNK + 9)
    write_secret(tmp_path / "x.age", data, [public(keys[0])])
    for other, same in (
        (data, True),
        (data + b"x", False),
        (data[:-1], False),
        (bytes([data[0] ^ 1]) + data[1:], False),
    ):
        (tmp_path / "x").write_bytes(other)
        assert same_content(tmp_path / "x", tmp_path / "x.age", keys) is same


def test_nothing_plain_is_written(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every read the folder is searched for the plain bytes; every file opened for writing is known."""
    (tmp_path / "source").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "work"))
    monkeypatch.setattr("tempfile.tempdir", None)
    plain, sealed = tmp_path / "source" / "x", tmp_path / "work" / "x.age"
    plain.write_bytes(MARK * 20000)
    looks = 0

    def look(_: int) -> None:
        nonlocal looks
        looks += 1
        assert all(MARK not in (tmp_path / "work" / name).read_bytes() for name in names(tmp_path / "work"))

    WRITES.clear()
    seal_file(plain, sealed, [public(keys[0])], advance=look)
    rewrap(sealed, keys, [public(keys[1])], advance=look)
    write_secret(sealed, read_secret(sealed, keys), [public(keys[0])])
    look(0)
    assert looks > 10
    opened = {str(Path(path).relative_to(tmp_path)) for path in WRITES if path.startswith(str(tmp_path))}
    assert opened <= {"work", "work/.x.age.new", "work/.x.age.lock"}  # the folder: a file without a name
    assert names(tmp_path / "work") == ["x.age"]


def test_a_reader_that_stops_early_leaves_no_thread(keys: Keys) -> None:
    sealed = seal_bytes(bytes(20 * CHUNK), [public(keys[0])])
    with Unsealing(io.BytesIO(sealed), [keys[0]], "it") as plain:
        assert plain.read(10) == bytes(10)


# The command `age`

age = pytest.mark.skipif(shutil.which("age") is None, reason="the command age is not installed")


def run_age(*arguments: str | Path, given: bytes = b"") -> bytes:
    return subprocess.run(["age", *map(str, arguments)], input=given, capture_output=True, check=True).stdout


@age
@pytest.mark.parametrize("armored", [False, True])
@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, 300000])
def test_age_opens_ours_and_we_open_theirs(tmp_path: Path, armored: bool, size: int) -> None:
    data, key, other = os.urandom(size), new_key(tmp_path), new_key(tmp_path, "other.txt")
    ours = seal_bytes(data, [public(other), public(key)], armored=armored)
    assert run_age("-d", "-i", tmp_path / "key.txt", given=ours) == data
    theirs = run_age(*(["-a"] if armored else []), "-r", public(other), "-r", public(key), given=data)
    assert open_bytes(theirs, [key]) == data


@age
def test_age_keygen_and_ours_write_the_same(tmp_path: Path) -> None:
    from tytoalba.storage.keys import read_identities

    subprocess.run(["age-keygen", "-o", tmp_path / "theirs.txt"], check=True, capture_output=True)
    ours = new_key(tmp_path)
    shown = subprocess.run(["age-keygen", "-y", tmp_path / "key.txt"], check=True, capture_output=True)
    assert shown.stdout.decode().strip() == public(ours)
    (theirs,) = read_identities(tmp_path / "theirs.txt")
    lines = [(tmp_path / name).read_text().splitlines() for name in ("theirs.txt", "key.txt")]
    shapes = [[re.sub(r"(: |KEY-1).*", r"\1", line) for line in file] for file in lines]
    assert shapes[0] == shapes[1] == ["# created: ", "# public key: ", "AGE-SECRET-KEY-1"]
    assert public(theirs) in lines[0][1]
    assert public(ours) in lines[1][1]
