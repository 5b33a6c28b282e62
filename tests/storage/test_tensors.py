"""Containers: the same content in the same bytes, and nothing but that is read back."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, integer_dtypes
from numpy.typing import NDArray
from safetensors.numpy import save

from tests.helpers.localizers import closed, opened, written
from tytoalba.errors import FileError
from tytoalba.storage import tensors
from tytoalba.storage.tensors import kind_of, pack, read_header, read_tensors, unpack, write_tensors

HEADER: dict[str, Any] = {"name": "barn", "n": 3, "list": [1, 2.5, None], "deep": {"b": 1, "a": "ä\ud800"}}
ARRAYS: dict[str, NDArray[Any]] = {
    "G": np.arange(6, dtype=np.int64).reshape(2, 3),
    "b": np.array(7.5, np.float32),
}
DATA = pack("thing", 1, HEADER, ARRAYS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def read(data: bytes, version: int = 1) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    return unpack(data, "thing", version, "it")


@given(
    st.dictionaries(st.text(min_size=1), json_values, max_size=4),
    st.dictionaries(st.text("abc.", min_size=1), arrays(integer_dtypes(endianness="<"), (2, 3)), max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_what_is_packed_comes_back_and_packs_the_same(
    header: dict[str, Any], content: dict[str, NDArray[Any]]
) -> None:
    header = {k: v for k, v in header.items() if k not in ("format", "version", "digest")}
    data = pack("thing", 1, header, content)
    again, found = read(data)
    assert again == {**header, "format": "tytoalba-thing", "version": 1}
    assert found.keys() == content.keys()
    for name, values in content.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)
    backwards = dict(reversed(header.items())), dict(reversed(content.items()))
    assert pack("thing", 1, *backwards) == data
    assert kind_of(data) == "thing"


def test_strided_and_empty_arrays_pack_as_their_copies() -> None:
    G = np.arange(12.0).reshape(3, 4)
    assert pack("thing", 1, {}, {"G": G.T}) == pack("thing", 1, {}, {"G": G.T.copy()})
    assert pack("thing", 1, {}, {"G": G.T}) != pack("thing", 1, {}, {"G": G.reshape(4, 3)})
    assert read(pack("thing", 1, {}, {"none": np.zeros((0, 4), np.int8)}))[1]["none"].shape == (0, 4)


def test_files_hold_values_and_not_bytes_as_they_lay(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.int16).reshape(3, 4)
    given_arrays = {"columns": rows.T, "strided": rows[::2, ::-1], "number": np.array(5)}
    write_tensors(tmp_path / "file", given_arrays, {})
    _, found = read_tensors(tmp_path / "file")
    for name, values in given_arrays.items():
        assert np.array_equal(found[name], values)
        assert found[name].shape == values.shape


def test_every_flipped_bit_is_noticed() -> None:
    for position in range(len(DATA)):
        for bit in range(8):
            flipped = bytearray(DATA)
            flipped[position] ^= 1 << bit
            with pytest.raises(FileError, match=r"^it "):
                read(bytes(flipped))
            kind_of(bytes(flipped))  # says something, or nothing; never an error


def test_every_cut_and_everything_added_is_noticed() -> None:
    for length in range(len(DATA)):
        with pytest.raises(FileError):
            read(DATA[:length])
        kind_of(DATA[:length])
    for more in (b"\0", b" ", b"}", bytes(8), DATA):
        with pytest.raises(FileError):
            read(DATA + more)


def test_a_digest_that_fits_no_longer_is_noticed() -> None:
    header, content = opened(DATA)
    altered = header | {"n": 4}
    with pytest.raises(FileError, match="was altered or is damaged: its digest is another"):
        read(written(json.dumps(altered), content))
    with pytest.raises(FileError, match="digest"):
        read(written(json.dumps({k: v for k, v in header.items() if k != "digest"}), content))
    with pytest.raises(FileError, match="digest"):
        read(written(json.dumps(header), content | {"b": np.array(7.25, np.float32)}))
    with pytest.raises(FileError, match="digest"):  # the same bytes as another type, or shape
        read(written(json.dumps(header), content | {"b": content["b"].view(np.int32)}))
    with pytest.raises(FileError, match="digest"):
        read(written(json.dumps(header), content | {"G": content["G"].reshape(3, 2)}))
    exact = json.dumps(header, sort_keys=True)
    assert read(written(exact, content))[0]["n"] == 3
    twice = exact.replace('"n": 3', '"n": 4, "n": 3')
    for other in (exact + " ", exact.replace("2.5", "2.50"), exact.replace("u00e4", "u00E4"), twice):
        assert other != exact
        with pytest.raises(FileError, match="altered"):  # the same, written otherwise
            read(written(other, content))


@pytest.mark.parametrize("version", [0, -1, 2, "1", True, 1.0, None, [1], 2**70])
def test_other_versions_are_refused(version: Any) -> None:
    header, content = opened(DATA)
    with pytest.raises(FileError, match=r"^it has version .* reads 1 to 1") as refusal:
        read(closed(header | {"version": version}, content))
    newer = type(version) is int and version > 1
    assert ("newer tytoalba: upgrade" in str(refusal.value)) == newer


def test_older_versions_and_unknown_entries_are_read() -> None:
    assert read(DATA, version=3)[0]["version"] == 1
    header, content = opened(DATA)
    assert read(closed(header | {"later": {"more": 1}}, content))[0]["later"] == {"more": 1}


def test_other_kinds_are_named() -> None:
    with pytest.raises(FileError, match="it is not a state of tytoalba but tytoalba-thing"):
        unpack(DATA, "state", 1, "it")
    for text in ('{"a": 1}', "[]", "3", '{"format": null}', '{"format": {"tytoalba-thing": 1}}'):
        with pytest.raises(FileError, match="it is not a thing of tytoalba but"):
            read(written(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"format": "tytoalba-thing", "version": 1, "n": NaN}',
        '{"format": "tytoalba-thing", "version": 1, "n": -Infinity}',
        '{"format": "tytoalba-thing", "version": 1, "n": 1e999}',
        '{"format": "tytoalba-thing", "version": 1, "n": ' + "9" * 5000 + "}",
    ],
)
def test_headers_that_are_no_plain_json_are_refused(text: str) -> None:
    with pytest.raises(FileError, match="it is damaged or no file of tytoalba"):
        read(written(text))
    assert kind_of(written(text)) in ("", "thing")


def test_a_table_that_says_a_thing_twice_is_refused() -> None:
    inner = json.dumps('{"format": "tytoalba-thing", "version": 1}')
    one = '{"dtype":"I8","shape":[0],"data_offsets":[0,0]}'
    for table in (
        f'{{"__metadata__":{{"tytoalba":{inner},"tytoalba":{inner}}}}}',
        f'{{"a":{one},"a":{one}}}',
    ):
        text = table.encode()
        with pytest.raises(FileError, match="says a thing twice"):
            read(struct.pack("<Q", len(text)) + text)


@pytest.mark.parametrize("length", [0, 1, 2, 9, 1000, 2**31, 2**40, 2**62, 2**64 - 1])
def test_lengths_of_headers_that_lie_are_refused_without_taking_memory(length: int) -> None:
    data = struct.pack("<Q", length) + DATA[8:]
    tracemalloc.start()
    try:
        with pytest.raises(FileError):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 7, b"\0" * 100, b"PK\x03\x04" + bytes(60), b"age-encryption.org"]
)
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(FileError, match="it is damaged or no file of tytoalba"):
        read(data)
    assert kind_of(data) == ""


def test_safetensors_of_others_are_refused() -> None:
    for other in (save({"a": np.zeros(2)}), save({"a": np.zeros(2)}, {"format": "pt"})):
        with pytest.raises(FileError, match="damaged or no file of tytoalba"):
            read(bytes(other))
        assert kind_of(bytes(other)) == ""


def test_what_could_not_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "LARGEST_HEADER", 4096)
    assert read(pack("thing", 1, {"names": ["x" * 90] * 30}, {}))
    with pytest.raises(FileError, match="keep fewer lessons"):
        pack("thing", 1, {"names": ["x" * 90] * 60}, {})


def test_tensors_that_do_not_fit_on_the_disk_leave_what_was_there(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")  # of POSIX: no file may become larger than we say
    path = tmp_path / "kept.safetensors"
    write_tensors(path, {"a": np.arange(4)}, {"n": 1})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OSError, match=r"kept.safetensors could not be written: "):
            write_tensors(path, {"a": np.zeros(100_000)}, {"n": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_arrays_and_header_come_back(tmp_path: Path) -> None:
    path, header = tmp_path / "file", {"format": "x", "steps": [1, 2.5]}
    write_tensors(path, {"a": np.arange(4), "b": np.zeros((2, 0))}, header)
    found, values = read_tensors(path)
    assert found == read_header(path) == header
    assert values["a"].tolist() == [0, 1, 2, 3]
    assert values["b"].shape == (2, 0)
    path.write_bytes(written("[1]"))
    assert read_header(path) == read_tensors(path)[0] == {}


@pytest.mark.parametrize("content", [b"", b"RIFF", b"\xff" * 100, written("{"), written("[" * 100_000)])
def test_what_is_something_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for read in (read_tensors, read_header):
        with pytest.raises(FileError, match="file is damaged or something else"):
            read(path)
