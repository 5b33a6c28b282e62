"""Pickles: everything that SSLR holds is read, nothing that anyone can write is run."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tytoalba.data import unpickle
from tytoalba.errors import DataError

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**127), 2**127 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(value=plain, protocol=st.sampled_from(PROTOCOLS))
def test_plain_values_come_back(value: object, protocol: int) -> None:
    got = unpickle.load(pickle.dumps(value, protocol))
    assert repr(got) == repr(value)  # repr tells True from 1, a tuple from a list, and knows NaN


@settings(max_examples=60, deadline=None)
@given(
    array=hnp.arrays(
        dtype=st.one_of(
            hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes()
        ).filter(lambda dtype: dtype.itemsize <= 8),
        shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    protocol=st.sampled_from(PROTOCOLS),
    fortran=st.booleans(),
)
def test_numeric_arrays_come_back(array: np.ndarray[Any, Any], protocol: int, fortran: bool) -> None:
    array = np.asfortranarray(array) if fortran else array
    with np.errstate(all="ignore"):  # of large numbers the sum may be infinite
        total = array.sum()
    loaded: Any = unpickle.load(pickle.dumps((array, array, total), protocol))
    got, again, scalar = loaded
    assert got is again
    assert got.dtype == array.dtype.newbyteorder("=")
    assert got.flags.owndata or got.size == 0
    assert got.flags.writeable
    np.testing.assert_array_equal(got, array)
    np.testing.assert_array_equal(scalar, total)
    assert type(scalar) is type(total)


# What Python 2 writes, by hand: byte strings, and numpy under its old name.


def py2_string(text: bytes) -> bytes:
    return pickle.SHORT_BINSTRING + bytes([len(text)]) + text


def py2_array(shape: tuple[int, ...], code: bytes, data: bytes) -> bytes:
    """A numpy array as numpy 1.x under Python 2 pickles it with protocol 2."""
    sides = b"".join(b"K" + bytes([n]) for n in shape)
    dtype = b"cnumpy\ndtype\nq\x04(" + py2_string(code) + b"K\x00K\x01tRq\x05"
    dtype += b"(K\x03" + py2_string(b"<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    start = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85" + py2_string(b"b")
    return start + b"\x87Rq\x03(K\x01(" + sides + b"t" + dtype + b"\x89" + py2_string(data) + b"tb"


def test_python_2_protocol_2() -> None:
    xyz = struct.pack("<3d", 1.0, -2.0, 0.5)
    source = py2_array((3,), b"f8", xyz) + b"K\x01" + py2_string(b"f\xe901") + b"\x87q\x10"
    got: Any = unpickle.load(b"\x80\x02]q\x00(K\x00]\x86K\x01]" + source + b"a\x86e.")
    assert got[0] == (0, [])
    frame_id, [(position, kind, speaker)] = got[1]
    assert (frame_id, kind, speaker) == (1, 1, "fé01")
    np.testing.assert_array_equal(position, [1.0, -2.0, 0.5])


def test_python_2_protocol_1() -> None:
    source = b"((G" + struct.pack(">d", 1.5) + b"K\x02J\xfe\xff\xff\xfftq\x01K\x01U\x03f01tq\x02"
    assert unpickle.load(b"]q\x00(I7\n]q\x03" + source + b"atq\x04a.") == [(7, [((1.5, 2, -2), 1, "f01")])]


def test_python_2_protocol_0() -> None:
    text = b"(lp0\n(I0\n(lp1\ntp2\na(I1\n(lp3\n((F1.5\nI-2\nL7L\ntp4\nI01\n"
    text += b"S'it\\'s \\xe9\\n'\np5\ntp6\nag6\natp7\na."
    source = ((1.5, -2, 7), True, "it's é\n")
    assert unpickle.load(text) == [(0, []), (1, [source, source])]


def test_python_2_numpy_protocol_0() -> None:
    text = (
        b"cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy\nndarray\np1\n(I0\ntp2\nS'b'\np3\ntp4\nRp5\n"
        b"(I1\n(I2\ntp6\ncnumpy\ndtype\np7\n(S'i2'\np8\nI0\nI1\ntp9\nRp10\n(I3\nS'<'\np11\nNNNI-1\nI-1\nI0\n"
        b"tp12\nbI00\nS'\\x01\\x00\\xff\\xff'\np13\ntp14\nb."
    )
    assert unpickle.load(text).tolist() == [1, -1]  # type: ignore[attr-defined]


def test_reads_a_file_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "labels.pkl"
    path.write_bytes(pickle.dumps([1, 2], 2))
    assert unpickle.load(path) == unpickle.load(str(path)) == [1, 2]
    path.write_bytes(b"cposix\nsystem\n.")
    with pytest.raises(DataError, match=r"labels\.pkl: wants to use 'posix\.system'"):
        unpickle.load(path)
    with pytest.raises(DataError, match=r"nothing\.pkl: no such file"):
        unpickle.load(tmp_path / "nothing.pkl")
    with pytest.raises(DataError, match="no such file"):
        unpickle.load(tmp_path)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.pkl"
    with path.open("wb") as file:
        file.truncate(unpickle.MAX_BYTES + 1)
    with pytest.raises(DataError, match=r"large\.pkl: larger than 64 MiB"):
        unpickle.load(path)


class Runs:
    """An object whose pickle calls something."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_programs_are_refused_by_name_and_not_run(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "it-ran"
    touch = Runs(os.system, f"touch {marker}")
    code = f"open({str(marker)!r}, 'w')"
    hostile = {
        "system": touch,
        "eval": Runs(eval, code),
        "exec": Runs(exec, code),
        "getattr": Runs(getattr, "a", "b"),
        "Path": tmp_path,
        "Runs": Runs,
        "open": Runs(open, str(marker), "w"),
        "complex": 1j,
        "set": Runs(set, [1]),
    }
    for name, value in hostile.items():
        for nested in (value, [value], [(0, [((1.0, value, 0.0), 1, "f01")])]):
            with pytest.raises(DataError, match=name):
                unpickle.load(pickle.dumps(nested, protocol))
    unpickled_by_python = pickle.dumps(touch, protocol)
    assert not marker.exists()
    pickle.loads(unpickled_by_python)
    assert marker.exists()  # the trap was armed


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "array",
    [
        np.array([Runs(print, "it ran"), None], dtype=object),
        np.array(["text"]),
        np.array([b"text"]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array(["2017-05-13"], dtype="M8[D]"),
        np.array([1 + 2j]),
        np.ma.masked_array([1.0], mask=[True]),
        np.float64,
        np.dtype("f8"),
        np.ndarray,
    ],
    ids=lambda array: str(getattr(array, "dtype", array))[:20],
)
def test_other_arrays_are_refused(array: Any, protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError):
        unpickle.load(pickle.dumps([array], protocol))
    assert capsys.readouterr().out == ""


