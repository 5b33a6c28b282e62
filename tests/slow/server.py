"""Kill points or full disks of one command: python -m tests.slow.server kill|disk SCENE FOLDER.

Started by `points` with faults.c loaded before the C library. Everything that the command needs is imported
once; each point is a forked process in a fresh copy of the world. Prints a number for each point, and what
came of all of them as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.slow import facts, orders
from tests.slow.facts import BrokenError, Facts
from tests.slow.scenes import COPY, SCENES, SOUND, Scene, make_world, wave_marker
from tests.slow.world import Fault, Ran, called, settle, tyto

FREE_PAGES = (0, 1, 2, 3, 4, 6, 8, 12)
"""Pages that a real disk has left."""
PAGE = 4096
CLONE_NEWNS = 0x20000
"""A name space of mounts of one's own."""


class Point(NamedTuple):
    """A fault at the n-th call, or on a real disk with n pages left (fault NONE).

    second: the call at which the next run is killed as well, while it mends what the first one left.
    """

    fault: Fault
    at: int
    second: int = 0

    @property
    def name(self) -> str:
        """What was done, in a word."""
        return f"{self.fault.name} then KILL {self.second}" if self.second else self.fault.name


class Stage:
    """One scene: the world before, and what an undisturbed run makes of it."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.scene, self.world, self.start = scene, folder / "disk" / "world", folder / "start"
        self.world.parent.mkdir()
        self.is_disk = mounted(self.world.parent)
        self.world.mkdir()
        make_world(self.world, scene)
        self.marks = {m: wave_marker(self.world) if m == SOUND else m for m in scene.plain}
        for command in scene.before:
            if command[0] == COPY:
                shutil.copy2(self.world / command[1], self.world / command[2])
                continue
            ran = tyto(self.world, command)
            if ran.code:
                raise SystemExit(f"{scene.name}: tyto {' '.join(command)} failed: {ran.text[-2000:]}")
        shutil.copytree(self.world, self.start, symlinks=True)
        settle(self.world)
        self.before = facts.facts(self.world)
        self._warm_up()
        self.again()
        counted = tyto(self.world, scene.command, Fault.COUNT)
        if counted.code:
            raise SystemExit(f"{scene.name}: tyto {' '.join(scene.command)} failed: {counted.text[-2000:]}")
        self.calls, self.writes = counted.calls, counted.writes
        self.after = facts.facts(self.world)

    def _warm_up(self) -> None:
        """Run it in this process, so that all of its modules are imported once."""
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            code = called(self.scene.command)
        if code:
            raise SystemExit(f"{self.scene.name} failed: {heard.getvalue()[-2000:]}")

    def again(self) -> None:
        """The world as it was before the command, at the same place."""
        for entry in self.world.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(self.start, self.world, symlinks=True, dirs_exist_ok=True)

    def points(self, family: str) -> list[Point]:
        """Every call, every write torn, every call twice; or every call with the disk full."""
        calls = range(1, self.calls + 1)
        if family == "kill":
            found = [Point(Fault.KILL, n) for n in calls]
            found += [Point(Fault.TEAR, n) for n in range(1, self.writes + 1)]
            found += [Point(Fault.KILL, n, 1 + 7 * n % self.calls) for n in calls]
        else:
            found = [Point(Fault.FULL, n) for n in calls]
            found += [Point(Fault.NONE, n) for n in FREE_PAGES] if self.is_disk else []
        most = min(self.scene.most, len(found))
        return [found[k * len(found) // most] for k in range(most)]

    # ---- what must hold ----

    def problems(self, point: Point) -> Iterator[str]:
        """What is wrong after a fault, and after the command was run again. "left": files that are hidden."""
        self.again()
        if point.fault == Fault.NONE:
            with filled(self.world.parent, point.at):
                ran = tyto(self.world, self.scene.command)
        else:
            ran = tyto(self.world, self.scene.command, point.fault, point.at)
        yield from self._after_fault(ran, point)
        if point.second:
            tyto(self.world, self.scene.command, Fault.KILL, point.second)
        try:
            found = facts.facts(self.world)
        except BrokenError as error:
            yield str(error)
            found = {}
        yield from self._half_done(found)
        yield from self._secrets(final=False)
        yield from self._run_again(found)

    def _after_fault(self, ran: Ran, point: Point) -> Iterator[str]:
        if point.fault in (Fault.KILL, Fault.TEAR):
            if ran.code != -signal.SIGKILL:
                yield f"was not killed ({ran.code}): {ran.last_line}"
            return
        if not ran.is_clean:
            yield f"not a clean error ({ran.code}): {ran.last_line}"
        for name, (_, content) in facts.strays(self.world).items():
            if content and not facts.is_begun(name):
                yield f"left behind on a full disk: {_plain_name(name)}"

    def _half_done(self, found: Facts) -> Iterator[str]:
        """Every file is as it was, or as it becomes."""
        for name in sorted({*found, *self.before}):
            ends = (self.before.get(name), self.after.get(name))
            if found and not facts.optional(name) and not facts.between(found.get(name), *ends):
                yield f"{name} is neither as before nor as after: {found.get(name, 'missing')[:120]}"

    def _secrets(self, *, final: bool) -> Iterator[str]:
        for name, mode in facts.secrets_in(self.world).items():
            is_own = Path(name).name in facts.KEY_FILES and not facts.is_hidden(name)
            if mode & 0o077:
                yield f"others can read the secret key in {_plain_name(name)} ({mode:o})"
            if not is_own:
                yield f"a secret key stays in {_plain_name(name)}" if final else "left"
        for name, (mode, content) in facts.strays(self.world).items():
            if any(mark in content for mark in self.marks.values()):
                if mode & 0o077:
                    yield f"others can read the secret in {_plain_name(name)} ({mode:o})"
                yield f"something secret stays in {_plain_name(name)}" if final else "left"
            elif final and content:
                yield "left"

    def _run_again(self, found: Facts) -> Iterator[str]:
        is_done = bool(found) and facts.same(found, self.after)
        ran = tyto(self.world, self.scene.command)
        if ran.code and self.scene.clear and not is_done:
            shutil.rmtree(self.world / self.scene.clear)
            ran = tyto(self.world, self.scene.command)
        if not ran.is_clean or (ran.code and not is_done):
            yield f"run again it fails ({ran.code}): {ran.last_line}"
            return
        try:
            final = facts.facts(self.world)
        except BrokenError as error:
            yield f"run again: {error}"
            return
        if not facts.same(final, self.after):
            yield f"run again it brings something else: {facts.difference(final, self.after)}"
        yield from self._secrets(final=True)


def _plain_name(name: str) -> str:
    """The name of a stray, without what is random in it."""
    path = Path(name)
    parts = path.name.split(".")
    return str(path.with_name(".".join("*" if len(p) == 8 and p.islower() else p for p in parts)))


def mounted(folder: Path) -> bool:
    """Put a small disk of its own at a folder, which only this process sees; whether that is allowed here."""
    library = ctypes.CDLL(None)
    if os.geteuid() or library.unshare(CLONE_NEWNS):
        return False
    private = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False)
    disk = ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(folder)]
    return not private.returncode and not subprocess.run(disk, capture_output=True, check=False).returncode


@contextmanager
def filled(disk: Path, n_pages: int) -> Iterator[None]:
    """A disk on which so many pages of 4 KiB are left."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        left = os.statvfs(disk)
        file.write(bytes(max(0, left.f_bavail * left.f_frsize - n_pages * PAGE)))
    try:
        yield
    finally:
        filler.unlink()


def main(family: str, name: str, folder: Path) -> None:
    """Do all points of a scene, or all inputs of a command, and print what came of them."""
    if family == "command":
        print(json.dumps(orders.run(name, folder)), flush=True)
        return
    stage = Stage(SCENES[name], folder)
    counts: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    for number, point in enumerate(stage.points(family), start=1):
        print(number, flush=True)
        found = list(dict.fromkeys(stage.problems(point)))
        bad = [problem for problem in found if problem != "left"]
        counts["of them with hidden files left"] += "left" in found
        counts["broken" if bad else "held"] += 1
        counts["of them on a real disk"] += point.fault == Fault.NONE
        counts["of them killed twice"] += bool(point.second)
        findings += [
            {"number": point.at, "mutation": point.name, "outcome": "broken", "what": what} for what in bad
        ]
    os.chdir("/")
    print(json.dumps({"counts": dict(counts), "findings": findings[:200], "calls": stage.calls}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
