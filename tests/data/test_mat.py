"""The authors' MATLAB files, old and new: what they hold, and what is wrong with them by row."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray

from tytoalba.data import mat as mat_features
from tytoalba.data.mat import MatFeatures, file_name, open_mat
from tytoalba.errors import DataError, MissingExtraError, TytoWarning

Variables = dict[str, NDArray[Any]]


def variables(ending: str = "tr", n: int = 7, seed: int = 0) -> Variables:
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
    return found if ending != "tr" else {**found, "Ztr": rng.random((n, 360))}


def write_v5(path: Path, content: Variables) -> None:
    scipy.io.savemat(path, content, do_compression=True)


def write_v4(path: Path, content: Variables) -> None:
    scipy.io.savemat(path, content, format="4")


def write_hdf5(path: Path, content: Variables, transposed: bool = True, **options: Any) -> None:
    """As MATLAB writes v7.3: a text of 512 bytes first, and every matrix transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, matrix in content.items():
            file.create_dataset(name, data=matrix.T if transposed else matrix, **options)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def write_straight(path: Path, content: Variables) -> None:
    write_hdf5(path, content, transposed=False)


def write_chunked(path: Path, content: Variables) -> None:
    write_hdf5(path, content, chunks=True, compression="gzip")


WRITERS = [write_v5, write_v4, write_hdf5, write_straight, write_chunked]
every_format = pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)


def directions(Y: NDArray[Any]) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in Y]


def without_nan(azimuth: NDArray[Any]) -> list[list[float]]:
    return [row[np.isfinite(row)].tolist() for row in azimuth]


def one_file(folder: Path, content: Variables, write: Any = write_hdf5) -> MatFeatures:
    write(folder / file_name("train"), content)
    return open_mat(folder)


@every_format
@pytest.mark.parametrize("n", [1, 7, 306, 360])
def test_round_trip(tmp_path: Path, write: Any, n: int) -> None:
    content = variables(n=n)
    part = one_file(tmp_path, content, write).read("train")
    assert (part.name, part.snr) == ("train", None)
    assert part.X.dtype == np.float32
    np.testing.assert_array_equal(part.X, content["Xtr"].astype(np.float32))
    assert part.azimuth.shape == (n, 2)
    assert without_nan(part.azimuth) == directions(content["Ytr"])
    assert part.n_sources.tolist() == content["Itr"].ravel().tolist()
    assert np.isnan(part.azimuth[0]).all()


def test_parts_and_noise(tmp_path: Path) -> None:
    contents = {}
    for seed, (part, snr) in enumerate(
        [("human", None), ("loudspeaker", None), ("human", -20), ("loudspeaker", 0)]
    ):
        contents[part, snr] = variables({"human": "te1", "loudspeaker": "te2"}[part], seed=seed)
        write_hdf5(tmp_path / file_name(part, snr), contents[part, snr])
    found = open_mat(tmp_path)
    assert set(found.files) == set(contents)
    assert found.missing[0] == "qianTraining_GCCPHAT_SSLR.mat"
    assert "qianTesting1_GCCPHAT_SSLR_SNR-10dB.mat" in found.missing
    assert len(found.missing) == 3 + 8 - 4
    for (name, snr), content in contents.items():
        got = found.read(name, snr)
        ending = "te1" if name == "human" else "te2"
        assert (got.name, got.snr) == (name, snr)
        np.testing.assert_array_equal(got.X, content[f"X{ending}"].astype(np.float32))
    with pytest.raises(
        DataError, match=r"qianTesting2_GCCPHAT_SSLR_SNR10dB\.mat is missing; there are qianTesting1"
    ):
        found.read("loudspeaker", 10)
    with pytest.raises(DataError, match="no part 'humans'; known: train, human, loudspeaker"):
        found.read("humans")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of the feature files.*qianTraining_GCCPHAT_SSLR\.mat"):
        open_mat(tmp_path)


