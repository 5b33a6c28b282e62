"""Mutations behind a digest or a signature: what somebody who can make these fit would hand us.

A changed byte of a state or a ledger is noticed at once; what lies behind that is reached only by files whose
digest is made to fit, or that are signed anew with the test key, as a dishonest owner would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save

from tests.golden.contents import SIGNING_KEY, at_home
from tests.helpers.localizers import closed, opened
from tests.slow import mutate
from tytoalba.errors import TytoError
from tytoalba.storage.signatures import SigningKey, canonical

Arrays = dict[str, NDArray[Any]]
TYPES = ["i1", "i2", "i4", "i8", "u1", "f2", "f4", "f8", "?"]
UNFIT = (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What a mutated file of the corpus is, that is to be mutated further as if it were whole."""
EXTREME = [0, 1, -1, 127, -128, 32767, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]


@cache
def key() -> SigningKey:
    """The test key, which is in the repository."""
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        return SigningKey.load(home / SIGNING_KEY)


def _changed(arrays: Arrays, rng: Random) -> Arrays:
    """Some values, types, shapes or names of arrays changed."""
    arrays = dict(arrays)
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(sorted(arrays))
        values, how = arrays[name], rng.randrange(7)
        with np.errstate(all="ignore"):
            if how <= 1 and values.size:
                values = values.copy()
                at = rng.randrange(values.size)
                values.reshape(-1)[at] = _value(values.dtype, rng)
            elif how == 2:
                values = values.astype(rng.choice(TYPES))
            elif how == 3:
                values = rng.choice(
                    [values[:0], values.reshape(-1), values[None], np.repeat(values[:1], 2, axis=0)]
                )
            elif how == 4 and values.size:
                values = np.full_like(values, _value(values.dtype, rng))
            elif how == 5:
                other = rng.choice(sorted(arrays))
                arrays[other], values = values, arrays[other]
        if how == 6:
            del arrays[name]
            if not arrays or rng.random() < 0.5:
                arrays[rng.choice([name + "0", "kept.", "prior.", "a"])] = values
        else:
            arrays[name] = values
    return arrays


def _value(dtype: np.dtype[Any], rng: Random) -> Any:
    if dtype.kind == "f":
        return dtype.type(rng.choice([0.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, 0.5]))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    return dtype.type(min(max(rng.choice(EXTREME), int(limits.min)), int(limits.max)))


def of_packed(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A state or model with another header or other arrays, and the digest that fits them."""
    try:
        header, arrays = opened(data)
        if rng.random() < 0.6:
            header = mutate.of_value(header, rng)
        if rng.random() < 0.6:
            arrays = _changed(arrays, rng)
        return closed(header, arrays)
    except (TytoError, *UNFIT):
        return mutate.of_tensors(data, others, rng)
    except Exception as error:  # struct.error: a header that is too short
        if type(error).__module__ != "struct":
            raise
        return mutate.of_bytes(data, others, rng)


def of_saved(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A file of tensors without a digest, with other arrays."""
    try:
        header, arrays = opened(data)
        if rng.random() < 0.5:
            header = mutate.of_value(header, rng)
        return bytes(save(_changed(arrays, rng), {"tytoalba": json.dumps(header)}))
    except UNFIT:
        return mutate.of_tensors(data, others, rng)
    except Exception as error:
        if type(error).__module__ != "struct":
            raise
        return mutate.of_bytes(data, others, rng)


def of_ledger(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A ledger in which the owner changed a step and signed it, and all that follow, anew."""
    try:
        steps = [json.loads(line) for line in data.splitlines()]
        at = rng.randrange(len(steps))
        steps[at] = mutate.of_value(steps[at], rng)
        if rng.random() < 0.3:
            steps.insert(at, dict(rng.choice(steps)))
        chained, previous = b"", "0" * 64
        for number, step in enumerate(steps):
            if number > at or rng.random() < 0.7:
                step |= {"previous": previous, "sequence": number + 1}
            line = _signed(step, "ledger entry", "")
            chained += line + b"\n"
            previous = hashlib.sha256(line).hexdigest()
        return chained[: mutate.LARGEST]
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return mutate.of_json(data, others, rng)


def of_signature(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A manifest in which the owner changed something, signed anew."""
    try:
        fields = mutate.of_value(json.loads(data), rng)
        return _signed(fields, "manifest", None) + b"\n"
    except (ValueError, TypeError, AttributeError, RecursionError):
        return mutate.of_json(data, others, rng)


def _signed(fields: dict[str, Any], purpose: str, without: str | None) -> bytes:
    """One line with its signature. without: what the signature is while it is computed; None: left out."""
    unsigned = {name: value for name, value in fields.items() if name != "signature"}
    if without is not None:
        unsigned["signature"] = without
    return canonical({**unsigned, "signature": key().sign(canonical(unsigned), purpose)})
