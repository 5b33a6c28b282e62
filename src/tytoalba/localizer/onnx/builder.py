"""A little language for ONNX graphs: each call adds a node and gives the name of what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import MissingExtraError, TytoError

Precision = Literal["same", "fast"]
PRECISIONS: dict[Precision, str] = {
    "same": "float64 and whole numbers: the scores of tytoalba",
    "fast": "float32, nothing is rounded to a grid: nearly the scores of tytoalba",
}
OPSET, IR_VERSION = 17, 8
"""Old enough for runtimes of 2022."""
Name = str
"""Of a value in the graph."""


def import_onnx() -> ModuleType:
    """The package `onnx`, or the error that says how to get it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("ONNX files", "export") from None
    return onnx


def check_precision(precision: str) -> None:
    """Refuse what is none."""
    if precision not in PRECISIONS:
        raise TytoError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")


class Builder:
    """Nodes and constants of a graph. precision: in what it computes."""

    def __init__(self, precision: Precision) -> None:
        self.onnx = import_onnx()
        self.precision = precision
        self.nodes: list[Any] = []
        self.constants: dict[Name, NDArray[Any]] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], Name] = {}
        self._count = 0

    @property
    def is_same(self) -> bool:
        """Whether all is rounded as tytoalba rounds it."""
        return self.precision == "same"

    @property
    def real(self) -> type[np.floating[Any]]:
        """The type of real numbers on the way."""
        return np.float64 if self.is_same else np.float32

    def op(self, kind: str, *inputs: Name, **attributes: Any) -> Name:
        """The output of a new node."""
        self._count += 1
        name = f"{kind.lower()}{self._count}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: Any, dtype: Any = None) -> Name:
        """A constant as it is stored; equal ones are stored once. dtype: by default the real type."""
        array = np.asarray(values, dtype or self.real, order="C")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"c{len(self._known)}"
            self.constants[self._known[key]] = array
        return self._known[key]

    def whole(self, values: NDArray[Any], step: float = 1.0) -> Name:
        """A constant in whole multiples of a power of two, stored in as few bits as they need."""
        steps = np.asarray(values, np.float64) / step
        if not np.array_equal(steps, np.rint(steps)):
            raise ValueError(f"the values are no whole multiples of {step}")
        largest = np.abs(steps).max(initial=0.0)
        kind = next(k for k in (np.int8, np.int16, np.int32, np.int64) if largest <= np.iinfo(k).max)
        stored = self.cast(self.constant(steps, kind), self.real)
        return stored if step == 1.0 else self.op("Mul", stored, self.constant(step))

    def cast(self, x: Name, dtype: type[Any]) -> Name:
        """As another type."""
        return self.op("Cast", x, to=self._kind(dtype))

    def _kind(self, dtype: type[Any]) -> int:
        """ONNX's number of a type."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def rounded(self, x: Name) -> Name:
        """To the nearest whole number, halves to the even one; as it is where nothing is rounded."""
        return self.op("Round", x) if self.is_same else x

    def on_grid(self, x: Name, grid: float) -> Name:
        """To the nearest multiple of 1/grid."""
        if not self.is_same:
            return x
        return self.op("Div", self.op("Round", self.op("Mul", x, self.constant(grid))), self.constant(grid))

    def single(self, x: Name) -> Name:
        """As float32."""
        return self.cast(x, np.float32) if self.is_same else x

    def sum_of(self, *terms: Name) -> Name:
        """The sum, added from left to right."""
        total = terms[0]
        for term in terms[1:]:
            total = self.op("Add", total, term)
        return total

    def reshape(self, x: Name, *shape: int) -> Name:
        """In another shape; -1 once for what is left."""
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def transpose(self, x: Name, *order: int) -> Name:
        """With axes in another order."""
        return self.op("Transpose", x, perm=list(order))

    def cut(self, x: Name, axis: int, start: int, stop: int, step: int = 1) -> Name:
        """Part of an axis. Negative numbers count from the end, as in Python."""
        limits = [self.constant([value], np.int64) for value in (start, stop, axis, step)]
        return self.op("Slice", x, *limits)

    def take(self, x: Name, index: int | Sequence[int] | NDArray[Any], axis: int) -> Name:
        """Elements of an axis; a single number takes the axis away."""
        return self.op("Gather", x, self.constant(index, np.int64), axis=axis)

    def join(self, parts: Sequence[Name], axis: int) -> Name:
        """Side by side."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def to_bytes(
        self,
        inputs: Mapping[Name, Sequence[int | str]],
        outputs: Mapping[Name, tuple[Name, type[Any], Sequence[int | str]]],
        about: Mapping[str, str],
    ) -> bytes:
        """The file. inputs: shapes of float32; outputs: what each is called inside, its type and its shape.

        A name in place of a number is any size. about: metadata.
        """
        import tytoalba

        helper = self.onnx.helper
        called = [helper.make_node("Identity", [inside], [name]) for name, (inside, *_) in outputs.items()]
        float32 = self.onnx.TensorProto.FLOAT
        kinds = {name: self._kind(kind) for name, (_, kind, _) in outputs.items()}
        graph = helper.make_graph(
            [*self.nodes, *called],
            "tytoalba",
            [helper.make_tensor_value_info(name, float32, shape) for name, shape in inputs.items()],
            [
                helper.make_tensor_value_info(name, kinds[name], shape)
                for name, (_, _, shape) in outputs.items()
            ],
            [self.onnx.numpy_helper.from_array(values, name) for name, values in self.constants.items()],
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tytoalba",
            producer_version=tytoalba.__version__,
        )
        helper.set_model_props(made, dict(about))
        self.onnx.checker.check_model(made)
        return bytes(made.SerializeToString(deterministic=True))
