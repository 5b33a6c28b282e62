"""Data sets: one module each, opened by what lies in a folder.

To add one: a module with a function from a folder to recordings, and a line in `DATASETS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tytoalba.data import folder as folder
from tytoalba.data import sslr as sslr
from tytoalba.data.recording import Listed, Recording
from tytoalba.errors import DataError
from tytoalba.storage.age import Keys


@dataclass(frozen=True)
class DataSet:
    """How a data set is recognised, opened and cited.

    recognise: whether a folder holds it. open: all its recordings, labels read. listing: what it has, nothing
    read; read: one of these. files: all files that one of these depends on.
    """

    recognise: Callable[[Path], bool]
    open: Callable[[Path, Keys], list[Recording]]
    listing: Callable[[Path], list[Listed]]
    read: Callable[[Path, Listed, Keys], Recording]
    files: Callable[[Path, Listed], list[Path]]
    citation: str
    licence: str


DATASETS: dict[str, DataSet] = {
    "folder": DataSet(
        lambda root: any((root / name).is_file() for name in ("array.toml", "array.toml.age")),
        folder.open_folder,
        folder.list_folder,
        folder.read_listed,
        folder.files_of,
        "the owner of the recordings",
        "the owner's",
    ),
    "sslr": DataSet(
        lambda root: any((root / subset).is_dir() for subset in sslr.SUBSETS),
        lambda root, _: sslr.open_sslr(root),
        sslr.list_sslr,
        lambda root, listed, _: sslr.read_listed(root, listed),
        sslr.files_of,
        sslr.CITATION,
        sslr.LICENCE,
    ),
}


def open_dataset(root: str | Path, keys: Keys = None) -> list[Recording]:
    """The recordings of a folder, whatever data set it holds; `DATASETS` lists those that are known.

    keys: what opens sealed recordings.
    """
    root = Path(root)
    return known_dataset(root).open(root, keys)


def known_dataset(root: str | Path) -> DataSet:
    """The data set that a folder holds."""
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; tyto simulate makes a data set, see docs, Benchmarks")
    for dataset in DATASETS.values():
        if dataset.recognise(root):
            return dataset
    raise DataError(
        f"{root} holds no data set that is known ({', '.join(DATASETS)}); expected the folders of SSLR "
        f"({', '.join(sslr.SUBSETS)}) or an array.toml beside folders of sound"
    )
