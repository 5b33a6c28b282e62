"""Damaged and hostile versions of files: of bytes, of text, of JSON, of tensors and of pickles.

Every function takes what is to be changed and a `Random`; the same seed gives the same bytes. Nothing here
knows our formats; `kinds` does.
"""

from __future__ import annotations

import json
import pickletools
import re
import struct
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any, Literal

LARGEST = 200_000
"""Bytes of an input at most: long enough to find what takes quadratic time."""
INTEGERS = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000, 4095, 4096, 32767, 32768]
INTEGERS += [65535, 65536, 2**20, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63]
NUMBERS = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1e999",
    "-1e-999",
    "-0",
    "-0.0",
    "0x10",
    "1_000",
    "٣",
    "1e5",
    "1E-320",
]
NUMBERS += ["2147483648", "9223372036854775808", "-1", "0.1", "1.", ".5", "+5", "007", "true", "9" * 400]
ODD = ["\x00", "\x1b[2J", "\x1b]0;x\x07", "\ufeff", "\u202e", "\u2028", "\x7f", "\x85", "é", "😀", "\ud800"]
ODD += ["'", '"', "\\", "\n", "\r", "\t", ",", "=", "#", "/*", "*/", "//", "[", "]", "{", "}", "(", ")", "%s"]
ODD += ["../../../etc/passwd", "AGE-SECRET-KEY-1", "<script>", "=1+1", "-" * 300]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**64,
    -(2**63),
    10**400,
    0.5,
    -0.0,
    1e308,
]
VALUES += [float("nan"), float("inf"), float("-inf"), "", "a", "\x1b[2J", "\ud800", "x" * 3000, [], {}, [[]]]
VALUES += [[None], {"": None}, [0] * 300]
TOKEN = re.compile(r"[A-Za-z_][\w.-]*|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\"[^\"\n]*\"|\s+|.", re.DOTALL)
BRACKETS = ["[]", "{}", "()", '""', "[[]]", "'''", '"""', "/**/"]

Change = Callable[[bytes, Sequence[bytes], Random], bytes]


# ---- bytes ----


