"""ONNX files: whose weights they may hold, and who may have them, by the same rules as models (`export`)."""

from __future__ import annotations

from pathlib import Path

from tytoalba.errors import TytoError
from tytoalba.localizer.export import Exported, Form, promised, refuse_taken
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.onnx.builder import Precision, check_precision, import_onnx
from tytoalba.localizer.onnx.graph import FORMAT, Known, onnx_bytes
from tytoalba.localizer.store import export_exact, sign_model
from tytoalba.signal.array import MicArray
from tytoalba.storage.age import Keys
from tytoalba.storage.files import locked
from tytoalba.storage.writing import write_whole

SUFFIX = ".onnx"


def as_onnx(precision: Precision = "same") -> Form:
    """Models as ONNX files, for `store.export_private` and `store.export_exact`."""
    check_precision(precision)  # before anything is spent
    import_onnx()
    return Form(
        "an ONNX file of tytoalba",
        lambda model: onnx_bytes(Known.of_model(model), precision),
        is_onnx_of_ours,
    )


def is_onnx_of_ours(data: bytes) -> bool:
    """Whether these are the bytes of a file that was written here."""
    onnx = import_onnx()
    try:
        made = onnx.load_model_from_string(data)
    except Exception:  # protobuf has errors of its own, and several of them
        return False
    return any(entry.key == "format" and entry.value == FORMAT for entry in made.metadata_props)


def write_prior(array: MicArray, output: str | Path, precision: Precision = "same") -> Path:
    """Write the prior of an array alone, which is public."""
    path, form = Path(output), as_onnx(precision)
    content = onnx_bytes(Known.of_array(array), precision)
    with locked(path):
        refuse_taken(path, None, form)
        write_whole(path, content)
    return path


def write_model(
    localizer: Localizer,
    output: str | Path,
    *,
    exact: bool = False,
    plain: bool = False,
    keys: Keys = None,
    precision: Precision = "same",
) -> Exported:
    """Write what a model file holds. One that is private may be shared as it is; nothing more is spent.

    An exact one stays as secret as it was, and needs `exact`: it is sealed unless `plain`.
    """
    model, form, path = localizer.model, as_onnx(precision), Path(output)
    if model.private is None:
        if not exact:
            raise TytoError(
                "this model is exact, as secret as the state that it was made from: with --exact the ONNX "
                "file is sealed for your keys. To share one, export the state"
            )
        return export_exact(localizer, path, plain=plain, keys=keys, form=form)
    if exact:
        raise TytoError("this model is private, and has no exact weights: leave out --exact")
    with locked(path):
        refuse_taken(path, keys, form)
        write_whole(path, form.to_bytes(model))
        return Exported(path, model, sign_model(path, promised(model.private)))
