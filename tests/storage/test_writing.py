"""Files appear whole or not at all, whoever is killed or out of disk; what is no file is not written to."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.kills import in_child, kill_points
from tests.helpers.seals import mode, names, posix
from tytoalba.errors import FileError, LockedError
from tytoalba.storage import writing
from tytoalba.storage.writing import (
    remove_unfinished,
    unfinished,
    whole_file,
    write_json,
    write_whole,
    written_whole,
)

SECRET = b"who stood where, " * 10_000


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("existed", [False, True])
def test_a_file_is_written_at_the_end(tmp_path: Path, as_text: bool, existed: bool) -> None:
    path = tmp_path / "result.json"
    if existed:
        path.write_text("old")
    with written_whole(str(path) if as_text else path) as temporary:
        assert temporary.parent == tmp_path  # the same file system: taking the name is atomic
        assert temporary == unfinished(path)
        assert temporary.name == ".result.json.new"
        temporary.write_text("new")
        assert path.exists() == existed
        assert not existed or path.read_text() == "old"
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
    assert names(tmp_path) == ["taken/precious"]


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
@pytest.mark.parametrize(
    ("before", "private", "after"),
    [
        (0o600, False, 0o600),
        (0o640, False, 0o640),
        (0o444, False, 0o444),
        (None, True, 0o600),
        (0o600, True, 0o600),
        (0o644, True, 0o600),
    ],
)
def test_replaced_file_keeps_its_permissions_and_private_ones_are_closed(
    tmp_path: Path, before: int | None, private: bool, after: int
) -> None:
    path = tmp_path / "state"
    if before is not None:
        path.write_text("old")
        path.chmod(before)
    with umask(0o022), written_whole(path, private=private) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert mode(path) == after


# ---- the same with a file object, which has no name on Linux


@pytest.fixture(params=["nameless", "named"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A system with files that have no name, and one without."""
    if request.param == "named":
        monkeypatch.setattr(writing, "_nameless", lambda _folder: None)
    return str(request.param)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("existed", [False, True])
