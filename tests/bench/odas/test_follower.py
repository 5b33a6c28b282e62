"""Reports of ODAS and our frames: which belong together; and both rows in the command."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tests.helpers.odaslive import FAKE, program
from tytoalba.bench import tracking
from tytoalba.bench.odas.follower import OdasFollower, at_frames, odas_followers
from tytoalba.bench.odas.program import find_odas
from tytoalba.bench.odas.settings import BEST, SHIPPED, OdasSettings
from tytoalba.bench.odas.tracks import OdasTrack, Report
from tytoalba.bench.tracking import make_scene, row_of
from tytoalba.data.simulation.presets import TRACKING
from tytoalba.signal.array import load_array

scripts = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts with a #! line")
ARRAY = load_array("respeaker-usb-4")


def _reports(n_hops: int, activity: float = 1.0) -> list[Report]:
    """The azimuth of every report is its number of hops."""
    return [Report(hop, (OdasTrack(1, float(hop), activity),)) for hop in range(1, n_hops + 1)]


def test_a_frame_gets_the_last_report_that_has_heard_no_more() -> None:
    # a hop is 8 ms; frames of 20 ms around 10, 30 and 50 ms end at 20, 40 and 60 ms
    reports, time = _reports(20), [0.010, 0.030, 0.050]
    assert at_frames(reports, time, 0.010, SHIPPED) == [[(1, 2.0)], [(1, 5.0)], [(1, 7.0)]]
    middle = at_frames(reports, time, 0.010, replace(SHIPPED, heard="middle"))
    assert middle == [[(1, 1.0)], [(1, 3.0)], [(1, 6.0)]]


def test_the_end_of_a_frame_that_is_a_hop_counts_whatever_floats_make_of_it() -> None:
    time = [float(np.float64(k * 0.008) - 0.1) for k in range(13, 60)]
    found = at_frames(_reports(80), time, 0.1, SHIPPED)
    assert [frame[0][1] for frame in found] == list(range(13, 60))


def test_before_the_first_report_there_is_nobody() -> None:
    assert at_frames(_reports(3)[2:], [0.001, 0.020, 0.030], 0.0, SHIPPED) == [[], [], [(1, 3.0)]]


def test_the_mean_activity_over_a_frame_decides_who_talks() -> None:
    reports = _reports(10, activity=0.9) + [
        Report(hop, (OdasTrack(1, float(hop), 0.1),)) for hop in range(11, 21)
    ]
    time, half = [0.060, 0.080, 0.140], 0.020  # five hops per frame: of 0.9, of both, of 0.1
    for least, talks in ((0.0, [1, 1, 1]), (0.4, [1, 1, 0]), (0.6, [1, 0, 0]), (0.95, [0, 0, 0])):
        found = at_frames(reports, time, half, replace(SHIPPED, least_activity=least))
        assert [len(frame) for frame in found] == talks, least


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenes of one kind, three seconds long."""
    short = replace(TRACKING["one"], seconds=3.0, begins=(1.5, 1.6))
    monkeypatch.setattr(tracking, "TRACKING", {"one": short})


@scripts
@pytest.mark.usefixtures("quick")
def test_the_command_measures_both_rows_beside_ours(tyto: Tyto, tmp_path: Path) -> None:
    fake = program(tmp_path, FAKE)
    (tmp_path / "mine.toml").write_text("least_activity = 0.95")
    options = ["-m", "srp", "--scenes", "2", "--seeds", "0", "-j", "1", "--odas", fake]
    options += ["--odas-settings", tmp_path / "mine.toml", "--json"]
    ran = tyto("bench", "tracking", *options)
    assert ran.code == 0, ran.err
    measured = json.loads(ran.out)
    rows = measured["rows"]["all"]
    assert list(rows) == [*tracking.FOLLOWERS, "ODAS as shipped", "ODAS, best setting"]
    assert rows["ODAS as shipped"]["ghosts"]["value"] > rows["ODAS, best setting"]["ghosts"]["value"] == 0
    assert measured["others"]["ODAS, best setting"]["least_activity"] == 0.95
    assert measured["others"]["ODAS as shipped"]["least_activity"] == SHIPPED.least_activity
    assert str(tmp_path) not in ran.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--odas", "/nowhere/odaslive"], "no program '/nowhere/odaslive'"),
        (["--odas-settings", "mine.toml"], "--odas-settings is for --odas"),
    ],
)
def test_the_command_refuses_before_it_works(tyto: Tyto, options: list[str], says: str) -> None:
    assert says in tyto("bench", "tracking", *options).error


def test_the_rows_are_what_ships_and_the_choice(tmp_path: Path) -> None:
    found = odas_followers(program(tmp_path, FAKE), BEST)
    assert [one.settings for one in found.values()] == [OdasSettings(), BEST]


@pytest.mark.end_to_end
@pytest.mark.skipif("TYTO_ODAS" not in os.environ, reason="TYTO_ODAS names no odaslive")
@pytest.mark.parametrize("mode", ["kalman", "particle"])
def test_odas_itself_finds_a_talker(mode: str) -> None:
    follow = OdasFollower(find_odas(os.environ["TYTO_ODAS"]), replace(SHIPPED, mode=mode))
    scene = make_scene(ARRAY, "srp", None, "valid", (0, "one", 1))
    row = row_of(scene, follow(scene))
    assert row["right"][0] / row["right"][1] > 0.6
    assert row["gospa"][0] / row["gospa"][1] < 10.0