@every_format
def test_blocks_are_the_whole(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = one_file(tmp_path, variables(n=50), write)
    whole = found.read("train")
    monkeypatch.setattr(mat_features, "BLOCK_ROWS", 16)
    by_blocks = found.read("train")
    np.testing.assert_array_equal(by_blocks.X, whole.X)
    np.testing.assert_array_equal(by_blocks.azimuth, whole.azimuth)
    np.testing.assert_array_equal(by_blocks.n_sources, whole.n_sources)


def test_reading_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mat_features, "BLOCK_ROWS", 4)
    content = variables(n=10)
    content["Ytr"][9], content["Itr"][9] = 0, 3
    content["Ytr"][9, [5, 100, 359]] = 1
    part = one_file(tmp_path, content).read("train")
    assert part.azimuth.shape == (10, 3)
    assert without_nan(part.azimuth) == directions(content["Ytr"])
    assert part.azimuth[9].tolist() == [5.0, 100.0, 359.0]


def test_labels_of_other_types(tmp_path: Path) -> None:
    content = variables()
    content["Xtr"] = content["Xtr"].astype(np.float32)
    content["Ytr"] = content["Ytr"].astype(bool)
    content["Itr"] = content["Itr"].ravel().astype(np.uint8)
    part = one_file(tmp_path, content).read("train")
    assert without_nan(part.azimuth) == directions(content["Ytr"])


def test_two_speakers_in_one_direction(tmp_path: Path) -> None:
    content = variables()
    content["Itr"][1] = 2  # one direction is marked
    found = one_file(tmp_path, content)
    with pytest.warns(TytoWarning, match=r"1 rows \(the first is 1\) name more speakers than directions"):
        part = found.read("train")
    assert part.n_sources[1] == 2
    assert part.azimuth[1, 0] == part.azimuth[1, 1] == directions(content["Ytr"])[1][0]


def without_z(content: Variables) -> Variables:
    return {name: matrix for name, matrix in content.items() if name != "Ztr"}


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
        found.read("train")


def test_things_that_are_no_matrices(tmp_path: Path) -> None:
    path = tmp_path / file_name("train")
    scipy.io.savemat(path, {**variables(), "Xtr": np.array([1, "a", 2.0], dtype=object)})
    with pytest.raises(DataError, match="no matrix Xtr"):
        open_mat(tmp_path).read("train")
    for shape in ((), (7,), (7, 306, 1)):
        write_hdf5(path, spoilt(Xtr=np.zeros(shape)))
        with pytest.raises(DataError, match="Xtr: expected a matrix of numbers"):
            open_mat(tmp_path).read("train")
    write_hdf5(path, spoilt(Xtr=np.full((7, 306), b"text")))
    with pytest.raises(DataError, match="Xtr: expected a matrix of numbers"):
        open_mat(tmp_path).read("train")


def test_a_file_that_announces_too_much(tmp_path: Path) -> None:
    with h5py.File(tmp_path / file_name("train"), "w") as file:
        for name, n in (("Xtr", 306), ("Ytr", 360), ("Itr", 1)):
            file.create_dataset(name, shape=(n, 10**12), dtype="f8", chunks=(1, 1000))
    with pytest.raises(DataError, match="with N from 1 to 5000000"):
        open_mat(tmp_path).read("train")


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
            open_mat(tmp_path).read("train")


@every_format
def test_damaged_files(tmp_path: Path, write: Any) -> None:
    path = tmp_path / file_name("train")
    found = one_file(tmp_path, without_z(variables(n=40)), write)
    content = path.read_bytes()
    for damaged in (b"", b"hello" * 200, content[:600], content[: len(content) // 2], content[:-600]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"qianTraining_GCCPHAT_SSLR\.mat"):
            found.read("train")
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*qianTraining_GCCPHAT_SSLR\.mat"):
        found.read("train")


@pytest.mark.parametrize("write", [write_v4, write_hdf5, write_chunked], ids=lambda write: write.__name__)
def test_changed_bytes_are_read_or_refused(tmp_path: Path, write: Any) -> None:
    path = tmp_path / file_name("train")
    found = one_file(tmp_path, variables(n=3), write)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 40):
        path.write_bytes(content[:at] + rng.bytes(4) + content[at + 4 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TytoWarning)
            try:
                part = found.read("train")
            except DataError:
                continue
        assert part.X.shape[0] == len(part.azimuth)


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = one_file(tmp_path, variables())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"MATLAB v7\.3 files need the extra 'mat'"):
        found.read("train")
    one_file(tmp_path, variables(), write_v5).read("train")
