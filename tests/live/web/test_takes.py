from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.states import wave
from tests.helpers.updates import wait_until
from tests.live.web.conftest import Open, Page
from tytoalba.live.web.takes import MOST_TAKES


def record(page: Page, sound: np.ndarray, **body: Any) -> None:
    page.post("/api/takes", 202, json={"seconds": 2, **body})
    page.fed.give(sound)
    wait_until(lambda: not page.get("/api/takes")["recording"])


def test_swapped_channels_are_found_by_talking(open_page: Open) -> None:
    page = open_page()
    for azimuth in (0, 90, 180, 270):
        record(page, wave(azimuth, 2.1, seed=azimuth)[[1, 0, 2, 3]], azimuth=azimuth)
    takes = page.get("/api/takes")["takes"]
    assert [(one["id"], one["azimuth"], one["seconds"]) for one in takes] == [
        (1, 0, 2),
        (2, 90, 2),
        (3, 180, 2),
        (4, 270, 2),
    ]
    found = page.get("/api/check")
    (fault,) = (one for one in found["findings"] if one["kind"] == "fault")
    assert "another order" in fault["what"]
    assert "[array]" in found["array_toml"] or "positions" in found["array_toml"]
    assert page.delete("/api/takes") == {"dropped": 4}
    assert "no take yet" in page.get("/api/check", 409)


def test_takes_that_fail_are_not_kept(open_page: Open) -> None:
    page = open_page()
    with page.live() as socket:
        record(page, np.zeros((4, 40000)), azimuth=None)
        while (message := socket.receive_json())["type"] != "take" or message["state"] == "recording":
            pass
    assert message["state"] == "failed"
    assert "muted" in message["error"]
    assert page.get("/api/takes")["takes"] == []


def test_so_many_are_kept_and_one_that_runs_can_be_dropped(open_page: Open) -> None:
    page = open_page()
    sound = wave(40.0, 2.0)
    for number in range(MOST_TAKES):
        record(page, sound, azimuth=number)
    assert f"{MOST_TAKES} takes already" in page.post("/api/takes", 409, json={})
    page.delete("/api/takes")
    page.post("/api/takes", 202, json={"azimuth": 5})
    assert page.delete("/api/takes") == {"dropped": 0}
    wait_until(lambda: not page.get("/api/takes")["recording"])
    assert page.get("/api/takes")["takes"] == []
