"""Files appear whole or not at all, with the permissions one expects, and leave nothing behind."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tytoalba.storage.files import write_tensors, written_whole

posix = pytest.mark.skipif(sys.platform == "win32", reason="permission bits of POSIX")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("as_text", [False, True])
def test_new_file_is_written(tmp_path: Path, as_text: bool) -> None:
    path = tmp_path / "result.json"
    with written_whole(str(path) if as_text else path) as temporary:
        assert temporary.parent == tmp_path  # the same file system: taking the name is atomic
        assert temporary.suffix == ".json"  # libraries guess the format from it
        assert temporary.name.startswith(".")
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert names(tmp_path) == ["result.json"]


def test_old_content_stays_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    with written_whole(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["result.json"]


def fail_half_way(path: Path, error: type[BaseException]) -> None:
    with written_whole(path) as temporary:
        temporary.write_text("half of the n")
        raise error


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("existed", [True, False])
def test_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException], existed: bool) -> None:
    path = tmp_path / "result.json"
    if existed:
        path.write_text("old")
        path.chmod(0o640)
    with pytest.raises(error):
        fail_half_way(path, error)
    assert names(tmp_path) == (["result.json"] if existed else [])
    if existed:
        assert path.read_text() == "old"
        assert mode(path) == 0o640


def test_writer_that_never_wrote_is_a_failure_too(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), written_whole(path) as temporary:
        temporary.unlink()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["result.json"]


def test_missing_folder_and_folder_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), written_whole(tmp_path / "none" / "result.json"):
        raise AssertionError("nothing to write to")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious").touch()
    with pytest.raises(OSError, match="taken"), written_whole(tmp_path / "taken") as temporary:
        temporary.write_text("new")
    assert names(tmp_path) == ["taken"]
    assert names(tmp_path / "taken") == ["precious"]


def test_two_writers_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with written_whole(path) as first, written_whole(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the last to finish
    assert names(tmp_path) == ["result.json"]


@posix
@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_file_has_the_permissions_the_umask_leaves(tmp_path: Path, mask: int, expected: int) -> None:
    path = tmp_path / "result.json"
    with umask(mask):
        with written_whole(path) as temporary:
            temporary.write_text("new")
            assert mode(temporary) == 0o600  # nobody else reads it half written
        assert mode(path) == expected
        plain = tmp_path / "plain"
        plain.touch()
        assert mode(path) == mode(plain)
        assert os.umask(mask) == mask  # as it was


@posix
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o444])
def test_replaced_file_keeps_its_permissions(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "private.json"
    path.write_text("old")
    path.chmod(kept)
    with umask(0o022), written_whole(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert mode(path) == kept


@posix
@pytest.mark.parametrize("before", [None, 0o600, 0o644])
def test_private_file_is_for_its_owner_only(tmp_path: Path, before: int | None) -> None:
    path = tmp_path / "state"
    if before is not None:
        path.write_text("old")
        path.chmod(before)
    with umask(0o022), written_whole(path, private=True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert mode(path) == 0o600


def test_tensors_that_do_not_fit_on_the_disk_leave_what_was_there(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")  # of POSIX: no file may become larger than we say
    path = tmp_path / "kept.safetensors"
    write_tensors(path, {"a": np.arange(4)}, {"n": 1})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OSError, match=r"kept.safetensors could not be written: "):
            write_tensors(path, {"a": np.zeros(100_000)}, {"n": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
