"""`tyto bench`, `tyto report` and `tyto speed`: how good, how fast, and tables, figures and page of it."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column

from tytoalba.cli.cluster import Cluster, Insecure, TlsCa, TlsCert, TlsKey, cluster_address, on_cluster
from tytoalba.cli.console import (
    choose_device,
    make_table,
    out,
    print_json,
    progress_bar,
    say,
    write_json,
)
from tytoalba.cli.options import AsJson, Command, Device, Group, Processes, Results, Seed, Speech
from tytoalba.cli.peers import peers
from tytoalba.errors import TytoError
from tytoalba.texts.printing import plural

OutputFolder = Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")]


class DefaultsToRun(Group):
    """A group in which `tyto bench quick` is `tyto bench run quick`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is no command and no question for help is what to run."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=DefaultsToRun,
    no_args_is_help=True,
    help="Run benchmarks: `tyto bench quick`, or any other of `tyto bench list`.",
)


@app.command("run", cls=Command)
def run(
    name: Annotated[str, typer.Argument(help="A benchmark of `tyto bench list`, or a TOML file.")],
    output: OutputFolder = Path("out"),
    data: Annotated[
        str | None,
        typer.Option(
            help="simulated:PRESET, or a folder: SSLR, the authors' .mat features, your own recordings."
        ),
    ] = None,
    array: Annotated[
        str | None, typer.Option("--array", "-a", help="For simulations; default: that of the preset.")
    ] = None,
    speech: Speech = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds such as 0,1,2, instead of the file's.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key of the file: KEY=VALUE; may be repeated.")
    ] = None,
    device: Device = "auto",
    size: Annotated[float | None, typer.Option(help="Factor on the number of simulated recordings.")] = None,
    processes: Processes = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Methods to run at a time; 0: one per core.")] = 1,
    cache: Annotated[
        Path | None, typer.Option(help="Keep the prepared data in this file for the next time.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Make tables, figures and page.")
    ] = True,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
    json: AsJson = False,
) -> None:
    """Run a benchmark: methods learn directions phase after phase and are tested after each.

    A stopped run goes on where it was. Results are JSON; tables, figures and a page are made from them. With
    --cluster, workers run the methods, on the data that this machine prepares in --cache.

    Examples:

      tyto bench quick

      tyto bench table1 --data ~/sslr

      tyto bench table1 --data simulated:twin --speech ~/speech --device cuda
    """
    from tytoalba.bench.run import run_benchmark
    from tytoalba.cli.keys import keys_at_hand

    where = cluster_address(cluster, tls_ca, tls_cert, tls_key, insecure, processes=max(jobs, 0))
    if where is not None and jobs != 1 and where.address != "local":
        raise TytoError(
            "--jobs is for this machine: a cluster runs as many methods at a time as it has threads"
        )
    with progress_bar("data") as steps:
        benchmark = partial(
            run_benchmark,
            name,
            data=data,
            array=array,
            methods=None if methods is None else methods.split(","),
            seeds=None if seeds is None else _numbers(seeds),
            size=size,
            changes=changes or [],
            speech=speech,
            output=output,
            cache=cache,
            report=report,
            device=choose_device(device) if where is None else device.replace("auto", "cpu"),
            jobs=jobs if where is None else 1,
            processes=processes,
            keys=keys_at_hand(),
            on_data=lambda what, done, total: steps(done, total, f"data: {what}"),
            on_job=lambda done, total: steps(done, total, "methods"),
        )
        if where is None:
            result_file, *written = benchmark()
        else:
            from tytoalba.bench.cluster import rows_on

            result_file, *written = on_cluster(
                where, lambda workers: benchmark(worked=partial(rows_on, workers))
            )
    _print([result_file], written, json)


@app.command("list", cls=Command)
def list_() -> None:
    """List the benchmarks that come with tyto."""
    from tytoalba.bench.config import load_config, shipped_configs

    for name in shipped_configs():
        out.print(f"{name:20} {load_config(name).about}", soft_wrap=True)


