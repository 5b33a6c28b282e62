"""Other people's localizers: their lines belong to the right frames, and what they leave out is not found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.odaslive import program
from tests.helpers.waves import plane_wave
from tytoalba.bench.odas.program import run_odas_localizer
from tytoalba.bench.odas.settings import SHIPPED
from tytoalba.bench.odas.tracks import Heard
from tytoalba.bench.peers import OdasLocalizer, Peer, at_labels, measure_peers, odas_peers, read_lines
from tytoalba.data.recording import Recording
from tytoalba.errors import DataError, TytoError
from tytoalba.signal.array import load_array

unix = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts with a #! line")
ARRAY = load_array("respeaker-usb-4")
FRAME, HOP = 2730, 1365

TELLS = """
import sys, wave, tomllib
with wave.open(sys.argv[1]) as sound:
    channels, width, rate, n, *_ = sound.getparams()
assert (channels, width) == (4, 2), (channels, width)
assert len(tomllib.load(open(sys.argv[2], "rb"))["positions"]) == channels
print("# seconds azimuth")
for start in range(0, n - 2730 + 1, 1365):
    print((start + 1365) / rate, 60.5, *([200] if sys.argv[3] == "2" else []))
"""
"""Somebody at 60.5 degrees, and at 200 where two are asked for, in every frame."""


def recording(azimuth: list[list[float]], name: str = "r", seed: int = 0) -> Recording:
    """Noise; frame after frame labelled with these directions."""
    n_samples = HOP * (len(azimuth) + 1)
    sound = np.random.default_rng(seed).normal(0, 0.1, (4, n_samples)).astype(np.float32)
    labels = np.array(azimuth, float)
    return Recording(
        name, "test", ARRAY, np.arange(len(azimuth)), labels, lambda: sound, frame_length=FRAME, hop=HOP
    )


NAN = float("nan")
ONE, TWO = recording([[60.0, NAN]] * 5, "one"), recording([[203.0, 61.0]] * 4 + [[90.0, NAN]], "two", 1)


@unix
def test_a_peer_is_judged_on_the_same_frames(tmp_path: Path) -> None:
    peer = Peer.of(f"{program(tmp_path, TELLS, 'tells')} {{wav}} {{array}} {{sources}}")
    rows = {(row.name, row.n_sources): row for row in measure_peers([ONE, TWO], {"theirs": peer}, ["srp"])}
    assert rows["srp", 1].n_frames == rows["theirs", 1].n_frames == 6
    assert rows["srp", 2].n_frames == rows["theirs", 2].n_frames == 4
    theirs = rows["theirs", 1]  # five frames half a degree off, one 29.5 degrees off
    assert theirs.acc.value == pytest.approx(100 * 5 / 6)
    assert theirs.mae == pytest.approx((5 * 0.5 + 29.5) / 6)
    assert (rows["theirs", 2].acc.value, rows["theirs", 2].answered) == (100.0, 100.0)
    assert rows["theirs", 2].mae == pytest.approx((0.5 + 3.0) / 2)


@unix
def test_what_a_peer_leaves_out_is_not_found(tmp_path: Path) -> None:
    """One azimuth where there are two sources, in the two frames that hold 0.1 s, and no other line."""
    few = program(tmp_path, "print(0.1, 60)", "few")
    rows = measure_peers([ONE, TWO], {"few": Peer.of(f"{few} {{wav}}")}, [])
    found = {row.n_sources: (row.acc.value, row.answered) for row in rows}
    assert found == {1: pytest.approx((100 / 3, 100 / 3)), 2: (25.0, 25.0)}
    assert np.isnan(rows[1].mae)  # no frame of two has both


@unix
def test_a_peer_that_is_silent_has_no_error_to_show(tmp_path: Path) -> None:
    rows = measure_peers([ONE], {"mute": Peer.of(f"{program(tmp_path, '', 'mute')} {{wav}}")}, [])
    assert [(row.acc.value, row.answered, np.isnan(row.mae)) for row in rows] == [(0.0, 0.0, True)]


def test_lines_belong_to_the_frames_in_which_their_time_falls() -> None:
    """Frames of 0.17 s begin every 0.085 s: a time is inside two of them."""
    lines = read_lines("0.02 10\n0.09 20\n0.3 30\n0.31 40 50 60\n9 1")
    found = at_labels(lines, ONE)
    assert found[:, 0].tolist() == pytest.approx([20, 20, 30, 40, NAN], nan_ok=True)
    assert found[3, 1] == 50
    assert np.isnan(found[[0, 1, 2, 4], 1]).all()


@given(st.permutations([(0.02, 10.0), (0.09, 20.0), (0.3, 30.0), (0.31, 40.0)]))
def test_the_order_of_lines_does_not_matter(lines: list[tuple[float, float]]) -> None:
    text = "\n".join(f"{time} {azimuth - 360}" for time, azimuth in lines)
    assert read_lines(text) == [(time, (azimuth,)) for time, azimuth in sorted(lines)]


@pytest.mark.parametrize("line", ["hello", "0.1 north", "nan 10", "0.1 inf", "0.1;20", "0.1 2\x1b[2J"])
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(TytoError, match="line 2 of theirs"):
        read_lines(f"0.1 20\n{line}", "theirs")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "never says"),
        ("ls", "never says"),
        ("no-such-program {wav}", "no program"),
        ("'x {wav}", "no command"),
    ],
)
def test_commands_that_cannot_work_are_refused_at_once(command: str, says: str) -> None:
    with pytest.raises(TytoError, match=says):
        Peer.of(command)


def test_nothing_to_measure_on_is_refused() -> None:
    with pytest.raises(DataError, match="no recordings"):
        measure_peers([], {})


def test_a_peer_with_the_name_of_a_method_is_refused() -> None:
    with pytest.raises(TytoError, match="'srp' is a method of ours"):
        measure_peers([ONE], {"srp": Peer(("x", "{wav}"))}, ["srp"])


POTS = """
import re
n_hops = len(open("sound.raw", "rb").read()) // (2 * 4 * 128)
assert re.search(r'potential = .*path = "potential.json"', open("odas.cfg").read())
open("tracks.json", "w")
with open("potential.json", "w") as out:
    for k in range(1, n_hops + 1):
        y = 1.0 if k % 3 else -1.0
        out.write('{"timeStamp": %d, "src": [{"x": 0.0, "y": %f, "z": 0.0, "E": 0.5}]}' % (k, y))
