"""seal, open and rewrap as one types them."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("pyrage")

from tests.helpers.commands import Tyto
from tests.helpers.kills import in_child, kill_points
from tests.helpers.seals import mode, names, new_key, posix, public
from tytoalba.cli import seal as commands
from tytoalba.cli.keys import keys_at_hand
from tytoalba.storage import keys as identities
from tytoalba.storage.age import seal_bytes
from tytoalba.storage.sealed import read_secret

pytestmark = pytest.mark.usefixtures("home")
MARK = b"a voice in the kitchen"


@pytest.fixture
def plain(tyto: Tyto, tmp_path: Path) -> Path:
    """A plain file, and a key to seal it for."""
    tyto("keygen")
    (tmp_path / "x").write_bytes(MARK)
    return tmp_path / "x"


# seal and open


@posix
@pytest.mark.parametrize("existed", [False, True])
def test_open_killed_anywhere_leaves_no_plain_sound(tyto: Tyto, tmp_path: Path, existed: bool) -> None:
    tyto("keygen")
    target = tmp_path / "x"
    target.write_bytes(MARK * 100)
    tyto("seal", target, "--remove")
    if existed:
        target.write_bytes(b"old")
    for _ in kill_points(lambda: tyto("open", f"{target}.age", "-o", target, "--force"), every=2):
        assert {"x.age"} <= set(names(tmp_path)) <= {"x.age", "x", ".x.new"}
        assert target.read_bytes() in (MARK * 100, b"old") if target.exists() else not existed
        # under the unfinished name only the whole new file, between two calls in which it replaces an old one
        assert not (tmp_path / ".x.new").exists() or existed
        target.unlink(missing_ok=True)
        if existed:
            target.write_bytes(b"old")
    assert target.read_bytes() == MARK * 100
    assert names(tmp_path) == ["x", "x.age"]


@posix
def test_seal_and_rewrap_killed_anywhere(tyto: Tyto, tmp_path: Path) -> None:
    tyto("keygen")
    plain, sealed = tmp_path / "x", tmp_path / "x.age"
    plain.write_bytes(MARK * 100)
    for _ in kill_points(lambda: tyto("seal", plain, "--remove"), every=3):
        assert set(names(tmp_path)) <= {"x", "x.age"}
        assert plain.exists() or read_secret(sealed, keys_at_hand()) == MARK * 100
        plain.write_bytes(MARK * 100)
        sealed.unlink(missing_ok=True)
    assert names(tmp_path) == ["x.age"]
    for _ in kill_points(lambda: tyto("rewrap", sealed), every=3):
        assert set(names(tmp_path)) <= {"x.age", ".x.age.new", ".x.age.lock"}
        for name in {"x.age", ".x.age.new"} & set(names(tmp_path)):
            assert read_secret(tmp_path / name, keys_at_hand()) == MARK * 100
    assert names(tmp_path) == ["x.age"]


def test_a_stopped_run_is_finished_by_the_next(tyto: Tyto, tmp_path: Path) -> None:
    """Of several files; the first was in the way of the others."""
    tyto("keygen")
    for name in "xyz":
        (tmp_path / name).write_bytes(MARK + name.encode())
    tyto("seal", tmp_path / "x")
    assert tyto("seal", *(tmp_path / name for name in "xyz"), "--remove").code == 0
    assert names(tmp_path) == ["x.age", "y.age", "z.age"]
    ran = tyto("seal", tmp_path / "x", "--remove")
    assert (ran.code, ran.out) == (0, "")
    assert "x was sealed and removed before" in ran.err
    assert tyto("seal", tmp_path / "x").code == tyto("seal", tmp_path / "none", "--remove").code == 2
    tyto("open", tmp_path / "x.age")
    (tmp_path / "x").chmod(0o644)
    assert tyto("open", *(tmp_path / f"{name}.age" for name in "xyz")).code == 0
    assert {mode(tmp_path / name) for name in "xyz"} == {0o600} or os.name != "posix"
    bob = new_key(tmp_path, "bob")
    assert tyto("seal", tmp_path / "x", "--to", public(bob)).code == 0  # for whom this run says
    assert read_secret(tmp_path / "x.age", [bob]) == MARK + b"x"
    assert "is there already" in tyto("seal", tmp_path / "x").error  # nobody here can tell what it holds


@posix
@pytest.mark.parametrize("limit", [0, 100, 2000])
def test_out_of_disk(tyto: Tyto, tmp_path: Path, limit: int) -> None:
    tyto("keygen")
    (tmp_path / "x").write_bytes(MARK * 100)
    tyto("seal", tmp_path / "x")
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        os.chdir(tmp_path)
        for command in (
            ["seal", "x", "--force", "--remove"],
            ["open", "x.age", "--force"],
            ["open", "x.age", "-o", "y"],
            ["rewrap", "x.age"],
            ["keygen", "-o", "key"] if limit < 150 else ["open", "x.age", "-o", "z"],
        ):
            ran = tyto(*command)
            assert ran.code == 2
            assert "too large" in ran.error

    assert not in_child(limited)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


@posix
def test_nothing_is_written_to_what_is_no_file(tyto: Tyto, plain: Path, tmp_path: Path) -> None:
    """`tyto open -o DEVICE --force` used to put a file in place of the device."""
    tyto("seal", plain)
    sealed, pipe, link = f"{plain}.age", tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("elsewhere")
    for target, why in {
        pipe: "a device, a pipe",
        link: "is a link to elsewhere",
        Path("/dev/stdout"): "- for standard",
        Path("/dev/null"): "a device, a pipe",
    }.items():
        assert why in tyto("open", sealed, "-o", target, "--force").error
    Path(sealed).unlink()
    Path(sealed).symlink_to("elsewhere")
    assert "is a link to elsewhere" in tyto("seal", plain, "--force").error
    assert "is there already" in tyto("keygen", "-o", link).error
    assert pipe.is_fifo()
    assert names(tmp_path) == ["link", "pipe", "x", "x.age"]


def test_seal_and_open(tyto: Tyto, tmp_path: Path) -> None:
    tyto("keygen")
    (tmp_path / "x.txt").write_bytes(MARK)
    ran = tyto("seal", tmp_path / "x.txt")
    assert ran.out == f"{tmp_path / 'x.txt.age'}\n"
    assert ran.err == ""
    assert names(tmp_path) == ["x.txt", "x.txt.age"]
    assert tyto("seal", tmp_path / "x.txt").code == 0  # it holds the same
    assert tyto("seal", tmp_path / "x.txt", "--force").code == 0
    assert tyto("open", tmp_path / "x.txt.age").code == 0
    (tmp_path / "x.txt").write_bytes(b"other")
    assert "x.txt.age is there already" in tyto("seal", tmp_path / "x.txt").error
    assert "x.txt is there already" in tyto("open", tmp_path / "x.txt.age").error
    assert tyto("open", tmp_path / "x.txt.age", "--force").out == f"{tmp_path / 'x.txt'}\n"
    assert (tmp_path / "x.txt").read_bytes() == MARK
    assert mode(tmp_path / "x.txt") == 0o600 or os.name != "posix"


def test_open_to_standard_output(tyto: Tyto, plain: Path, tmp_path: Path) -> None:
    tyto("seal", plain, "--remove")
    assert tyto("open", f"{plain}.age", "-o", "-").out == MARK.decode()
    assert names(tmp_path) == ["x.age"]


def test_a_folder_and_what_is_left_alone(tyto: Tyto, tmp_path: Path) -> None:
    tyto("keygen")
    root = tmp_path / "data"
    (root / "deep" / ".git").mkdir(parents=True)
    for name in ("a", "deep/b", ".hidden", "deep/.git/c"):
        (root / name).write_bytes(MARK)
    (tmp_path / "outside").write_bytes(MARK)
    (root / "link").symlink_to(tmp_path / "outside")
    ran = tyto("seal", root, "--remove")
    assert ran.out.split() == [str(root / "a.age"), str(root / "deep" / "b.age")]
    assert names(root) == [".hidden", "a.age", "deep/.git/c", "deep/b.age", "link"]
    assert "no plain files in" in tyto("seal", root).error
    assert "--output takes one file, got 2" in tyto("open", root, "-o", tmp_path / "y").error
    assert tyto("open", root).code == 0
    assert (root / "deep" / "b").read_bytes() == MARK


def test_sealed_for_others_it_is_not_removed(tyto: Tyto, tmp_path: Path) -> None:
    tyto("keygen")
    other = new_key(tmp_path, "other.txt")
    (tmp_path / "x").write_bytes(MARK)
    ran = tyto("seal", tmp_path / "x", "--to", public(other), "--remove")
    assert ran.code == 2
    assert "is sealed, but not removed: none of your keys opens" in ran.err
    assert names(tmp_path) == ["other.txt", "x", "x.age"]
    ran = tyto("seal", tmp_path / "x", "-t", public(other), "--remove", "-f", "-i", tmp_path / "other.txt")
    assert ran.code == 0
    assert names(tmp_path) == ["other.txt", "x.age"]
    assert read_secret(tmp_path / "x.age", [other]) == MARK


def test_a_link_is_not_removed_in_place_of_its_file(tyto: Tyto, plain: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(plain)
    assert "is a link" in tyto("seal", tmp_path / "link", "--remove").error
    assert names(tmp_path) == ["link", "x"]


def test_a_file_that_changes_meanwhile_is_not_removed(
    tyto: Tyto, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tytoalba.storage.sealed.seal_file",
        lambda _, target, to, **__: target.write_bytes(seal_bytes(b"earlier", to)),
    )
    ran = tyto("seal", plain, "--remove")
    assert ran.code == 2
    assert "changed while it was sealed" in ran.err
    assert plain.read_bytes() == MARK


@pytest.mark.usefixtures("quick_passphrases")
def test_seal_with_a_passphrase(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(MARK)
    assert tyto("seal", tmp_path / "x", "--passphrase", "--remove").code == 0
    assert names(tmp_path) == ["x.age"]
    assert tyto("open", tmp_path / "x.age").code == 0
    assert (tmp_path / "x").read_bytes() == MARK
    assert "not both" in tyto("rewrap", tmp_path / "x.age", "--passphrase", "--to", "age1x").error


def test_refusals(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(MARK)
    assert "nobody to seal for" in tyto("seal", tmp_path / "x").error
    tyto("keygen")
    assert "no such file" in tyto("seal", tmp_path / "none").error
    assert "does not end in .age" in tyto("open", tmp_path / "x").error
    assert "no sealed files in" in tyto("rewrap", tmp_path).error
    assert names(tmp_path) == ["x"]


# rewrap


def test_rewrap(tyto: Tyto, plain: Path, tmp_path: Path) -> None:
    tyto("seal", plain, "--remove")
    tyto("keygen", "--recovery", tmp_path / "recovery.key")
    (tmp_path / "recovery.key").rename(tmp_path.parent / "recovery.key")
    assert tyto("rewrap", tmp_path).out == f"{tmp_path / 'x.age'}\n"
    recovery = identities.read_identities(tmp_path.parent / "recovery.key")
    assert read_secret(f"{plain}.age", recovery) == MARK
    new = new_key(tmp_path, "new.txt")
    assert tyto("rewrap", f"{plain}.age", "--to", public(new)).code == 0
    assert "none of your keys opens" in tyto("rewrap", f"{plain}.age").error
    assert tyto("rewrap", f"{plain}.age", "-i", tmp_path / "new.txt").code == 0
    assert read_secret(f"{plain}.age", keys_at_hand()) == MARK


def test_progress_is_told_to_the_end(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tyto("keygen")
    shown: list[tuple[int, int]] = []

    class Bar:
        def __init__(self, title: str) -> None:
            assert "MB" in title

        def __enter__(self) -> object:
            return lambda done, total: shown.append((done, total))

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr(commands, "progress_bar", Bar)
    monkeypatch.setattr(commands, "LONG", 10**6)
    (tmp_path / "x").write_bytes(bytes(3_000_000))
    assert tyto("seal", tmp_path / "x", "--remove").code == 0
    assert shown == [(1, 3), (2, 3), (3, 3)]


# The rest of tyto reads what is sealed


def test_locate_reads_a_sealed_recording(tyto: Tyto, tmp_path: Path) -> None:
    tyto("keygen")
    samples = np.random.default_rng(0).uniform(-0.3, 0.3, (8000, 4))
    soundfile.write(tmp_path / "talk.wav", samples, 16000)
    plain = tyto("locate", tmp_path / "talk.wav", "--array", "respeaker-4mic-hat", "--json").out
    tyto("seal", tmp_path / "talk.wav", "--remove")
    ran = tyto("locate", tmp_path / "talk.wav.age", "--array", "respeaker-4mic-hat", "--json")
    assert ran.code == 0
    assert ran.out == plain != ""


@pytest.mark.skipif(shutil.which("age") is None, reason="the command age is not installed")
def test_age_opens_what_tyto_sealed(tyto: Tyto, home: Path, plain: Path, tmp_path: Path) -> None:
    tyto("seal", plain)
    own = home / "keys"
    command: list[str | Path] = ["age", "-d", "-i", own / "identity.txt", f"{plain}.age"]
    assert subprocess.run(command, check=True, capture_output=True).stdout == MARK
    command = ["age", "-a", "-R", own / "recipients.txt", "-o", tmp_path / "theirs.age", plain]
    subprocess.run(command, check=True)
    assert tyto("open", tmp_path / "theirs.age", "-o", "-").out == MARK.decode()
