"""The kept inputs: tests/slow/corpus/KIND/DIGEST, the smallest that was met for each message or finding.

Later runs mutate them further, and the default tests read each of them (test_corpus.py). Small on purpose:
at most MOST of a kind, ROOM bytes together.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.slow.kinds import CORPUS, KINDS
from tests.slow.work import CLEAN, digest, limited, outcome

MOST = 40
ROOM = 80_000
"""Bytes of all kept inputs of a kind."""


def shapes(name: str) -> set[str]:
    """The messages that seeds and kept inputs bring."""
    if name not in KINDS:
        return set()
    kind = KINDS[name]
    with TemporaryDirectory() as folder, limited(kind.seconds):
        return {outcome(kind, data, "none", Path(folder))[1] for data in kind.bases}


def put(out: Path, name: str, data: bytes, shape: str, is_finding: bool) -> None:
    """Write an input that brings something new beside the run, with what it brings."""
    folder = out / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / digest(data)).write_bytes(data)
    row = {"input": digest(data), "what": shape, "finding": is_finding}
    with (out / "corpus" / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def keep(out: Path) -> str:
    """Take the new inputs of a run into the repository, as far as there is room; what was a finding first.

    Inputs that are findings still are left where they are: first they are repaired.
    """
    n_kept, n_open = 0, 0
    for listed in sorted((out / "corpus").glob("*.jsonl")):
        kind, folder = KINDS[listed.stem], CORPUS / listed.stem
        rows = [json.loads(line) for line in listed.read_text(encoding="utf-8").splitlines()]
        findings = {row["input"] for row in rows if row["finding"]}
        found = {file: file.stat().st_size for file in (out / "corpus" / kind.name).iterdir()}
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(found, key=lambda file: (file.name not in findings, found[file])):
            with TemporaryDirectory() as work, limited(kind.seconds):
                is_clean = outcome(kind, file.read_bytes(), "inside", Path(work))[0] in CLEAN
            n_open += not is_clean
            sizes = [kept.stat().st_size for kept in folder.iterdir()]
            if is_clean and sum(sizes) + found[file] <= ROOM and len(sizes) < MOST:
                shutil.copy(file, folder / file.name)
                n_kept += 1
    size = sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file())
    return f"{n_kept} inputs kept, {n_open} are still findings; the corpus has {size} bytes"