@app.command("search", cls=Command)
def search(
    name: Annotated[str, typer.Argument(help="A search that comes with tyto (table1), or a TOML file.")],
    output: OutputFolder = Path("out/search"),
    data: Annotated[
        str | None, typer.Option(help="simulated:PRESET, or a folder, instead of the file's.")
    ] = None,
    speech: Speech = None,
    rows: Annotated[
        list[str] | None, typer.Option("--row", help="Only this row of the table; may be repeated.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key of the file: KEY=VALUE; may be repeated.")
    ] = None,
    device: Device = "auto",
    size: Annotated[float | None, typer.Option(help="Factor on the number of simulated recordings.")] = None,
    processes: Processes = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Trials to run at a time; 0: one per core.")] = 1,
    cache: Annotated[
        Path | None, typer.Option(help="Keep the prepared data in this file for the next time.")
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the chosen options to this TOML file, for `options_from` of benchmarks."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Tune every row of a table alike: the same knobs, values and passes, judged on validation rooms only.

    The result file has every trial, its cost and what was chosen; a table is written beside it. A stopped
    search goes on where it was.

    Examples:

      tyto bench search table1 --size 0.1 --cache twin.safetensors

      tyto bench search table1 --row lwf --row icarl --write chosen.toml
    """
    from tytoalba.bench.run import command_line
    from tytoalba.bench.search import as_toml, read_search, render_searches, run_search
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.storage.writing import require_writable, write_whole

    if write:
        if write.is_dir():
            raise TytoError(f"{write} is a directory, not a file to write")
        require_writable(write)
    device = choose_device(device)
    given: dict[str, Any] = {"data": data, "array": None, "size": size, "methods": None, "seeds": None}
    named = [f"--row={row}" for row in rows or ()]
    with progress_bar("data") as steps:
        result_file = run_search(
            name,
            data=data,
            size=size,
            rows=rows,
            changes=changes or [],
            speech=speech,
            output=output,
            cache=cache,
            device=device,
            jobs=jobs,
            processes=processes,
            keys=keys_at_hand(),
            command=command_line(["search", name, *named], given, speech, changes or [], device, jobs),
            on_data=lambda what, done, total: steps(done, total, f"data: {what}"),
            on_trial=lambda done, total: steps(done, total, "trials"),
        )
    result = read_search(result_file)
    if write:
        write_whole(write, as_toml(result).encode())
    written = render_searches([result_file], output)
    if json:
        print_json({"result": str(result_file), "written": [str(path) for path in written], **_found(result)})
        return
    _print_search(result)
    say(f"every trial is in {result_file}")


def _found(result: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in ("rows", "seconds")}


def _print_search(result: dict[str, Any]) -> None:
    from tytoalba.bench.search import table

    made = table(result)
    shown = make_table(*[Column(head) for head in made.header], title=made.title)
    for row in made.rows:
        shown.add_row(*row)
    out.print(shown, made.note, "")


@app.command("lessons", cls=Command)
def lessons(
    array: Annotated[
        str, typer.Argument(help="Built-in array (see `tyto array list`) or TOML file; it needs a prior.")
    ],
    homes: Annotated[int, typer.Option(help="Simulated devices, each in a room of its own.")] = 4,
    directions: Annotated[
        int, typer.Option(help="Directions around each device, taught one at a time.")
    ] = 12,
    seconds: Annotated[float, typer.Option(help="Seconds of teaching, and of testing, per direction.")] = 5.0,
    n_features: Annotated[int, typer.Option("--features", help="Random features of the learner.")] = 2000,
    ridge: Annotated[
        float, typer.Option(help="Regularisation; with more, the prior counts for longer.")
    ] = 0.3,
    simulated: Annotated[int, typer.Option(help="How often each simulated frame of the prior counts.")] = 2,
    speech: Speech = None,
    seed: Seed = 0,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """Teach one direction for a few seconds in simulated homes: what changes there, and elsewhere?

    Examples:

      tyto bench lessons pepper

      tyto bench lessons respeaker-usb-4 --homes 8 --seconds 2 --speech ~/speech
    """
    from tytoalba.bench.lessons import measure_lessons

    with progress_bar("lessons") as steps:
        measured = measure_lessons(
            array,
            speech,
            n_homes=homes,
            n_directions=directions,
            seconds=seconds,
            n_features=n_features,
            ridge=ridge,
            simulated=simulated,
            seed=seed,
            on_progress=steps,
        )
    if _handed_over(measured, results, json):
        return
    out.print(
        f"{seconds:g} s of teaching at a direction, {plural(homes * directions, 'lesson')}: accuracy there "
        f"{measured['before']:.1f} -> {measured['after']:.1f} %, elsewhere "
        f"{measured['others_before']:.1f} -> {measured['others_after']:.1f} %",
        soft_wrap=True,
    )
    for row in measured["by_distance"]:
        out.print(
            f"  {row['degrees']:3.0f} degrees away: {row['change']:+.2f} points ({row['n']} directions)"
        )


@app.command("releases", cls=Command)
def releases(
    array: Annotated[str, typer.Argument(help="Built-in array or TOML file; it needs a prior.")] = "pepper",
    pool: Annotated[int, typer.Option(help="Simulated lessons of each device.")] = 300,
    test: Annotated[int, typer.Option(help="Simulated recordings to ask about.")] = 60,
    draws: Annotated[int, typer.Option(help="Releases of each kind, with other lessons and noise.")] = 20,
    lessons: Annotated[
        str, typer.Option(help="How many lessons are taught, separated by commas.")
    ] = "10,30,100,300,1000,3000",
    seed: Seed = 0,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """From how many lessons on is a private release (`tyto export`) worth it?

    Devices that are as drawn, or wider and turned, are taught in simulated rooms and released; prior, exact
    model and release answer in other rooms. Minutes for each device.

    Example:

      tyto bench releases pepper --results releases.json
    """
    from tytoalba.bench.releases import measure_releases

    with progress_bar("devices") as steps:
        measured = measure_releases(
            array,
            n_pool=pool,
            n_test=test,
            n_releases=draws,
            n_lessons=_numbers(lessons, "--lessons"),
            seed=seed,
            on_progress=steps,
        )
    if _handed_over(measured, results, json):
        return
    table = make_table("device", "unit", "epsilon", "lessons", "prior", "exact", "release", "gain (95 %)")
    for row in measured["rows"]:
        low, high = row["interval"]
        cells = (f"{row[name]:.1f}" for name in ("prior", "exact", "release"))
        gain = f"{row['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
        table.add_row(row["device"], row["unit"], f"{row['epsilon']:g}", str(row["lessons"]), *cells, gain)
    out.print(table)


@app.command("fans", cls=Command)
def fans(
    array: Annotated[
        str, typer.Argument(help="Built-in array (see `tyto array list`) or TOML file.")
    ] = "respeaker-usb-4",
    methods: Annotated[str, typer.Option(help="srp, music, prior, separated by commas.")] = "srp,music,prior",
    split: Annotated[
        str,
        typer.Option(
            help="valid, on which settings are chosen, or test: other machines, rooms and speakers."
        ),
    ] = "valid",
    scenes: Annotated[int, typer.Option(help="Scenes, their machines in turn.")] = 24,
    seconds: Annotated[float, typer.Option(help="Length of a scene.")] = 40.0,
    speech: Speech = None,
    seed: Seed = 0,
    processes: Processes = 1,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """Locate a talker beside a fan, a pump or a hum at another place: who is found, and in pauses?

    In simulated rooms, with the machine 10, 5 and 0 dB below speech; beside noise from everywhere and in
    quiet; with steady noise located like the rest, and ignored. Half a minute per scene and method.

    Examples:

      tyto bench fans --methods prior --scenes 4

      tyto bench fans --split test --speech ~/speech --results fans.json
    """
    from tytoalba.bench.fans import measure_fans

    with progress_bar("scenes") as steps:
        measured = measure_fans(
            array,
            methods=methods.split(","),
            part=split,
            n_scenes=scenes,
            seconds=seconds,
            seed=seed,
            speech=speech,
            processes=processes,
            on_progress=steps,
        )
    if _handed_over(measured, results, json):
        return
    columns = measured["columns"]
    table = make_table("method", "steady", "context", "beside", *columns)
    for row in measured["rows"]:
        steady = "ignored" if row["ignore_steady"] else "located"
        beside = row["noise"] if row["snr"] is None else f"{row['noise']} {row['snr']:g} dB"
        values = [_interval(row[name]) for name in columns]
        table.add_row(row["method"], steady, str(row["context"]), beside, *values)
    out.print(table)
    _explain(measured, split)


app.command("peers", cls=Command)(peers)


@app.command("confidence", cls=Command)
def confidence(
    arrays: Annotated[
        list[str] | None,
        typer.Argument(help="Built-in arrays or TOML files; default: respeaker-usb-4, respeaker-6mic."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="valid, whose speakers probabilities were fitted with, or test: others.")
    ] = "valid",
    scenes: Annotated[int, typer.Option(help="Calm scenes, and as many wild ones, for each array.")] = 30,
    families: Annotated[
        str | None, typer.Option(help="Acoustics, separated by commas: hybrid, pyroom, anechoic.")
    ] = None,
    speech: Speech = None,
    seed: Seed = 0,
    processes: Processes = 1,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """Do priors know how sure they are, and how many talk? By the number of neighbours that are averaged.

    Simulated scenes with one, two and three talkers. Of each array its own prior, if it has one, and the one
    for every array. About half a second per scene.

    Examples:

      tyto bench confidence --scenes 6

      tyto bench confidence pepper matrix-voice --split test --speech ~/speech --results confidence.json
    """
    from tytoalba.bench.confidence import measure_confidence
    from tytoalba.data.simulation.acoustics import FAMILIES

    with progress_bar("scenes") as steps:
        measured = measure_confidence(
            arrays or ["respeaker-usb-4", "respeaker-6mic"],
            part=split,
            n_scenes=scenes,
            families=families.replace(" ", "").split(",") if families else tuple(FAMILIES),
            seed=seed,
            speech=speech,
            processes=processes,
            on_progress=steps,
        )
    if results:
        write_json(measured, results)
    if json:
        print_json(measured)
        return
    asked = ("1", "2", "3", "auto")
    names = [f"{k} told" if k == "auto" else f"{k} asked" for k in asked]
    table = make_table("prior", "scenes", "context", *names, "counted 1 / 2 / 3")
    for row in measured["rows"]:
        cells = [row["asked"][k] for k in asked]
        trust = [
            "-" if one["error"] is None else f"{one['said']:.2f} / {one['right']:.2f} / {one['error']:.3f}"
            for one in cells
        ]
        counted = " / ".join("-" if share is None else f"{100 * share:.0f}" for share in row["counted"])
        table.add_row(row["prior"], row["scenes"], str(row["context"]), *trust, counted)
    out.print(table)
    out.print("said / right / error: mean probability, share within 5 degrees, calibration error")
    out.print("counted: % of the frames with one, two, three talkers in which as many were told")
    say(f"{scenes} calm and {scenes} wild scenes of each array, of the part {split}")


@app.command("tracking", cls=Command)
def tracking(
    array: Annotated[
        str, typer.Argument(help="Built-in array (see `tyto array list`) or TOML file.")
    ] = "respeaker-usb-4",
    method: Annotated[str, typer.Option("--method", "-m", help="prior, srp or music.")] = "prior",
    part: Annotated[
        str, typer.Option(help="valid, on which settings are chosen, or test: other rooms and speakers.")
    ] = "valid",
    scenes: Annotated[int, typer.Option(help="Scenes of each kind and seed, 12 s each.")] = 4,
    seeds: Annotated[str, typer.Option(help="Seeds such as 0,1,2.")] = "0,1,2",
    odas: Annotated[
        str | None,
        typer.Option(metavar="BINARY", help="Also ODAS's tracker, on the same sound: path of odaslive."),
    ] = None,
    odas_settings: Annotated[
        Path | None,
        typer.Option(help="Settings of ODAS (TOML or JSON) in place of its best ones on validation scenes."),
    ] = None,
    speech: Speech = None,
    processes: Processes = 0,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """Follow talkers in simulated scenes, frame by frame and with tracks: who is found, lost, invented?

    One and two talkers, who stand, walk (up to 40 degrees per second) and pause, and one near a fan. Settings
    of the tracks are chosen on the part valid (tools/choose_tracking.py), those of ODAS too
    (tools/choose_odas.py). ODAS is not part of this package: build odaslive from github.com/introlab/odas.

    Examples:

      tyto bench tracking --scenes 2 --seeds 0

      tyto bench tracking pepper --part test --speech ~/speech --results tracking.json

      tyto bench tracking --odas ~/odas/build/bin/odaslive
    """
    from tytoalba.bench.tracking import FOLLOWERS, Follower, measure_tracking

    if odas_settings and not odas:
        raise TytoError("--odas-settings is for --odas BINARY")
    followers: dict[str, Follower] = dict(FOLLOWERS)
    if odas:
        from tytoalba.bench.odas.follower import odas_followers
        from tytoalba.bench.odas.settings import BEST, OdasSettings

        followers |= odas_followers(odas, OdasSettings.read(odas_settings) if odas_settings else BEST)
    with progress_bar("scenes") as steps:
        measured = measure_tracking(
            array,
            method=method,
            part=part,
            n_scenes=scenes,
            seeds=_numbers(seeds),
            speech=speech,
            processes=processes,
            followers=followers,
            on_progress=steps,
        )
    if _handed_over(measured, results, json):
        return
    columns = measured["columns"]
    for kind, ways in measured["rows"].items():
        table = make_table(kind, *[Column(name, justify="right", no_wrap=True) for name in columns])
        table.padding = (0, 1, 0, 0)
        for way, values in ways.items():
            table.add_row(way, *[_interval(values[name]) for name in columns])
        out.print(table)
    _explain(measured, part)


def _handed_over(measured: dict[str, Any], results: Path | None, as_json: bool) -> bool:
    """Write what was measured to a file and print it as JSON, each if asked; whether it was printed."""
    if results:
        write_json(measured, results)
    if as_json:
        print_json(measured)
    return as_json


def _explain(measured: dict[str, Any], part: str) -> None:
    """The legend under a table of scenes."""
    for name, about in measured["columns"].items():
        out.print(f"{name}: {about}", soft_wrap=True)
    made = f"{measured['scenes']} scenes of the part {part}, {measured['seconds']:g} s each"
    say(f"{made}; ±: half of the interval of 95 % over scenes")


def _interval(value: dict[str, float]) -> str:
    """A value and half of its interval; --json has its two ends."""
    return f"{value['value']:.1f} ±{(value['high'] - value['low']) / 2:.1f}"


def report(
    results: Annotated[list[Path], typer.Argument(help="Result files (JSON) of tyto bench.")],
    output: OutputFolder = Path("out/report"),
    json: AsJson = False,
) -> None:
    """Make tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and one HTML page from result files."""
    from tytoalba.bench.page import render
    from tytoalba.bench.search import is_search, read_search, render_searches

    searches = [path for path in results if is_search(path)]
    runs = [path for path in results if path not in searches]
    written = render_searches(searches, output) + (render(runs, output) if runs else [])
    if json:
        print_json({"results": [str(path) for path in results], "written": [str(path) for path in written]})
        return
    for path in searches:
        _print_search(read_search(path))
    if runs:
        _print(runs, written, json)


def _print(results: list[Path], written: list[Path], as_json: bool) -> None:
    from tytoalba.bench.results import load_results
    from tytoalba.bench.tables import summary

    if as_json:
        print_json({"results": [str(path) for path in results], "written": [str(path) for path in written]})
        return
    if not written:
        say(f"results: {results[0]}; tyto report {results[0]} makes tables, figures and a page")
        return
    for path in results:
        made = summary(load_results(path))
        first, *others = made.header
        columns = [Column(head, justify="right", no_wrap=True) for head in others]
        table = make_table(first, *columns, title=made.title)
        table.padding = (0, 0, 0, 0)
        for row in made.rows:
            table.add_row(*row)
        out.print(table, made.note, "")
    page = next(path for path in written if path.suffix == ".html")
    say(f"tables, figures and the page are in {page.parent}; open {page}")


def speed(
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see that all runs; no numbers to quote.")
    ] = False,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Also D = 20000: needs 9 GB and a minute or two.")
    ] = True,
    machine_busy: Annotated[
        bool,
        typer.Option("--busy", help="For a machine that does other things: one thread, CPU seconds."),
    ] = False,
    results: Results = None,
    json: AsJson = False,
) -> None:
    """Measure how fast everything is, in one run: beside peers and the machine's ceilings, and as it grows.

    Takes some minutes. Look at the ratios: speeds differ between machines and with what else they do.

    Examples:

      tyto speed --quick

      tyto speed --results speed.json
    """
    from tytoalba.bench.speed.measure import measure

    with progress_bar("speed") as steps:
        measured = measure(
            quick, lambda done, total, what: steps(done, total, f"speed: {what}"), memory, machine_busy
        )
    if _handed_over(measured, results, json):
        return
    _print_speed(measured)
    if not any(row["name"] == "pyroomacoustics" for row in measured["rows"]):
        say("SRP-PHAT has no peer here: pip install 'tytoalba[sim]' compares it with pyroomacoustics")
    if quick:
        say("--quick shows that everything runs; its numbers say nothing")


def _print_speed(measured: dict[str, Any]) -> None:
    """A table for each task, then how time grows, then what is reached of what is possible."""
    from tytoalba.bench.speed.pages import number

    for task, rows in groupby(measured["rows"], lambda row: row["task"]):
        table = make_table(task, *_right("", "times the peer", "threads"))
        for row in rows:
            ratio = "" if row["ratio"] is None else number(row["ratio"])
            value = f"{number(row['value'])} {row['unit']}"
            table.add_row(row["name"], value, ratio, str(row["threads"] or "all"))
        out.print(table)
    growth = make_table("time of", "grows with", *_right("exponent"))
    for row in measured["exponents"]:
        growth.add_row(row["task"], row["against"], f"{row['exponent']:.2f}")
    out.print(growth)
    tops = make_table("task", "ceiling", *_right("reached", "possible", "share"))
    for row in measured["ceilings"]:
        values = (f"{number(row[name])} {row['unit']}" for name in ("reached", "possible"))
        tops.add_row(row["task"], row["ceiling"], *values, f"{100 * row['share']:.0f} %")
    out.print(tops)


def _right(*names: str) -> list[Column]:
    return [Column(name, justify="right", no_wrap=True) for name in names]


def _numbers(text: str, option: str = "--seeds") -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise TytoError(f"{option} takes numbers such as 0,1,2; got {text!r}") from None
