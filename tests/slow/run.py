"""Kill, fill and mutate: python -m tests.slow.run [--kinds ...] [--processes 2] [--minutes 80] [--out OUT].

Runs every kind of mutated input, every kill point and every full disk, several processes side by side. It
can be stopped and started again: what was done stays done (OUT/progress). OUT/summary.json has the
figures, OUT/corpus an input for every message that no kept one brings. `--share 0.01` does a hundredth
of the mutated inputs. `--keep` takes OUT/corpus into the repository, `--merge A B` puts partial runs into
OUT. Exit code 1: something was found.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.slow import corpus, points
from tests.slow.kinds import KINDS
from tests.slow.pool import Job, work_through
from tests.slow.progress import Progress, add_runs, is_finding, kinds_in, machine, runs_of, summary
from tests.slow.work import Outcomes, digest, outcomes
from tytoalba.storage.writing import write_json

PIECE = 500
"""Inputs that a process reads before it says what came of them."""


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; see the module."""
    asked = _options().parse_args(arguments)
    if asked.merge:
        return merge(asked.merge, asked.out)
    if asked.keep:
        print(corpus.keep(asked.out))
        return 0
    names = asked.kinds or [*KINDS, *points.names()]
    if unknown := [name for name in names if name not in (*KINDS, *points.names(), *points.FAMILIES)]:
        raise SystemExit(f"no kind called {unknown[0]!r}; known: {', '.join([*KINDS, *points.names()])}")
    names = [own for name in names for own in points.names(name) or [name]]
    return run(names, asked.out, asked.processes, asked.minutes, asked.share)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m tests.slow.run", description=__doc__)
    options.add_argument("--kinds", nargs="*", help="only these; `kill`, `disk` and `command` are families")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after this")
    options.add_argument("--out", type=Path, default=Path("out/slow"))
    options.add_argument("--share", type=float, default=1.0, help="of the mutated inputs of each kind")
    options.add_argument("--keep", action="store_true", help="take OUT/corpus into the repository")
    options.add_argument("--merge", type=Path, nargs="*", help="folders of runs, put together into OUT")
    return options


def run(names: list[str], out: Path, n_processes: int, minutes: float, share: float = 1.0) -> int:
    """Do what is left of these kinds; 1 if anything was found, now or before."""
    left_out = {name: why for name in names if (why := _left_out(name))}
    for name, why in left_out.items():
        _say(f"{name} is left out: {why}")
    names = [name for name in names if name not in left_out]
    progress = {name: _begun(name, out) for name in names}
    jobs = [progress[name].left(jobs_of(name, share)) for name in names]
    todo, began = [job for some in zip_longest(*jobs) for job in some if job], time.monotonic()
    known = {name: corpus.shapes(name) for name in names}
    told, begun_at = began, datetime.now(UTC).isoformat(timespec="seconds")
    for number, (job, found, died) in enumerate(
        work_through(todo, _do, n_processes, began + 60 * minutes), start=1
    ):
        now = progress[job.kind]
        _note(now, job, found, died, out, known[job.kind])
        now.write(out)
        if time.monotonic() - told > 10 or number == len(todo):
            told = time.monotonic()
            _tell(number, len(todo), progress, told - began)
    if todo:
        spent = round((time.monotonic() - began) / 60, 1)
        now_done = {"begun": begun_at, "machine": machine(), "processes": n_processes, "minutes": spent}
        add_runs(out, [now_done])
    whole = summary(out, {name: asked_of(name) for name in names}, left_out)
    write_json(whole, out / "summary.json")
    return _verdict(whole)


def merge(folders: list[Path], out: Path) -> int:
    """Put what several runs did into one folder, with one summary."""
    for folder in folders:
        for name in kinds_in(folder):
            into = Progress.read(out, name)
            into.merge(Progress.read(folder, name))
            into.write(out)
        add_runs(out, runs_of(folder))
    whole = summary(out, {name: asked_of(name) for name in [*KINDS, *points.names()]}, {})
    write_json(whole, out / "summary.json")
    return _verdict(whole)


def jobs_of(name: str, share: float = 1.0) -> list[Job]:
    """A kind in pieces; kill points and full disks of one command are one piece."""
    if name not in KINDS:
        return [Job(name, 0, 1)]
    kind = KINDS[name]
    number, piece = max(1, round(kind.number * share)), PIECE if kind.number > 5000 else 50
    return [Job(name, start, min(start + piece, number)) for start in range(0, number, piece)]


def asked_of(name: str) -> int:
    """How many inputs or points a whole run has."""
    return KINDS[name].number if name in KINDS else points.asked(name)


def _left_out(name: str) -> str:
    missing = KINDS[name].missing if name in KINDS else points.missing(name)
    return f"{', '.join(missing)} not installed" if missing else ""


def _begun(name: str, out: Path) -> Progress:
    """What was done before, if it started from the same seeds."""
    bases = digest(b"".join(KINDS[name].bases)) if name in KINDS else ""
    found = Progress.read(out, name)
    if found.bases not in ("", bases):
        _say(f"{name}: seeds or corpus are others than when this run began; it begins anew")
        found = Progress(name)
    found.bases = bases
    return found


def _do(job: Job, folder: Path, tell: Callable[[int], None]) -> tuple[Outcomes, float]:
    began = time.monotonic()
    if job.kind in KINDS:
        return outcomes(KINDS[job.kind], job.start, job.stop, folder, tell), time.monotonic() - began
    return points.run(job.kind, tell), time.monotonic() - began


def _note(now: Progress, job: Job, found: Any, died: str, out: Path, known: set[str]) -> None:
    if found is None:
        now.add(job, {died: 1}, 0.0)
        now.add_findings([{"number": job.start, "outcome": died, "what": died}])
        if job.kind in KINDS:
            corpus.put(out, job.kind, KINDS[job.kind].input(job.start)[0], died, is_finding=True)
        return
    what, seconds = found
    now.add(job, dict(what.counts), seconds)
    now.add_findings(what.findings)
    now.add_shapes(what.shapes)
    bad = {finding["what"] for finding in what.findings}
    for shape, (_, number) in what.shapes.items() if job.kind in KINDS else ():
        if shape not in known:
            known.add(shape)
            corpus.put(out, job.kind, KINDS[job.kind].input(number)[0], shape, shape in bad)


def _tell(done: int, total: int, progress: dict[str, Progress], seconds: float) -> None:
    counts = sum((each.counts for each in progress.values()), Counter[str]())
    found = sum(n for name, n in counts.items() if is_finding(name))
    left = seconds * (total - done) / done
    inputs = sum(n for name, n in counts.items() if not name.startswith("of them"))
    _say(f"{done} of {total} pieces, {inputs} inputs, {found} not clean, {left / 60:.0f} min left")


def _verdict(whole: dict[str, Any]) -> int:
    for name, row in whole["kinds"].items():
        _say(
            f"{name:24} {row['done']:8} of {row['asked']:8}  not clean: {row['not_clean']}  {row['outcomes']}"
        )
    for finding in whole["findings"][:40]:
        _say(f"FOUND {finding}")
    bad = sum(row["not_clean"] for row in whole["kinds"].values())
    done = sum(row["done"] for row in whole["kinds"].values())
    _say(f"{done} inputs and points, {bad} not clean")
    return int(bad > 0)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders are removed
    sys.exit(main())
