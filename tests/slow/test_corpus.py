"""Every kept input is read or refused in words, as are the valid files that mutations start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow.corpus import MOST, ROOM
from tests.slow.kinds import CORPUS, KINDS, Kind
from tests.slow.work import CLEAN, limited, outcome

STARTS_A_PROCESS = ("mat",)
"""Of these only the first few are read here; each takes long."""


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_kept_inputs_are_clean(kind: Kind, tmp_path: Path) -> None:
    if kind.missing:
        pytest.skip(f"needs {kind.missing[0]}")
    inputs = [(data, "none") for data in kind.seeds]
    kept = sorted((CORPUS / kind.name).glob("*"))
    most = 5 if kind.name in STARTS_A_PROCESS else None
    inputs += [(file.read_bytes(), "inside") for file in kept[:most]]
    with limited(kind.seconds):
        found = [outcome(kind, data, how, tmp_path) for data, how in inputs]
    assert [each for each in found if each[0] not in CLEAN] == []
    assert found[0][0] == "read"


def test_the_corpus_is_small_and_of_kinds_that_there_are() -> None:
    folders = [folder for folder in CORPUS.iterdir() if folder.is_dir()]
    assert {folder.name for folder in folders} <= KINDS.keys()
    for folder in folders:
        sizes = [file.stat().st_size for file in folder.iterdir()]
        assert sum(sizes) <= ROOM
        assert len(sizes) <= MOST
