"""Whole commands on mutated files, a process each: what a user sees who was handed a hostile file."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.contents import GOLDEN, IDENTITY, SIGNING_KEY
from tests.slow import facts
from tests.slow.kinds import KINDS
from tests.slow.scenes import NEW, TEACH, Command, Scene, make_world
from tests.slow.seeds import SEEDS
from tests.slow.world import Ran, called, settle, tyto
from tytoalba.storage.keys import read_identities

FIRST = 10_000_000
"""Number of the first input: none that is read without a command."""
NUMBER = 60
"""Inputs of each command."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONGEST = 20_000
"""Characters that a command says at most of a small file."""
TAUGHT: tuple[Command, ...] = (NEW, TEACH)
EXPORTED: tuple[Command, ...] = (*TAUGHT, ("export", "k.tyto", "k.model", "--force"))


@dataclass(frozen=True)
class Order:
    """A command that reads a mutated file, in the hands of who has the test keys.

    file: where the mutated file is put. before: commands that make the world. put: seeds to copy into it.
    """

    kind: str
    file: str
    command: Command
    before: tuple[Command, ...] = ()
    put: tuple[tuple[str, str], ...] = ()
    labelled: bool = False


ORDERS = {
    "info state": Order("state", "in.tyto", ("info", "in.tyto")),
    "info model": Order("model", "in.tyto", ("info", "in.tyto", "--json")),
    "info ledger": Order("ledger", "k.tyto.ledger", ("info", "k.tyto"), TAUGHT),
    "locate --model": Order("model", "in.tyto", ("locate", "a.wav", "--model", "in.tyto")),
    "locate signature": Order(
        "signature", "k.model.sig", ("locate", "a.wav", "--model", "k.model"), EXPORTED
    ),
    "locate wav": Order("wav", "in.wav", ("locate", "in.wav", "--array", "trio.toml")),
    "locate sound": Order("sound", "in.ogg", ("locate", "in.ogg", "--array", "trio.toml")),
    "teach wav": Order("wav", "in.wav", ("teach", "k.tyto", "in.wav", "--at", "5"), TAUGHT),
    "merge": Order(
        "state", "in.tyto", ("merge", "k.tyto", "in.tyto", "--unsigned"), put=(("k.tyto", "state/new"),)
    ),
    "new --like": Order("state", "in.tyto", ("new", "x.tyto", "--like", "in.tyto")),
    "array show": Order("array", "in.toml", ("array", "show", "in.toml")),
    "array import": Order("odas", "in.cfg", ("array", "import", "in.cfg", "-o", "x.toml")),
    "learn labels": Order("labels", "data/train/r0.csv", ("learn", "k.tyto", "data"), TAUGHT, labelled=True),
    "open": Order("age", "in.age", ("open", "in.age")),
    "rewrap": Order("age", "in.age", ("rewrap", "in.age")),
    "sign": Order("model", "in.tyto", ("sign", "in.tyto")),
    "report": Order("results", "in.json", ("report", "in.json", "-o", "page")),
    "trust": Order("trusted", "home/tytoalba/trusted", ("trust",), TAUGHT),
    "config": Order("settings", "config/tytoalba/config.toml", ("config",)),
    "seal for": Order("identity", "in.txt", ("seal", "a.wav", "--to", "in.txt")),
    "new prior": Order(
        "prior",
        "home/tytoalba/priors/trio.safetensors",
        ("new", "x.tyto", "--array", "trio.toml", "--features", "4"),
    ),
}


def run(name: str, folder: Path) -> dict[str, Any]:
    """All inputs of one command; prints a number for each."""
    order, world, start = ORDERS[name], folder / "world", folder / "start"
    kind = KINDS[order.kind]
    world.mkdir()
    make_world(world, Scene(name, order.command, labelled=order.labelled))
    _take_test_keys(world / "home" / "tytoalba")
    for file, seed in order.put:
        shutil.copy(SEEDS / seed, world / file)
    for command in order.before:
        if (ran := tyto(world, command)).code:
            raise SystemExit(f"{name}: tyto {' '.join(command)} failed: {ran.text[-2000:]}")
    (world / order.file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(world, start, symlinks=True)
    settle(world)
    (world / order.file).write_bytes(kind.seeds[0])
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        called(order.command)
    counts, findings = Counter[str](), list[dict[str, Any]]()
    for number in range(FIRST, FIRST + NUMBER):
        print(number, flush=True)
        data, how = kind.input(number)
        _again(world, start)
        (world / order.file).unlink(missing_ok=True)
        (world / order.file).write_bytes(data)
        (world / order.file).chmod(kind.mode)
        before = _others(world, order.file)
        ran = tyto(world, order.command)
        why = problem(ran) or (
            "" if not ran.code or before == _others(world, order.file) else "files changed"
        )
        outcome = "broken" if why else "refused" if ran.code else "read"
        counts[outcome] += 1
        if why:
            findings.append({"number": number, "mutation": how, "outcome": "broken", "what": why})
    os.chdir("/")
    return {"counts": dict(counts), "findings": findings}


def _take_test_keys(home: Path) -> None:
    """The golden keys, with which seeds are signed and sealed."""
    (home / "keys").mkdir()
    shutil.copy(GOLDEN / IDENTITY, home / "keys" / "identity.txt")
    shutil.copy(GOLDEN / SIGNING_KEY, home / "signing.pem")
    for file in (home / "keys" / "identity.txt", home / "signing.pem"):
        file.chmod(0o600)
    publics = [key.public for key in read_identities(home / "keys" / "identity.txt")]
    (home / "keys" / "recipients.txt").write_text("".join(f"{public}\n" for public in publics))


def problem(ran: Ran) -> str:
    """What is wrong with how a command ended or with what it said; "" if nothing is."""
    if not ran.is_clean:
        return f"not a clean error ({ran.code}): {ran.last_line}"
    if odd := CONTROL.search(ran.text):
        near = ran.text[max(0, odd.start() - 60) :][:120]
        return f"control character {odd.group()!r} reaches the terminal: {near!r}"
    if "AGE-SECRET-KEY-1" in ran.text or "PRIVATE KEY-----" in ran.text:
        return "key material reaches the terminal"
    if len(ran.text) > LONGEST:
        return f"says {len(ran.text)} characters"
    return ""


def _others(world: Path, file: str) -> str:
    """What every other file holds that a refused command must not change."""
    found = {
        str(path.relative_to(world)): path.read_bytes()
        for path in sorted(world.rglob("*"))
        if path.is_file() and str(path.relative_to(world)) != file
    }
    kept = {n: hash(d) for n, d in found.items() if not facts.optional(n) and not n.endswith(".lock")}
    own = "home/tytoalba/"  # keys that are made when they are first needed
    return json.dumps({n: d for n, d in kept.items() if not n.startswith((own + "signing", own + "trusted"))})


def _again(world: Path, start: Path) -> None:
    for entry in world.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(start, world, symlinks=True, dirs_exist_ok=True)