ARRAY = py2_array((2, 2), b"i2", b"12345678")


@pytest.mark.parametrize(
    "data",
    {
        "nothing": b"",
        "text": b"hello world\n",
        "zip": b"PK\x03\x04" + bytes(100),
        "no stop": b"\x80\x02]",
        "two values": b"NN.",
        "open mark": b"(N.",
        "empty stack": b".",
        "tuple of nothing": b"\x87.",
        "append to a tuple": b")Na.",
        "append to nothing": b"Na.",
        "appends without mark": b"]Ne.",
        "memo without value": b"q\x00.",
        "memo never put": b"h\x07.",
        "memo of nonsense": b"gxx\n.",
        "protocol 77": b"\x80\x4dN.",
        "large string": b"\x80\x02T\xff\xff\xff\x7fabc.",
        "negative string": b"\x80\x02T\xff\xff\xff\xffabc.",
        "huge bytes": b"\x80\x04\x8e" + b"\xff" * 8 + b"abc.",
        "huge text": b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7fabc.",
        "huge long": b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        "long of 17 bytes": b"\x80\x02\x8a\x11" + b"\x01" * 17 + b".",
        "digits without end": b"I" + b"9" * 100_000 + b"\n.",
        "float without end": b"F" + b"9" * 100_000 + b"\n.",
        "no number": b"Iseven\n.",
        "bad utf-8": b"\x80\x02X\x02\x00\x00\x00\xff\xfe.",
        "bad escape": b"S'\\q'\n.",
        "trailing backslash": b"S'\\'\n.",
        "no quotes": b"Sabc\n.",
        "bad unicode escape": b"V\\u12\n.",
        "persistent id": b"P1\n.",
        "binary persistent id": b"N\x51.",
        "extension code": b"\x82\x01.",
        "extension code 2": b"\x83\x01\x01.",
        "extension code 4": b"\x84\x01\x01\x01\x01.",
        "dict": b"}.",
        "set": b"\x80\x04\x8f.",
        "out-of-band buffer": b"\x80\x05\x97.",
        "instance": b"(S'echo'\nios\nsystem\n.",
        "instance of an array": b"(inumpy\nndarray\n.",
        "object": b"(cos\nsystem\no.",
        "newobj of an array": b"cnumpy\nndarray\n)\x81.",
        "a global alone": b"cnumpy\nndarray\n.",
        "a dtype alone": b"cnumpy\ndtype\n(U\x02f8K\x00K\x01tR.",
        "dotted global": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        "stack global of numbers": b"\x80\x04K\x01K\x02\x93.",
        "call of a number": b"K\x01)R.",
        "call of a list": b"]]R.",
        "build of a list": b"])b.",
        "call of the array class": b"cnumpy\nndarray\n(K\x02tR.",
        "half an array": b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R.",
        "self in list": b"]q\x00h\x00a.",
        "self in tuple in list": b"]q\x00h\x00\x85a.",
        "encode to elsewhere": b"c_codecs\nencode\n(V1\nVrot13\ntR.",
        "bytes of a size": b"c__builtin__\nbytes\n(I1000000000\ntR.",
        "too few bytes": ARRAY.replace(b"12345678", b"1234567").replace(b"U\x081", b"U\x071") + b".",
        "wrong shape": ARRAY.replace(b"(K\x02K\x02t", b"(K\x02K\x03t") + b".",
        "huge shape": ARRAY.replace(b"(K\x02K\x02t", b"(K\x02J\xff\xff\xff\x7ft") + b".",
        "negative shape": ARRAY.replace(b"(K\x02K\x02t", b"(J\xfe\xff\xff\xffJ\xfe\xff\xff\xfft") + b".",
        "zero times huge": ARRAY.replace(
            b"(K\x02K\x02t", b"(K\x00" + b"\x8a\x0f" + b"\x7f" * 15 + b"t"
        ).replace(b"U\x0812345678", b"U\x00")
        + b".",
        "thousand dimensions": ARRAY.replace(b"(K\x02K\x02t", b"(" + b"K\x01" * 1000 + b"t") + b".",
        "object dtype": ARRAY.replace(b"i2", b"O8") + b".",
        "wide dtype": ARRAY.replace(b"i2", b"V9") + b".",
        "dtype with fields": ARRAY.replace(b"U\x01<NNN", b"U\x01<N]]") + b".",
        "dtype of no order": ARRAY.replace(b"U\x01<", b"U\x01|") + b".",
        "bools of 2": ARRAY.replace(b"i2", b"b1")
        .replace(b"U\x01<", b"U\x01|")
        .replace(b"(K\x02K\x02t", b"(K\x08t")
        + b".",
    }.items(),
    ids=lambda item: item[0],
)
def test_damage_and_tricks_are_refused(data: tuple[str, bytes]) -> None:
    with pytest.raises(DataError):
        unpickle.load(data[1])


