"""For `make docs`: doctests in docstrings become code blocks instead of quotations."""

from typing import Any

import griffe


class Fences(griffe.Extension):
    """Put a fence around every run of lines that begins with >>>."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its doctests fenced; a doctest ends at an empty line."""
    lines, inside = [], False
    for line in text.split("\n"):
        if not inside and line.startswith(">>>"):
            lines.append("```python")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
