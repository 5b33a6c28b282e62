"""The blocks of code in README and docs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUMBER = r"-?\d+(?:\.\d+)?"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block. not_run: why it is not run, if so. output: the `text` block that follows it, if any."""

    language: str
    text: str
    not_run: str
    output: str


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order; a block of output belongs to the one before it."""
    fence = r"(?:^<!-- not run: (.+?) -->\n)?^```(\w*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?"
    found = re.findall(fence, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(language, text, why, output) for why, language, text, output in found]


def matches(output: str, printed: str) -> bool:
    """Is this the output of a page? `...` stands for anything, numbers may differ by a hundredth.

    >>> matches("{'azimuth': 40.0}\\n...", "{'azimuth': 40.001}\\nmore")
    True
    >>> matches("40 degrees", "41 degrees")
    False
    """
    wanted, got = (
        "\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (output, printed)
    )
    pieces = re.split(rf"(\.\.\.|{NUMBER})", wanted)
    numbers = [float(piece) for piece in pieces if re.fullmatch(NUMBER, piece)]
    pattern = "".join(
        ".*?" if piece == "..." else f"({NUMBER})" if re.fullmatch(NUMBER, piece) else re.escape(piece)
        for piece in pieces
    )
    found = re.fullmatch(pattern, got, re.DOTALL)
    return found is not None and all(
        abs(float(group) - number) <= 0.01 * max(1.0, abs(number)) + 1e-9
        for group, number in zip(found.groups(), numbers, strict=True)
    )
