"""Errors say what is missing wherever they are raised, in a process of their own too."""

from __future__ import annotations

import pickle
import traceback
from functools import partial

import pytest

from tytoalba.errors import MissingExtraError, TytoError, TytoWarning
from tytoalba.storage.parallel import parallel_map


def fail(number: int, message: str) -> None:
    raise MissingExtraError(message, "sim") if number else TytoError(message)


def test_a_missing_extra_gets_out_of_a_process_pool() -> None:
    error = MissingExtraError("plots", "plot")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args) == (MissingExtraError, str(error), error.args)
    with pytest.raises(MissingExtraError, match=r"rooms need the extra 'sim': pip install 'tytoalba\[sim\]'"):
        list(parallel_map(partial(fail, message="rooms"), [1, 1], 2))


def test_messages_steer_no_terminal_and_show_no_key() -> None:
    """Also those that a program logs itself."""
    key = "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
    for kind in (TytoError, TytoWarning):
        assert str(kind(f"a\x1b[2J\nb {key}")) == r"a\x1b[2J\nb (secret key)"
    assert key not in "".join(traceback.format_exception(TytoError(key)))