def _place(data: bytes, rng: Random, longest: int = 64) -> tuple[int, int]:
    """A piece of data, from and to."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + 1 + rng.randrange(longest))


def _flip(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _overwrite(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    start, stop = _place(data, rng)
    fill = rng.choice([bytes(1), b"\xff", b" ", b"0", b"\n"]) * (stop - start)
    return data[:start] + rng.choice([fill, rng.randbytes(stop - start)]) + data[stop:]


def _cut(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return rng.choice([data[:at], data[at:], data[:-1]])


def _drop(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    start, stop = _place(data, rng, rng.choice([1, 8, 64, 4096]))
    return data[:start] + data[stop:]


def _repeat(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    start, stop = _place(data, rng, rng.choice([1, 4, 64, 4096]))
    times = rng.choice([2, 2, 3, 20, 300, 5000])
    return data[:start] + (data[start:stop] * times)[:LARGEST] + data[stop:]


def _insert(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    new = rng.choice([rng.randbytes(1 + rng.randrange(32)), rng.choice(ODD).encode("utf-8", "surrogatepass")])
    return data[:at] + new + data[at:]


def _splice(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _swap(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    a, b = sorted(_place(data, rng))
    c, d = _place(data[b:], rng)
    return data[:a] + data[b + c : b + d] + data[b : b + c] + data[a:b] + data[b + d :]


def _integer(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    """A number of 1, 2, 4 or 8 bytes, as a length or a count would be, made extreme or a little wrong."""
    size = rng.choice([1, 2, 4, 8])
    if len(data) < size:
        return data
    order: Literal["little", "big"] = "little" if rng.random() < 0.5 else "big"
    at = rng.randrange(min(len(data) - size + 1, rng.choice([16, 64, 512, len(data)])))
    old = int.from_bytes(data[at : at + size], order)
    new = rng.choice([rng.choice(INTEGERS), old + rng.choice([-8, -1, 1, 8]), old * 2, -old, ~old])
    return data[:at] + (new % (1 << 8 * size)).to_bytes(size, order) + data[at + size :]


BYTES: list[Change] = [
    _flip,
    _flip,
    _overwrite,
    _cut,
    _drop,
    _repeat,
    _insert,
    _splice,
    _swap,
    _integer,
    _integer,
]


def of_bytes(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A few changes that know nothing of the content. others: what to splice with."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        data = rng.choice(BYTES)(data, others, rng)[:LARGEST]
    return data


# ---- text ----


def of_text(data: bytes, _others: Sequence[bytes], rng: Random) -> bytes:
    """A few changes of words, numbers, brackets and lines."""
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        change = rng.choice([_token, _token, _token, _line, _nest, _odd])
        text = change(text, rng)[:LARGEST]
    return text.encode("utf-8", "surrogatepass")


def _token(text: str, rng: Random) -> str:
    tokens = TOKEN.findall(text)
    if not tokens:
        return rng.choice(ODD)
    at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    how = rng.randrange(6)
    if how == 0:
        del tokens[at]
    elif how == 1:
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif how == 2:
        tokens[at] = tokens[other]
    elif how == 3:
        tokens[at] = (tokens[at] * rng.choice([2, 3, 5000]))[:LARGEST]
    else:
        numbers = [k for k, token in enumerate(tokens) if token[-1:].isdigit()]
        at = rng.choice(numbers or [at])
        tokens[at] = rng.choice([*NUMBERS, "9" * 6000]) if how == 4 else str(rng.choice(INTEGERS))
    return "".join(tokens)


def _line(text: str, rng: Random) -> str:
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif how == 2:
        times = min(rng.choice([1, 2, 2000]), 1 + LARGEST // (1 + len(lines[other])))
        lines[at:at] = [lines[other]] * times
    else:
        lines[at] = lines[at].replace(rng.choice(["=", ",", " ", '"', ";"]), rng.choice(ODD))
    return rng.choice(["\n", "\n", "\n", "\r\n", "\r"]).join(lines)


def _nest(text: str, rng: Random) -> str:
    """Brackets around a piece, or opened and never closed, perhaps thousands of them."""
    start, stop = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    pair, times = rng.choice(BRACKETS), rng.choice([1, 2, 50, 3000, 30000])
    half = len(pair) // 2
    end = rng.choice(["", pair[half:] * times])
    return text[:start] + pair[:half] * times + text[start : min(stop, start + 40)] + end + text[stop:]


def _odd(text: str, rng: Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(ODD) + text[at:]


# ---- what JSON can say ----


def of_value(value: Any, rng: Random, changes: int = 0) -> Any:
    """A JSON value with some of its parts replaced, removed, doubled, moved or nested; a new value."""
    value = json.loads(json.dumps(value))
    for _ in range(changes or rng.choice([1, 1, 1, 2, 3])):
        holder: Any = {"": value}
        place: tuple[Any, Any] = (holder, "")
        while True:  # walk down to some part
            inside = place[0][place[1]]
            if not isinstance(inside, dict | list) or not inside or rng.random() < 0.25:
                break
            keys = list(inside) if isinstance(inside, dict) else range(len(inside))
            place = (inside, rng.choice(keys))
        _part(*place, rng)
        value = holder.get("")
        if len(json.dumps(value)) > LARGEST:  # what is doubled again and again grows without end
            break
    return value


def _part(holder: Any, key: Any, rng: Random) -> None:
    old, how = holder[key], rng.randrange(8)
    if how < 3:
        holder[key] = deepcopy(rng.choice(VALUES))
    elif how == 3 and type(old) in (int, float) and abs(old) < 1e100:
        holder[key] = rng.choice([old + 1, old - 1, -old, old * 2, float(old), str(old), old * 10**9])
    elif how == 3 and isinstance(old, str):
        holder[key] = of_text(old.encode("utf-8", "replace"), [b""], rng).decode("utf-8", "replace")
    elif how == 4:
        holder[key] = rng.choice([[old], {"a": old}, [old, old], str(old)])
    elif how == 5:
        nested: Any = old
        for _ in range(rng.choice([5, 60, 400])):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        holder[key] = nested
    elif isinstance(holder, dict):
        del holder[key]
        if how == 6:
            holder[rng.choice([str(key) + "_", "", "format", "version", "a", "\x1b[2J"])] = old
    else:
        holder[key:key] = [old] * (rng.choice([1, 2, 300]) if len(json.dumps(old)) < 300 else 1)


def of_json(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A JSON file that is still one, with other values; what is none is changed as text."""
    try:
        value = of_value(json.loads(data), rng)
        return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")[:LARGEST]
    except (ValueError, RecursionError):
        return of_text(data, others, rng)


# ---- tensors ----


def of_tensors(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A safetensors file whose header says something else, in types, shapes, places or our own part of it."""
    try:
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + length])
        own = json.loads(header["__metadata__"]["tytoalba"])
    except (ValueError, LookupError, TypeError, struct.error):
        return of_bytes(data, others, rng)
    content = data[8 + length :]
    how = rng.randrange(4)
    if how == 0:
        header = of_value(header, rng)
    elif how == 1:
        names = sorted(set(header) - {"__metadata__"})
        name = rng.choice(names)
        header[name] = of_value(header[name], rng)
    elif how == 2:
        content = of_bytes(content, [content], rng)
    if how >= 2:
        header["__metadata__"]["tytoalba"] = json.dumps(of_value(own, rng))
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return (struct.pack("<Q", len(text)) + text + content)[:LARGEST]


# ---- pickles ----


def of_pickle(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A pickle whose instructions were moved, doubled, left out or exchanged for others."""
    try:
        marks = [place for _, _, place in pickletools.genops(data) if place is not None] + [len(data)]
    except Exception:  # a mutated seed of the corpus is none
        return of_bytes(data, others, rng)
    steps = [data[a:b] for a, b in pairwise(marks)]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at, other = rng.randrange(len(steps)), rng.randrange(len(steps))
        how = rng.randrange(5)
        if how == 0 and len(steps) > 1:
            del steps[at]
        elif how == 1:
            steps[at], steps[other] = steps[other], steps[at]
        elif how == 2:
            steps[at:at] = [steps[other]] * rng.choice([1, 3, 1000])
        elif how == 3:
            steps[at] = rng.choice(pickletools.opcodes).code.encode("latin1") + steps[at][1:]
        else:
            steps[at] = of_bytes(steps[at], steps, rng)
    return b"".join(steps)[:LARGEST]
