"""The list of examples is whole, its commands are right, and what examples show in docstrings is so."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import odas_client, robot_head
from tests.helpers.options import listen_options

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
GUIDES = sorted(FOLDER.rglob("*.md"))


def test_every_example_is_listed_and_has_a_test() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    there = {one.name for one in FOLDER.iterdir() if one.name not in ("README.md", "__pycache__")}
    listed = set(re.findall(r"^\| \[([\w.]+)\]", readme, re.M))
    assert listed == there
    for name in there:
        assert list((ROOT / "tests" / "examples").glob(f"test_{Path(name).stem}*.py")), name


@pytest.mark.parametrize("guide", GUIDES, ids=lambda one: str(one.relative_to(FOLDER)))
def test_links_lead_somewhere(guide: Path) -> None:
    text = guide.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (guide.parent / target).exists(), target
    assert max(map(len, text.splitlines())) <= 400
    for path in re.findall(r"\b(?:examples|docs)/[\w/.]*\w", text):
        assert (ROOT / path).exists(), path


def shown() -> Iterator[str]:
    """Commands of guides that run `tyto listen`."""
    for guide in GUIDES:
        text = guide.read_text("utf-8")
        for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.M | re.S):
            yield from re.findall(r"\btyto listen ([^#\n]*)", block)
        yield from re.findall(r"`tyto listen ([^`]*)`", text)


@pytest.mark.parametrize("options", sorted(set(shown())))
def test_options_are_those_of_tyto_listen(options: str) -> None:
    listen_options([word for word in shlex.split(options) if word != "--help"])


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.py")), ids=lambda one: one.name)
def test_programs_are_short(file: Path) -> None:
    assert file.read_text("utf-8").count("\n") < 150


def test_docstrings_show_what_is_so() -> None:
    for module in (odas_client, robot_head):
        failed, attempted = doctest.testmod(module)
        assert not failed
        assert attempted


def test_blocks_of_shell_are_shell() -> None:
    for guide in GUIDES:
        for block in re.findall(r"^ *```sh\n(.*?)^ *```$", guide.read_text("utf-8"), re.M | re.S):
            done = subprocess.run(["sh", "-n"], input=block, text=True, capture_output=True, check=False)
            assert done.returncode == 0, (guide, done.stderr)
