"""Characters on a terminal: text and braille dots at places, with colours, as lines."""

from __future__ import annotations

from rich.cells import set_cell_size

from tytoalba.texts.printing import shown

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character: two dots across, four down."""
BRAILLE = 0x2800
COLOURS = {"dim": "2", "bold": "1", "red": "1;31", "green": "32", "yellow": "33", "reverse": "7"}
PEOPLE = ("36", "33", "35", "32", "34", "31")
"""Colours of tracks, by their number."""


class Canvas:
    """A grid of characters.

    >>> canvas = Canvas(4, 1)
    >>> canvas.dot(0, 0)
    >>> canvas.dot(1, 3)
    >>> canvas.text(2, 0, "ok")
    >>> canvas.lines()
    ['⢁ ok']
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: dict[tuple[int, int], tuple[str, str]] = {}
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}

    def text(self, column: int, row: int, text: str, style: str = "", width: int | None = None) -> None:
        """Put text at a place; what does not fit is cut. width: columns that it may take."""
        room = self.width - column if width is None else min(width, self.width - column)
        if not 0 <= row < self.height or room <= 0 or column < 0:
            return
        text = shown(text)
        cut = set_cell_size(text, room).rstrip() if room < self.width else set_cell_size(text, room)
        at = column
        for letter in cut.rstrip():
            self._cells[at, row] = (letter, style)
            wide = len(letter) and set_cell_size(letter, 2) == letter
            if wide:
                self._cells[at + 1, row] = ("", style)
            at += 2 if wide else 1

    def dot(self, x: int, y: int, style: str = "") -> None:
        """Put a dot; a character has two across and four down. Text at the same place hides it."""
        place = x // 2, y // 4
        if not (0 <= place[0] < self.width and 0 <= place[1] < self.height):
            return
        bits, _ = self._dots.get(place, (0, ""))
        self._dots[place] = bits | DOTS[y % 4][x % 2], style

    def lines(self, colour: bool = False) -> list[str]:
        """The lines, without spaces at their ends. colour: with the codes that terminals know."""
        return [self._line(row, colour) for row in range(self.height)]

    def _line(self, row: int, colour: bool) -> str:
        parts: list[str] = []
        now = ""
        for column in range(self.width):
            letter, style = " ", ""
            if (column, row) in self._dots:
                bits, style = self._dots[column, row]
                letter = chr(BRAILLE + bits)
            letter, style = self._cells.get((column, row), (letter, style))
            if colour and style != now:
                parts.append(f"\x1b[0;{style}m" if style else "\x1b[0m")
                now = style
            parts.append(letter)
        line = "".join(parts)
        return f"{line}\x1b[0m" if now else line.rstrip()
