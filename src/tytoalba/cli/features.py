"""`tyto features`: any data set to a feature file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.cluster import Cluster, Insecure, TlsCa, TlsCert, TlsKey, cluster_address, on_cluster
from tytoalba.cli.console import out, parse_band, print_json, progress_bar
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import AsJson, IdentityFile, Processes, Seed, Speech
from tytoalba.texts.printing import plural


def features(
    data: Annotated[
        str,
        typer.Argument(help="Folder of labelled recordings, SSLR, or simulated:PRESET (quick, twin, hard)."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    part: Annotated[str | None, typer.Option(help="Only recordings of this part, such as train.")] = None,
    band: Annotated[
        list[str] | None, typer.Option(help="LOW-HIGH in Hz, or full; repeat for several bands.")
    ] = None,
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Floats: faster, but the last bits depend on the type of CPU."),
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Write features of sealed recordings all the same, unsealed.")
    ] = False,
    array: Annotated[
        str | None, typer.Option("--array", "-a", help="For simulations; default: that of the preset.")
    ] = None,
    size: Annotated[float, typer.Option(help="Factor on the number of simulated recordings.")] = 1.0,
    speech: Speech = None,
    seed: Seed = 0,
    processes: Processes = 0,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Compute GCC-PHAT features of all labelled frames with a talker, with their labels, in one file.

    Memory does not grow with the data. A stopped run goes on where it was: until the file is complete, its
    beginning is in FILE.part. The file has the same bits on every machine, but for --fast and simulations.
    With --cluster, workers read the recordings under the same path.

    Examples:

      tyto features recordings/ -o train.safetensors --part train

      tyto features simulated:quick -o quick.safetensors --band 100-8000

      tyto features recordings/ -o all.safetensors --cluster local
    """
    from tytoalba.data.extraction import Extraction, extract_to_file
    from tytoalba.data.source import open_source

    keys = keys_at_hand(identity)
    source = open_source(data, part, array=array, size=size, speech=speech, seed=seed)
    mics, _ = source.array_of(keys)
    bands = [parse_band(text, mics.sample_rate) for text in band or []]
    extraction = Extraction.of(source, bands, exact=not fast, keys=keys)
    where = cluster_address(cluster, tls_ca, tls_cert, tls_key, insecure, identity, processes)
    with progress_bar("recordings") as steps:
        write = partial(extract_to_file, extraction, output, keys=keys, plain=plain, on_progress=steps)
        if where is None:
            n_frames, n_recordings = write(processes=processes)
        else:
            from tytoalba.learning.cluster.features import on_workers

            n_frames, n_recordings = on_cluster(
                where, lambda workers: write(worked=partial(on_workers, workers, extraction))
            )
    if as_json:
        print_json({"features": str(output), "frames": n_frames, "recordings": n_recordings})
    else:
        out.print(f"{plural(n_frames, 'frame')} of {plural(n_recordings, 'recording')} in {output}")
