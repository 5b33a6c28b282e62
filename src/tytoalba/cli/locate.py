"""`tyto locate`: directions out of recordings, each line printed as soon as it is known."""

from __future__ import annotations

import io
import json as json_text
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TextIO

import typer

from tytoalba.cli.console import chosen_array, csv_line, note, parse_band, say
from tytoalba.cli.options import ArrayOption, Band, IdentityFile, IgnoreSteady, Plot, Unsigned
from tytoalba.cli.tracks import background_of, print_tracks
from tytoalba.errors import TytoError
from tytoalba.texts.printing import plural, shown

if TYPE_CHECKING:
    from tytoalba.localizer.localizer import Localizer
    from tytoalba.localizer.stream import Located
    from tytoalba.signal.array import MicArray
    from tytoalba.storage.age import Keys

DCASE_HOP = 0.1
"""Seconds between two lines of the DCASE format."""
SOUND = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif", ".w64", ".caf", ".au")
"""How recordings in a folder end; sealed ones have .age after it."""
CSV_HEAD = ("time", "azimuth", "score", "probability")
SUFFIXES = {".json": "json", ".jsonl": "json", ".csv": "csv", ".rttm": "rttm"}
"""Formats of files that are written, by their ending."""

Lines = Callable[[Iterable["Located"], str], Iterator[str]]
"""Located frames, and the name of the recording where there are several, to lines of text."""


class Raw(NamedTuple):
    """How sound without a header is to be read."""

    encoding: str
    channels: int
    rate: int


@dataclass(frozen=True)
class Recording:
    """What is located at a time: a name, and a file, one mono file per microphone, or "-".

    of_several: then its name is part of the results.
    """

    name: str
    source: str | list[str]
    of_several: bool = False
    raw: Raw | None = None

    def sound(self, array: MicArray) -> Any:
        """What the library locates: the file, or the sound of one without a header, as it comes."""
        if self.raw is None:
            return self.source
        from tytoalba.storage.soundfiles import stream_raw

        encoding, channels, rate = self.raw
        return stream_raw(str(self.source), encoding, channels=channels, sample_rate=rate, array=array)


