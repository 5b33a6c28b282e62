"""The authors' MATLAB files, old and new: what they hold, and what is wrong with them by row."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray

from tytoalba.data import mat as mat_features
from tytoalba.data.mat import Files, file_name, open_mat, read_mat
from tytoalba.errors import DataError, MissingExtraError, TytoWarning

Variables = dict[str, NDArray[Any]]


def variables(ending: str = "tr", n: int = 7, seed: int = 0, z: bool = True) -> Variables:
    """N frames that have 0, 1, 2, 0, 1, 2... sources."""
    rng = np.random.default_rng(seed)
    count = np.arange(n) % 3
    Y = np.zeros((n, 360))
    for row, k in zip(Y, count, strict=True):
        row[rng.choice(360, k, replace=False)] = 1
    found = {
        f"X{ending}": rng.normal(size=(n, 306)),
        f"Y{ending}": Y,
        f"I{ending}": count[:, None].astype(float),
    }
    return found if ending != "tr" or not z else {**found, "Ztr": rng.random((n, 360))}


def write_hdf5(path: Path, content: Variables, transposed: bool = True, **options: Any) -> None:
    """As MATLAB writes v7.3: a text of 512 bytes first, and every matrix transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, matrix in content.items():
            file.create_dataset(name, data=matrix.T if transposed else matrix, **options)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


WRITERS: dict[str, Any] = {
    "v5": partial(scipy.io.savemat, do_compression=True),
    "v4": partial(scipy.io.savemat, format="4"),
    "hdf5": write_hdf5,
    "straight": partial(write_hdf5, transposed=False),
    "chunked": partial(write_hdf5, chunks=True, compression="gzip"),
}
every_format = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def directions(Y: NDArray[Any]) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in Y]


def without_nan(azimuth: NDArray[Any]) -> list[list[float]]:
    return [row[np.isfinite(row)].tolist() for row in azimuth]


def one_file(folder: Path, content: Variables, write: Any = write_hdf5) -> Files:
    write(folder / file_name("train"), content)
    return open_mat(folder)


@every_format
@pytest.mark.parametrize("n", [1, 7, 306, 360])
def test_round_trip(tmp_path: Path, write: Any, n: int) -> None:
    content = variables(n=n)
    X, azimuth = read_mat(one_file(tmp_path, content, write), "train")
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, content["Xtr"].astype(np.float32))
    assert azimuth.shape == (n, 2)
    assert without_nan(azimuth) == directions(content["Ytr"])
    assert np.isnan(azimuth[0]).all()


def test_parts_and_noise(tmp_path: Path) -> None:
    contents = {}
    wanted = [("human", None), ("loudspeaker", None), ("human", -20), ("loudspeaker", 0)]
    for seed, (part, snr) in enumerate(wanted):
        contents[part, snr] = variables({"human": "te1", "loudspeaker": "te2"}[part], seed=seed)
        write_hdf5(tmp_path / file_name(part, snr), contents[part, snr])
    found = open_mat(tmp_path)
    assert set(found) == set(contents)
    for (name, snr), content in contents.items():
        ending = "te1" if name == "human" else "te2"
        np.testing.assert_array_equal(read_mat(found, name, snr)[0], content[f"X{ending}"].astype(np.float32))
    missing = r"qianTesting2_GCCPHAT_SSLR_SNR10dB\.mat is missing; there are qianTesting1"
    with pytest.raises(DataError, match=missing):
        read_mat(found, "loudspeaker", 10)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of the feature files.*qianTraining_GCCPHAT_SSLR\.mat"):
        open_mat(tmp_path)


@every_format
def test_blocks_are_the_whole(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = one_file(tmp_path, variables(n=50), write)
    whole = read_mat(found, "train")
    monkeypatch.setattr(mat_features, "BLOCK_ROWS", 16)
    for by_blocks, at_once in zip(read_mat(found, "train"), whole, strict=True):
        np.testing.assert_array_equal(by_blocks, at_once)


def test_reading_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mat_features, "BLOCK_ROWS", 4)
    content = variables(n=10)
    content["Ytr"][9], content["Itr"][9] = 0, 3
    content["Ytr"][9, [5, 100, 359]] = 1
    _, azimuth = read_mat(one_file(tmp_path, content), "train")
    assert azimuth.shape == (10, 3)
    assert without_nan(azimuth) == directions(content["Ytr"])
    assert azimuth[9].tolist() == [5.0, 100.0, 359.0]


def test_labels_of_other_types(tmp_path: Path) -> None:
    content = variables()
    content["Xtr"] = content["Xtr"].astype(np.float32)
    content["Ytr"] = content["Ytr"].astype(bool)
    content["Itr"] = content["Itr"].ravel().astype(np.uint8)
    _, azimuth = read_mat(one_file(tmp_path, content), "train")
    assert without_nan(azimuth) == directions(content["Ytr"])


def test_two_speakers_in_one_direction(tmp_path: Path) -> None:
    content = variables()
    content["Itr"][1] = 2  # one direction is marked
    found = one_file(tmp_path, content)
    with pytest.warns(TytoWarning, match=r"1 rows \(the first is 1\) name more speakers than directions"):
        _, azimuth = read_mat(found, "train")
    assert without_nan(azimuth)[1] == directions(content["Ytr"])[1] * 2


def spoilt(**changes: Any) -> Variables:
    content = variables()
    for name, change in changes.items():
        if isinstance(change, tuple):
            row, value = change
            content[name][row] = value
        elif change is None:
            del content[name]
        else:
            content[name] = change
    return content


