"""ONNX files follow the rules of models: spent in the ledger, sealed where exact, nothing written over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.onnx_graphs import noise
from tests.helpers.states import Kit, contents, exports_of, ledger_says, read
from tytoalba.bench.onnx import open_session
from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import FileError, TytoError
from tytoalba.localizer import export
from tytoalba.localizer.budget import needed_noise
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.onnx import files
from tytoalba.localizer.onnx.files import as_onnx, is_onnx_of_ours, write_model, write_prior
from tytoalba.localizer.store import export_exact, export_private
from tytoalba.storage.age import is_sealed
from tytoalba.storage.sealed import read_secret
from tytoalba.storage.signatures import read_manifest, signature_path

pytest.importorskip("pyrage")
pytest.importorskip("dp_accounting")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


pytestmark = pytest.mark.usefixtures("nothing_simulated")


def says(data: bytes, localizer: Localizer) -> bool:
    """Whether a file has the scores of a localizer."""
    x = noise((2, localizer.array.n_mics, localizer.array.frame_length))
    finder = localizer.finder
    (scores,) = open_session(data).run(None, {"frames": x})
    return np.array_equal(np.asarray(scores), finder.scores(finder.maps(x)))


def test_a_private_file_is_in_the_ledger_as_a_model_is(kit: Kit) -> None:
    state, output = kit.folder / "k.tyto", kit.folder / "m.onnx"
    before = state.read_bytes()
    written = export_private(state, output, epsilon=2.0, keys=keys_at_hand(), form=as_onnx())
    assert state.read_bytes() == before
    assert exports_of(state) == [written.model.private]
    assert written.model.private is not None
    assert written.model.private["noise"] == pytest.approx(needed_noise(2.0, 1e-6), rel=0.01)
    assert ledger_says(state)[1].startswith("verified")
    assert says(output.read_bytes(), Localizer(written.model))
    assert dict(read_manifest(signature_path(output).read_bytes()).about) == {
        "unit": "lesson", "epsilon": 2.0, "delta": 1e-6,
    }  # fmt: skip
    export_private(state, output, keys=keys_at_hand(), form=as_onnx("fast"))  # an older one is replaced
    with pytest.raises(TytoError, match="beyond the budget"):
        export_private(state, output, epsilon=9.0, keys=keys_at_hand(), form=as_onnx())


def test_nothing_is_spent_where_no_file_can_be_made(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    state = kit.folder / "k.tyto"
    (kit.folder / "m.model").write_bytes(read(state).model.coarse().to_bytes())
    for taken in ("k.tyto", "s.age", "m.model"):
        with pytest.raises(FileError, match="is not an ONNX file of tytoalba"):
            export_private(state, kit.folder / taken, keys=keys_at_hand(), form=as_onnx())
    with pytest.raises(TytoError, match="precision must be"):
        as_onnx("half")  # type: ignore[arg-type]

    def broken(*_: Any) -> bytes:
        raise ValueError("no such node")

    monkeypatch.setattr(files, "onnx_bytes", broken)
    before = contents(kit.folder)
    with pytest.raises(ValueError, match="no such node"):
        export_private(state, kit.folder / "n.onnx", keys=keys_at_hand(), form=as_onnx())
    assert contents(kit.folder) == before
    assert exports_of(state) == []


def test_it_is_spent_before_the_file_is_there(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise KilledError

    monkeypatch.setattr(export, "write_whole", killed)
    with pytest.raises(KilledError):
        export_private(kit.folder / "k.tyto", kit.folder / "m.onnx", keys=keys_at_hand(), form=as_onnx())
    assert not (kit.folder / "m.onnx").exists()
    assert len(exports_of(kit.folder / "k.tyto")) == 1


def test_an_exact_file_is_sealed_unless_asked_otherwise(kit: Kit) -> None:
    localizer, keys = read(kit.folder / "k.tyto"), keys_at_hand()
    coarse = Localizer(localizer.model.coarse())
    sealed = export_exact(localizer, kit.folder / "m.onnx", keys=keys, form=as_onnx())
    assert sealed.path == kit.folder / "m.onnx.age"
    assert is_sealed(sealed.path.read_bytes())
    assert says(read_secret(sealed.path, keys), coarse)
    assert sealed.advice
    plain = export_exact(localizer, kit.folder / "p.onnx", plain=True, keys=keys, form=as_onnx())
    assert plain.path.stat().st_mode & 0o777 == 0o600
    assert says(plain.path.read_bytes(), coarse)
    assert exports_of(kit.folder / "k.tyto") == []


def test_models_are_written_by_what_they_are(kit: Kit) -> None:
    state, keys = kit.folder / "k.tyto", keys_at_hand()
    private = export_private(state, kit.folder / "p.model", keys=keys).path
    exact = export_exact(read(state), kit.folder / "e.model", keys=keys).path
    written = write_model(read(private), kit.folder / "p.onnx", keys=keys)
    assert (written.signature, written.worth) == (signature_path(kit.folder / "p.onnx"), None)
    assert says(written.path.read_bytes(), read(private))
    assert len(exports_of(state)) == 1  # nothing more was spent
    with pytest.raises(TytoError, match="leave out --exact"):
        write_model(read(private), kit.folder / "q.onnx", exact=True, keys=keys)
    with pytest.raises(TytoError, match="as secret as the state"):
        write_model(read(exact), kit.folder / "e.onnx", keys=keys)
    assert not (kit.folder / "e.onnx").exists()
    again = write_model(read(exact), kit.folder / "e.onnx", exact=True, keys=keys)
    assert (again.path, again.advice) == (kit.folder / "e.onnx.age", ())
    assert is_sealed(again.path.read_bytes())


def test_the_prior_alone_is_public(kit: Kit) -> None:
    path = write_prior(read(kit.folder / "k.tyto").array, kit.folder / "prior.onnx", "fast")
    assert path.stat().st_mode & 0o777 == 0o644
    assert is_onnx_of_ours(path.read_bytes())
    with pytest.raises(FileError, match="is not an ONNX file of tytoalba"):
        write_prior(read(kit.folder / "k.tyto").array, kit.folder / "k.tyto")


@pytest.mark.parametrize("data", [b"", b"\x08\x08", b"not at all", bytes(range(256))])
def test_other_bytes_are_no_file_of_ours(data: bytes) -> None:
    assert not is_onnx_of_ours(data)
