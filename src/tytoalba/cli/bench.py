"""`tyto bench` and `tyto report`: the paper's experiments, and their tables, figures and page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from tytoalba.cli.console import bars, choose_device, err, out, print_json
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.bench.config import Config
    from tytoalba.bench.data import BenchData


def bench(
    name: Annotated[str, typer.Argument(help="A shipped benchmark (see --list) or a TOML file.")] = "quick",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results, tables, page.")] = Path(
        "out"
    ),
    data: Annotated[
        str | None,
        typer.Option(
            help="simulated:PRESET, or a folder: SSLR, the authors' .mat features, your own recordings."
        ),
    ] = None,
    speech: Annotated[Path | None, typer.Option(help="Folder of real speech for simulations.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds such as 0,1,2, instead of the file's.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, comma-separated.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key of the file: KEY=VALUE; may be repeated.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")] = "auto",
    size: Annotated[float | None, typer.Option(help="Times as many simulated recordings.")] = None,
    processes: Annotated[int, typer.Option("--processes", "-j", help="For simulation; 0: one a core.")] = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Methods to run at a time; 0: one a core.")] = 1,
    cache: Annotated[
        Path | None,
        typer.Option(help="Keep the prepared data in this file for the next time."),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped benchmarks and stop.")] = False,
    draw: Annotated[bool, typer.Option("--report/--no-report", help="Make tables, figures and page.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print where the results are, for machines.")] = False,
) -> None:
    """Run a benchmark: methods learn directions phase after phase and are tested after each.

    Stopped runs go on where they were. Results are JSON; tables, figures and a page are made from them.

    Examples:

      tyto bench quick

      tyto bench table1 --data ~/sslr

      tyto bench table1 --data simulated:twin --speech ~/speech --device cuda
    """
    from dataclasses import replace
    from functools import partial

    from tytoalba.bench.config import load_config, shipped_configs
    from tytoalba.bench.data import BenchData, load_benchdata
    from tytoalba.bench.run import run

    if listing:
        for known, path in shipped_configs().items():
            out.print(f"{known:14} {load_config(str(path)).about}", soft_wrap=True)
        return
    config = load_config(name, changes or [])
    if seeds is not None:
        config = replace(config, seeds=_numbers(seeds))
    if methods is not None:
        config = replace(config, methods=tuple(methods.split(",")))
    config = replace(config, data=data or config.data, size=config.size if size is None else size)
    where = choose_device(device)
    with bars() as progress:
        preparing = progress.add_task("data", total=None)
        prepare = partial(
            load_benchdata,
            config.data,
            bands=config.bands[0] if len(config.bands) == 1 else config.bands,
            parts=config.parts,
            noises=config.noise_conditions,
            noise_share=config.noise_share,
            size=config.size,
            speech=speech,
            processes=processes,
            announce=lambda what, done, total: progress.update(
                preparing, description=f"data: {what}", completed=done, total=total
            ),
        )
        if cache is not None and cache.exists():
            prepared = BenchData.load(cache)
            if why := _unfit(prepared, config):
                raise TytoError(f"{cache} {why}; choose another --cache")
        else:
            prepared = prepare()
            if cache is not None:
                prepared.save(cache)
        learning = progress.add_task("methods", total=len(config.jobs()))
        result_file = output / f"{config.name}.json"
        run(
            config,
            prepared,
            result_file,
            device=where,
            command=_command(name, size, data, methods, seeds, speech, changes or []),
            processes=jobs,
            kept=cache,
            on_job=lambda done, total: progress.update(learning, completed=done, total=total),
        )
    if draw:
        _render([result_file], output / config.name, json)
    elif json:
        print_json({"results": [str(result_file)], "written": []})
    else:
        err.print(f"results: {result_file}; tyto report {result_file} makes tables, figures and a page")


def _command(
    name: str,
    size: float | None,
    data: str | None,
    methods: str | None,
    seeds: str | None,
    speech: Path | None,
    changes: list[str],
) -> str:
    """What brings these results again: without what lay where, which is nobody's business.

    >>> _command("quick", 0.5, None, "tyto,joint", None, Path("home/me"), ["name=mine"])
    'tyto bench quick --size 0.5 --methods tyto,joint --speech SPEECH --set name=mine'
    """
    from tytoalba.bench.data import data_name

    given = {
        "--size": None if size is None else f"{size:g}",
        "--data": data and data_name(data),
        "--methods": methods,
        "--seeds": seeds,
        "--speech": speech and "SPEECH",
    }
    words = [word for option, value in given.items() if value for word in (option, value)]
    words += [word for change in changes for word in ("--set", change)]
    return shlex.join(["tyto", "bench", Path(name).name, *words])


def _unfit(data: BenchData, config: Config) -> str:
    """Why kept data are not those that a benchmark asks for, or nothing; more noises do no harm."""
    from tytoalba.bench.data import data_name

    if data.name != data_name(config.data):
        return f"holds {data.name}, not {config.data}"
    if config.data.startswith("simulated:") and data.gcc:
        if data.gcc.band_list != config.bands:
            return f"has the bands {data.gcc.band_list} Hz, not {config.bands}"
        if data.gcc.parts != config.parts:
            return f"has frames in {data.gcc.parts} parts, not {config.parts}"
    there = {condition for condition, _ in data.tests}
    missing = [str(noise) for noise in config.noise_conditions if str(noise) not in there]
    return f"lacks the noise {missing[0]!r}" if missing else ""


def report(
    results: Annotated[list[Path], typer.Argument(help="Result files (JSON) of tyto bench.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("out/report"),
    json: Annotated[bool, typer.Option("--json", help="Print what was written, for machines.")] = False,
) -> None:
    """Make tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and one HTML page from result files."""
    _render(results, output, json)


def _render(results: list[Path], output: Path, json: bool) -> None:
    from tytoalba.bench.page import render
    from tytoalba.bench.results import load_results
    from tytoalba.bench.tables import summary

    written = render(results, output)
    if json:
        print_json({"results": [str(path) for path in results], "written": [str(path) for path in written]})
        return
    for path in results:
        header, *rows = summary(load_results(path))
        table = Table(Column(header[0], no_wrap=True), *header[1:], title=path.stem)
        for row in rows:
            table.add_row(*row)
        out.print(table)
    page = next(path for path in written if path.suffix == ".html")
    err.print(f"tables, figures and the page are in {output}; open {page}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise TytoError(f"--seeds takes numbers such as 0,1,2; got {text!r}") from None