def locate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="A recording; one mono file per microphone, in order; a folder of recordings; or - for a "
            "wav on standard input.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-M", help="A localizer of your own (`tyto new`), or a model.")
    ] = None,
    array: ArrayOption = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", "-m", help="srp (default), music, or prior, which was trained on simulations."
        ),
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option(help="How many sources to report per frame, or auto: as many as there are; default: 1."),
    ] = None,
    context: Annotated[int, typer.Option(help="Frames on each side to average over; 4 if nobody moves.")] = 0,
    at_least: Annotated[
        float | None,
        typer.Option(
            help="With a model or a prior: leave out directions of smaller probability, 0 to 1; default: 0."
        ),
    ] = None,
    taught_only: Annotated[
        bool,
        typer.Option("--taught-only", help="With a state: leave out directions where nothing was taught."),
    ] = False,
    band: Band = None,
    silence: Annotated[
        float, typer.Option(help="Frames below this level (dB of full scale) are silent.")
    ] = -60.0,
    ignore_steady: IgnoreSteady = False,
    raw: Annotated[
        str | None,
        typer.Option(help="Sound without a header: s16le, s24le, s32le or f32le; needs --channels, --rate."),
    ] = None,
    channels: Annotated[int | None, typer.Option(help="With --raw: channels of the sound.")] = None,
    rate: Annotated[int | None, typer.Option(help="With --raw: its sample rate in Hz.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Each file is a recording of its own, not a microphone.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Locate the recording that comes with tyto: two talkers, 7 s.")
    ] = False,
    tracks: Annotated[
        bool,
        typer.Option("--tracks", help="Follow people over time: who talks where, from when to when."),
    ] = False,
    background: Annotated[
        str | None,
        typer.Option(
            help="With --tracks: leave out what sounds all the time (a fan, a TV). Seconds at the start in "
            "which nobody talks, or a recording of it, or auto: a fan is learned on its own."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per frame.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    dcase: Annotated[
        bool, typer.Option("--dcase", help="Print lines as in the DCASE challenge, every 100 ms.")
    ] = False,
    rttm: Annotated[
        bool, typer.Option("--rttm", help="With --tracks: print RTTM, who talks when, for diarization tools.")
    ] = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="With --tracks: print a label track for Audacity.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write to; .json, .csv and .rttm choose the format."),
    ] = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    plot: Plot = None,
) -> None:
    """Tell where the sound of a recording comes from, frame by frame (170 ms, every 85 ms).

    Azimuth is in degrees: 0 is the array's front, 90 its left. Score is the height of the method's map there.
    Probability is the chance that the azimuth is within 5 degrees of a source; a prior and a model give it.
    "-" is silence; "unsure": there is sound, but no direction is likely enough to report. Reads any format
    that libsndfile knows, sealed or plain. Lines are printed while the recording is read.

    Examples:

      tyto locate --demo

      tyto locate talk.wav --array respeaker-usb-4 --method prior --plot talk.png

      tyto locate --demo --tracks

      tyto locate recordings/ --array respeaker-usb-4 -o found.csv

      tyto locate talk.wav --model kitchen.tyto --sources auto --at-least 0.5

      arecord -D hw:1 -t raw -f S16_LE -c 6 -r 16000 | tyto locate --raw s16le --channels 6 --rate 16000

      tyto locate mic0.wav mic1.wav mic2.wav mic3.wav --array respeaker-4mic-hat --json
    """
    from tytoalba.cli.keys import keys_at_hand

    flags = {"json": json, "csv": csv, "dcase": dcase, "rttm": rttm, "labels": labels}
    form = _format(flags, output)
    if tracks:
        unfit = {"--sources": sources, "--at-least": at_least, "--context": context, "--plot": plot}
        _refuse_with_tracks(unfit | {"--taught-only": taught_only, "--dcase": form == "dcase"})
    elif background or form in ("rttm", "labels"):
        raise TytoError("--background, --rttm and --labels are for tracks: say --tracks as well")
    if demo:
        known = (method, sources, at_least)
        files, array, method, sources, at_least = _demo(files, model, array, *known, tracks=tracks)
    recordings = _recordings(files or [], each, _raw(raw, channels, rate))
    if plot is not None:
        from tytoalba.bench.plots import check_picture

        check_picture(plot)
    if recordings[0].of_several and (plot is not None or dcase):
        raise TytoError("--plot and --dcase take one recording: they have no place for file names")
    how: dict[str, Any] = {"context": context, "taught_only": taught_only, "silence_db": silence}
    how |= {"at_least": at_least or 0.0, "ignore_steady": ignore_steady}
    how |= {"keys": keys_at_hand(identity)}
    by, options = _located_by(
        recordings[0], model, array, method, sources or "1", band, how["keys"], unsigned
    )
    mics: MicArray = by if model is None else by.array
    if tracks:
        followed = {
            "silence_db": silence,
            "ignore_steady": ignore_steady,
            "keys": how["keys"],
            "background": background_of(background),
        }
        followed |= {name: options.get(name) for name in ("method", "band")}
        with _target(output) as target:
            _follow_all(recordings, by, followed, form, target)
        _say_done(output, mics)
        return
    kept: list[Located] | None = None if plot is None else []
    with _target(output) as target:
        _print_all(recordings, by, {**how, **options}, form, target, kept)
    _say_done(output, mics)
    if plot is not None and kept is not None:
        from tytoalba.bench.plots import plot_directions, save_figure

        title = f"{recordings[0].name} ({mics.name}, {model.name if model else method or 'srp'})"
        save_figure(plot_directions(kept, title), plot)
        say(f"drawn: {plot}")


def _say_done(output: Path | None, mics: MicArray) -> None:
    if output is not None:
        say(f"written to {output}")
    if mics.mirror_axis is not None:
        note(f"{mics.name} cannot tell {mics.ambiguities[0]}")


def _refuse_with_tracks(given: dict[str, Any]) -> None:
    names = [name for name, value in given.items() if value]
    if names:
        raise TytoError(f"--tracks finds out itself who is there, from past frames: leave out {names[0]}")


def _follow_all(
    recordings: list[Recording], by: MicArray | Localizer, how: dict[str, Any], form: str, target: TextIO
) -> None:
    """Follow the talkers of each recording and print them."""
    from tytoalba.live.tracking import follow
    from tytoalba.signal.array import MicArray

    array = by if isinstance(by, MicArray) else by.array
    sounds = ((recording.name, recording.sound(array)) for recording in recordings)
    print_tracks(
        sounds, lambda sound: follow(sound, by, **how), form, target, several=recordings[0].of_several
    )


