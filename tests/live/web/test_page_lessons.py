"""Teach, forget, calibrate and what is stored, on the page of `tyto serve` in Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import Open, expect, forget, listening, teach
from tests.helpers.served import Served, needs_chromium, serving
from tests.helpers.updates import wait_until
from tytoalba.data.demo import DEMO_ARRAY

pytestmark = [pytest.mark.end_to_end, needs_chromium]

REPORT = Path(__file__).parents[3] / "docs" / "results" / "report.html"
HOSTILE = '<img src=x onerror="document.title=1">'


# ---- lessons ----


def test_teaches_and_forgets(server: Served, opened: Open) -> None:
    page = opened(server, "#teach").page
    listening(page)
    page.get_by_role("button", name="show all").click()
    expect(page.locator("#digest")).to_have_text(re.compile("^[0-9a-f]{64}$"))
    before = page.locator("#digest").inner_text()
    frames = server.get("/api/localizer")["n_frames"]
    expect(page.locator("#circle .taught")).to_have_attribute("d", "" if not frames else re.compile("M"))
    teach(page, 40, "sofa", "5")
    expect(page.locator("#lessons li")).to_contain_text(["sofa"])
    expect(page.locator("#circle .taught")).to_have_attribute("d", re.compile("^M"))
    expect(page.locator("#digest")).not_to_have_text(before)
    learned = server.get("/api/localizer")
    assert learned["n_frames"] > frames
    assert sum(learned["evidence"][7:10]) > 0  # 35 to 50 degrees
    forget(page, "sofa")
    expect(page.locator("#digest")).to_have_text(before)
    expect(page.locator("#digest-same")).to_have_text("the same as before “sofa” was taught")
    assert server.get("/api/localizer")["digest"] == before
    expect(page.get_by_role("button", name="Forget sofa")).to_have_count(0)


def test_forgetting_asks_first(server: Served, opened: Open) -> None:
    page = opened(server, "#teach").page
    listening(page)
    teach(page, 90, "door")
    page.get_by_role("button", name="Forget door").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Forget door")).to_be_visible()
    forget(page, "door")


def test_names_stay_text(server: Served, opened: Open) -> None:
    page = opened(server, "#teach").page
    listening(page)
    teach(page, 250, HOSTILE)
    expect(page.locator("#lessons strong")).to_contain_text([HOSTILE])
    assert page.locator("main img").count() == 0
    forget(page, HOSTILE)
    assert "tyto" in page.title()


def test_a_lesson_can_be_cancelled(server: Served, opened: Open) -> None:
    page = opened(server, "#teach").page
    listening(page)
    before = server.get("/api/localizer")["digest"]
    page.locator("#teach-delay").select_option("10")
    page.get_by_role("button", name="Teach this direction").click()
    expect(page.locator("#teach-message")).to_have_text("Go to 0°, front. It starts in 10 seconds.")
    page.keyboard.press("Escape")
    expect(page.locator("#teach-message")).to_have_text("Cancelled. Nothing was learned.")
    page.locator("#teach-delay").select_option("0")
    page.get_by_role("button", name="Teach this direction").click()
    expect(page.locator("#teach-message")).to_have_text("Talk now.")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#teach-message")).to_have_text("Cancelled. Nothing was learned.")
    assert server.get("/api/localizer")["digest"] == before


def test_a_lesson_outlives_a_hidden_page_and_not_the_server(server: Served, opened: Open) -> None:
    page = opened(server, "#teach", quiet=False).page
    listening(page)
    before = server.get("/api/localizer")["digest"]
    message = page.locator("#teach-message")
    page.locator("#teach-who").fill("away")
    page.locator("#teach-delay").select_option("0")
    page.locator("#teach-seconds").select_option("3")
    page.get_by_role("button", name="Teach this direction").click()
    expect(message).to_have_text("Talk now.")
    page.evaluate(HIDE, True)
    wait_until(lambda: server.get("/api/lessons/last")["state"] == "done", 30, pause=0.1)
    expect(message).to_have_text("Talk now.")
    page.evaluate(HIDE, False)
    expect(message).to_contain_text("Learned")
    forget(page, "away")
    page.locator("#teach-seconds").select_option("10")
    page.get_by_role("button", name="Teach this direction").click()
    expect(message).to_have_text("Talk now.")
    server.kill()
    expect(page.locator("#connection-text")).to_have_text("No connection")
    server.start()
    expect(message).to_contain_text("tyto was started again meanwhile")
    assert server.get("/api/localizer")["digest"] == before


HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Go to another tab, or come back."""


