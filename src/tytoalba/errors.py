"""What goes wrong, named by its room: what came, what was expected, the likely cause and the remedy."""

from __future__ import annotations

from tytoalba.texts.printing import shown


class TytoError(ValueError):
    r"""Anything that tytoalba refuses; the command line prints it without a traceback.

    Its text is one line, fit for a terminal or a log, whatever file names it quotes.

    >>> str(TytoError("no such file: talk\x1b[2J.wav"))
    'no such file: talk\\x1b[2J.wav'
    """

    def __str__(self) -> str:
        return shown(super().__str__())


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


class LockedError(TytoError):
    """Another process is writing; nothing was touched."""


class UnknownLessonError(TytoError):
    """A recording to forget that no lesson is known of; nothing was changed."""


class LedgerError(TytoError):
    """A ledger that was altered, or that does not allow the step; it is as it was before."""


class LedgerChangedError(LedgerError):
    """Another process has written a step since this ledger was read."""


class UnfinishedStepError(LedgerError):
    """The last step is in the ledger but not in the state; `Ledger.repair` takes it back."""


class RolledBackError(LedgerError):
    """A state or ledger from before something that was done to it; `tyto restore` accepts it on purpose.

    again: the step that may not have finished, and gives the same state if it is done again.
    """

    def __init__(self, message: str, again: object = None) -> None:
        super().__init__(message)
        self.again = again


class KeyFileError(TytoError):
    """A signing key or a list of trusted keys that cannot be used."""


class SignatureError(TytoError):
    """A signature that does not hold, or that cannot be made; no file was changed."""


class UntrustedSignerError(SignatureError):
    """A signature that holds, by somebody who is not trusted."""


class PriorError(TytoError):
    """A file that holds no usable prior, or a prior of another array."""


class ClusterError(TytoError):
    """A cluster that cannot be used, or whose workers answer what they should not; nothing was changed."""


class ClusterLostError(ClusterError):
    """The connection to a cluster broke, or its work was lost; what was done is remembered."""


class ExpansionError(TytoError):
    """Input or settings that random features cannot use."""


class MissingExtraError(TytoError, ImportError):
    """An optional dependency that is not installed.

    >>> str(MissingExtraError("plots", "plot"))
    "plots need the extra 'plot': pip install 'tytoalba[plot]'"
    """

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} need the extra '{extra}': pip install 'tytoalba[{extra}]'")
        self.purpose, self.extra = purpose, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.purpose, self.extra)  # so that it gets out of a process pool


class TytoWarning(UserWarning):
    """Something usable but suspicious: clipping, silence, a dead channel."""

    def __str__(self) -> str:
        return shown(super().__str__())
