"""Pickles from strangers, read by a machine that knows only the harmless instructions.

A pickle is a program for a small stack machine, and Python's own machine runs whatever the program
names. This one builds tuples, lists, numbers, strings, None and numeric numpy arrays, and has no
instruction that calls anything: numpy's own reconstruction is never reached, because a crafted
state makes it read and write memory it does not own. Python 2 and Python 3 pickles of every
protocol are understood; Python 2 byte strings become text by iso-8859-1.
"""

from __future__ import annotations

import math
import os
import pickle  # only the names of its instructions: nothing here unpickles with it
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import DataError

MAX_BYTES = 64 * 2**20
"""Largest file; its arrays may hold as much together."""
MAX_STEPS = 2_000_000
"""Most instructions: the labels of two sources that talk for an hour take about a million."""
MAX_DEPTH = 50
MAX_DIMENSIONS = 8
MAX_INTEGER_BYTES = 16
MAX_DIGITS = 41

_ARRAY_TYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_ESCAPES = {b"\\\\": b"\\", b"\\'": b"'", b'\\"': b'"', b"\\n": b"\n", b"\\r": b"\r", b"\\t": b"\t"}


def load(source: str | os.PathLike[str] | bytes) -> object:
    """Read a pickle from its file, or from its bytes, without running anything.

    Returns tuples, lists, numbers, strings, bytes, None and numpy arrays or scalars of numbers.
    Everything else is refused with a DataError that names the file: programs, objects, dicts,
    damaged bytes, nesting beyond `MAX_DEPTH`, files over `MAX_BYTES`.

    >>> load(pickle.dumps([(0, [((1.0, 2.0, 0.5), 1, "f01")])], protocol=2))
    [(0, [((1.0, 2.0, 0.5), 1, 'f01')])]
    >>> load(b"cos\\nsystem\\n(S'echo gotcha'\\ntR.")
    Traceback (most recent call last):
    tytoalba.errors.DataError: pickle: wants to use 'os.system', which no label file needs; nothing was run
    """
    name, data = ("pickle", source) if isinstance(source, bytes) else (os.fspath(source), _read(Path(source)))
    try:
        if len(data) > MAX_BYTES:
            raise DataError(f"larger than {MAX_BYTES // 2**20} MiB, the limit; is this a label file?")
        value, _ = _finish(_Machine(data).run(), {}, 0)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    except Exception as error:  # hostile bytes find every exception there is: none of them may get out
        what = f"{type(error).__name__}: {error}"[:200]
        raise DataError(f"{name}: not a pickle, or a damaged one ({what})") from error
    return value


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error


class _Global(Enum):
    """What a pickle may name: stand-ins that only this module gives a meaning."""

    RECONSTRUCT = auto()
    FROMBUFFER = auto()
    SCALAR = auto()
    NDARRAY = auto()
    DTYPE = auto()
    ENCODE = auto()
    BYTES = auto()


_GLOBALS = {
    "numpy.core.multiarray._reconstruct": _Global.RECONSTRUCT,
    "numpy._core.multiarray._reconstruct": _Global.RECONSTRUCT,
    "numpy.core.numeric._frombuffer": _Global.FROMBUFFER,
    "numpy._core.numeric._frombuffer": _Global.FROMBUFFER,
    "numpy.core.multiarray.scalar": _Global.SCALAR,
    "numpy._core.multiarray.scalar": _Global.SCALAR,
    "numpy.ndarray": _Global.NDARRAY,
    "numpy.dtype": _Global.DTYPE,
    "_codecs.encode": _Global.ENCODE,  # bytes, as Python 3 writes them for Python 2
    "__builtin__.bytes": _Global.BYTES,  # the same, empty
    "builtins.bytes": _Global.BYTES,
}


@dataclass(eq=False)
class _DType:
    """A numpy dtype under construction: its byte order comes after its name."""

    code: str
    dtype: np.dtype[Any] | None = None


@dataclass(eq=False)
class _Array:
    """A numpy array under construction: its contents come after its creation."""

    value: NDArray[Any] | None = None


