"""The language of graphs: constants come back as they were, and are stored once and small."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.helpers.onnx_graphs import ran
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.localizer.onnx.builder import Builder, check_precision

pytest.importorskip("onnx")


@pytest.mark.parametrize(
    ("largest", "kind"), [(100, np.int8), (30_000, np.int16), (2**30, np.int32), (2**50, np.int64)]
)
def test_whole_constants_are_stored_in_few_bits_and_come_back(largest: int, kind: type) -> None:
    values = np.array([-largest, 0.0, 3.0, largest]) * 2.0**-12
    g = Builder("same")
    g.whole(values, 2.0**-12)
    assert g.constants["c0"].dtype == kind
    found = ran(lambda g, x: g.op("Add", g.cast(x, g.real), g.whole(values, 2.0**-12)), np.zeros((1, 4)))
    assert np.array_equal(found[0], values)


def test_what_is_no_multiple_of_the_step_is_refused() -> None:
    with pytest.raises(ValueError, match="no whole multiples"):
        Builder("same").whole(np.array([0.3]), 0.25)


def test_equal_constants_are_stored_once() -> None:
    g = Builder("same")
    assert g.constant([1, 2]) == g.constant(np.array([1.0, 2.0])) != g.constant([[1, 2]])
    assert len(g.constants) == 2


@pytest.mark.parametrize("precision", ["same", "fast"])
def test_only_same_rounds(precision: str) -> None:
    x = np.array([[0.5, 1.5, -0.5, 0.3]])
    found = ran(lambda g, x: g.on_grid(g.cast(x, g.real), 1.0), x, precision)  # type: ignore[arg-type]
    expected = [[0.0, 2.0, 0.0, 0.0]] if precision == "same" else x
    assert np.array_equal(found, np.asarray(expected, found.dtype))


def test_parts_of_arrays_are_those_of_numpy() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(ran(lambda g, x: g.cast(g.cut(x, 2, -2, 4), g.real), x), x[:, :, -2:4])
    assert np.array_equal(ran(lambda g, x: g.cast(g.take(x, [2, 0], 1), g.real), x), x[:, [2, 0]])
    assert np.array_equal(ran(lambda g, x: g.cast(g.take(x, 1, 1), g.real), x), x[:, 1])
    assert np.array_equal(ran(lambda g, x: g.cast(g.transpose(x, 2, 0, 1), g.real), x), x.transpose(2, 0, 1))


def test_without_the_extra_and_with_another_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TytoError, match="precision must be one of same, fast, got 'half'"):
        check_precision("half")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tytoalba\[export\]'"):
        Builder("same")
