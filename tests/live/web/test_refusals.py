from __future__ import annotations

import pytest

from tytoalba.errors import AudioError, LockedError, MissingExtraError, TytoError, UnknownLessonError
from tytoalba.live.web.refusals import LONGEST, Refusal, status_of, told


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("/home/anna/my.d/kitchen.tyto is damaged", "kitchen.tyto is damaged"),
        ("~/x/kitchen.tyto: no such file", "kitchen.tyto: no such file"),
        ("another tyto is writing /a/b.tyto; wait", "another tyto is writing b.tyto; wait"),
        (r"C:\Users\anna\kitchen.tyto is damaged", "kitchen.tyto is damaged"),
        ("'/a/b/c.tyto' and (/d/e.key)", "'c.tyto' and (e.key)"),
        ("12 m/s, 1/2, and/or https://a.test/b stay", "12 m/s, 1/2, and/or https://a.test/b stay"),
        ("AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L is no file", "(secret key) is no file"),
    ],
)
def test_folders_and_secrets_are_not_told(said: str, heard: str) -> None:
    assert told(TytoError(said)) == heard


def test_what_nobody_expected_is_not_told() -> None:
    assert "secret" not in told(KeyError("secret"))
    assert len(told(TytoError("x" * 5000))) == LONGEST + 3


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Refusal(413, ""), 413),
        (AudioError(""), 400),
        (LockedError(""), 409),
        (UnknownLessonError(""), 404),
        (MissingExtraError("", ""), 503),
        (OSError(""), 500),
    ],
)
def test_statuses(error: Exception, status: int) -> None:
    assert status_of(error) == status