def _print_all(
    recordings: list[Recording],
    by: MicArray | Localizer,
    how: dict[str, Any],
    form: str,
    target: TextIO,
    kept: list[Located] | None,
) -> None:
    """Locate each recording and print its frames as they come; kept: gets them, to draw them."""
    from tytoalba.localizer.locate import locate as located
    from tytoalba.signal.array import MicArray

    several = recordings[0].of_several
    array = by if isinstance(by, MicArray) else by.array
    if form == "csv":
        print(csv_line([*["file"] * several, *CSV_HEAD]), file=target, flush=True)
    for recording in recordings:
        n_frames = n_found = n_unsure = 0

        def counted(found: Iterable[Located]) -> Iterator[Located]:
            nonlocal n_frames, n_found, n_unsure
            for frame in found:
                n_frames, n_found = n_frames + 1, n_found + bool(frame.azimuth)
                n_unsure += frame.unsure
                if kept is not None:
                    kept.append(frame)
                yield frame

        frames = counted(located(recording.sound(array), by, **how))
        for line in FORMATS[form](frames, shown(recording.name) if several else ""):
            print(line, file=target, flush=True)
        unsure = f", {n_unsure} unsure" if n_unsure else ""
        say(f"{recording.name}: {plural(n_frames, 'frame')}, {n_found} with a direction{unsure}")


