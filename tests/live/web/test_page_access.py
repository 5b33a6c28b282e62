"""The page of `tyto serve` for everybody: phones, dark rooms, keys, screen readers; pictures for the docs.

TYTO_SCREENSHOTS=docs/images writes the pictures of docs/serve.md.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import Open, expect, forget, listening, teach, views
from tests.helpers.served import Served, needs_chromium
from tests.live.web.test_page_files import contrast

pytestmark = [pytest.mark.end_to_end, needs_chromium]


def picture(page: Any, name: str) -> None:
    """For the docs, if wanted."""
    if folder := os.environ.get("TYTO_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


# ---- for everybody ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone_and_can_be_read(server: Served, opened: Open, scheme: str) -> None:
    page = opened(
        server, viewport={"width": 320, "height": 640}, color_scheme=scheme, reduced_motion="reduce"
    ).page
    listening(page)
    for view in views(page):
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view
        words = page.evaluate(WORDS)
        assert len(words) > 10
        assert not [word for word in words if contrast(hexed(word[1]), hexed(word[2])) < 4.5], view
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (contrast(hexed(ground), "#000000") < 3) == (scheme == "dark")


WORDS = """() => {
  const seen = [];
  const opaque = colour => !/rgba\\(.*, (0|0\\.\\d+)\\)|transparent|color/.test(colour);
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest("svg, .unseen, .skip, dialog, :disabled")) continue;
    let ground = node;
    const under = () => getComputedStyle(ground).backgroundColor;
    while (ground.parentElement && !opaque(under())) ground = ground.parentElement;
    seen.push([node.textContent.trim(), getComputedStyle(node).color, under()]);
  }
  return seen;
}"""
"""Every word that can be seen: its colour and that of the ground."""


def hexed(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


def test_every_control_has_a_name_and_is_large_enough(server: Served, opened: Open) -> None:
    page = opened(server).page
    listening(page)
    for _ in views(page):
        named_and_large(page)
    page.get_by_role("button", name="Help and shortcuts").click()
    named_and_large(page)


def named_and_large(page: Any) -> None:
    roles = "button|link|textbox|spinbutton|combobox|slider|checkbox|meter|img|table"
    snapshot = page.locator("body").aria_snapshot()
    nameless = re.compile(rf"\s*- ({roles})(?: \[.*\])?:?")
    assert not [line for line in snapshot.splitlines() if nameless.fullmatch(line)], snapshot
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert "dialog" in snapshot or re.search(rf"^\s*- {landmark}\b", snapshot, re.MULTILINE), landmark
    for control in page.locator("button, input, select, nav a").all():
        if control.is_visible():
            box = control.bounding_box()
            assert min(box["height"], box["width"]) >= 24, control.inner_text()  # WCAG 2.5.8


def test_focus_shows_and_goes_with_the_reading_order(server: Served, opened: Open) -> None:
    page = opened(server).page
    for _ in views(page):
        page.reload()
        listening(page)
        order: list[int] = []
        for _ in range(40):
            page.keyboard.press("Tab")
            place, outlined = page.evaluate(FOCUSED)
            if place < 0 or place in order:
                break
            assert outlined, page.evaluate("document.activeElement.outerHTML")
            order.append(place)
        assert order == sorted(order)
        assert len(order) > 6


FOCUSED = """() => {
  const node = document.activeElement;
  const style = getComputedStyle(node.matches("[role=slider]") ? node.querySelector(".grip") : node);
  const shows = node.matches("[role=slider]") ? parseFloat(style.strokeWidth) > 4
    : style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [node === document.body ? -1 : [...document.querySelectorAll("*")].indexOf(node), shows];
}"""
"""Where what has the focus is in the document, and whether one sees it."""


def test_less_motion_is_less(server: Served, opened: Open) -> None:
    calm, usual = (opened(server, reduced_motion=wish).page for wish in ("reduce", "no-preference"))
    for page in (calm, usual):
        listening(page)
        page.evaluate(COUNT)
    usual.wait_for_timeout(3000)
    (few, seconds), (many, less) = (page.evaluate(COUNTED) for page in (calm, usual))
    assert 0 < few <= 4 * seconds + 1
    assert many / less > few / seconds


COUNT = """() => {
  window.drawn = 0;
  window.began = performance.now();
  new MutationObserver(() => { window.drawn += 1; })
    .observe(document.querySelector(".scores"), {attributes: true});
}"""
COUNTED = "[window.drawn, (performance.now() - window.began) / 1000]"
"""Pictures since then, and seconds."""


# ---- pictures for the docs ----


@pytest.mark.skipif("TYTO_SCREENSHOTS" not in os.environ, reason="TYTO_SCREENSHOTS is not set")
def test_pictures_for_the_docs(server: Served, opened: Open) -> None:
    desk: dict[str, Any] = {"viewport": {"width": 1180, "height": 800}}
    page = opened(server, **desk).page
    listening(page)
    page.wait_for_timeout(16_000)  # the strip fills
    expect(page.locator("#who .talker")).to_have_count(2)
    picture(page, "serve-live")
    page = opened(server, "#teach", **desk).page
    listening(page)
    teach(page, 250, "desk")
    teach(page, 40, "sofa")
    forget(page, "sofa")
    page.locator("#teach-azimuth").fill("130")
    page.locator("#teach-who").fill("window")
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("#who .talker")).to_have_count(2)
    picture(page, "serve-teach")
    forget(page, "desk")
    phone = opened(server, viewport={"width": 390, "height": 780}, color_scheme="dark").page
    listening(phone)
    phone.wait_for_timeout(8_000)
    expect(phone.locator("#who .talker").first).to_be_visible()
    picture(phone, "serve-phone")
