"""The picture of `tyto listen`, as text, at several sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.updates import track
from tytoalba.cli.canvas import Canvas
from tytoalba.cli.picture import View, picture
from tytoalba.live.tracker import Track
from tytoalba.live.update import Fault, Update

FIRST, SECOND = Track(1, 40.2, 0.97, 0.2, True), Track(2, 250.4, 0.61, 63.0, False)
TIMES = np.arange(55.0, 75.0, 0.0853)


def scores() -> np.ndarray:
    away = np.abs((np.arange(360) - 40 + 180) % 360 - 180)
    return np.exp(-((away / 12.0) ** 2))


def view(*tracks: Track, faults: tuple[Fault, ...] = (), remark: str = "") -> View:
    """A minute and a quarter; the first talker has walked from 0 to 40 degrees in the last 20 s."""
    past = [(float(time), (FIRST.at(2 * (float(time) - 55)),)) for time in TIMES]
    update = Update(75.0, tracks, -34.0, dropped=12, latency=0.0314, faults=faults)
    return View("tyto listen: respeaker-usb-4, ReSpeaker 4 Mic Array", update, scores(), past, remark)


USUAL = """\
tyto listen: respeaker-usb-4, ReSpeaker 4 Mic Array                        1:15
               0
                                   id  azimuth  prob.   since
        ⣢⣦⣤⡀                        1       40   0.97    0:00  speaks
        ⢿⣿⣿⣿⣶⡦⠤⠖⠲⠤⢤⣀                2      250   0.61    1:03
        ⠈⣿⡿⠋1      ⠈⠑⢄
         ⡼⠁  ⠢⡀      ⠈⢧
        ⢠⠇    ⠙⢄      ⠸⡄
 90     ⠘⡆          2 ⢰⠃     270
         ⢳⡀          ⢀⡞
          ⠑⢄⡀      ⢀⡠⠊
            ⠉⠓⠒⠦⠴⠒⠚⠉


              180
180
 90                                                                        ⣀⣀⣀⣀
  0 ⠔⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠚⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉ ⠄
270
180
    -20 s                                                                   now
level   -34 dB █████·····  lost 12  latency 31 ms
Ctrl-C ends
"""
SMALL = """\
tyto listen: respeaker-usb-4, ReSpeaker 4 Mic Array    1:15
           0
       ⢀                   id  azimuth  prob.
      ⠘⣿⣿⣦⣠⠤⠤⣄⡀             1       40   0.97  speaks
       ⢹⡟1    ⠉⢢⡀           2      250   0.61
       ⡞  ⠙⢄    ⢳
 90    ⢧       2⡼    270
       ⠈⠣⣀    ⣀⠜⠁
         ⠈⠙⠒⠒⠋⠁

          180
180
 90                                                     ⣀⣀⣀
  0 ⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠒⠒⠖⠒⠋⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠍⠉⠉⠉⠄
270
180
    -20 s                                               now
level   -34 dB █████·····  lost 12  latency 31 ms
Ctrl-C ends
"""


@pytest.mark.parametrize(("width", "height", "wanted"), [(79, 24, USUAL), (59, 20, SMALL)])
def test_golden(width: int, height: int, wanted: str) -> None:
    found = picture(view(FIRST, SECOND), width, height).lines()
    assert "\n".join(found).rstrip() + "\n" == wanted


@pytest.mark.parametrize("width", [1, 10, 30, 55, 56, 79, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 15, 16, 24, 70])
def test_every_size_is_filled_and_never_exceeded(width: int, height: int) -> None:
    fault = Fault("muted", (1,), "channel 1 is silent; is it muted? " * 5)
    for one in (view(FIRST, SECOND, faults=(fault,) * 3), view(*map(track, range(1, 40))), view()):
        lines = picture(one, width, height).lines()
        assert len(lines) == height
        assert max(map(len, lines)) <= width


def test_a_narrow_terminal_has_a_table() -> None:
    lines = picture(view(FIRST, SECOND), 40, 8).lines()
    assert lines[1:4] == [
        " id  azimuth  prob.   since",
        "  1       40   0.97    0:00  speaks",
        "  2      250   0.61    1:03",
    ]
    assert lines[-3] == "level -34 dB  lost 12  latency 31 ms"
    many = picture(view(*map(track, range(1, 10))), 40, 8).lines()
    assert "    and 7 more" in many


def test_a_peak_has_no_holes_in_a_large_terminal() -> None:
    rows = picture(view(), 150, 60).lines()[1:46]
    peak = [line.strip("⠀ ") for line in rows[8:14]]
    assert all(line.count("⣿") >= 5 for line in peak), rows


def test_faults_and_remarks_are_below() -> None:
    faults = [Fault("muted", (n,), f"channel {n} is silent") for n in range(3)]
    lines = picture(view(faults=tuple(faults)), 79, 24).lines()
    assert lines[-2:] == ["! channel 0 is silent", "! channel 1 is silent (and 1 more)"]
    assert "the broker is gone" in picture(view(remark="the broker is gone"), 79, 24).lines()
    assert "nobody" in "\n".join(lines)


def test_colours_are_codes_and_change_nothing_else() -> None:
    import re

    canvas = picture(view(FIRST, SECOND), 79, 24)
    coloured = canvas.lines(colour=True)
    assert "\x1b[0;36m" in "".join(coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == canvas.lines()


def test_no_text_steers_the_terminal_or_breaks_the_grid() -> None:
    canvas = Canvas(12, 2)
    canvas.text(0, 0, "a\x1b[2Jb\nc")
    canvas.text(0, 1, "麦克风阵列五号机")  # letters two columns wide
    lines = canvas.lines()
    assert lines == ["a\\x1b[2Jb\\nc", "麦克风阵列五"]
