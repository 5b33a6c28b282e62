"""`tyto simulate`: a realistic data set where there is none."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.cluster import Cluster, Insecure, TlsCa, TlsCert, TlsKey, cluster_address, on_cluster
from tytoalba.cli.console import parse_band, progress_bar, say
from tytoalba.cli.options import Processes
from tytoalba.errors import TytoError
from tytoalba.texts.printing import plural


def simulate(
    output: Annotated[Path, typer.Argument(help="Folder to write to; must be new or empty.")],
    preset: Annotated[str, typer.Option(help="quick, twin (of SSLR) or hard.")] = "quick",
    array: Annotated[
        str | None,
        typer.Option("--array", "-a", help="Built-in array or TOML file; default: the preset's (pepper)."),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Write GCC-PHAT features, one file per part, and no sound.")
    ] = False,
    layout: Annotated[
        str, typer.Option(help="How files are laid out: folder, sslr (four microphones at 48 kHz), features.")
    ] = "folder",
    speech: Annotated[
        Path | None,
        typer.Option(help="Folder of real speech, one file per speaker; default: a synthetic voice."),
    ] = None,
    band: Annotated[
        list[str] | None, typer.Option(help="With --features: LOW-HIGH in Hz; repeat for several bands.")
    ] = None,
    size: Annotated[float, typer.Option(help="Factor on the number of recordings of the preset.")] = 1.0,
    moving: Annotated[
        float, typer.Option(help="Talkers walk around the array, at most this many degrees per second.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all that is random; the same gives the same data.")] = 0,
    processes: Processes = 0,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
) -> None:
    """Simulate rooms, talkers and noise for an array: labelled recordings, or features directly.

    The sound has reverberation, directional microphones and talkers, diffuse noise, one or two talkers, and
    other rooms and speakers in each part. With --cluster, workers simulate and this machine writes; the same
    command completes a folder that was begun.

    Examples:

      tyto simulate out/quick

      tyto simulate out/twin --preset twin --features --band 100-8000 --speech ~/speech
    """
    from tytoalba.data.simulation.export import write_simulation
    from tytoalba.data.simulation.recordings import Simulation

    simulation = Simulation.of_preset(preset, array, size=size, moving=moving, speech=speech, seed=seed)
    bands = [parse_band(text, simulation.array.sample_rate) for text in band or []]
    recipe = simulation.preset
    where = cluster_address(cluster, tls_ca, tls_cert, tls_key, insecure, processes=processes)
    layout = "features" if features else layout
    if where is not None and layout == "features":
        raise TytoError(f"features on a cluster are made by tyto features simulated:{preset} --cluster ...")
    with progress_bar(f"{recipe.name} for {simulation.array.name}") as steps:
        write = partial(write_simulation, simulation, output, layout, bands, on_progress=steps)
        if where is None:
            n_recordings = write(processes=processes)
        else:
            from tytoalba.data.source import SimulatedSource
            from tytoalba.learning.cluster.simulations import made_on

            source = SimulatedSource(preset, simulation.array, None, size, moving, speech, seed)
            n_recordings = on_cluster(where, lambda workers: write(made=partial(made_on, workers, source)))
    say(f"{plural(n_recordings, 'recording')} of {recipe.seconds:g} s written to {output}")
