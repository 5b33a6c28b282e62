"""What goes wrong, named by its room: what came, what was expected, the likely cause and the remedy."""

from __future__ import annotations


class TytoError(ValueError):
    """Anything that tytoalba refuses; the command line prints it without a traceback."""


class ArrayError(TytoError):
    """A microphone array that cannot be right."""


class AudioError(TytoError):
    """Sound that cannot be used: wrong channels, empty, not finite, unreadable."""


class DataError(TytoError):
    """A data set whose files are missing, damaged, hostile or of another layout."""


class FileError(TytoError):
    """A model, state or other file of ours that is damaged, altered, foreign or newer."""


class HeadError(TytoError):
    """Rows, files or requests that a head refuses; the head is as it was before."""


class SealError(TytoError):
    """Something sealed that does not open, or keys that cannot be used; nothing was half written."""


class WrongKeyError(SealError):
    """Sealed for others: none of the keys at hand opens it."""


class MissingExtraError(TytoError, ImportError):
    """An optional dependency that is not installed.

    >>> str(MissingExtraError("plots", "plot"))
    "plots need the extra 'plot': pip install 'tytoalba[plot]'"
    """

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} need the extra '{extra}': pip install 'tytoalba[{extra}]'")


class TytoWarning(UserWarning):
    """Something usable but suspicious: clipping, silence, a dead channel."""
