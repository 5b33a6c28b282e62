"""Every command that writes, in a small world of its own: what it starts from, and what it is run as.

A world is a folder with an array, its prior, recordings and the user's folders. `NO_SCENE` says of each other
command why it has none; a test compares both lists with the commands that there are.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.slow import small
from tytoalba.data.folder import write_array, write_recording

Command = tuple[str, ...]
NEW: Command = ("new", "k.tyto", "--array", "trio.toml", "--features", "4", "--seed", "1")
SEALED: Command = ("new", "s.age", "--array", "trio.toml", "--features", "4", "--seed", "1")
LIKE: Command = ("new", "other.tyto", "--like", "k.tyto")
KEYGEN: Command = ("keygen",)
TEACH: Command = ("teach", "k.tyto", "a.wav", "--at", "30")
FORGET: Command = ("forget", "k.tyto", "a.wav", "--at", "30")
COPY = "(copy)"
"""Stands for a command that copies one file to another, as an attacker or a backup does."""
PLAIN_STATE, PLAIN_MODEL = b"tytoalba-state", b"tytoalba-model"
"""In every plain state or model, and in no sealed one."""


@dataclass(frozen=True)
class Scene:
    """A command that writes.

    before: commands that make what it starts from. plain: bytes that must
    never be in a hidden file that outlives the next run: plain sound, plain states. clear: what a user
    removes before running it again, because the command says so. most: points at most, where a run takes
    long. labelled: there is a folder of labelled recordings, too.
    """

    name: str
    command: Command
    before: tuple[Command, ...] = ()
    plain: tuple[bytes, ...] = ()
    clear: str = ""
    most: int = 1000
    labelled: bool = False


def wave_marker(folder: Path) -> bytes:
    """Bytes of the sound in a.wav."""
    return (folder / "a.wav").read_bytes()[100:148]


SOUND = b"(sound)"
"""Stands for the samples of a.wav among what must not be left behind."""
TAUGHT = (KEYGEN, NEW, TEACH)
TAUGHT_SEALED = (KEYGEN, SEALED, ("teach", "s.age", "a.wav", "--at", "30"))
SCENES = {
    scene.name: scene
    for scene in (
        Scene("new", NEW),
        Scene("new --seal", SEALED, (KEYGEN,), plain=(PLAIN_STATE,)),
        Scene("new --like", LIKE, TAUGHT),
        Scene("teach", ("teach", "k.tyto", "b.wav", "--at", "120"), TAUGHT),
        Scene("teach --who", ("teach", "k.tyto", "b.wav", "--at", "120", "--who", "anna"), TAUGHT),
        Scene("teach sealed", ("teach", "s.age", "b.wav", "--at", "9"), TAUGHT_SEALED, plain=(PLAIN_STATE,)),
        Scene(
            "teach sealed sound",
            ("teach", "k.tyto", "a.wav.age", "--at", "30"),
            (KEYGEN, NEW, ("seal", "a.wav", "--remove")),
            plain=(SOUND,),
        ),
        Scene("learn", ("learn", "k.tyto", "data", "--part", "train"), (KEYGEN, NEW), labelled=True),
        Scene("forget", FORGET, TAUGHT),
        Scene(
            "forget sealed", ("forget", "s.age", "a.wav", "--at", "30"), TAUGHT_SEALED, plain=(PLAIN_STATE,)
        ),
        Scene(
            "forget --who",
            ("forget", "k.tyto", "--who", "anna"),
            (*TAUGHT, ("teach", "k.tyto", "b.wav", "--at", "120", "--who", "anna")),
        ),
        Scene(
            "merge",
            ("merge", "k.tyto", "other.tyto"),
            (*TAUGHT, LIKE, ("teach", "other.tyto", "b.wav", "--at", "120")),
        ),
        Scene("export", ("export", "k.tyto", "k.model", "--force"), TAUGHT),
        Scene(
            "export again",
            ("export", "k.tyto", "k.model", "--force"),
            (
                *TAUGHT,
                ("export", "k.tyto", "k.model", "--force"),
                ("teach", "k.tyto", "b.wav", "--at", "120"),
            ),
        ),
        Scene(
            "export --exact",
            ("export", "k.tyto", "k.model.age", "--exact"),
            TAUGHT,
            plain=(PLAIN_MODEL,),
        ),
        Scene("export --onnx", ("export", "k.tyto", "k.onnx", "--onnx"), TAUGHT),
        Scene("export --exact --plain", ("export", "k.tyto", "k.model", "--exact", "--plain"), TAUGHT),
        Scene(
            "restore",
            ("restore", "k.tyto", "--yes"),
            (*TAUGHT, (COPY, "k.tyto", "old.tyto"), FORGET, (COPY, "old.tyto", "k.tyto")),
        ),
        Scene("keygen", KEYGEN),
        Scene("keygen --recovery", ("keygen", "--recovery", "recovery.txt")),
        Scene("keygen --recovery later", ("keygen", "--recovery", "recovery.txt"), (KEYGEN,)),
        Scene("keygen -o", ("keygen", "-o", "analyst.txt")),
        Scene("seal", ("seal", "a.wav", "b.wav"), (KEYGEN,), plain=(SOUND,)),
        Scene("seal --remove", ("seal", "a.wav", "b.wav", "--remove"), (KEYGEN,), plain=(SOUND,)),
        Scene("open", ("open", "a.wav.age"), (KEYGEN, ("seal", "a.wav", "--remove")), plain=(SOUND,)),
        Scene(
            "rewrap",
            ("rewrap", "a.wav.age"),
            (KEYGEN, ("seal", "a.wav", "--remove"), ("keygen", "--recovery", "recovery.txt")),
            plain=(SOUND,),
        ),
        Scene("sign", ("sign", "k.tyto"), TAUGHT),
        Scene("trust", ("trust", f"tyto-ed25519:{'A' * 42}E", "--name", "anna"), (NEW,)),
        Scene(
            "trust --remove",
            ("trust", f"tyto-ed25519:{'A' * 42}E", "--remove"),
            (NEW, ("trust", f"tyto-ed25519:{'A' * 42}E", "--name", "anna")),
        ),
        Scene("config", ("config", "array", "pepper")),
        Scene("config --unset", ("config", "array", "--unset"), (("config", "array", "pepper"),)),
        Scene("locate -o", ("locate", "a.wav", "--array", "trio.toml", "--csv", "-o", "found.csv")),
        Scene(
            "listen --record-sealed",
            (
                *(
                    "listen",
                    "--from",
                    "a.wav",
                    "--fast",
                    "--array",
                    "trio.toml",
                    "--method",
                    "srp",
                    "--lines",
                ),
                *("--record-sealed", "night.wav.age"),
            ),
            (KEYGEN,),
            plain=(SOUND,),
            clear="night.wav.age",
        ),
        Scene("array import", ("array", "import", "four.cfg", "-o", "four.toml")),
        Scene(
            "simulate",
            ("simulate", "sim", "--array", "trio.toml", "--size", "0.02", "--processes", "1"),
            clear="sim",
            most=24,
        ),
        Scene(
            "simulate --features",
            ("simulate", "sim", "--array", "trio.toml", "--size", "0.02", "--processes", "1", "--features"),
            clear="sim",
            most=16,
        ),
        Scene(
            "features",
            ("features", "data", "-o", "found.safetensors", "--processes", "1"),
            labelled=True,
        ),
        Scene("report", ("report", "results.json", "-o", "page"), most=40),
    )
}
NO_SCENE = {
    "info": "writes only pictures",
    "check": "its -o is written as `array import` writes it",
    "score": "writes only pictures",
    "audit": "its --results are written as `config` writes",
    "speed": "writes nothing",
    "prior": "takes minutes; its file is written as `simulate --features` writes",
    "prior-any": "takes an hour; its files are written as `simulate --features` writes",
    "devices": "writes nothing",
    "serve": "what its page teaches and forgets is written as `teach` and `forget` write it",
    "array list": "writes nothing",
    "array show": "writes only pictures",
    "bench run": "has a scene in `report`: tables and page; its results are written whole after every job",
    "bench list": "writes nothing",
    "bench search": "its result is written after each trial, as `bench run` writes after each method",
    "bench releases": "its --results are written as `config` writes",
    "bench fans": "its --results are written as `config` writes",
    "bench tracking": "its --results are written as `config` writes",
    "bench lessons": "its --results are written as `config` writes",
    "bench peers": "its --results are written as `config` writes",
    "bench confidence": "its --results are written as `config` writes",
}
"""Commands that are not killed, and why."""


def make_world(folder: Path, scene: Scene) -> None:
    """The files that a scene starts from; the commands of `before` are still to be run."""
    from tests.golden.contents import GOLDEN
    from tests.slow.seeds import ODAS

    priors = folder / "home" / "tytoalba" / "priors"
    priors.mkdir(parents=True)
    small.prior().save(priors / "trio.safetensors")
    (folder / "trio.toml").write_text(small.ARRAY.to_toml(), encoding="utf-8")
    small.write_wave(folder / "a.wav", 30.0, seed=1)
    small.write_wave(folder / "b.wav", 120.0, seed=2)
    (folder / "four.cfg").write_bytes(ODAS)
    shutil.copy(GOLDEN / "results.json", folder)
    if scene.labelled:
        _labelled(folder / "data")


def _labelled(root: Path) -> None:
    import numpy as np

    from tests.helpers.waves import plane_wave

    write_array(root, small.ARRAY)
    for number, azimuth in enumerate((30.0, 200.0)):
        frames = np.arange(4, dtype=np.intp)
        samples = plane_wave(small.ARRAY, azimuth, 0.6, seed=number)
        labels = np.full((len(frames), 1), azimuth)
        write_recording(root, "train", f"r{number}", samples, small.ARRAY, frames, labels)