@every_format
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (spoilt(Xtr=None), "no matrix Xtr; of matrices the file holds .*Itr"),
        (spoilt(Ytr=None), "no matrix Ytr"),
        (spoilt(Itr=None), "no matrix Itr"),
        (spoilt(Xtr=np.zeros((7, 305))), r"Xtr: is \(.*305.*\), and Ytr is .*: not N x 306 and N x 360"),
        (spoilt(Ytr=np.zeros((6, 360))), "Xtr: is .* and Ytr is"),
        (spoilt(Itr=np.zeros((6, 1))), "Itr: expected one number for each of 7 rows"),
        (spoilt(Xtr=(3, np.nan)), "Xtr, row 3: a feature is not finite"),
        (spoilt(Xtr=((3, 5), 1e300)), "Xtr, row 3: a feature is not finite"),
        (spoilt(Ytr=((4, 17), 0.5)), "Ytr, row 4: not binary"),
        (spoilt(Ytr=((4, 17), np.nan)), "Ytr, row 4: not binary"),
        (spoilt(Itr=(5, 1.5)), r"Itr, row 5: not a number of speakers: 1\.5"),
        (spoilt(Itr=(5, -1)), "Itr, row 5: not a number of speakers"),
        (spoilt(Itr=(5, np.nan)), "Itr, row 5: not a number of speakers"),
        (spoilt(Itr=(5, 1)), "Ytr, row 5: 2 directions are marked, but Itr says 1"),
        (spoilt(Itr=(5, 3)), "Ytr, row 5: 2 directions are marked, but Itr says 3"),
        (spoilt(Itr=(0, 1)), "Ytr, row 0: 0 directions are marked, but Itr says 1"),
        (spoilt(Ytr=((0, 17), 1)), "Ytr, row 0: 1 directions are marked, but Itr says 0"),
    ],
)
def test_wrong_contents_are_named(tmp_path: Path, write: Any, content: Variables, what: str) -> None:
    found = one_file(tmp_path, content, write)
    with pytest.raises(DataError, match=rf"qianTraining_GCCPHAT_SSLR\.mat: {what}"):
        read_mat(found, "train")


def test_things_that_are_no_matrices(tmp_path: Path) -> None:
    path = tmp_path / file_name("train")
    scipy.io.savemat(path, {**variables(), "Xtr": np.array([1, "a", 2.0], dtype=object)})
    with pytest.raises(DataError, match="no matrix Xtr"):
        read_mat(open_mat(tmp_path), "train")
    shapes = ((), (7,), (7, 306, 1))
    for matrix in (*map(np.zeros, shapes), np.full((7, 306), b"text")):
        write_hdf5(path, spoilt(Xtr=matrix))
        with pytest.raises(DataError, match="Xtr: expected a matrix of numbers"):
            read_mat(open_mat(tmp_path), "train")


def test_a_file_that_announces_too_much(tmp_path: Path) -> None:
    with h5py.File(tmp_path / file_name("train"), "w") as file:
        for name, n in (("Xtr", 306), ("Ytr", 360), ("Itr", 1)):
            file.create_dataset(name, shape=(n, 10**12), dtype="f8", chunks=(1, 1000))
    with pytest.raises(DataError, match="with N from 1 to 5000000"):
        read_mat(open_mat(tmp_path), "train")


def test_links_into_other_files_are_not_followed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["Xtr"] = np.zeros((306, 7))
    content = variables()
    for link in ("external link", "external storage", "virtual"):
        write_hdf5(tmp_path / file_name("train"), {name: content[name] for name in ("Ytr", "Itr")})
        with h5py.File(tmp_path / file_name("train"), "r+") as file:
            if link == "external link":
                file["Xtr"] = h5py.ExternalLink("secret.h5", "Xtr")
            elif link == "virtual":
                layout = h5py.VirtualLayout((306, 7), "f8")
                layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "Xtr", (306, 7))
                file.create_virtual_dataset("Xtr", layout)
            else:
                stored = [(tmp_path / "secret.h5", 0, 306 * 7 * 8)]
                file.create_dataset("Xtr", (306, 7), "f8", external=stored)
        with pytest.raises(DataError, match="no matrix Xtr"):
            read_mat(open_mat(tmp_path), "train")


@every_format
def test_damaged_files(tmp_path: Path, write: Any) -> None:
    path = tmp_path / file_name("train")
    found = one_file(tmp_path, variables("tr", 40, z=False), write)
    content = path.read_bytes()
    for damaged in (b"", b"hello" * 200, content[:600], content[: len(content) // 2], content[:-600]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"qianTraining_GCCPHAT_SSLR\.mat"):
            read_mat(found, "train")
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*qianTraining_GCCPHAT_SSLR\.mat"):
        read_mat(found, "train")


@pytest.mark.parametrize("kind", ["v4", "hdf5", "chunked"])
def test_changed_bytes_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / file_name("train")
    found = one_file(tmp_path, variables(n=3), WRITERS[kind])
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 40):
        path.write_bytes(content[:at] + rng.bytes(4) + content[at + 4 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TytoWarning)
            try:
                X, azimuth = read_mat(found, "train")
            except DataError:
                continue
        assert len(X) == len(azimuth)


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = one_file(tmp_path, variables())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"MATLAB v7\.3 files need the extra 'mat'"):
        read_mat(found, "train")
    read_mat(one_file(tmp_path, variables(), WRITERS["v5"]), "train")
