"""How far a run is: one JSON file per kind, written whole after every piece; a run can go on later."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.slow.pool import Job
from tests.slow.work import CLEAN
from tytoalba.storage.writing import write_json

MOST_FINDINGS = 400
"""Findings of a kind that are kept one by one."""


@dataclass
class Progress:
    """What was done of one kind.

    pieces: outcomes and seconds of each range, by "start-stop". shapes: (bytes, number) of the smallest
    input for each message. findings: what was not clean. bases: digest of what mutations started from.
    machines: where it was done.
    """

    kind: str
    pieces: dict[str, dict[str, Any]] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    bases: str = ""
    machines: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, kind: str) -> Progress:
        """What a run left; none where it left nothing."""
        path = file_of(folder, kind)
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls(kind)

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        write_json(asdict(self), file_of(folder, self.kind))

    def add(self, job: Job, counts: dict[str, int], seconds: float) -> None:
        """A piece more."""
        self.pieces[f"{job.start}-{job.stop}"] = {"counts": counts, "seconds": round(seconds, 3)}
        if (here := machine()) not in self.machines:
            self.machines.append(here)

    def add_shapes(self, shapes: dict[str, tuple[int, int]]) -> None:
        """Messages that were met, each with the smallest input that brings it."""
        for shape, (size, number) in shapes.items():
            if shape not in self.shapes or size < self.shapes[shape][0]:
                self.shapes[shape] = [size, number]

    def add_findings(self, findings: Iterable[dict[str, Any]]) -> None:
        """What was not clean."""
        self.findings = [*self.findings, *findings][:MOST_FINDINGS]

    def left(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of the jobs that are not done."""
        done = [tuple(map(int, piece.split("-"))) for piece in self.pieces]
        covered = {number for a, b in done for number in range(a, b)} if len(done) < 10_000 else set()
        return [job for job in jobs if not all(number in covered for number in range(job.start, job.stop))]

    @property
    def counts(self) -> Counter[str]:
        """Outcomes of all pieces."""
        total: Counter[str] = Counter()
        for piece in self.pieces.values():
            total.update(piece["counts"])
        return total

    @property
    def seconds(self) -> float:
        """Of one process."""
        return float(sum(piece["seconds"] for piece in self.pieces.values()))

    def merge(self, other: Progress) -> None:
        """Add what another run did; pieces that both did count once."""
        if self.bases and other.bases and self.bases != other.bases:
            raise SystemExit(f"{self.kind}: these runs started from other seeds and cannot be merged")
        self.bases = self.bases or other.bases
        new = {piece: found for piece, found in other.pieces.items() if piece not in self.pieces}
        self.pieces |= new
        self.add_shapes({shape: (size, number) for shape, (size, number) in other.shapes.items()})
        known = {json.dumps(finding, sort_keys=True) for finding in self.findings}
        self.add_findings(f for f in other.findings if json.dumps(f, sort_keys=True) not in known)
        self.machines += [name for name in other.machines if name not in self.machines]


def file_of(folder: Path, kind: str) -> Path:
    """Where the progress of a kind is."""
    return folder / "progress" / f"{kind.replace(' ', '-')}.json"


def kinds_in(folder: Path) -> list[str]:
    """The kinds of which a folder has progress."""
    found = sorted((folder / "progress").glob("*.json"))
    return [str(json.loads(file.read_text(encoding="utf-8"))["kind"]) for file in found]


def machine() -> str:
    """Cores, Python and system, in words."""
    cores = len(os.sched_getaffinity(0))
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"{cores} cores, {versions}, {platform.system()} {platform.machine()}"


def runs_of(folder: Path) -> list[dict[str, Any]]:
    """Every time that work was done here: machine, processes, minutes on the clock."""
    path = folder / "runs.json"
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def add_runs(folder: Path, runs: list[dict[str, Any]]) -> None:
    """Write down when work was done."""
    known = runs_of(folder)
    write_json([*known, *(each for each in runs if each not in known)], folder / "runs.json")


def summary(folder: Path, asked: dict[str, int], left_out: dict[str, str]) -> dict[str, Any]:
    """All of a run: what was asked and done of each kind, how it ended, how long it took."""
    kinds, findings = {}, list[dict[str, Any]]()
    for kind in dict.fromkeys([*asked, *kinds_in(folder)]):
        progress = Progress.read(folder, kind)
        counts = progress.counts
        kinds[kind] = {
            "asked": asked.get(kind, 0),
            "machines": progress.machines,
            "done": sum(counts[name] for name in counts if not name.startswith("of them")),
            "outcomes": dict(sorted(counts.items())),
            "not_clean": sum(n for name, n in counts.items() if is_finding(name)),
            "messages": len(progress.shapes),
            "seconds": round(progress.seconds, 1),
        }
        findings += [{"kind": kind, **finding} for finding in progress.findings]
    return {
        "runs": runs_of(folder),
        "left_out": left_out,
        "kinds": kinds,
        "findings": findings[:MOST_FINDINGS],
    }


def is_finding(outcome: str) -> bool:
    """Whether an outcome is something that must not be."""
    return outcome not in (*CLEAN, "held", "left") and not outcome.startswith("of them")
