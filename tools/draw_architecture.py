"""Draw docs/images/architecture.svg: the packages, their modules, and which package imports which.

The layers come from the import contract in pyproject.toml, modules and imports from the code (grimp, which
import-linter installs): `python tools/draw_architecture.py`. A test compares the picture with the code.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
WIDTH, LEFT, NAME, CELL = 1180, 24, 130, 28
LINE, CHARACTERS = 17, 104
DOWN, SAME = "#2f6f8f", "#c9d6dc"


def layers() -> list[list[str]]:
    """The packages of the contract, top layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [[name.strip() for name in re.split("[|:]", layer)] for layer in found]


def summary(package: str) -> str:
    """The first sentence of a package's docstring."""
    path = ROOT / "src" / "tytoalba" / package
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split())
    return text.split(". ")[0].replace("`", "").rstrip(".") + "."


def modules(graph: grimp.ImportGraph, package: str) -> list[str]:
    """Modules of a package; a package inside it is one entry with its own modules in brackets."""
    root = f"tytoalba.{package}"
    found = []
    for child in sorted(graph.find_children(root)):
        inner = sorted(name.rpartition(".")[2] for name in graph.find_children(child))
        name = child.rpartition(".")[2]
        found.append(f"{name} ({' '.join(inner)})" if inner else name)
    return found


def imports(graph: grimp.ImportGraph, packages: list[str]) -> set[tuple[str, str]]:
    """Pairs (importer, imported) of packages."""
    return {(a, b) for a in packages for b in packages if a != b and direct(graph, a, b)}


def direct(graph: grimp.ImportGraph, importer: str, imported: str) -> bool:
    """Does a module of the one package import a module of the other itself?"""
    inside = {f"tytoalba.{importer}", *graph.find_descendants(f"tytoalba.{importer}")}
    wanted = {f"tytoalba.{imported}", *graph.find_descendants(f"tytoalba.{imported}")}
    return any(graph.find_modules_directly_imported_by(module) & wanted for module in inside)


def text(x: float, y: float, words: str, size: int = 13, fill: str = "#1d2b33", more: str = "") -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" {more}>{escape(words)}</text>'


def draw() -> str:
    """The picture, as SVG."""
    graph = grimp.build_graph("tytoalba", exclude_type_checking_imports=True)
    packages = [name for layer in layers() for name in layer]
    edges = imports(graph, packages)
    right = WIDTH - LEFT - CELL * len(packages)
    parts, centres, y = [], {}, 130.0
    for layer in layers():
        top = y
        for package in layer:
            lines = textwrap.wrap(" ".join(modules(graph, package)), CHARACTERS, break_long_words=False)
            parts.append(text(LEFT + 14, y + 24, package, 16, more='font-weight="bold"'))
            parts.append(text(LEFT + NAME, y + 23, summary(package), 12))
            parts += [
                text(LEFT + NAME, y + 24 + LINE * (k + 1), line, 11, "#51646e")
                for k, line in enumerate(lines)
            ]
            centres[package] = y + 20
            y += 38 + LINE * len(lines)
        size = f'width="{WIDTH - 2 * LEFT}" height="{y - top - 6:g}" rx="6"'
        parts.insert(0, f'<rect x="{LEFT}" y="{top:g}" {size} fill="#f2f6f8" stroke="{SAME}"/>')
    for column, imported in enumerate(packages):
        x = right + CELL * column + CELL / 2
        turn = f'transform="rotate(-60 {x:g} 118)"'
        parts.append(text(x, 118, imported, 12, more=turn))
        for importer in packages:
            spot = f'cx="{x:g}" cy="{centres[importer]:g}"'
            if importer == imported:
                parts.append(f'<circle {spot} r="8" fill="none" stroke="{SAME}" stroke-width="2"/>')
            elif (importer, imported) in edges:
                parts.append(f'<circle {spot} r="7" fill="{DOWN}"/>')
            else:
                parts.append(f'<circle {spot} r="1.5" fill="{SAME}"/>')
    head = [
        text(LEFT, 40, "tytoalba: a package imports only from the packages below it", 18),
        text(LEFT, 62, "Packages and their modules, top layer first. A dot: the package of this row", 12),
        text(LEFT, 78, "imports something from the package of that column.", 12),
    ]
    frame = f'viewBox="0 0 {WIDTH} {y + 14:g}" width="{WIDTH}" height="{y + 14:g}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="sans-serif">'
    back = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([begin, back, *head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
