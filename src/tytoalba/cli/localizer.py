"""`tyto new`, `learn`, `teach`, `forget`, `merge`: a localizer of one's own, in a file."""

from __future__ import annotations

from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tytoalba.cli.cluster import Cluster, Insecure, TlsCa, TlsCert, TlsKey, cluster_address, on_cluster
from tytoalba.cli.console import chosen_array, note, out, print_json, progress_bar, say
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import ArrayOption, AsJson, IdentityFile, IgnoreSteady, Unsigned
from tytoalba.errors import TytoError
from tytoalba.texts.printing import plural

if TYPE_CHECKING:
    from tytoalba.data.recording import Recording
    from tytoalba.learning.cluster.connection import Address
    from tytoalba.localizer.localizer import Change
    from tytoalba.storage.age import Keys

StateFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A state that `tyto new` made.")]
At = Annotated[
    list[float] | None,
    typer.Option("--at", help="Azimuth in degrees; twice for two talkers at the same time."),
]
Part = Annotated[str | None, typer.Option(help="Only recordings of this part, such as train.")]


def new(
    model: Annotated[Path, typer.Argument(help="File to make; with the suffix .age it is sealed.")],
    array: ArrayOption = None,
    like: Annotated[
        Path | None, typer.Option(help="Make it mergeable with this one: same array, prior, options, seed.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(help="Random features (2000): more learn more, and need more frames.")
    ] = None,
    prior_frames: Annotated[
        float | None,
        typer.Option(help="Number of taught frames that a direction's simulations weigh as much as (1000)."),
    ] = None,
    simulated: Annotated[
        int | None,
        typer.Option(help="How often each simulated frame counts (2); more keep lessons to their direction."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the random features; default: a secret one.")
    ] = None,
    ignore_steady: IgnoreSteady = False,
    seal: Annotated[bool, typer.Option("--seal", help="Seal it for your key (`tyto keygen`).")] = False,
    budget: Annotated[
        float, typer.Option(help="Epsilon that all private models of it (`tyto export`) may spend together.")
    ] = 10.0,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
) -> None:
    """Make a localizer. It knows what simulations of its array taught it, and nothing else yet.

    The file is a state: it can be taught, and must stay secret. `tyto export` makes a model of it to share.

    Examples:

      tyto new kitchen.tyto --array respeaker-usb-4

      tyto new bedroom.tyto --like kitchen.tyto
    """
    from tytoalba.localizer.export import SEALED_SUFFIX
    from tytoalba.localizer.localizer import Localizer
    from tytoalba.localizer.store import create, has_extra, read

    given = {"n_features": features, "prior_frames": prior_frames, "simulated": simulated}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if like is not None and (options or array is not None or seed is not None or ignore_steady):
        raise TytoError("--like takes array, options and seed from the other: leave them out")
    keys = keys_at_hand(identity)
    if like is not None:
        localizer = Localizer.like(read(like, keys, unsigned))
    else:
        mics = chosen_array(array)
        with progress_bar("rooms for an array without a prior of its own") as steps:
            localizer = Localizer.new(
                mics, seed=seed, on_progress=steps, ignore_steady=ignore_steady, **options
            )
    create(model, localizer, sealed=seal or model.suffix == SEALED_SUFFIX, keys=keys, budget=budget)
    n_features = localizer.state.options["n_features"]
    say(f"{model}: {localizer.array.name}, {n_features} features, nothing taught yet")
    if not has_extra():
        note("no ledger and no seal: these need pip install 'tytoalba[privacy]'")


def learn(
    model: StateFile,
    data: Annotated[Path, typer.Argument(help="Folder of labelled recordings, or SSLR; sealed or plain.")],
    part: Part = None,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Learn all recordings of a data set: all of them, or none.

    With --cluster, workers read the recordings under the same path, and the state is the same to the bit. A
    stopped run leaves MODEL.part; the same command goes on from it.

    Examples:

      tyto learn kitchen.tyto recordings/ --part train

      tyto learn kitchen.tyto recordings/ --cluster local
    """
    from tytoalba.localizer.store import edit

    keys = keys_at_hand(identity)
    where = cluster_address(cluster, tls_ca, tls_cert, tls_key, insecure, identity)
    if where is not None:
        _print_change(_learn_on(where, model, data, part, keys, unsigned), model, as_json)
        return
    recordings = _recordings(data, part, keys)
    with edit(model, keys, unsigned) as localizer, progress_bar("recordings") as steps:
        change = localizer.learn(recordings, steps)
    _print_change(change, model, as_json)


def teach(
    model: StateFile,
    files: Annotated[
        list[str],
        typer.Argument(help="A recording, sealed or plain; or one mono file per microphone."),
    ],
    at: At = None,
    who: Annotated[
        str, typer.Option(help="Name of this lesson; its rows are kept, so that `forget --who` finds it.")
    ] = "",
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the rows of this lesson, to forget it without its recording.")
    ] = False,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Teach where the sound of a recording comes from. A few seconds of speech are enough.

    Only sums of the recording are kept, unless you ask for more. Pauses are left out.

    Examples:

      tyto teach kitchen.tyto sofa.wav --at 135

      tyto teach kitchen.tyto sofa.wav --at 135 --who kitchen-monday
    """
    from tytoalba.localizer.store import edit

    source, keys = files[0] if len(files) == 1 else files, keys_at_hand(identity)
    with edit(model, keys, unsigned) as localizer:
        change = localizer.teach(source, _azimuth(at), who=who, keep=keep or bool(who), keys=keys)
    _print_change(change, model, as_json)


def forget(
    model: StateFile,
    files: Annotated[
        list[str] | None, typer.Argument(help="The recording that was taught, with its --at.")
    ] = None,
    at: At = None,
    who: Annotated[str | None, typer.Option(help="All lessons that were taught under this name.")] = None,
    since: Annotated[
        str | None, typer.Option(help="All kept lessons since this time: 2026-11-15 or 2026-11-15T18:30.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A data set that was learned: forget all of it.")] = None,
    part: Part = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Forget exactly: the file is then the same, to the byte, as one that never learned it.

    Lessons that were kept (--who, --keep) are found by name, azimuth or time. Of others only sums exist,
    mixed with the rest: to forget one, give its recording once more.

    Examples:

      tyto forget kitchen.tyto sofa.wav --at 135

      tyto forget kitchen.tyto --who kitchen-monday
    """
    from tytoalba.localizer.store import edit

    if data is not None and (files or at or who is not None or since):
        raise TytoError("--data is forgotten as a whole: leave out recordings, --at, --who and --since")
    if files and (who is not None or since):
        raise TytoError("a recording is forgotten with its --at alone: leave out --who and --since")
    if part is not None and data is None:
        raise TytoError("--part is of a data set: say which, with --data")
    keys = keys_at_hand(identity)
    with edit(model, keys, unsigned) as localizer:
        if data is not None:
            change = localizer.forget_recordings(_recordings(data, part, keys))
        elif files:
            change = localizer.forget(files[0] if len(files) == 1 else files, _azimuth(at), keys=keys)
        else:
            change = localizer.forget(azimuth=at or None, who=who, since=_time(since) if since else None)
    _print_change(change, model, as_json)


def merge(
    model: StateFile,
    others: Annotated[list[Path], typer.Argument(help="States to add; they stay as they are.")],
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Add what other localizers of the same kind (`tyto new --like`) have learned. The order does not matter.

    Example:

      tyto merge kitchen.tyto bedroom.tyto
    """
    from tytoalba.localizer.localizer import Change
    from tytoalba.localizer.store import edit, incoming

    keys = keys_at_hand(identity)
    with edit(model, keys, unsigned) as localizer:
        found = [incoming(other, keys, unsigned) for other in others]
        done = [localizer.merge(other) for other in found]
    for path, other in zip(others, found, strict=True):
        if other.spent == inf:
            note(
                f"nobody can say what private models of {path.name} have spent, so {model.name} has nothing "
                f"left to spend; its ledger, or a signature by its owner (`tyto sign {path.name}`), would say"
            )
    if any(other.owner for other in found):
        names = " and ".join(path.name for path, other in zip(others, found, strict=True) if other.owner)
        note(
            f"what {names} learned is in two states now, each with a budget of its own: make private models "
            "of one of them only"
        )
    lessons = tuple(name for change in done for name in change.lessons)
    _print_change(Change("merged", sum(change.n_frames for change in done), lessons), model, as_json)


def _learn_on(
    where: Address, model: Path, data: Path, part: str | None, keys: Keys, unsigned: bool
) -> Change:
    from tytoalba.data.source import FolderSource
    from tytoalba.learning.cluster.part_file import PartFile
    from tytoalba.localizer.shards import learn_on
    from tytoalba.localizer.store import edit, own_recipients
    from tytoalba.storage.age import is_sealed

    source, model = FolderSource(data, part), model.resolve()
    source.listed()  # refuses what is no data set, before anything is begun
    with edit(model, keys, unsigned) as localizer, progress_bar("recordings") as steps:
        recipients = own_recipients(keys) if is_sealed(model) else None
        done = PartFile(model.with_name(f"{model.name}.part"), keys, recipients)
        change = on_cluster(where, lambda workers: learn_on(workers, localizer, source, done, steps))
    done.remove()
    return change


def _recordings(data: Path, part: str | None, keys: Keys) -> list[Recording]:
    from tytoalba.data.datasets import open_dataset

    recordings = [r for r in open_dataset(data, keys) if part is None or r.subset == part]
    if not recordings:
        raise TytoError(f"{data} has no recordings{f' of part {part!r}' if part else ''}")
    return recordings


def _print_change(change: Change, model: Path, as_json: bool) -> None:
    for remark in change.remarks:
        note(remark)
    if as_json:
        print_json({"model": str(model), change.what: change.n_frames, "lessons": len(change.lessons)})
    else:
        lessons = plural(len(change.lessons), "lesson")
        out.print(f"{change.what} {plural(change.n_frames, 'frame')} in {lessons}")


def _azimuth(at: list[float] | None) -> list[float]:
    if not at:
        raise TytoError("say where the sound came from: --at AZIMUTH, in degrees, 0 is the array's front")
    return at


def _time(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise TytoError(
            f"--since takes a date such as 2026-11-15 or 2026-11-15T18:30, got {text!r}"
        ) from None
