"""What goes over the network: functions by name, plain arguments, and answers in our own format.

An answer is a file in memory (`storage.tensors.pack`): it says what it is and has a digest. What goes wrong
on a worker is an answer, too, so that nothing that a worker says of an error is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tytoalba import errors
from tytoalba.errors import ClusterError, TytoError
from tytoalba.storage.parallel import single_threaded
from tytoalba.storage.tensors import Arrays, kind_of, pack, unpack
from tytoalba.texts.printing import shown

REFUSAL, VERSION = "refusal", 1
LONGEST = 4000
"""Letters of a refusal."""


def perform(function: Callable[..., bytes], *arguments: Any) -> bytes:
    """Run one of our functions on a worker, with one BLAS thread; what goes wrong is an answer, too."""
    refused = [one for one in arguments if isinstance(one, bytes) and kind_of(one) == REFUSAL]
    if refused:
        return refused[0]
    try:
        return single_threaded(lambda _: function(*arguments), None)
    except (TytoError, OSError) as error:
        return refusal(type(error).__name__, str(error))
    except Exception as error:
        return refusal("ClusterError", f"a worker failed with {type(error).__name__}: {error}")


def refusal(kind: str, message: str) -> bytes:
    """An answer that says what is wrong. kind: the name of an error class."""
    return pack(REFUSAL, VERSION, {"error": kind, "message": shown(message)[:LONGEST]}, {})


def answer(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """An answer of this kind."""
    return pack(kind, VERSION, header, arrays)


def read_answer(data: object, kind: str, largest: int) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of an answer; a refusal is raised, and anything else that is not of this kind.

    largest: bytes that it may have.
    """
    if not isinstance(data, bytes):
        raise ClusterError(f"a worker answered with {type(data).__name__}, not with bytes: is it ours?")
    if kind_of(data) == REFUSAL:
        told, _ = unpack(data, REFUSAL, VERSION, "a refusal")
        raise _error(str(told.get("error")), str(told.get("message")))
    if len(data) > largest:
        raise ClusterError(
            f"a worker answered with {len(data)} bytes, and {largest} are the most: is it ours?"
        )
    return unpack(data, kind, VERSION, f"the answer of a worker ({kind})")


def _error(kind: str, message: str) -> Exception:
    """The refusal of a worker as an error of ours."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, TytoError) and found is not errors.MissingExtraError:
        return found(message)
    return ClusterError(message)
