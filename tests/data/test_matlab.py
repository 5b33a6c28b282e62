"""MATLAB files before v7.3: what scipy writes is read the same, and no damage ends the process."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from tytoalba.data.matlab import matrices

VALUES: dict[str, Any] = {
    "doubles": np.arange(12.0).reshape(3, 4) / 7,
    "small": np.array([[1, 2, 3]], np.uint8),
    "one": np.array([[5]], np.int16),
    "empty": np.zeros((0, 3)),
    "deep": np.arange(24.0).reshape(2, 3, 4),
    "whole": np.array([[-(2**40), 2**40]]),
    "yes": np.array([[True, False]]),
    "words": "not a matrix",
    "odd": np.array([1, "a"], dtype=object),
    "table": {"a": 1},
    "complex": np.array([[1j]]),
}
NUMBERS = [
    name for name, value in VALUES.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
]


@pytest.mark.parametrize("packed", [False, True])
def test_what_scipy_writes(tmp_path: Path, packed: bool) -> None:
    scipy.io.savemat(tmp_path / "x.mat", VALUES, do_compression=packed)
    found = matrices(tmp_path / "x.mat")
    assert sorted(found) == sorted(NUMBERS)
    for name in NUMBERS:
        np.testing.assert_array_equal(found[name][:], VALUES[name])
        assert found[name].shape == VALUES[name].shape


def test_what_scipy_writes_in_format_4(tmp_path: Path) -> None:
    flat = {name: VALUES[name] for name in ("doubles", "small", "one", "complex")}
    scipy.io.savemat(tmp_path / "x.mat", {**flat, "words": "text"}, format="4")
    found = matrices(tmp_path / "x.mat")
    assert sorted(found) == ["doubles", "one", "small"]
    np.testing.assert_array_equal(found["doubles"][1:], VALUES["doubles"][1:])


def test_the_other_order_of_bytes(tmp_path: Path) -> None:
    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    inner = b"".join(
        [
            element(6, struct.pack(">II", 6, 0)),
            element(5, struct.pack(">ii", 1, 2)),
            element(1, b"Xtr"),
            element(9, struct.pack(">dd", 1.5, -2.0)),
        ]
    )
    (tmp_path / "x.mat").write_bytes(b"text".ljust(124) + b"\x01\x00MI" + element(14, inner))
    assert matrices(tmp_path / "x.mat")["Xtr"][:].tolist() == [[1.5, -2.0]]
    old = struct.pack(">5i", 1000, 1, 2, 0, 2) + b"X\0" + struct.pack(">dd", 1.5, -2.0)
    (tmp_path / "x.mat").write_bytes(old)
    assert matrices(tmp_path / "x.mat")["X"][:].tolist() == [[1.5, -2.0]]


@pytest.mark.parametrize("options", [{"do_compression": True}, {"do_compression": False}, {"format": "4"}])
def test_any_damage_is_an_error_and_not_the_end_of_the_process(tmp_path: Path, options: Any) -> None:
    """scipy's reader ends Python with a segmentation fault on some of these."""
    path, rng = tmp_path / "x.mat", np.random.default_rng(0)
    scipy.io.savemat(path, {name: VALUES[name] for name in ("doubles", "small", "one")}, **options)
    content, n_refused = path.read_bytes(), 0
    for _ in range(300):
        data = bytearray(content)
        for place in rng.integers(0, len(data), rng.integers(1, 5)):
            data[place] = [0, 1, 14, 127, 128, 255, int(rng.integers(256))][rng.integers(7)]
        path.write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.1 else data)
        try:
            for matrix in matrices(path).values():
                assert matrix[:].shape == matrix.shape
        except (ValueError, zlib.error):
            n_refused += 1
    assert n_refused > 30


def test_what_is_packed_is_unpacked_to_what_was_announced(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "x.mat", {"x": np.zeros((1, 4))}, do_compression=True)
    content = (tmp_path / "x.mat").read_bytes()
    bomb = zlib.compress(zlib.decompress(content[136:]) + bytes(100_000_000))
    (tmp_path / "x.mat").write_bytes(content[:132] + struct.pack("<I", len(bomb)) + bomb)
    with pytest.raises(ValueError, match="what is packed in it is damaged"):
        matrices(tmp_path / "x.mat")["x"][:]
