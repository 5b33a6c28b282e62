"""What a client is told when something is refused: a status, and one sentence without paths or secrets."""

from __future__ import annotations

import re

from tytoalba.errors import LockedError, MissingExtraError, TytoError, UnknownLessonError
from tytoalba.texts.printing import shown

LONGEST = 600
"""Letters of one sentence."""
_FOLDERS = re.compile(r"(?<![\w.~/:-])(?:~|[A-Za-z]:)?(?:[\\/][^\\/\s:;,'\"()]+)*[\\/](?=[^\\/\s:;,'\"()])")


class Refusal(TytoError):  # noqa: N818, it is the answer
    """A request that is refused, with the status of HTTP that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: Exception) -> int:
    """The status of an error that a library raised."""
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, LockedError):
        return 409
    if isinstance(error, UnknownLessonError):
        return 404
    if isinstance(error, MissingExtraError):
        return 503
    return 400 if isinstance(error, TytoError) else 500


def told(error: Exception) -> str:
    """What a client is told of an error: of one that nobody expected nothing, and no folders of any.

    >>> told(TytoError("/home/anna/kitchen.tyto cannot be read: try again"))
    'kitchen.tyto cannot be read: try again'
    """
    if not isinstance(error, TytoError):
        return "something went wrong here; the terminal of tyto serve says what"
    text = _FOLDERS.sub("", shown(error))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
