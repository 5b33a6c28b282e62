"""The page of `tyto serve` in Chromium, before a real server that plays a simulated recording."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import DEMO, TRUTH, Open, Tab, expect, listening, painted
from tests.helpers.served import Served, needs_chromium, serving
from tytoalba.data.demo import DEMO_ARRAY

pytestmark = [pytest.mark.end_to_end, needs_chromium]

PLAIN = ("--from", DEMO, "--loop", "--array", DEMO_ARRAY, "--method", "srp")
HOSTILE = '<img src=x onerror="document.title=1">'
TOKEN = "correct-horse-battery-staple"


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


def test_faults_are_said(server: Served, opened: Open) -> None:
    tab = opened(server)
    listening(tab.page)
    fault = {"kind": "muted", "channels": [2], "text": f"channel 2 is muted {HOSTILE}"}
    track = {"id": 7, "azimuth": 359.7, "probability": 0.5, "since": 1.0, "speaking": False}
    update = {"type": "update", "time": 4.0, "tracks": [track], "level": -120.0, "dropped": 1234}
    update |= {"latency": None, "faults": [fault], "scores": None}

    def attend(socket: Any) -> None:
        socket.send("no JSON")
        socket.send(json.dumps(update))

    tab.page.route_web_socket("**/api/live", attend)
    tab.page.reload()
    expect(tab.page.locator("#faults li")).to_have_text([fault["text"]])
    expect(tab.page.locator("#healthy")).to_be_hidden()
    expect(tab.page.locator("#dropped")).to_have_text("1,234 samples")
    expect(tab.page.locator("#latency")).to_have_text("not live")
    expect(tab.page.locator("#level-text")).to_have_text("silent")
    expect(tab.page.locator("#tracks tbody tr")).to_contain_text("0°, front")
    expect(tab.page.locator("#tracks tbody tr")).to_contain_text("silent")
    expect(tab.page.locator("#who")).to_have_text("Nobody talks")
    assert tab.page.locator("main img").count() == 0


def test_words_and_times(server: Served, opened: Open) -> None:
    page = opened(server).page
    listening(page)
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


# ---- connection ----


def test_comes_back_after_a_restart(served_folder: Path, opened: Open) -> None:
    with serving(served_folder, *PLAIN) as server:
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


def test_asks_for_a_token(served_folder: Path, opened: Open) -> None:
    with serving(served_folder, *PLAIN, token=TOKEN) as server:
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
