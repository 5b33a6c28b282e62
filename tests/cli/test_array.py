"""`tyto array`: arrays are listed, shown, drawn, imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.commands import PNG, Tyto, words
from tytoalba.signal.array import builtin_arrays, load_array

PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")
ODAS = """
# Configuration of a robot
raw: { fS = 16000; }
mapping: { map: (2, 1); }
general: {
  mics = (
    { mu = ( -0.02, +0.00, 0.01 ); },
    { mu = ( +0.02, +0.00, 0.01 ); }
  );
}
"""


def test_arrays_are_listed(tyto: Tyto) -> None:
    table = tyto("array", "list")
    assert table.code == 0
    lines = table.out.splitlines()
    assert len(lines) < len(builtin_arrays()) + 5
    assert max(map(len, lines)) <= 80
    for name, array in builtin_arrays().items():
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.split()[1:3] == [str(array.n_mics), str(array.sample_rate)]
    listed = json.loads(tyto("array", "list", "--json").out)
    assert {row["name"]: row["n_mics"] for row in listed} == {
        name: array.n_mics for name, array in builtin_arrays().items()
    }


def test_an_array_is_shown(tyto: Tyto, tmp_path: Path) -> None:
    shown = tyto("array", "show", "pepper")
    assert "48000 Hz, 6 pairs, largest delay 12.6 samples" in shown.out
    assert "cannot tell up/down" in shown.out
    sketch = shown.out[shown.out.index("front".center(37).rstrip()) :].splitlines()
    rows = {digit: i for i, line in enumerate(sketch[:16]) for digit in "0123" if digit in line}
    columns = {digit: sketch[row].index(digit) for digit, row in rows.items()}
    assert rows["2"] == rows["3"] < rows["0"] == rows["1"]  # front is up
    assert columns["0"] == columns["2"] < columns["1"] == columns["3"]  # left is left
    facts = json.loads(tyto("array", "show", "pepper", "--json").out)
    assert facts["positions"][0] == [-0.0267, 0.0343, 0.0]
    assert facts["max_delay_samples"] == pytest.approx(12.572, abs=0.001)
    toml = tyto("array", "show", "respeaker-usb-4", "--toml").out
    (tmp_path / "mine.toml").write_text(toml)
    assert load_array(tmp_path / "mine.toml") == RESPEAKER
    assert json.loads(tyto("array", "show", tmp_path / "mine.toml", "--json").out)["channels"] == [1, 2, 3, 4]


def test_an_array_is_drawn(tyto: Tyto, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("array", "show", "linear-4", "--plot", tmp_path / "array.png")
    assert ran.code == 0
    assert (tmp_path / "array.png").read_bytes().startswith(PNG)
    assert "cannot tell front/back" in ran.out
    tyto("array", "show", "linear-4", "--plot", tmp_path / "array.svg")
    assert "<svg" in (tmp_path / "array.svg").read_text()
    for name in ("array.xyz", "array"):
        error = tyto("array", "show", "linear-4", "--json", "--plot", tmp_path / name)
        assert error.code == 2
        assert "the name of a picture ends in .png, .svg, .pdf" in error.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["array.png", "array.svg"]


def test_names_may_look_like_markup(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(
        "name = 'kit [/b] [red]'\ndescription = '[see] [/i]'\nsample_rate = 8000\n"
        "positions = [[0.0, 0.1], [0.1, 0.0]]\n"
    )
    assert "kit [/b] [red]  [see] [/i]" in tyto("array", "show", tmp_path / "odd.toml").out


def test_an_odas_configuration_is_imported(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "robot.cfg").write_text(ODAS)
    printed = tyto("array", "import", tmp_path / "robot.cfg")
    assert printed.code == 0
    written = tyto("array", "import", tmp_path / "robot.cfg", "--output", tmp_path / "robot.toml")
    assert written.out == ""
    assert "2 microphones written to" in words(written.err)
    assert (tmp_path / "robot.toml").read_text() == printed.out
    array = load_array(tmp_path / "robot.toml")
    assert (array.name, array.sample_rate, array.channels) == ("robot", 16000, (1, 0))
    assert array.positions == ((-0.02, 0.0, 0.01), (0.02, 0.0, 0.01))
    assert tyto("array", "import", tmp_path / "robot.toml").out == printed.out  # checks a TOML file


def test_wrong_arrays_are_refused(tyto: Tyto, tmp_path: Path) -> None:
    assert "built in: linear-4" in tyto("array", "show", "salt").error
    (tmp_path / "good.toml").write_text(PEPPER.to_toml())
    nowhere = tyto("array", "import", tmp_path / "good.toml", "-o", tmp_path / "no" / "x.toml")
    assert "No such file or directory" in nowhere.error