def test_everything_goes_with_keys_alone(server: Served, opened: Open) -> None:
    page = opened(server).page
    listening(page)
    press = page.keyboard.press
    press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    press("2")
    expect(page.locator("#teach-title")).to_be_focused()
    focus(page, "#circle [role=slider]", "Shift+Tab")
    press("ArrowLeft")
    press("ArrowLeft")
    press("ArrowRight")
    expect(page.locator("#teach-azimuth")).to_have_value("1")
    press("PageDown")
    expect(page.locator("#teach-azimuth")).to_have_value("346")
    expect(page.get_by_role("slider", name="Direction")).to_have_attribute(
        "aria-valuetext", "346 degrees, front"
    )
    press("Home")
    for _ in range(3):
        press("PageUp")
    focus(page, "#teach-who", "Tab")
    page.keyboard.type("keys")
    focus(page, "#teach-seconds", "Tab")
    press("ArrowUp")
    focus(page, "#teach-delay", "Tab")
    press("ArrowUp")
    focus(page, "#teach-start", "Tab")
    press("Enter")
    expect(page.locator("#teach-message")).to_contain_text("Learned")
    expect(page.locator("#teach-message")).to_contain_text("45°, front left")
    focus(page, "button[aria-label='Forget keys']", "Tab")
    press("Enter")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    press("Tab")
    press("Enter")
    expect(page.locator("#lessons-message")).to_contain_text(
        "The state is the same as before “keys” was taught."
    )
    press("?")
    expect(page.get_by_role("dialog", name="Help and shortcuts")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def focus(page: Any, wanted: str, key: str) -> None:
    """Press a key until something has the focus, and see that this shows."""
    for _ in range(40):
        if page.locator(wanted).evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{wanted} cannot be reached with {key}")


# ---- calibrate, stored ----


def test_calibrates_by_talking(server: Served, opened: Open) -> None:
    page = opened(server, "#calibrate").page
    listening(page)
    expect(page.get_by_role("button", name="Check the array")).to_be_disabled()
    page.get_by_label("I stand at").fill("40")
    page.locator("#take-seconds").select_option("3")
    page.locator("#take-delay").select_option("0")
    page.get_by_role("button", name="Record a take").click()
    expect(page.locator("#takes li")).to_have_count(1)
    page.get_by_role("button", name="Check the array").click()
    expect(page.locator("#findings li").first).to_be_visible()
    expect(page.locator("#check-message")).to_contain_text("fault")
    page.get_by_role("button", name="Drop all takes").click()
    expect(page.locator("#takes li")).to_have_count(0)
    assert server.get("/api/takes")["takes"] == []


def test_corrected_array_is_saved(server: Served, opened: Open) -> None:
    page = opened(server, "#calibrate").page
    listening(page)
    found = {
        "kind": "fault",
        "what": "channels 1 and 2 are swapped",
        "evidence": "",
        "confidence": "",
        "remedy": "",
    }
    page.route(
        "**/api/takes", lambda route: route.fulfill(json={"takes": [TAKE], "recording": False, "most": 8})
    )
    page.route(
        "**/api/check", lambda route: route.fulfill(json={"findings": [found], "array_toml": 'name = "é"\n'})
    )
    page.evaluate("location.hash = '#stored'")
    page.evaluate("location.hash = '#calibrate'")
    page.get_by_role("button", name="Check the array").click()
    expect(page.locator("#check-message")).to_have_text("Something is wrong with the array.")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    assert download.value.suggested_filename == "array.toml"
    assert Path(download.value.path()).read_text(encoding="utf-8") == 'name = "é"\n'


TAKE = {"id": 1, "azimuth": 40.0, "seconds": 3.0, "heard": 2.5}


def test_says_what_is_stored(server: Served, opened: Open) -> None:
    page = opened(server, "#stored").page
    stored = server.get("/api/localizer")
    facts = page.locator("#stored-facts")
    expect(facts).to_contain_text("kitchen.tyto")
    expect(facts).to_contain_text(stored["digest"])
    expect(page.locator("#not-kept")).to_contain_text("No sound")
    if stored["steps"]:
        expect(page.locator("#steps tbody tr")).to_have_count(len(stored["steps"]))


def test_without_a_model_nothing_can_be_taught(served_folder: Path, opened: Open) -> None:
    with serving(served_folder, "--no-input", "--array", DEMO_ARRAY, "--report", REPORT) as server:
        page = opened(server, "#teach", quiet=False).page
        expect(page.locator("#connection-text")).to_have_text("No input")
        expect(page.locator("#teach-not")).to_contain_text("tyto new")
        expect(page.locator("#teach-form")).to_be_hidden()
        page.get_by_role("link", name="Stored").click()
        expect(page.locator("#stored-lead")).to_contain_text("keeps nothing")
        page.get_by_role("link", name="Report").click()
        expect(page.locator("html")).to_have_attribute("data-drawn", "yes")
