"""Stations with sound that a test hands over, and a state to teach."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import browser, opened, served_folder, server  # noqa: F401
from tests.helpers.serving import Fed, app_of, new_state, station_of
from tests.helpers.states import settle
from tytoalba.live.outputs.rates import Rates
from tytoalba.live.web.station import Station

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it wants httpx2, which not every starlette that fits takes
    from starlette.testclient import TestClient, WebSocketDenialResponse

BASE = "http://127.0.0.1:8010"


@pytest.fixture(scope="session")
def fresh_state(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return new_state(tmp_path_factory.mktemp("state") / "kitchen.tyto").read_bytes()


@pytest.fixture
def state(fresh_state: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state that learned nothing, without a ledger."""
    settle(monkeypatch, tmp_path)
    path = tmp_path / "kitchen.tyto"
    path.write_bytes(fresh_state)
    path.chmod(0o600)
    return path


class Page:
    """A client of a station, with the sound that it hears."""

    def __init__(self, station: Station, client: TestClient, fed: Fed, said: list[str]) -> None:
        self.station, self.client, self.fed, self.said = station, client, fed, said

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return self._asked("GET", path, status, **options)

    def post(self, path: str, status: int = 200, **options: Any) -> Any:
        return self._asked("POST", path, status, **options)

    def delete(self, path: str, status: int = 200, **options: Any) -> Any:
        return self._asked("DELETE", path, status, **options)

    def live(self, query: str = "", **headers: str) -> Any:
        """The live channel, to be entered."""
        return self.client.websocket_connect(f"ws{BASE[4:]}/api/live{query}", headers=headers)

    def refused_live(self, query: str = "", **headers: str) -> int:
        """The status with which the live channel is refused."""
        with pytest.raises(WebSocketDenialResponse) as refused, self.live(query, **headers):
            pass
        assert refused.value.json()["error"]
        assert "content-security-policy" in refused.value.headers
        return int(refused.value.status_code)

    def _asked(self, method: str, path: str, status: int, **options: Any) -> Any:
        answer = self.client.request(method, path, **options)
        assert answer.status_code == status, answer.text
        if not answer.content:
            return None
        found = answer.json()
        if status >= 400:
            assert list(found) == ["error"]
            return found["error"]
        return found


Open = Callable[..., Page]


@pytest.fixture
def open_page() -> Iterator[Open]:
    """Open the page of a station: `open_page(state, token=..., sound=False)`."""
    with ExitStack() as stack:

        def opened(
            state: Path | None = None,
            *,
            sound: bool = True,
            token: str | None = None,
            origins: tuple[str, ...] = (),
            rates: Rates | None = None,
            **more: Any,
        ) -> Page:
            fed, said = Fed(), list[str]()
            station = station_of(fed if sound else None, state, token=token, say=said.append, **more)
            app: Any = app_of(station, token=token, origins=origins, rates=rates)
            client = TestClient(app, base_url=BASE, client=("127.0.0.1", 50000), follow_redirects=False)
            stack.enter_context(client)
            return Page(station, client, fed, said)

        yield opened


@pytest.fixture
def page(open_page: Open, state: Path) -> Page:
    """The page of a state that can be taught."""
    return open_page(state)
