"""States to change, for the tests of how they are kept."""

from __future__ import annotations

import pytest

from tests.helpers.releases import simulate_nothing
from tests.helpers.states import kit as kit
from tests.helpers.states import made_kit as made_kit


@pytest.fixture
def nothing_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models start from no simulated lessons, which take long."""
    simulate_nothing(monkeypatch)
