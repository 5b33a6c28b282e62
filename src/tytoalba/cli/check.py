"""`tyto check`: what is wrong with how an array is wired or mounted."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tytoalba.cli.console import chosen_array, out, print_json, progress_bar, say
from tytoalba.cli.options import ArrayOption, AsJson, IdentityFile, Seed
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tytoalba.diagnose.check import CheckResult
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
    table: Annotated[
        Path | None,
        typer.Option("--list", help="CSV of recordings, a line each: file,azimuth; azimuth may be empty."),
    ] = None,
    turned: Annotated[
        bool,
        typer.Option(
            "--turned", help="Try every order of channels at every turn of the array; takes longer."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Array file to write, corrected, if the correction is sure."),
    ] = None,
    json: AsJson = False,
    evaluate: Annotated[
        int,
        typer.Option(help="Instead, check this many mixed-up simulated arrays and count right answers."),
    ] = 0,
    mixup: Annotated[str, typer.Option(help="What --evaluate mixes up: order, mounting, free.")] = "order",
    seconds: Annotated[float, typer.Option(help="Length of each recording that --evaluate simulates.")] = 3.0,
    seed: Seed = 0,
    identity: IdentityFile = None,
) -> None:
    """Find dead, copied, inverted or swapped channels and a wrong mounting.

    Have somebody talk for two or three seconds at four directions around the array. Azimuth is in degrees: 0
    is the array's front, 90 its left. Channels are those of the recording, from 0; a microphone is named by
    the channel that the array file gives it. Exit code: 0 if nothing wrong was found, 1 if something was, 2
    if refused.

    Examples:

      tyto check a.wav@0 b.wav@90 c.wav@180 d.wav@270 --array respeaker-usb-4 -o mine.toml

      tyto check talk.wav --array respeaker-6mic
    """
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.diagnose.check import check_array, read_take

    sources = [_parse(text) for text in recordings or []] + (_read_csv(table) if table else [])
    mics = chosen_array(array, sources[0][0] if sources else None)
    if evaluate:
        if recordings or table or output:
            raise TytoError("--evaluate simulates its recordings; give no files with it")
        _evaluate(mics, evaluate, mixup, seconds, seed, json)
        return
    if output and (output.is_dir() or not output.parent.is_dir()):
        raise TytoError(f"cannot write {output}: give a file in a folder that is there")
    if not sources:
        raise TytoError("no recordings; give some, such as front.wav@0 left.wav@90, or free speech talk.wav")
    keys = keys_at_hand(identity)
    takes = [read_take(path, mics, azimuth, keys) for path, azimuth in sources]
    result = check_array(takes, mics, turned)
    corrected = result.corrected
    if output and corrected:
        from tytoalba.storage.writing import write_whole

        corrected = replace(corrected, name=output.stem)  # it is another array than the one it came from
        write_whole(output, corrected.to_toml().encode())
    if json:
        print_json(_as_json(result, mics, corrected, output))
    else:
        _print(result)
    if output and corrected:
        say(f"corrected array file written: {output}; tyto array show {output} draws it")
    elif output:
        why = "no correction is sure" if result.faulty else "there is nothing to correct"
        say(f"nothing written to {output}: {why}")
    if result.faulty:
        raise typer.Exit(1)


def check_samples(
    takes: Sequence[tuple[NDArray[np.float32], float | None]], array: MicArray
) -> dict[str, Any]:
    """What is wrong with an array, by sound in memory: (n_mics, n_samples) and its azimuth, if it is known.

    Findings, and the corrected array file where a correction is sure.
    """
    from tytoalba.diagnose.check import check_array, take

    numbered = enumerate(takes, start=1)
    result = check_array([take(f"take {n}", samples, array, at) for n, (samples, at) in numbered], array)
    corrected = result.corrected and replace(result.corrected, name=f"{array.name}-corrected")
    return {
        "findings": [asdict(finding) for finding in result.findings],
        "array_toml": corrected.to_toml() if corrected else None,
    }


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


def _print(result: CheckResult) -> None:
    report = Table.grid(padding=(0, 2))
    report.add_column(no_wrap=True)
    for finding in result.findings:
        report.add_row(Text(finding.kind, STYLE[finding.kind]), finding.what)
        for name in ("evidence", "confidence", "remedy"):
            if text := getattr(finding, name):
                report.add_row("", f"{name}: {text}")
    out.print(report)


def _as_json(
    result: CheckResult, array: MicArray, corrected: MicArray | None, output: Path | None
) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "array": array.name,
        "faulty": result.faulty,
        "channels": result.channels,
        "findings": [asdict(finding) for finding in result.findings],
        "verdict": {"sure": verdict.sure, **asdict(verdict)} if verdict else None,
        "corrected": corrected.to_toml() if corrected else None,
        "written": str(output) if output and corrected else None,
    }


def _evaluate(array: MicArray, n_trials: int, mixup: str, seconds: float, seed: int, json: bool) -> None:
    from tytoalba.diagnose.trials import MIXUPS, evaluate, summary

    known = {name: name for name in MIXUPS}
    if mixup not in known:
        raise TytoError(f"--mixup takes {', '.join(MIXUPS)}; got {mixup!r}")
    with progress_bar("trials") as steps:
        trials = evaluate(array, n_trials, seed, known[mixup], seconds=seconds, on_progress=steps)
    found = {"array": array.name, "mixup": mixup, "seconds": seconds, "seed": seed, **summary(trials)}
    if json:
        print_json(found)
        return
    out.print(
        f"{array.name}, {mixup}: {found['right']} of {found['trials']} right, {found['wrong']} wrong, "
        f"{found['cannot_tell']} cannot tell; of the right, {found['undecided']} are one of several that "
        "sound the same",
        soft_wrap=True,
    )
