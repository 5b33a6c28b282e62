"""`tyto restore`, `--unsigned`, and what `tyto info` says of ledger, memory and budget."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import typer

from tests.helpers.commands import Tyto
from tests.helpers.states import Kit, edit, wave, write_wave
from tests.helpers.states import kit as kit
from tests.helpers.states import made_kit as made_kit
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import remembered_path
from tytoalba.storage.signatures import TrustStore, signature_path

pytest.importorskip("cryptography")


@pytest.fixture
def undone(kit: Kit) -> Path:
    """A state from before it forgot a lesson."""
    path = kit.folder / "k.tyto"
    kit.add(path, 2)
    old = path.read_bytes()
    with edit(path) as localizer:
        localizer.forget(wave(95.0, 0.4, 2), 95.0)
    path.write_bytes(old)
    return path


def test_a_state_that_was_put_back_is_refused_by_every_command(tyto: Tyto, undone: Path) -> None:
    write_wave(undone.with_name("a.wav"), 30.0, 0.4)
    lines = ledger_path(undone).read_bytes()
    for arguments in (
        ("info", "k.tyto"),
        ("locate", "a.wav", "--model", "k.tyto"),
        ("locate", "a.wav", "--model", "k.tyto", "--unsigned"),
        ("teach", "k.tyto", "a.wav", "--at", "30"),
        ("forget", "k.tyto", "--who", "x"),
        ("export", "k.tyto", "m.model"),
        ("export", "k.tyto", "m.model", "--exact", "--plain"),
        ("new", "n.tyto", "--like", "k.tyto"),
        ("merge", "s.age", "k.tyto", "--unsigned"),
    ):
        ran = tyto(*arguments)
        assert ran.code == 2, arguments
        assert "this state is from before step 5, which forgot 3 frames" in ran.error
        assert "`tyto restore k.tyto`" in ran.error
    assert ledger_path(undone).read_bytes() == lines
    assert not Path("m.model").exists()


def test_restore_asks(tyto: Tyto, undone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ledger_path(undone).read_bytes()
    ran = tyto("restore", "k.tyto")
    assert (ran.code, ran.out) == (2, "")
    assert "nobody is there to ask: --yes accepts it; nothing was changed" in ran.error
    assert "3 frames that were forgotten since would be there again" in ran.err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for answer in (False, True):
        assert ledger_path(undone).read_bytes() == lines
        monkeypatch.setattr(typer, "confirm", lambda *_, answer=answer, **__: answer)
        ran = tyto("restore", "k.tyto")
        assert ran.code == (0 if answer else 2)
    assert "k.tyto: accepted, step 6 of its ledger" in ran.err
    assert Ledger.open(ledger_path(undone)).entries[-1].what == "restored"
    assert "there is nothing to restore" in tyto("restore", "k.tyto", "--yes").error


def test_restore_in_json(tyto: Tyto, undone: Path) -> None:
    facts = json.loads(tyto("restore", "k.tyto", "--yes", "--json").out)
    assert facts.pop("file") == str(undone)
    assert facts == {
        "restored": "state", "sequence": 6, "step": 4, "undone": 1, "lost": 0, "forgotten": 3,
    }  # fmt: skip


def test_files_that_nobody_signed_need_a_word(tyto: Tyto, kit: Kit) -> None:
    write_wave(kit.folder / "a.wav", 30.0, 0.4)
    kit.start().save("mine.tyto")
    Path("m.model").write_bytes(kit.lessons[0].model.coarse().to_bytes())
    for arguments in (
        ("locate", "a.wav", "--model", "m.model", "--json"),
        ("locate", "a.wav", "--model", "mine.tyto", "--json"),
        ("teach", "mine.tyto", "a.wav", "--at", "30"),
        ("new", "n.tyto", "--like", "mine.tyto"),
        ("merge", "k.tyto", "mine.tyto"),
    ):
        ran = tyto(*arguments)
        assert (ran.code, "nobody signed" in ran.error) == (2, True), arguments
        assert tyto(*arguments, "--unsigned").code == 0, arguments
    assert "signature: nobody signed it" in tyto("info", "m.model").out
    assert tyto("sign", "m.model", "mine.tyto").code == 0
    assert tyto("locate", "a.wav", "--model", "m.model", "--json").code == 0
    assert "signature: signed by tyto-ed25519:" in tyto("info", "m.model").out
    signature_path("m.model").unlink()
    for word in ((), ("--unsigned",)):
        assert "was signed by" in tyto("locate", "a.wav", "--model", "m.model", *word).error
    assert tyto("restore", "m.model", "--yes").err.endswith("m.model: accepted\n")
    assert tyto("locate", "a.wav", "--model", "m.model", "--unsigned", "--json").code == 0


def test_info_tells_of_memory_and_budget(tyto: Tyto, kit: Kit) -> None:
    pytest.importorskip("dp_accounting")
    said = tyto("info", "k.tyto").out
    assert "ledger: verified" in said
    assert "remembered: step 3 is the newest that you have seen" in said
    assert "budget of private models: epsilon 0.00 of 10 spent (delta 1e-06)" in said
    facts = json.loads(tyto("info", "k.tyto", "--json").out)
    assert facts["remembered"] == {"newest_step": 3, "in_place": 3, "file": str(remembered_path())}
    assert facts["budget"] == {"budget": 10.0, "spent": 0.0, "delta": 1e-6, "known": True}
    ledger_path(kit.folder / "k.tyto").unlink()
    assert tyto("restore", "k.tyto", "--yes").code == 0
    assert "nobody knows how much was spent: nothing is left" in tyto("info", "k.tyto").out


@pytest.mark.filterwarnings("always::tytoalba.errors.TytoWarning")
@pytest.mark.usefixtures("kit")
def test_a_damaged_memory_is_one_warning_and_no_traceback(tyto: Tyto) -> None:
    for content in (b"[" * 100_000, b'{"signed": ' + b"9" * 5000 + b"}"):
        remembered_path().write_bytes(content)
        ran = tyto("info", "k.tyto")
        assert ran.code == 0
        assert ran.err.count("is damaged") == 1
        assert "Traceback" not in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links_that_somebody_planted_are_not_written_through(tyto: Tyto, kit: Kit) -> None:
    """The attack: NAME.ledger, NAME.sig or a lock is a link to a file of the user."""
    victim = kit.folder / "victim"
    victim.write_text("mine")
    victim.chmod(0o644)
    for name in ("n.tyto.ledger", ".n.tyto.lock", ".n.tyto.ledger.lock"):
        link = kit.folder / name
        link.symlink_to(victim)
        assert tyto("new", "n.tyto", "--like", "k.tyto").code == 2, name
        link.unlink()
    signature_path("k.tyto").symlink_to(victim)
    ran = tyto("sign", "k.tyto")
    assert (ran.code, "link" in ran.error) == (2, True)
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("mine", 0o644)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
@pytest.mark.filterwarnings("ignore::tytoalba.errors.TytoWarning")
def test_a_pipe_that_somebody_planted_keeps_nobody_waiting(tyto: Tyto, kit: Kit) -> None:
    """The attack: a ledger, a signature or what is remembered is a pipe that nobody writes to."""
    TrustStore().path.touch(mode=0o600)
    for path in (
        *(ledger_path(kit.folder / "k.tyto"), signature_path(kit.folder / "k.tyto")),
        *(remembered_path(), remembered_path().with_name("seen.json"), TrustStore().path),
    ):
        path.rename(kit.folder / "moved") if path.exists() else None
        os.mkfifo(path)
        if path.name == "seen.json":
            remembered_path().rename(kit.folder / "memory")
        signal.alarm(60)  # which ends the tests if somebody waits
        codes = [tyto(*command).code for command in (("info", "k.tyto"), ("sign", "k.tyto"))]
        signal.alarm(0)
        assert set(codes) <= {0, 2}, path
        path.unlink()
        for name, back in (("moved", path), ("memory", remembered_path())):
            (kit.folder / name).replace(back) if (kit.folder / name).exists() else None
    os.mkfifo("f.tyto")
    assert "is a device, a pipe or a socket" in tyto("audit", "k.tyto", "--results", "f.tyto").error
    assert "is a device, a pipe or a socket" in tyto("forget", "f.tyto", "--who", "ann").error
