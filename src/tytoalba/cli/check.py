"""`tyto check`: what is wrong with how an array is wired or mounted."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tytoalba.cli.console import chosen_array, err, out, print_json, progress_bar
from tytoalba.cli.options import ArrayOption
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.diagnose.check import Checkup
    from tytoalba.signal.array import MicArray

STYLE = {"fault": "bold red", "cannot tell": "yellow", "fine": "green"}


def check(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings, FILE@AZIMUTH where the direction is known, else FILE.", metavar="FILES"
        ),
    ] = None,
    array: ArrayOption = None,
    told: Annotated[
        Path | None, typer.Option(help="CSV of recordings: file,azimuth a line, azimuth may be empty.")
    ] = None,
    turned: Annotated[
        bool, typer.Option("--turned", help="Try every order at every turn of the array; takes longer.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the corrected array file, if one is sure.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    evaluate: Annotated[
        int, typer.Option(help="Instead: mix up a simulated array so many times; count the right answers.")
    ] = 0,
    mixup: Annotated[str, typer.Option(help="What --evaluate mixes up: order, mounting, free.")] = "order",
    seed: Annotated[int, typer.Option(help="Of --evaluate.")] = 0,
) -> None:
    """Find dead, copied, inverted or swapped channels and a wrong mounting; say so where it cannot be told.

    Have somebody talk for two or three seconds at four directions around the array. Azimuth is degrees: 0 is
    the array's front, 90 its left. Exit code: 0 nothing wrong was found, 1 something was, 2 an error.

    Examples:

      tyto check a.wav@0 b.wav@90 c.wav@180 d.wav@270 --array respeaker-usb-4 -o mine.toml

      tyto check talk.wav --array respeaker-6mic
    """
    from tytoalba.diagnose.check import check_up, read_take

    sources = [_parse(text) for text in recordings or []] + (_read_csv(told) if told else [])
    mics = chosen_array(array, sources[0][0] if sources else None)
    if evaluate:
        if recordings or told or output:
            raise TytoError("--evaluate simulates its recordings; give no files with it")
        _evaluate(mics, evaluate, mixup, seed, json)
        return
    if output and (output.is_dir() or not output.parent.is_dir()):
        raise TytoError(f"cannot write {output}: give a file in a folder that is there")
    if not sources:
        raise TytoError("no recordings; give some, such as front.wav@0 left.wav@90, or free speech talk.wav")
    result = check_up([read_take(path, mics, azimuth) for path, azimuth in sources], mics, turned)
    written = None
    if output and result.corrected:
        from tytoalba.storage.files import written_whole

        with written_whole(output) as temporary:
            temporary.write_text(result.corrected.to_toml(), encoding="utf-8")
        written = output
    if json:
        print_json(_as_json(result, mics, written))
    else:
        _print(result)
    if written:
        err.print(f"corrected array file written: {written}; tyto array show {written} draws it")
    elif output:
        why = "no correction is sure" if result.faulty else "there is nothing to correct"
        err.print(f"nothing written to {output}: {why}")
    if result.faulty:
        raise typer.Exit(1)


def _parse(text: str) -> tuple[str, float | None]:
    """FILE@AZIMUTH, or FILE, also one with an @ in its name."""
    name, at, angle = text.rpartition("@")
    if not at or Path(text).exists():
        return text, None
    return name, _degrees(angle, text)


def _degrees(text: str, where: str) -> float:
    try:
        angle = float(text)
    except ValueError:
        raise TytoError(f"{where}: {text!r} is no direction; degrees such as 90 are") from None
    if not -360.0 <= angle <= 360.0:
        raise TytoError(f"{where}: a direction is degrees from -360 to 360, got {text}")
    return angle


def _read_csv(path: Path) -> list[tuple[str, float | None]]:
    """Rows file,azimuth; files are relative to the CSV's folder, a header line is allowed."""
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise TytoError(f"{path} is not a CSV of file,azimuth: {error}") from error
    if rows and [cell.strip().lower() for cell in rows[0]] == ["file", "azimuth"]:
        rows = rows[1:]
    found: list[tuple[str, float | None]] = []
    for row in rows:
        if len(row) > 2:
            raise TytoError(f"{path}: a line is file,azimuth, got {','.join(row)!r}")
        angle = row[1].strip() if len(row) == 2 else ""
        found.append((str(path.parent / row[0].strip()), _degrees(angle, str(path)) if angle else None))
    return found


def _print(result: Checkup) -> None:
    table = Table("", "finding", "evidence", "confidence", "remedy")
    for finding in result.findings:
        cells = (finding.what, finding.evidence, finding.confidence, finding.remedy)
        table.add_row(Text(finding.kind, STYLE[finding.kind]), *cells)
    out.print(table)


def _as_json(result: Checkup, array: MicArray, written: Path | None) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "array": array.name,
        "faulty": result.faulty,
        "findings": [asdict(finding) for finding in result.findings],
        "verdict": {"sure": verdict.sure, **asdict(verdict)} if verdict else None,
        "corrected": result.corrected.to_toml() if result.corrected else None,
        "written": str(written) if written else None,
    }


def _evaluate(array: MicArray, n_trials: int, mixup: str, seed: int, json: bool) -> None:
    from tytoalba.diagnose.trials import MIXUPS, evaluate, summary

    known = {name: name for name in MIXUPS}
    if mixup not in known:
        raise TytoError(f"--mixup takes {', '.join(MIXUPS)}; got {mixup!r}")
    with progress_bar("trials") as steps:
        trials = evaluate(array, n_trials, seed, known[mixup], on_progress=steps)
    found = {"array": array.name, "mixup": mixup, "seed": seed, **summary(trials)}
    if json:
        print_json(found)
        return
    out.print(
        f"{array.name}, {mixup}: {found['right']} of {found['trials']} right, {found['wrong']} wrong, "
        f"{found['cannot_tell']} cannot tell; of the right, {found['undecided']} are one of several that "
        "sound the same",
        soft_wrap=True,
    )
