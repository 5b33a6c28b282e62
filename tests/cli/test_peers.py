"""`tyto bench peers`: a table, JSON and a results file, from other people's programs as users name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.odaslive import program


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few simulated recordings with labels."""
    from tytoalba.data.simulation.export import write_simulation
    from tytoalba.data.simulation.recordings import Simulation

    folder = tmp_path_factory.mktemp("peers") / "home"
    write_simulation(Simulation.of_preset("quick", "respeaker-usb-4", size=0.06), folder)
    return folder


def test_a_program_beside_our_own_methods(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    hook = program(tmp_path, "print(0.1, 60, 200)", "hook")
    results = tmp_path / "peers.json"
    command = ("bench", "peers", "--data", home, "--peer", f"theirs={hook} {{wav}}", "--methods", "srp")
    ran = tyto(*command, "--results", results, "-j", "1")
    assert ran.code == 0, ran.err
    shown = [line for line in ran.out.splitlines() if line.startswith(("theirs", "srp"))]
    assert len(shown) == 4
    assert max(map(len, shown)) <= 80
    rows = {(row["name"], row["n_sources"]): row for row in json.loads(results.read_text())["rows"]}
    assert rows["theirs", 1]["n_frames"] == rows["srp", 1]["n_frames"]
    assert 0 < rows["theirs", 1]["answered"] < rows["srp", 1]["answered"] == 100
    assert str(home.parent) not in results.read_text()  # whose machine it was is not told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "nobody to measure beside ours"),
        (("--peer", "{wav}"), "a peer is NAME=COMMAND"),
        (("--peer", "x=ls"), "never says {wav}"),
        (("--peer", "x=ls {wav}", "--peer", "x=ls {wav}"), "two peers are called 'x'"),
        (("--odas", "no-such-odaslive"), "build it from introlab/odas"),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    tyto: Tyto, home: Path, options: tuple[str, ...], says: str
) -> None:
    ran = tyto("bench", "peers", "--data", home, *options)
    assert ran.code == 2
    assert says in ran.error