def test_bytes_are_written_whole(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "state"
    if existed:
        path.write_bytes(b"old")
        path.chmod(0o640)
    unfinished(path).write_bytes(b"of somebody who was killed")
    with umask(0o022):
        write_whole(path, SECRET)
    assert path.read_bytes() == SECRET
    assert mode(path) == (0o640 if existed else 0o644) or os.name != "posix"
    write_whole(str(path), b"new", private=True)
    assert mode(path) == 0o600 or os.name != "posix"
    assert names(tmp_path) == ["state"]


def _interrupted(path: Path) -> None:
    with whole_file(path) as file:
        file.write(SECRET)
        raise KeyboardInterrupt


def _outrun(path: Path) -> None:
    with whole_file(path, replace=False) as file:
        file.write(SECRET)
        path.write_bytes(b"somebody was quicker")


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("existed", [False, True])
def test_an_error_leaves_what_was_there(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "state"
    if existed:
        path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        _interrupted(path)
    assert names(tmp_path) == (["state"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


@pytest.mark.usefixtures("either")
def test_a_name_that_is_taken_stays(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(FileExistsError):
        _outrun(path)
    with pytest.raises(FileExistsError, match="is there already"):
        write_whole(path, SECRET, replace=False)
    assert path.read_bytes() == b"somebody was quicker"
    assert names(tmp_path) == ["key"]


@posix
def test_where_there_are_neither_nameless_files_nor_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a USB stick."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(writing, "_nameless", lambda _folder: None)
    monkeypatch.setattr(os, "link", refuse)
    write_whole(tmp_path / "key", SECRET, replace=False)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "key", b"", replace=False)
    with pytest.raises(FileExistsError):
        _outrun(tmp_path / "other")
    assert (tmp_path / "key").read_bytes() == SECRET
    assert (tmp_path / "other").read_bytes() == b"somebody was quicker"
    assert names(tmp_path) == ["key", "other"]


def test_json_is_written_whole_and_its_folder_made(tmp_path: Path) -> None:
    write_json({"a": [1]}, tmp_path / "new" / "x.json")
    with pytest.raises(ValueError, match="JSON"):
        write_json({"a": float("nan")}, tmp_path / "new" / "x.json")
    assert (tmp_path / "new" / "x.json").read_text() == '{\n "a": [\n  1\n ]\n}'
    assert names(tmp_path) == ["new/x.json"]


# ---- killed, or out of disk


def _with_path(path: Path, content: bytes, **options: Any) -> None:
    with written_whole(path, **options) as temporary:
        temporary.write_bytes(content)


@posix
@pytest.mark.parametrize("write", [write_whole, _with_path])
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.usefixtures("either")
def test_killed_anywhere(tmp_path: Path, write: Callable[..., None], existed: bool, either: str) -> None:
    path, n_kills = tmp_path / "state", 0
    if existed:
        path.write_bytes(b"old")
    for n_kills in kill_points(partial(write, path, SECRET, private=True)):  # noqa: B007
        left = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
        assert left.pop("state", b"old") in (b"old", SECRET)
        assert set(left) <= {".state.new"}
        assert all(mode(tmp_path / name) == 0o600 for name in left)
        if write is write_whole and either == "nameless":  # a moment at most, of the whole new file
            assert not left or (existed and left == {".state.new": SECRET})
        if existed:
            path.write_bytes(b"old")
        else:
            path.unlink(missing_ok=True)
    assert n_kills >= 5
    assert path.read_bytes() == SECRET
    assert names(tmp_path) == ["state"]


@posix
@pytest.mark.parametrize("write", [write_whole, _with_path])
@pytest.mark.usefixtures("either")
def test_out_of_disk(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(OSError, match="too large"):
            write(path, SECRET)

    assert not in_child(limited)
    assert names(tmp_path) == ["state"]
    assert path.read_bytes() == b"old"


@posix
def test_two_who_want_a_path_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WAIT", 0.1)
    path = tmp_path / "result.json"
    with written_whole(path) as first:
        first.write_text("first")
        with pytest.raises(LockedError, match="another tyto is writing"), written_whole(path):
            pass
        remove_unfinished(path)
        assert first.read_text() == "first"  # it is not a stray one
    assert path.read_text() == "first"
    assert names(tmp_path) == ["result.json"]


# ---- what is no file


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _link(path: Path) -> None:
    (path.parent / "precious").write_text("precious")
    path.symlink_to("precious")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


WRITERS: list[Callable[[Path], AbstractContextManager[object]]] = [whole_file, written_whole]


@posix
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("make", [_pipe, _socket, _link, _dangling, Path.mkdir])
def test_what_is_no_file_is_not_written_to(
    tmp_path: Path,
    make: Callable[[Path], None],
    writer: Callable[[Path], AbstractContextManager[object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("odd")  # names of sockets are short
    make(path)
    before, kind = names(Path()), path.lstat()
    expected = "is a link to" if path.is_symlink() else "is a folder" if path.is_dir() else "a device, a pipe"
    with pytest.raises((FileError, OSError), match=expected), writer(path):
        pass
    assert path.lstat() == kind
    assert names(Path()) == before
    assert not Path("precious").exists() or Path("precious").read_text() == "precious"


@posix
@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_devices_stay(device: str) -> None:
    with pytest.raises(FileError, match=r"a device, a pipe or a socket.*- for standard output"):
        write_whole(device, SECRET)
    with pytest.raises(FileError, match="cannot be the name of a file"):
        write_whole("\0", SECRET)


@posix
@pytest.mark.parametrize("make", [_pipe, _socket, _link, _dangling])
@pytest.mark.parametrize("write", [write_whole, _with_path])
@pytest.mark.usefixtures("either")
def test_what_was_planted_as_the_unfinished_file_is_not_written_to(
    tmp_path: Path, make: Callable[[Path], None], write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(unfinished("state"))
    write(Path("state"), SECRET, private=True)
    assert not Path("state").is_symlink()
    assert Path("state").read_bytes() == SECRET
    assert mode(Path("state")) == 0o600
    assert names(Path()) in (["state"], ["precious", "state"])
    assert not Path("precious").exists() or Path("precious").read_text() == "precious"


@posix
def test_a_folder_in_place_of_the_unfinished_file_is_said(tmp_path: Path) -> None:
    unfinished(tmp_path / "state").mkdir()
    with pytest.raises(FileError, match=r"\.state\.new is in the way and cannot be removed"):
        write_whole(tmp_path / "state", SECRET)