def test_the_tricks_are_made_from_an_array_that_is_fine() -> None:
    assert unpickle.load(ARRAY + b".").shape == (2, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b".",
        b"\x80\x02]" + b"\x85" * 100_000 + b".",
        b"\x80\x02]" + b"q\x00h\x00\x86" * 1000 + b".",  # doubles with every step, if copied
        b"\x80\x02N"
        + b"\x85" * 30
        + b"q\x00"
        + b"h\x00"
        + b"\x85" * 30
        + b"\x86.",  # deep only through sharing
    ],
    ids=["marks", "tuples", "doubling", "shared"],
)
def test_nesting_is_limited(data: bytes) -> None:
    with pytest.raises(DataError, match=r"nested|damaged"):
        unpickle.load(data)


def test_sharing_does_not_multiply_the_work() -> None:
    data = b"\x80\x02]" + b"q\x00h\x00\x86" * 40 + b"."  # a tree of 2^40 leaves, and only 40 tuples
    assert isinstance(unpickle.load(data), tuple)


def test_memo_indices_reserve_no_memory() -> None:
    assert unpickle.load(b"\x80\x02Nr\xff\xff\xff\xff.") is None
    with pytest.raises(DataError, match="memo"):
        unpickle.load(b"Np99999999999999999999\n.")


def test_one_string_does_not_become_many_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickle, "MAX_BYTES", 10_000)
    text = b"T" + struct.pack("<i", 5000) + bytes(5000) + b"q\x20"
    array = (
        py2_array((8,), b"i2", b"12345678")
        .replace(b"(K\x08t", b"(M\xc4\x09t")
        .replace(b"U\x0812345678", b"h\x20")
    )
    assert len(unpickle.load(b"(" + text + array * 2 + b"l.")) == 3  # type: ignore[arg-type]
    with pytest.raises(DataError, match="together"):
        unpickle.load(b"(" + text + array * 5 + b"l.")


def test_the_number_of_instructions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickle, "MAX_STEPS", 100)
    with pytest.raises(DataError, match="instructions"):
        unpickle.load(b"\x80\x02(" + b"]" * 200 + b"l.")


def only_data_errors(data: bytes) -> None:
    with contextlib.suppress(DataError):
        unpickle.load(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
@example(b"\x80\x02")
def test_any_bytes(data: bytes) -> None:
    only_data_errors(data)


OPCODES = st.sampled_from(sorted(unpickle._STEPS)) | st.binary(min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(st.lists(OPCODES | st.sampled_from([b"cnumpy\nndarray\n", b"I2\n", ARRAY, b"U\x01b"]), max_size=30))
def test_any_instructions(steps: list[bytes]) -> None:
    only_data_errors(b"".join(steps) + b".")


VALID = [
    pickle.dumps(
        [(t, [((1.0, 2.0, 0.5), 1, "f01"), (np.ones(3), np.int64(1), b"x")]) for t in range(3)], protocol
    )
    for protocol in PROTOCOLS
]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_valid_pickles_with_changed_bytes(data: st.DataObject) -> None:
    changed = bytearray(data.draw(st.sampled_from(VALID)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    only_data_errors(bytes(changed))


@pytest.mark.parametrize("valid", [VALID[0], VALID[2], VALID[-1]])
def test_valid_pickles_cut_short(valid: bytes) -> None:
    unpickle.load(valid)
    for end in range(len(valid) - 1):
        with pytest.raises(DataError):
            unpickle.load(valid[:end])
