"""What an ODAS configuration says of its microphones, found in one pass over the text.

The file is in the format of libconfig. Of it three settings are of interest: the positions `mu = (x, y, z)`,
the channel map `map: (1, 2, ...)` and the sample rate `fS = 16000`. Comments and strings hold nothing. Time
grows with the length of the text, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_PIECE = re.compile(
    r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?"  # comments; one that is never closed goes to the end
    r"|(?://|#)[^\n]*"
    r'|(?P<string>"(?:[^"\\]|\\.)*+"?)'
    r"|(?P<word>[\w.+\-]+)"
    r"|(?P<sign>[^\s\w])",
    re.DOTALL,
)


_STOPS = frozenset("(){}[]=:;")


@dataclass
class Found:
    """positions: x, y, z as text, one per microphone. rate, channels: of the first that is there, or none."""

    positions: list[list[str]] = field(default_factory=list)
    rate: str | None = None
    channels: list[str] | None = None


def find_settings(text: str) -> Found:
    """Positions, sample rate and channel map of a configuration.

    >>> find_settings("raw: { fS = 16000; } # mu = (1, 2, 3)\\n mics = ({ mu = (0.02, 0, 0); });")
    Found(positions=[['0.02', '0', '0']], rate='16000', channels=None)
    """
    pieces = [match[0] for match in _PIECE.finditer(text) if match.lastgroup]
    found = Found()
    for place, (name, equals) in enumerate(pairwise(pieces)):
        if equals not in ("=", ":"):
            continue
        if name == "mu":
            values = _list(pieces, place + 2)
            found.positions += [values] if values and len(values) == 3 else []
        elif name == "map" and found.channels is None:
            found.channels = _list(pieces, place + 2)
        elif name == "fS" and found.rate is None and pieces[place + 2 : place + 3]:
            found.rate = pieces[place + 2]
    return found


def _list(pieces: Sequence[str], place: int) -> list[str] | None:
    """The values of a list, ( value, value ), that begins at a place; None if there is none.

    It is read as far as it can be one, so that no piece is looked at twice for different lists.
    """
    if pieces[place : place + 1] != ["("]:
        return None
    values: list[str] = []
    for at in range(place + 1, len(pieces)):
        piece = pieces[at]
        if piece == ")":
            break
        if (piece == ",") != (len(values) % 2 == 1) or piece in _STOPS:
            return None
        values.append(piece)
    else:
        return None
    return values[::2] if len(values) % 2 or not values else None
