"""How the command speaks: progress on a terminal and elsewhere, levels of talk, text as it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.commands import Tyto
from tytoalba.cli import app as cli
from tytoalba.cli import console
from tytoalba.cli.console import err, make_table, note, out, parse_band, print_error, progress_bar, say, talk
from tytoalba.errors import MissingExtraError, TytoError


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "quiet", False)
    monkeypatch.setattr(talk, "verbose", False)


def test_progress_is_a_plain_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress_bar("simulating") as steps:
        for done in range(1, 201):
            now += 0.125
            steps(done, 200)
    assert capsys.readouterr().err.splitlines() == [
        "simulating: 40 of 200 (20 %), 20 s left",
        "simulating: 80 of 200 (40 %), 15 s left",
        "simulating: 120 of 200 (60 %), 10 s left",
        "simulating: 160 of 200 (80 %), 5 s left",
        "simulating: 200 of 200, done in 25 s",
    ]
    with progress_bar("short") as steps:
        steps(1, 1)
    with progress_bar("data") as steps:
        now += 6
        steps(1, 0, "data: rooms")
    assert capsys.readouterr().err.splitlines()[:1] == ["data: rooms: 1"]


def test_progress_is_a_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(err, "_force_terminal", True)
    with progress_bar("simulating") as steps:
        steps(3, 4)
        steps(4, 4, "writing")
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert "writing" in shown


def test_quiet_says_nothing_but_errors(
    tyto: Tyto, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tyto("-q", "locate", "gone.wav", "-a", "pepper").error
    assert talk.quiet
    monkeypatch.setattr(console, "BETWEEN_LINES", 0.0)
    say("done")
    note("careful")
    with progress_bar("work") as steps:
        steps(1, 2)
    assert capsys.readouterr().err == ""


def test_verbose_tells_where_an_error_comes_from(tyto: Tyto) -> None:
    ran = tyto("-v", "locate", "gone.wav", "-a", "pepper")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert ran.err.splitlines()[-1].startswith("error: gone.wav: no such file")
    assert "Traceback" not in tyto("locate", "gone.wav", "-a", "pepper").err


def test_brackets_are_never_swallowed(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(MissingExtraError("plots", "plot"))
    say("pip install 'tytoalba[sim]'")
    note("[bold]not bold[/]")
    table = make_table("name[red]", title="t[0]", caption="c[/x]")
    table.add_row("a[b]")
    out.print(table)
    printed = capsys.readouterr()
    for text in ("tytoalba[plot]", "tytoalba[sim]", "note: [bold]not bold[/]"):
        assert text in printed.err
    for text in ("name[red]", "t[0]", "c[/x]", "a[b]"):
        assert text in printed.out


@pytest.mark.parametrize(
    ("raised", "code", "says"), [(KeyboardInterrupt, 130, "interrupted"), (TytoError, 2, "no")]
)
def test_the_exit_code_says_how_it_ended(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    raised: type[BaseException],
    code: int,
    says: str,
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise raised("no")

    monkeypatch.setattr("tytoalba.signal.array.builtin_arrays", stopped)
    monkeypatch.setattr(sys, "argv", ["tyto", "array", "show", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert "Traceback" not in line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("low", "a band is LOW-HIGH in Hz, such as 100-8000, or 'full'; got 'low'"),
        ("8000-100", "no band '8000-100': LOW must be at least 50 Hz below HIGH"),
        ("30000-40000", "below 24000 Hz, the highest frequency at 48000 Hz"),
        ("nan-100", "no band 'nan-100'"),
        ("100-101", "at least 50 Hz below HIGH"),
    ],
)
def test_bands(text: str, why: str) -> None:
    assert parse_band("100-8000", 48000) == (100.0, 8000.0)
    assert parse_band("full", 48000) == (0.0, float("inf"))
    with pytest.raises(TytoError) as refused:
        parse_band(text, 48000)
    assert why in str(refused.value)


def test_help_has_groups_exit_codes_and_no_bool(tyto: Tyto) -> None:
    text = tyto("--help").out
    for heading in ("Locate", "Your localizer", "Keys and signatures", "Data", "Science"):
        assert f"─ {heading} ─" in text
    assert "0 done, 1 something wrong was found, 2 refused, 130 interrupted" in " ".join(text.split())
    assert "─ Commands ─" not in text
    for command in ([], ["locate"], ["array", "show"]):
        assert "<bool>" not in tyto(*command, "--help").out
