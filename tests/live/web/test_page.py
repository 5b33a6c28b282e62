"""The page of `tyto serve` in Debian's Chromium, before a real server that plays a simulated recording.

TYTO_SCREENSHOTS=docs/images also writes the pictures of docs/serve.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import process
from tests.helpers.served import ARGUMENTS, CHROMIUM, Served, needs_chromium, serving
from tests.live.web.test_files import contrast
from tytoalba.data.demo import DEMO_ARRAY, demo_recording

pytestmark = [pytest.mark.end_to_end, needs_chromium]

DEMO, TRUTH = demo_recording()
PATIENCE = 30_000  # ms
TOKEN = "correct-horse-battery-staple"
HOSTILE = '<img src=x onerror="document.title=1">'
VIEWS = ("live", "teach", "recording", "calibrate", "stored")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    state = folder / "kitchen.tyto"
    made = process("new", state, "--array", DEMO_ARRAY, "--features", "200")
    assert made.code == 0, made.err
    with serving(folder, "--from", DEMO, "--loop", "--model", state) as running:
        yield running


@pytest.fixture(scope="module")
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
            assert not tab.errors


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE)
    return expected(thing)


def picture(page: Any, name: str) -> None:
    """For the docs, if wanted."""
    if folder := os.environ.get("TYTO_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def listening(page: Any) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "listening")


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


# ---- live ----


def test_shows_who_is_where(server: Served, opened: Open) -> None:
    page = opened(server).page
    listening(page)
    expect(page.locator("#array")).to_have_text(DEMO_ARRAY)
    expect(page.locator("#tracks tbody tr").first).to_be_visible()
    expect(page.locator("#who")).to_contain_text(re.compile(r"(3[5-9]|4[0-5])°, front left"))
    expect(page.locator("#spoken")).to_contain_text(
        re.compile(r"Talking: number \d+ at about (40|250) degrees")
    )
    expect(page.locator("#level-text")).to_contain_text("dB")
    expect(page.locator("#input-name")).to_contain_text("demo.flac")
    expect(page.locator("#circle .scores")).to_have_attribute("d", re.compile("^M.*Z$"))
    expect(page.locator("#tracks tbody tr")).to_have_count(2)
    assert painted(page, "#strip") > 0.01


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


def test_up_is_the_front_and_left_is_90(server: Served, opened: Open) -> None:
    page = opened(server, "#teach").page
    listening(page)
    middle = page.locator("#circle .rim").bounding_box()
    x, y = middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2
    for azimuth, right, down in ((0, 0, -1), (90, -1, 0), (180, 0, 1), (270, 1, 0)):
        page.mouse.click(x + right * middle["width"] / 3, y + down * middle["width"] / 3)
        expect(page.locator("#teach-azimuth")).to_have_value(str(azimuth))
        grip = page.locator(".grip").bounding_box()
        assert grip["x"] + grip["width"] / 2 == pytest.approx(x + right * middle["width"] / 2, abs=2)
        assert grip["y"] + grip["height"] / 2 == pytest.approx(y + down * middle["width"] / 2, abs=2)
    page.mouse.move(x + middle["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(x + middle["width"] / 3, y - middle["width"] / 3, steps=4)
    page.mouse.up()
    expect(page.locator("#teach-azimuth")).to_have_value("315")


def test_nobody_looks_at_a_hidden_page(server: Served, opened: Open) -> None:
    tab = opened(server)
    listening(tab.page)
    hide = """hidden => {
      Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    assert n_sockets(tab) == 1
    with tab.page.expect_event("websocket") as again:
        tab.page.evaluate(hide, True)
        tab.page.wait_for_timeout(1500)
        assert n_sockets(tab) == 1
        tab.page.evaluate(hide, False)
    assert again.value
    expect(tab.page.locator("#tracks tbody tr").first).to_be_visible()


def test_words_and_times(server: Served, opened: Open) -> None:
    page = opened(server).page
    said = page.evaluate(
        """async () => {
          const words = await import("/words.js");
          return [...[0, 22, 40, 90, 135, 180, 270, 340, -20, 359.7].map(words.place), words.duration(0.44),
            words.duration(185), words.bytes(2675336), words.count(1, "frame", "frames"), words.moment(null)];
        }"""
    )
    places = (
        "0°, front|22°, front|40°, front left|90°, left|135°, back left|180°, back|270°, right|340°, front"
    )
    assert said[:10] == [*places.split("|"), "340°, front", "0°, front"]
    assert said[10:] == ["0.4 s", "3:05 min", "2.7 MB", "1 frame", "unknown"]
    times = page.evaluate(
        """async () => {
          const past = new (await import("/strip.js")).Past(30);
          const kept = [];
          for (const time of [1, 2, 40, 41, 0.1, 0.2]) {
            past.add({time, tracks: [], scores: null});
            kept.push(past.frames.map(frame => frame.time));
          }
          return kept;
        }"""
    )
    assert times == [[1], [1, 2], [40], [40, 41], [0.1], [0.1, 0.2]]  # old ones go; a new start begins anew


def n_sockets(tab: Tab) -> int:
    return sum(url.startswith("ws") for url in tab.asked)


# ---- a recording ----


def test_shows_a_recording(server: Served, opened: Open) -> None:
    page = opened(server, "#recording").page
    page.get_by_label("Sound file").set_input_files(DEMO)
    expect(page.locator("#recording-summary")).to_contain_text("Two people: 40 degrees")
    expect(page.locator("#recording-summary")).to_contain_text(re.compile(r"2(49|50|51) degrees"))
    rows = page.locator("#segments tbody tr")
    expect(rows).to_have_count(3)  # as docs/track.md has them
    for row in rows.all():
        found = re.search(r"(\d+)°", row.inner_text())
        assert found
        assert min(abs(int(found[1]) - one.azimuth) for one in TRUTH) <= 5
    assert painted(page, "#map") > 0.01
    expect(page.locator("#at-text")).to_contain_text(re.compile(r"4[01]°|39°"))
    page.get_by_label("Look at").focus()
    page.keyboard.press("Home")
    expect(page.locator("#at-text")).to_have_text("0.0 s: Nobody talks")


def test_says_what_is_wrong_with_a_recording(server: Served, opened: Open) -> None:
    page = opened(server, "#recording", quiet=False).page
    page.get_by_label("Sound file").set_input_files(
        {"name": "x.wav", "mimeType": "audio/wav", "buffer": b"no sound"}
    )
    expect(page.locator("#recording-message.bad")).not_to_be_empty()
    page.get_by_label("Sound file").set_input_files({"name": "x.wav", "mimeType": "audio/wav", "buffer": b""})
    expect(page.locator("#recording-message")).to_have_text("The file is empty.")


def test_a_recording_can_be_dropped_and_cancelled(server: Served, opened: Open) -> None:
    page = opened(server, "#recording").page
    held: list[Any] = []
    page.route("**/api/locate", lambda route: held.append(route))  # never answered
    data = page.evaluate_handle(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["RIFF"], "dropped.wav"));
          return data;
        }"""
    )
    page.locator("#drop").dispatch_event("drop", {"dataTransfer": data})
    expect(page.locator("#recording-message")).to_have_text("Looking at dropped.wav.")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#recording-message")).to_have_text("Cancelled.")
    expect(page.get_by_label("Sound file")).to_be_enabled()
    assert len(held) == 1


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


def test_without_a_model_nothing_can_be_taught(folder: Path, opened: Open) -> None:
    with serving(folder, "--no-input", "--array", DEMO_ARRAY) as server:
        page = opened(server, "#teach", quiet=False).page
        expect(page.locator("#connection-text")).to_have_text("No input")
        expect(page.locator("#teach-not")).to_contain_text("tyto new")
        expect(page.locator("#teach-form")).to_be_hidden()
        page.get_by_role("link", name="Stored").click()
        expect(page.locator("#stored-lead")).to_contain_text("keeps nothing")


# ---- connection ----


def test_comes_back_after_a_restart(folder: Path, opened: Open) -> None:
    with serving(folder, "--from", DEMO, "--loop", "--array", DEMO_ARRAY, "--method", "srp") as server:
        page = opened(server, quiet=False).page
        listening(page)
        expect(page.locator("#tracks tbody tr").first).to_be_visible()
        server.kill()
        expect(page.get_by_role("alert")).to_have_text(
            "tyto does not answer. Trying again; nothing has to be done here."
        )
        expect(page.locator("#connection-text")).to_have_text("No connection")
        server.start()
        listening(page)
        expect(page.locator("#banner")).to_be_hidden()
        expect(page.locator("#tracks tbody tr").first).to_contain_text("talks")


def test_asks_for_a_token(folder: Path, opened: Open) -> None:
    with serving(
        folder, "--from", DEMO, "--loop", "--array", DEMO_ARRAY, "--method", "srp", token=TOKEN
    ) as server:
        page = opened(server, quiet=False).page
        dialog = page.get_by_role("dialog", name="This tyto asks for a token")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_visible()
        dialog.get_by_label("Token").fill("not this one, surely")
        page.keyboard.press("Enter")
        expect(page.locator("#token-error")).to_have_text("That is not the token.")
        dialog.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        listening(page)
        page.get_by_role("button", name="Sign out").click()
        expect(dialog).to_be_visible()

        other = opened(server, f"#token={TOKEN}").page
        listening(other)
        assert "token" not in other.url
        (cookie,) = other.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert TOKEN not in cookie["value"]


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


def views(page: Any) -> Iterator[str]:
    """Turn to each view."""
    for view in VIEWS:
        page.evaluate("view => { location.hash = view; }", view)
        expect(page.locator(f"#{view}-title")).to_be_visible()
        yield view


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
    few, many = (page.evaluate("window.drawn") for page in (calm, usual))
    assert 0 < few <= 13
    assert many > few


COUNT = """() => {
  window.drawn = 0;
  new MutationObserver(() => { window.drawn += 1; })
    .observe(document.querySelector(".scores"), {attributes: true});
}"""


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
    expect(page.locator("#who .talker")).to_have_count(2)
    picture(page, "serve-teach")
    forget(page, "desk")
    phone = opened(server, viewport={"width": 390, "height": 780}, color_scheme="dark").page
    listening(phone)
    phone.wait_for_timeout(8_000)
    expect(phone.locator("#who .talker").first).to_be_visible()
    picture(phone, "serve-phone")
