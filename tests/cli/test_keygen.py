"""`tyto keygen` as one types it, killed anywhere and run again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyrage")

from tests.helpers.commands import Tyto
from tests.helpers.kills import kill_points
from tests.helpers.seals import mode, names, posix
from tytoalba.storage import keys as identities
from tytoalba.storage.age import is_sealed
from tytoalba.storage.keys import read_identities

pytestmark = pytest.mark.usefixtures("home")
MARK = b"a voice in the kitchen"


def test_keygen(tyto: Tyto, home: Path) -> None:
    ran = tyto("keygen")
    assert ran.code == 0
    assert ran.out.startswith("public key: age1")
    assert mode(home / "keys" / "identity.txt") == 0o600 or os.name != "posix"
    lines = (home / "keys" / "identity.txt").read_text().splitlines()
    assert lines[1] == f"# public key: {ran.out.split()[-1]}"
    assert lines[2].startswith("AGE-SECRET-KEY-1")
    assert "SECRET" not in ran.out + ran.err
    assert identities.default_recipients() == [ran.out.split()[-1]]
    before = (home / "keys" / "identity.txt").read_bytes()
    assert "is there already and stays" in tyto("keygen").error
    assert (home / "keys" / "identity.txt").read_bytes() == before


def test_keygen_elsewhere_changes_no_defaults(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    ran = tyto("keygen", "-o", tmp_path / "analyst.txt", "--json")
    (made,) = json.loads(ran.out)
    assert made["identity"] == str(tmp_path / "analyst.txt")
    assert made["public_key"] in (tmp_path / "analyst.txt").read_text()
    assert not home.exists()


def test_keygen_with_a_recovery_key(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    printed = tyto("keygen", "--recovery", tmp_path / "recovery.txt").out
    (kind, own), (other, recovery) = (line.split(" key: ") for line in printed.splitlines())
    assert (kind, other) == ("public", "recovery")
    assert identities.default_recipients() == [own, recovery]
    (tmp_path / "x").write_bytes(MARK)
    tyto("seal", tmp_path / "x")
    (home / "keys" / "identity.txt").unlink()  # the machine is lost
    assert "no key was given" in tyto("open", tmp_path / "x.age", "-o", tmp_path / "y").error
    assert tyto("open", tmp_path / "x.age", "-o", tmp_path / "y", "-i", tmp_path / "recovery.txt").code == 0
    assert (tmp_path / "y").read_bytes() == MARK


def test_a_recovery_key_can_come_later(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    own = tyto("keygen").out.split()[-1]
    before = (home / "keys" / "identity.txt").read_bytes()
    (home / "keys" / "recipients.txt").unlink()  # one's own key must not be left out
    ran = tyto("keygen", "--recovery", tmp_path / "recovery.txt")
    assert identities.default_recipients() == [own, ran.out.split()[-1]]
    assert (home / "keys" / "identity.txt").read_bytes() == before
    assert "is there already" in tyto("keygen", "--recovery", tmp_path / "recovery.txt").error
    assert (
        "is there already"
        in tyto("keygen", "-o", tmp_path / "z", "--recovery", tmp_path / "recovery.txt").error
    )
    assert names(tmp_path) == ["recovery.txt"]


@pytest.mark.usefixtures("quick_passphrases")
def test_keygen_with_a_passphrase(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    assert tyto("keygen", "--passphrase").code == 0
    assert is_sealed(home / "keys" / "identity.txt")
    (tmp_path / "x").write_bytes(MARK)
    assert tyto("seal", tmp_path / "x", "--remove").code == 0
    assert tyto("open", tmp_path / "x.age").code == 0
    assert (tmp_path / "x").read_bytes() == MARK


@posix
def test_keygen_killed_anywhere_and_run_again(tyto: Tyto, home: Path, tmp_path: Path) -> None:
    """It used to leave an empty identity.txt that was in the way for good, and keys in stray files."""
    recovery, seen, keys = tmp_path / "recovery.txt", set(), home / "keys"
    for _ in kill_points(lambda: tyto("keygen", "--recovery", recovery), every=2):
        left = [*names(home), *names(tmp_path)] if home.exists() else []
        assert {name for name in left if "lock" not in name} <= {
            *("keys/identity.txt", "keys/recipients.txt", "keys/.recipients.txt.new", "recovery.txt")
        }
        if tuple(left) not in seen:
            seen.add(tuple(left))
            before = {file: file.read_bytes() for file in (keys / "identity.txt", recovery) if file.exists()}
            if (keys / "recipients.txt").exists():
                assert "is there already and stays" in tyto("keygen", "--recovery", recovery).error
            else:
                assert tyto("keygen", "--recovery", recovery).code == 0
            assert all(file.read_bytes() == content for file, content in before.items())
            found = [read_identities(file)[0].public for file in (keys / "identity.txt", recovery)]
            assert identities.default_recipients() == found
            now = [name for name in (*names(home), *names(tmp_path)) if not name.endswith(".lock")]
            assert now == ["keys/identity.txt", "keys/recipients.txt", "recovery.txt"]
        shutil.rmtree(home, ignore_errors=True)
        recovery.unlink(missing_ok=True)
    assert len(seen) >= 4


def test_keygen_again_adds_a_key_that_is_not_listed(tyto: Tyto, home: Path) -> None:
    own = tyto("keygen").out
    (home / "keys" / "recipients.txt").unlink()  # killed before it was written
    before = (home / "keys" / "identity.txt").read_bytes()
    ran = tyto("keygen")
    assert (ran.code, ran.out) == (0, own)
    assert "identity.txt stays" in ran.err
    assert identities.default_recipients() == [own.split()[-1]]
    assert (home / "keys" / "identity.txt").read_bytes() == before
    assert "is there already and stays" in tyto("keygen").error


def test_keygen_replaces_a_file_without_a_key(tyto: Tyto, home: Path) -> None:
    (home / "keys").mkdir(parents=True)
    (home / "keys" / "identity.txt").touch()
    ran = tyto("keygen")
    assert ran.code == 0
    assert "identity.txt held no key" in ran.err
    assert identities.default_recipients() == [ran.out.split()[-1]]
    assert names(home) == ["keys/identity.txt", "keys/recipients.txt"]
