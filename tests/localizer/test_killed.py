"""Whoever is killed while writing leaves the old state or the new one, and a ledger that says which."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import sys
import time
from collections import Counter

import numpy as np
import pytest

from tests.helpers.kills import kill_points, start_child
from tests.helpers.states import Kit, edit
from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import UnfinishedStepError
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import recall, remembered_path
from tytoalba.storage.sealed import read_secret

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and kills")


class Scene:
    """A state that learns a lesson, is looked at, and is then as it was before; what is left lying stays."""

    def __init__(self, kit: Kit, name: str) -> None:
        self.kit, self.path = kit, kit.folder / name
        kept = (self.path, ledger_path(self.path), remembered_path())
        self.before = {file: file.read_bytes() for file in kept}
        self.known = {entry.name for entry in kit.folder.iterdir()}
        self.old = read_secret(self.path, keys_at_hand())
        started = time.perf_counter()
        self.teach()
        self.seconds = time.perf_counter() - started
        self.new = read_secret(self.path, keys_at_hand())
        self.reset()

    def teach(self) -> None:
        self.kit.add(self.path, 2)

    def reset(self) -> None:
        for file, data in self.before.items():
            file.write_bytes(data)

    def strays(self) -> set[str]:
        """What lies there beside this state, other than its ledger."""
        found = {entry.name for entry in self.kit.folder.iterdir()} - self.known
        return {name for name in found if name.startswith(f".{self.path.name}.")}

    def outcome(self) -> str:
        """What a killed process left: the old state, the new one, or the old one with a step to take back."""
        data = read_secret(self.path, keys_at_hand())
        assert data in (self.old, self.new)
        ours = rf"\.{re.escape(self.path.name)}\.(new|lock|ledger\.lock|ledger\.new)"
        assert all(re.fullmatch(ours, stray) for stray in self.strays()), self.strays()
        ledger = Ledger.open(ledger_path(self.path))
        try:
            seen = recall().ledgers[ledger.identity]
            ledger.check_state(hashlib.sha256(data).hexdigest(), seen)
        except UnfinishedStepError:
            assert data == self.old
            return "unfinished"
        return "old" if data == self.old else "new"

    def mended(self) -> None:
        """The next change finds no lock, takes back what was not finished and clears away what was left."""
        if read_secret(self.path, keys_at_hand()) == self.old:
            self.teach()
        else:
            with edit(self.path):
                pass
        assert read_secret(self.path, keys_at_hand()) == self.new
        Ledger.open(ledger_path(self.path)).check_state(hashlib.sha256(self.new).hexdigest())


def end(process: int) -> bool:
    """Kill a process; whether it was still there to be killed."""
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def killed_at_random(kit: Kit, n_kills: int, seed: int) -> Counter[str]:
    rng, found = np.random.default_rng(seed), Counter[str]()
    scenes = [Scene(kit, name) for name in ("k.tyto", "s.age")]
    while found["killed"] < n_kills:
        scene = scenes[found["killed"] % 2]
        process = start_child(scene.teach)
        time.sleep(rng.uniform(0, 1.5 * scene.seconds))
        found["killed"] += end(process)
        outcome = scene.outcome()
        found[outcome] += 1
        if outcome == "unfinished" and rng.random() < 0.5:
            continue  # the next one is killed while it takes the step back
        scene.mended()
        assert not {stray for stray in scene.strays() if not stray.endswith(".ledger.new")}
        scene.reset()
    found["left"] = sum(len(scene.strays()) for scene in scenes)
    return found


def test_killed_at_random(kit: Kit) -> None:
    found = killed_at_random(kit, 15, seed=0)
    assert found["left"] <= 2, found


@pytest.mark.slow
def test_killed_two_hundred_times(kit: Kit) -> None:
    found = killed_at_random(kit, 200, seed=1)
    print(dict(found))
    assert found["old"]
    assert found["new"]
    assert found["left"] <= 20, found


@pytest.mark.parametrize(
    ("name", "ahead", "stride"),
    [
        ("k.tyto", True, 3),
        *(pytest.param("s.age", ahead, 1, marks=pytest.mark.slow) for ahead in (False, True)),
    ],
)
def test_killed_at_every_write(kit: Kit, name: str, ahead: bool, stride: int) -> None:
    """Before the first operation that writes, before the second, ..., and after the last.

    ahead: the ledger has a step that the state has not; the killed one takes it back first. stride: of
    operations, at each of which it is killed.
    """
    scene, outcomes, mended = Scene(kit, name), [], set()
    if ahead:
        for _ in kill_points(scene.teach, most=200):
            if scene.outcome() == "unfinished":
                scene.before = {file: file.read_bytes() for file in scene.before}
                break
            scene.reset()
    for _ in kill_points(scene.teach, stride, most=200):
        outcomes.append(scene.outcome())
        found = (outcomes[-1], *sorted(scene.strays()))
        if found not in mended:
            mended.add(found)
            scene.mended()
            assert not {stray for stray in scene.strays() if not stray.endswith(".ledger.new")}
        scene.reset()
    assert scene.outcome() == "new"
    order = ["old", "unfinished", "new"] if not ahead else ["unfinished", "old", "unfinished", "new"]
    assert [each for n, each in enumerate(outcomes) if outcomes[n - 1 : n] != [each]] == order
    assert len(outcomes) > 15
    left = scene.strays()  # temporary ledgers of those who were killed while they took a step back: no secret
    assert all((kit.folder / name).stat().st_size < 10_000 for name in left)
    assert len(left) <= (5 if ahead else 0), left


def test_a_lesson_in_what_a_killed_one_left_is_gone_when_it_is_forgotten(kit: Kit) -> None:
    """A copy of the new state lies beside the old one until the next change, and not longer."""
    scene = Scene(kit, "k.tyto")
    left = kit.folder / ".k.tyto.new"
    left.write_bytes(scene.new)
    with edit(scene.path) as localizer:
        assert not left.exists()
        localizer.merge(kit.lessons[2])
    assert not left.exists()