@contextmanager
def _target(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that is written whole or not at all."""
    if output is None:
        yield sys.stdout
        return
    from tytoalba.storage.writing import whole_file

    with whole_file(output) as file:
        text = io.TextIOWrapper(file, encoding="utf-8")
        yield text
        text.detach()  # which writes what is left, and does not close


def _format(flags: dict[str, bool], output: Path | None) -> str:
    chosen = [name for name, given in flags.items() if given]
    if len(chosen) > 1:
        raise TytoError(f"give one of --{', --'.join(list(flags)[:-1])} and --{list(flags)[-1]}")
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise TytoError(f"cannot write {output}: give a file in a folder that is there")
    by_suffix = SUFFIXES.get(output.suffix.lower(), "table") if output is not None else "table"
    return chosen[0] if chosen else by_suffix


def _demo(
    files: list[str] | None,
    model: Path | None,
    array: str | None,
    method: str | None,
    sources: str | None,
    at_least: float | None,
    *,
    tracks: bool,
) -> tuple[list[str], str | None, str | None, str | None, float | None]:
    """What `--demo` locates and how, after saying what is to be seen."""
    from tytoalba.data.demo import DEMO_ARRAY, demo_recording

    if files or array:
        raise TytoError("--demo has its own recording and array: leave out files and --array")
    path, truth = demo_recording()
    talk = ", ".join(f"{one.azimuth:g} from {one.start:g} to {one.end:g} s" for one in truth)
    say(f"Two simulated talkers around {DEMO_ARRAY}, at azimuth {talk}.")
    if model is not None:
        return [str(path)], None, method, sources, at_least
    if tracks:
        how = f" --method {method}" if method else ""
        say(f"tyto locate {path.name} --array {DEMO_ARRAY}{how} --tracks")
        return [str(path)], DEMO_ARRAY, method, sources, at_least
    method, sources = method or "prior", sources or "auto"
    if at_least is None and method == "prior":
        at_least = 0.5
    least = f" --at-least {at_least:g}" if at_least else ""
    say(f"tyto locate {path.name} --array {DEMO_ARRAY} --method {method} --sources {sources}{least}")
    return [str(path)], DEMO_ARRAY, method, sources, at_least


def _raw(encoding: str | None, channels: int | None, rate: int | None) -> Raw | None:
    if encoding is None and channels is None and rate is None:
        return None
    if encoding is None or channels is None or rate is None:
        raise TytoError("sound without a header needs all three: --raw s16le --channels 6 --rate 16000")
    return Raw(encoding, channels, rate)


def _recordings(files: list[str], each: bool, raw: Raw | None) -> list[Recording]:
    """One file, one mono file per microphone, or several recordings: those of a folder, or with --each."""
    if raw is not None:
        if len(files) > 1:
            raise TytoError("--raw reads one recording, with all channels: standard input or one file")
        name = (files or ["-"])[0]
        return [Recording(name, name, raw=raw)]
    if not files:
        raise TytoError("no recording; give one, or - for standard input, or try --demo")
    if len(files) > 1 and not each and not any(Path(file).is_dir() for file in files):
        return [Recording(files[0], files)]
    found: list[str] = []
    for file in files:
        if not Path(file).is_dir():
            found.append(file)
            continue
        inside = sorted(
            p for p in Path(file).rglob("*") if p.name.lower().removesuffix(".age").endswith(SOUND)
        )
        if not inside:
            raise TytoError(f"no recordings in {file}; sound files end in {', '.join(SOUND)}")
        found += map(str, inside)
    several = each or len(files) > 1 or found != files
    return [Recording(file, file, several) for file in found]


def _located_by(
    recording: Recording,
    model: Path | None,
    array: str | None,
    method: str | None,
    sources: str,
    band: str | None,
    keys: Keys,
    unsigned: bool,
) -> tuple[Any, dict[str, Any]]:
    """The array or the localizer that `locate` takes, and the options that depend on it."""
    if model is None:
        mics = chosen_array(array, recording.source, recording.raw and recording.raw[1:])
        limits = None if band is None else parse_band(band, mics.sample_rate)
        return mics, {"method": method, "n_sources": _sources(sources, mics.n_mics - 1), "band": limits}
    from tytoalba.localizer.store import read

    if method or array or band:
        raise TytoError("a model has its own array and bands: leave out --array, --method and --band")
    return read(model, keys, unsigned), {"n_sources": _sources(sources, 3)}


def _sources(text: str, most: int) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise TytoError(f"--sources takes auto or a number from 1 to {most}, got {text!r}")
    return int(text)


def json_lines(found: Iterable[Located], name: str) -> Iterator[str]:
    """One JSON object per frame; with a file where there are several."""
    for frame in found:
        row = {**asdict(frame), "time": round(frame.time, 4)}
        yield json_text.dumps({"file": name, **row} if name else row, allow_nan=False)


def csv_lines(found: Iterable[Located], name: str) -> Iterator[str]:
    """One line per direction; frames without one, silent or unsure, have none."""
    for frame in found:
        chances = frame.probability or ("",) * frame.n_sources
        for row in zip(frame.azimuth, frame.score, chances, strict=True):
            yield csv_line([*((name,) if name else ()), f"{frame.time:.4f}", *row])


def dcase_lines(found: Iterable[Located], name: str) -> Iterator[str]:  # noqa: ARG001
    """Frame of 100 ms, class 0, number of the source, azimuth -180..179 to the left, elevation 0.

    Each has the directions of the located frame whose middle is nearest to its own.
    """
    number, before = 0, None
    for frame in found:
        while before is not None and (number + 0.5) * DCASE_HOP <= (before.time + frame.time) / 2:
            yield from _dcase_frame(number, before)
            number += 1
        before = frame
    while before is not None and number <= int(before.time / DCASE_HOP):
        yield from _dcase_frame(number, before)
        number += 1


def _dcase_frame(number: int, found: Located) -> Iterator[str]:
    for source, azimuth in enumerate(found.azimuth):
        yield f"{number},0,{source},{(round(azimuth) + 180) % 360 - 180},0"


def table_lines(found: Iterable[Located], name: str) -> Iterator[str]:
    """A table for people that can be printed line by line."""
    if name:
        yield name
    for number, frame in enumerate(found):
        if not number:
            known = frame.probability is not None
            yield _table_line("time (s)", "azimuth (degrees)", "score", "probability" if known else "")
        angles = ", ".join(f"{a:.0f}" for a in frame.azimuth) or ("unsure" if frame.unsure else "-")
        heights, chances = (
            ", ".join(f"{value:.2f}" for value in each or ()) for each in (frame.score, frame.probability)
        )
        yield _table_line(f"{frame.time:.2f}", angles, heights, chances)


def _table_line(time: str, azimuth: str, score: str, probability: str) -> str:
    return f"{time:>8}  {azimuth:<17}  {score:<16}  {probability}".rstrip()


FORMATS: dict[str, Lines] = {
    "json": json_lines,
    "csv": csv_lines,
    "dcase": dcase_lines,
    "table": table_lines,
}
