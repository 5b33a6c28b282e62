"""Chromium before the page of `tyto serve`: whom it asks and what goes wrong is noted."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.served import ARGUMENTS, CHROMIUM, Served, environment, serving
from tytoalba.data.demo import DEMO_ARRAY, demo_recording

DEMO, TRUTH = demo_recording()
PATIENCE = 30_000  # ms
VIEWS = ("live", "teach", "recording", "calibrate", "stored")


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="session")
def server(served_folder: Path) -> Iterator[Served]:
    state = served_folder / "kitchen.tyto"
    command = [
        sys.executable,
        "-m",
        "tytoalba",
        "new",
        str(state),
        "--array",
        DEMO_ARRAY,
        "--features",
        "200",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment(served_folder))
    with serving(served_folder, "--from", DEMO, "--loop", "--model", state) as running:
        yield running


@pytest.fixture(scope="module")  # its event loop would be in the way of other tests
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Tab:
    """A page, with all that it asked for and all that went wrong."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda line: self.errors.append(line.text) if line.type in ("error", "warning") else None,
        )


Open = Callable[..., Tab]


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Open the page; at the end nothing may have gone wrong, and nobody else been asked."""
    contexts: list[tuple[Any, Tab, Served, bool]] = []

    def open_(server: Served, path: str = "", *, quiet: bool = True, **about: Any) -> Tab:
        about.setdefault("viewport", {"width": 1280, "height": 860})
        context = browser.new_context(**about)
        tab = Tab(context.new_page())
        contexts.append((context, tab, server, quiet))
        tab.page.goto(server.address + path)
        return tab

    yield open_
    for context, tab, server, quiet in contexts:
        context.close()
        foreign = [
            url
            for url in tab.asked
            if not re.match(rf"(http|ws|blob:http)://127\.0\.0\.1:{server.port}/", url)
        ]
        assert not foreign
        if quiet:
            assert tab.errors == []


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE)
    return expected(thing)


def listening(page: Any) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "listening")


def painted(page: Any, canvas: str) -> float:
    """Share of a canvas that is not empty."""
    share = page.locator(canvas).evaluate(
        """canvas => {
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          let drawn = 0;
          for (let k = 3; k < data.length; k += 4) drawn += data[k] > 0;
          return drawn / (data.length / 4);
        }"""
    )
    return float(share)


def views(page: Any) -> Iterator[str]:
    """Turn to each view."""
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        expect(page.locator(f"#{view}-title")).to_be_visible()
        yield view


def teach(page: Any, azimuth: int, who: str, seconds: str = "3") -> None:
    page.locator("#teach-azimuth").fill(str(azimuth))
    page.locator("#teach-who").fill(who)
    page.locator("#teach-seconds").select_option(seconds)
    page.locator("#teach-delay").select_option("0")
    page.get_by_role("button", name="Teach this direction").click()
    expect(page.locator("#teach-message")).to_contain_text("Learned")


def forget(page: Any, who: str) -> None:
    page.get_by_role("button", name=f"Forget {who}").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget it").click()
    expect(page.locator("#lessons-message")).to_contain_text("Forgot")
