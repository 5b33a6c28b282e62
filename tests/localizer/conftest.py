"""States to change, for the tests of how they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.releases import simulate_nothing
from tests.helpers.states import Kit, make_kit, move_in, settle


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    folder = tmp_path_factory.mktemp("kit")
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        settle(patch, folder)
        return make_kit(folder)


@pytest.fixture
def kit(made: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A copy of the kit, to work in."""
    move_in(made.folder, tmp_path)
    settle(monkeypatch, tmp_path)
    return Kit(tmp_path, made.lessons)


@pytest.fixture
def nothing_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models start from no simulated lessons, which take long."""
    simulate_nothing(monkeypatch)