class _Machine:
    """The stack machine. Its instructions are the table `_STEPS`; there are no others."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each open mark
        self.memo: dict[int, Any] = {}
        self.bytes_left = 2 * MAX_BYTES  # Python 3 writes bytes for Python 2 so that they are copied twice

    def run(self) -> object:
        """Execute until STOP and return the one value that is left."""
        for _ in range(MAX_STEPS):
            code = self.take(1)
            if code == pickle.STOP:
                break
            step = _STEPS.get(code)
            if step is None:
                raise DataError(f"no label file needs the instruction {_opcode(code)} at byte {self.at - 1}")
            step(self)
        else:
            raise DataError(f"more than {MAX_STEPS} instructions; is this a label file?")
        if self.below or len(self.stack) != 1:
            raise DataError("damaged pickle: it ends in the middle of a value")
        return self.stack.pop()

    def take(self, n: int) -> bytes:
        """The next n bytes of the program; nothing is allocated for a claim that the file does not keep."""
        left = len(self.data) - self.at
        if not 0 <= n <= left:
            raise DataError(f"cut short: {n} bytes announced at byte {self.at}, {left} left")
        self.at += n
        return self.data[self.at - n : self.at]

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise DataError(f"cut short: a line that begins at byte {self.at} has no end")
        return self.take(end + 1 - self.at)[:-1]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def counted(self, layout: str) -> bytes:
        return self.take(self.number(layout))

    def spend(self, n: int) -> None:
        """Account for n bytes copied: a small file may ask for one big string a million times."""
        self.bytes_left -= n
        if self.bytes_left < 0:
            raise DataError(f"its arrays take more than {MAX_BYTES} bytes together; is this a label file?")

    def push(self, value: object) -> None:
        self.stack.append(value)

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return items

    def tuple_of(self, n: int) -> None:
        if len(self.stack) < n:
            raise DataError(f"damaged pickle: a tuple of {n} at byte {self.at} has too few values")
        self.stack[-n:] = [tuple(self.stack[-n:])]

    def extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise DataError(f"damaged pickle: appends to something that is no list at byte {self.at}")
        self.stack[-1].extend(items)

    def put(self, index: int) -> None:
        if not 0 <= index < 2**32:
            raise DataError(f"damaged pickle: memo index {index}")
        self.memo[index] = self.stack[-1]

    def refer(self, module: str, name: str) -> None:
        """Only a name of `_GLOBALS` becomes something, and that is a stand-in."""
        wanted = f"{module}.{name}"
        if wanted not in _GLOBALS:
            raise DataError(f"wants to use {wanted[:100]!r}, which no label file needs; nothing was run")
        self.push(_GLOBALS[wanted])

    def refer_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.refer(_text(module), _text(name))

    def reduce(self) -> None:
        """What is a call in Python: here one of the few constructions below."""
        arguments, function = self.stack.pop(), self.stack.pop()
        match function, arguments:
            case _Global.RECONSTRUCT, (_Global.NDARRAY, (0,), "b" | b"b"):
                self.push(_Array())
            case _Global.FROMBUFFER, (data, _DType() as kind, shape, "C" | "F" as order):
                self.push(_Array(self.array(kind, shape, order, data)))
            case _Global.SCALAR, (_DType() as kind, data):
                self.push(self.array(kind, (), "C", data)[()])
            case _Global.DTYPE, (str(code), int(), int()) if code in _ARRAY_TYPES:
                self.push(_DType(code))
            case _Global.DTYPE, (str(code), *_):
                raise DataError(f"numpy array of type {code[:40]!r}: only plain numbers are read")
            case _Global.ENCODE, (str(text), "latin1" | "latin-1"):
                self.spend(len(text))
                self.push(text.encode("latin1"))
            case _Global.BYTES, ():
                self.push(b"")
            case _:
                raise DataError(f"damaged or hostile pickle: a construction at byte {self.at} makes no sense")

    def build(self) -> None:
        """The second half of a dtype or an array: its state."""
        state, target = self.stack.pop(), self.stack[-1]
        match target, state:
            case _DType(dtype=None), (3, "<" | ">" | "|" as order, None, None, None, -1, -1, 0):
                if (order == "|") != (target.code[1:] == "1"):
                    raise DataError(f"damaged pickle: dtype {target.code} of byte order {order!r}")
                target.dtype = np.dtype(target.code if order == "|" else order + target.code)
            case _Array(value=None), (1, shape, _DType() as kind, bool() | 0 | 1 as fortran, data):
                target.value = self.array(kind, shape, "F" if fortran else "C", data)
            case _:
                raise DataError(f"damaged or hostile pickle: a state at byte {self.at} makes no sense")

    def array(self, kind: _DType, shape: object, order: str, data: object) -> NDArray[Any]:
        """A numpy array from bytes whose number is exactly what its shape and type ask for."""
        if kind.dtype is None or not isinstance(data, bytes | str):
            raise DataError(f"damaged pickle: a numpy array at byte {self.at} has no type or no data")
        if not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
            raise DataError(f"damaged pickle: a numpy array at byte {self.at} has no proper shape")
        if not all(type(n) is int and n >= 0 for n in shape):
            raise DataError(f"damaged pickle: a numpy array at byte {self.at} has no proper shape")
        n_bytes = math.prod(shape) * kind.dtype.itemsize
        if n_bytes != len(data):
            raise DataError(f"damaged pickle: a numpy array of {n_bytes} bytes comes with {len(data)}")
        self.spend(n_bytes)
        raw = np.frombuffer(data if isinstance(data, bytes) else data.encode("latin1"), dtype=np.uint8)
        if kind.code == "b1" and (raw > 1).any():
            raise DataError("damaged pickle: a numpy array of bools holds something else")
        values: NDArray[Any] = raw.view(kind.dtype).reshape(shape, order="F" if order == "F" else "C")
        return values.astype(kind.dtype.newbyteorder("="))


_Seen = dict[int, tuple[object, object, int] | None]
_NEEDS_WORK = {tuple, list, _Array, _DType, _Global}


def _finish(value: Any, seen: _Seen, depth: int) -> tuple[Any, int]:
    """Put the finished arrays in place of their stand-ins; returns the value and how deep it is nested.

    `seen` holds what was done already, by id (and the original too, so that no id is used twice): a
    value that is shared a million times is visited once.
    """
    kind = type(value)
    if kind not in _NEEDS_WORK:
        return value, 0
    if kind is _Array and value.value is not None:
        return value.value, 0
    if kind is not tuple and kind is not list:
        raise DataError("damaged or hostile pickle: it holds a type, or half an array, where a value belongs")
    if id(value) in seen:
        done = seen[id(value)]
        if done is None:
            raise DataError("hostile pickle: it contains itself")
        return done[1], done[2]
    if depth >= MAX_DEPTH:
        raise DataError(f"nested deeper than {MAX_DEPTH}; is this a label file?")
    seen[id(value)] = None
    finished, height = list(value), 1
    for i, item in enumerate(value):
        if type(item) in _NEEDS_WORK:
            finished[i], inner = _finish(item, seen, depth + 1)
            height = max(height, inner + 1)
    if depth + height > MAX_DEPTH:  # something shared that was visited at a shallower place
        raise DataError(f"nested deeper than {MAX_DEPTH}; is this a label file?")
    result = tuple(finished) if kind is tuple else finished
    seen[id(value)] = (value, result, height)
    return result, height


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise DataError("damaged pickle: a name that is no text")
    return value


def _digits(line: bytes) -> bytes:
    if len(line) > MAX_DIGITS:
        raise DataError(f"a number of {len(line)} characters; is this a label file?")
    return line


def _integer(line: bytes) -> int | bool:
    return {b"00": False, b"01": True}.get(line, int(_digits(line).removesuffix(b"L")))


def _long(data: bytes) -> int:
    if len(data) > MAX_INTEGER_BYTES:
        raise DataError(f"a whole number of {len(data)} bytes; is this a label file?")
    return int.from_bytes(data, "little", signed=True)


def _quoted(text: bytes) -> str:
    """A Python 2 string as its repr writes it; other escapes than those do not occur."""
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise DataError("damaged pickle: a string without its quotes")

    def unescape(found: re.Match[bytes]) -> bytes:
        escape = found.group()
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        if len(escape) == 4:
            return bytes([int(escape[2:], 16)])
        raise DataError(f"damaged pickle: unknown escape {escape!r} in a string")

    return re.sub(rb"\\(?:x[0-9a-fA-F]{2}|.?)", unescape, text[1:-1], flags=re.DOTALL).decode("latin1")


def _opcode(code: bytes) -> str:
    import pickletools

    names = {op.code: op.name for op in pickletools.opcodes}
    return f"{code!r} ({names.get(code.decode('latin1'), 'unknown')})"


def _version(protocol: int) -> None:
    if protocol > 5:
        raise DataError(f"not a pickle, or one of protocol {protocol}; 0 to 5 are known")


_STEPS: dict[bytes, Callable[[_Machine], None]] = {
    pickle.PROTO: lambda m: _version(m.number("<B")),
    pickle.FRAME: lambda m: m.number("<Q"),  # a hint for reading from a stream
    pickle.NONE: lambda m: m.push(None),
    pickle.NEWTRUE: lambda m: m.push(True),
    pickle.NEWFALSE: lambda m: m.push(False),
    pickle.INT: lambda m: m.push(_integer(m.line())),
    pickle.LONG: lambda m: m.push(_integer(m.line())),
    pickle.BININT: lambda m: m.push(m.number("<i")),
    pickle.BININT1: lambda m: m.push(m.number("<B")),
    pickle.BININT2: lambda m: m.push(m.number("<H")),
    pickle.LONG1: lambda m: m.push(_long(m.counted("<B"))),
    pickle.LONG4: lambda m: m.push(_long(m.counted("<i"))),
    pickle.FLOAT: lambda m: m.push(float(_digits(m.line()))),
    pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
    pickle.STRING: lambda m: m.push(_quoted(m.line())),
    pickle.BINSTRING: lambda m: m.push(m.counted("<i").decode("latin1")),
    pickle.SHORT_BINSTRING: lambda m: m.push(m.counted("<B").decode("latin1")),
    pickle.BINBYTES: lambda m: m.push(m.counted("<I")),
    pickle.SHORT_BINBYTES: lambda m: m.push(m.counted("<B")),
    pickle.BINBYTES8: lambda m: m.push(m.counted("<Q")),
    pickle.BYTEARRAY8: lambda m: m.push(m.counted("<Q")),  # the data of an array in protocol 5
    pickle.UNICODE: lambda m: m.push(m.line().decode("raw-unicode-escape")),
    pickle.BINUNICODE: lambda m: m.push(m.counted("<I").decode("utf-8")),
    pickle.SHORT_BINUNICODE: lambda m: m.push(m.counted("<B").decode("utf-8")),
    pickle.BINUNICODE8: lambda m: m.push(m.counted("<Q").decode("utf-8")),
    pickle.MARK: _Machine.mark,
    pickle.EMPTY_TUPLE: lambda m: m.push(()),
    pickle.TUPLE: lambda m: m.push(tuple(m.since_mark())),
    pickle.TUPLE1: lambda m: m.tuple_of(1),
    pickle.TUPLE2: lambda m: m.tuple_of(2),
    pickle.TUPLE3: lambda m: m.tuple_of(3),
    pickle.EMPTY_LIST: lambda m: m.push([]),
    pickle.LIST: lambda m: m.push(m.since_mark()),
    pickle.APPEND: lambda m: m.extend([m.stack.pop()]),
    pickle.APPENDS: lambda m: m.extend(m.since_mark()),
    pickle.PUT: lambda m: m.put(_integer(m.line())),
    pickle.BINPUT: lambda m: m.put(m.number("<B")),
    pickle.LONG_BINPUT: lambda m: m.put(m.number("<I")),
    pickle.MEMOIZE: lambda m: m.put(len(m.memo)),
    pickle.GET: lambda m: m.push(m.memo[_integer(m.line())]),
    pickle.BINGET: lambda m: m.push(m.memo[m.number("<B")]),
    pickle.LONG_BINGET: lambda m: m.push(m.memo[m.number("<I")]),
    pickle.GLOBAL: lambda m: m.refer(m.line().decode("latin1"), m.line().decode("latin1")),
    pickle.STACK_GLOBAL: _Machine.refer_stack,
    pickle.REDUCE: _Machine.reduce,
    pickle.BUILD: _Machine.build,
}