"""
"""At 90 degrees two thirds of the time, at 270 the rest."""


@unix
def test_potential_sources_of_odas_are_read_and_weighed(tmp_path: Path) -> None:
    binary = program(tmp_path, POTS)
    heard = run_odas_localizer(binary, ARRAY, ONE.load(), SHIPPED)
    assert heard[:3] == [Heard(1, ((90.0, 0.5),)), Heard(2, ((90.0, 0.5),)), Heard(3, ((270.0, 0.5),))]
    locate = OdasLocalizer(binary, SHIPPED)
    assert locate(ONE)[:, 0].tolist() == [90.0] * 5
    assert sorted(locate(TWO)[0].tolist()) == [90.0, 270.0]
    assert np.isnan(locate(TWO)[4, 1])  # one source there


@pytest.mark.end_to_end
@pytest.mark.skipif("TYTO_ODAS" not in os.environ, reason="TYTO_ODAS names no odaslive")
def test_odas_itself_hears_a_wave() -> None:
    azimuth = 130.0
    samples = plane_wave(ARRAY, azimuth, 2.0)
    there = Recording(
        "wave", "test", ARRAY, np.arange(4, 20), np.full((16, 1), azimuth), lambda: samples, FRAME, HOP
    )
    rows = measure_peers([there], odas_peers(os.environ["TYTO_ODAS"]), [])
    assert {row.name: row.acc_10 for row in rows}["ODAS localizer"] == 100.0
