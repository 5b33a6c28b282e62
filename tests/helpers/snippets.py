"""The blocks of code in README and docs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    """Is this the output of a page? `...` stands for anything; white space at line ends does not count."""
    wanted, got = (
        "\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (output, printed)
    )
    pattern = ".*?".join(re.escape(part) for part in wanted.split("..."))
    return re.fullmatch(pattern, got, re.DOTALL) is not None
