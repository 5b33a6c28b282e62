"""The analytic head: every equality it claims, what it refuses, and that refusing leaves it as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tytoalba.errors import HeadError
from tytoalba.learning import head as head_module
from tytoalba.learning import products, solution
from tytoalba.learning import sums as sums_module
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.products import FLOAT32, GPU, INT8, MAX_ROWS, Way, integer_products, mirrored
from tytoalba.learning.random_features import RandomFourier, quantize
from tytoalba.learning.sums import quantize_labels

torch = pytest.importorskip("torch")
quick = settings(max_examples=30, deadline=None)
DEVICES = [None, "cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@st.composite
def cut_rows(draw: st.DrawFn, exact: bool) -> tuple[Any, Any, list[NDArray[np.intp]]]:
    """Features, labels, and the row numbers shuffled and cut into batches, some of them perhaps empty."""
    n, D, C = draw(st.integers(0, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    if exact:
        H = draw(arrays(np.int8, (n, D), elements=st.integers(-127, 127)))
        Y = draw(arrays(np.int8, (n, C), elements=st.integers(0, 127)))
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        H, Y = rng.standard_normal((n, D)), rng.random((n, C))
    order = draw(st.permutations(range(n)))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return H, Y, np.split(np.array(order, dtype=np.intp), cuts)


def empty(H: Any, Y: Any, device: str | None = None, ridge: float = 0.1) -> AnalyticHead:
    return AnalyticHead(H.shape[1], Y.shape[1], ridge, exact=H.dtype == np.int8, device=device)


def rows(n: int, D: int = 5, C: int = 3, exact: bool = True, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if exact:
        return rng.integers(-127, 128, (n, D), dtype=np.int8), rng.integers(0, 128, (n, C), dtype=np.int8)
    return rng.standard_normal((n, D)), rng.random((n, C))


def host(array: Any) -> NDArray[Any]:
    return np.asarray(array.cpu() if torch.is_tensor(array) else array)


def ridge_solution(H: Any, Y: Any, ridge: float) -> NDArray[np.float64]:
    """The joint solution by another road: least squares on rows extended by sqrt(ridge) I."""
    D = H.shape[1]
    extended = np.vstack([H, np.sqrt(ridge) * np.eye(D)])
    solution: NDArray[np.float64] = np.linalg.lstsq(
        extended, np.vstack([Y, np.zeros((D, Y.shape[1]))]), rcond=None
    )[0]
    return solution


def same(a: AnalyticHead, b: AnalyticHead, tolerance: float = 0.0) -> bool:
    """Equal sums: to the bit, or to a fraction of the largest."""
    pairs = [(a.memory()[name], b.memory()[name]) for name in ("G", "Q", "y2", "n")]
    if tolerance == 0:
        return all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in pairs)
    return all(np.allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(y).max())) for x, y in pairs)


# ---- equalities


@given(cut_rows(exact=True), st.sampled_from(DEVICES))
@quick
def test_integers_do_not_depend_on_order_batch_or_place(data: Any, device: str | None) -> None:
    H, Y, batches = data
    head = empty(H, Y, device)
    for batch in batches:
        head.learn(H[batch], Y[batch])
    joint = empty(H, Y).learn(H, Y)
    assert same(head, joint)
    assert np.array_equal(joint.memory()["G"], H.T.astype(int) @ H.astype(int))
    assert np.array_equal(joint.memory()["Q"], H.T.astype(int) @ Y.astype(int))
    assert np.array_equal(joint.memory()["y2"], (Y.astype(int) ** 2).sum(axis=0))
    assert head.n == len(H)


@given(cut_rows(exact=False), st.sampled_from(DEVICES))
@quick
def test_floats_give_the_joint_solution_for_any_order_and_batch(data: Any, device: str | None) -> None:
    H, Y, batches = data
    head = empty(H, Y, device)
    for batch in batches:
        head.learn(H[batch], Y[batch])
    joint = ridge_solution(H, Y, 0.1)
    assert same(head, empty(H, Y).learn(H, Y), 1e-12)
    assert np.abs(host(head.weights()) - joint).max() <= 1e-8 * max(1.0, np.abs(joint).max())


@given(cut_rows(exact=True), st.sampled_from(DEVICES))
@quick
def test_merge_and_forget_are_exact_in_integers(data: Any, device: str | None) -> None:
    H, Y, batches = data
    a, b = batches[0], np.concatenate([*batches[1:], batches[0][:0]])
    learned_a, learned_b = empty(H, Y, device).learn(H[a], Y[a]), empty(H, Y).learn(H[b], Y[b])
    joint = empty(H, Y).learn(H, Y)
    assert same(empty(H, Y, device).merge(learned_a).merge(learned_b), joint)
    assert same(joint.forget(H[b][::-1], Y[b][::-1]), learned_a)


@given(cut_rows(exact=False))
@quick
def test_merge_and_forget_are_right_to_rounding_in_floats(data: Any) -> None:
    H, Y, batches = data
    a, b = batches[0], np.concatenate([*batches[1:], batches[0][:0]])
    learned_a, learned_b = empty(H, Y).learn(H[a], Y[a]), empty(H, Y).learn(H[b], Y[b])
    joint = empty(H, Y).learn(H, Y)
    assert same(empty(H, Y).merge(learned_a).merge(learned_b), joint, 1e-12)
    joint.forget(H[b], Y[b])
    assert same(joint, learned_a, 1e-12)
    assert joint.weights() == pytest.approx(learned_a.weights(), abs=1e-8)


@given(cut_rows(exact=True), st.sampled_from(DEVICES), st.integers(1, 6))
@quick
def test_rows_counted_several_times_are_repeated_rows_in_integers(
    data: Any, device: str | None, times: int
) -> None:
    H, Y, batches = data
    weighted, repeated = empty(H, Y, device), empty(H, Y)
    for batch in batches:
        weighted.learn(H[batch], Y[batch], times=times)
        for _ in range(times):
            repeated.learn(H[batch], Y[batch])
    assert same(weighted, repeated)
    assert weighted.n == times * len(H)
    first, others = batches[0], np.concatenate([*batches[1:], batches[0][:0]])
    only_first = empty(H, Y).learn(H[first], Y[first], np.int64(times))
    assert same(weighted.forget(H[others], Y[others], times=times), only_first)
    for left in range(times, 0, -1):  # one by one, too
        assert weighted.n == left * len(first)
        weighted.forget(H[first], Y[first])
    assert same(weighted, empty(H, Y))


@given(cut_rows(exact=False), st.sampled_from(DEVICES), st.integers(1, 6))
@quick
def test_rows_counted_several_times_are_repeated_rows_to_rounding_in_floats(
    data: Any, device: str | None, times: int
) -> None:
    H, Y, _ = data
    weighted = empty(H, Y, device).learn(H, Y, times=times)
    repeated = empty(H, Y).learn(np.tile(H, (times, 1)), np.tile(Y, (times, 1)))
    assert same(weighted, repeated, 1e-12)
    assert host(weighted.weights()) == pytest.approx(repeated.weights(), abs=1e-8)
    assert same(weighted.forget(H, Y, times=times), empty(H, Y))


@pytest.mark.parametrize("exact", [True, False])
def test_times_that_are_no_counts_are_refused(exact: bool) -> None:
    H, Y = rows(8, exact=exact)
    head = empty(H, Y).learn(H, Y, times=2)
    before = empty(H, Y).merge(head)
    wrong: list[Any] = [0, -1, 1.0, 2.5, True, "2", None]
    for update in (head.learn, head.forget):
        for times in wrong:
            with pytest.raises(HeadError, match="whole number from 1 up"):
                update(H, Y, times=times)
        for times in (head_module.MAX_TOTAL // 8 + 1, 2**64):
            with pytest.raises(HeadError, match="overflow int64"):
                update(H, Y, times=times)
    with pytest.raises(HeadError, match="not all of these rows"):
        head.forget(H, Y, times=3)
    assert same(head, before)


def test_the_most_times_that_fit_do_not_overflow() -> None:
    H, Y = np.full((1, 2), [127, -127], np.int8), np.full((1, 1), 127, np.int8)
    head = empty(H, Y).learn(H, Y, times=head_module.MAX_TOTAL)
    most = head_module.MAX_TOTAL * 127**2
    assert head.memory()["G"].tolist() == [[most, -most], [-most, most]]
    with pytest.raises(HeadError, match="overflow int64"):
        head.learn(H, Y)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_statistics_are_those_of_the_real_numbers(exact: bool, device: str | None) -> None:
    H, Y = rows(9, exact=exact)
    head = empty(H, Y, device).learn(H, Y)
    G, Q, y2, n = head.statistics()
    h, y = (H / 127, Y / 127) if exact else (H, Y)
    assert host(G) == pytest.approx(h.T @ h)
    assert host(Q) == pytest.approx(h.T @ y)
    assert host(y2) == pytest.approx((y**2).sum(axis=0))
    assert n == 9
    before = head.memory()["G"].copy()
    G[:] = 0
    assert np.array_equal(head.memory()["G"], before)


WAYS = {"int8": INT8, "float32": FLOAT32, "GPU": GPU}


@given(st.integers(0, 70), st.integers(1, 90), st.integers(1, 20), st.integers(0, 2**32))
@quick
def test_all_ways_to_integer_products_agree(n: int, D: int, C: int, seed: int) -> None:
    """The GPU's layout and its tiles too, whose kernel has a CPU form; tiles and rows cut small."""
    H, Y = rows(n, D, C, seed=seed)
    H.flags.writeable = False
    h, y = H.astype(np.int64), Y.astype(np.int64)
    expected = [h.T @ h, h.T @ y, (y * y).sum(axis=0)]
    found = [integer_products(H, Y, way._replace(tile=16, rows=24)) for way in WAYS.values()]
    found += [integer_products(H, Y, way) for way in WAYS.values()]
    found.append(integer_products(torch.tensor(H), torch.tensor(Y), GPU._replace(tile=32, width=64)))
    found.append(integer_products(H[::-1], Y[::-1].astype(np.uint8), INT8))
    columns = np.asfortranarray(H), np.asfortranarray(Y)
    found += [integer_products(*columns, way) for way in WAYS.values()]
    found.append(sums_module.float_products(H, Y))  # what a GPU does with few rows
    for G, Q, y2 in found:
        for whole, part in zip(expected, (mirrored(G), Q, y2), strict=True):
            assert np.array_equal(whole, np.asarray(part))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("n", [1, 9])
def test_strides_that_kernels_misread(way: Way, n: int) -> None:
    """`torch._int_mm` takes strides of 0, and one row that has any, and returns numbers from nowhere."""
    H, Y = rows(1, D=40, C=30)
    repeated = np.broadcast_to(H[0], (n, 40)), np.broadcast_to(Y[0], (n, 30))
    skipped = rows(n, D=80, C=60)
    for h, y in (repeated, (skipped[0][:, ::2], skipped[1][:, 1::2]), (skipped[0][:, :1], skipped[1][:, :1])):
        G, Q, _ = integer_products(h, y, way)
        assert np.array_equal(mirrored(G), h.T.astype(int) @ h.astype(int))
        assert np.array_equal(Q, h.T.astype(int) @ y.astype(int))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_products_are_added_to_a_total_in_place(way: Way) -> None:
    H, Y = rows(50, D=9)
    total = integer_products(H[:20], Y[:20], way)
    again = integer_products(H[20:], Y[20:], way, total)
    assert all(a is b for a, b in zip(total, again, strict=True))
    expected = integer_products(H, Y, FLOAT32)
    assert all(np.array_equal(a, b) for a, b in zip(total[1:], expected[1:], strict=True))
    assert np.array_equal(mirrored(total[0]), mirrored(expected[0]))
    assert total[0].dtype == np.int64


def test_layout_of_a_gpu_is_taken_as_it_is_where_it_fits() -> None:
    """Features that come as columns in one piece are not copied; all others are, with zeros at the end."""
    fits = torch.zeros((40, 16), dtype=torch.int8).T
    assert GPU.columns(fits).data_ptr() == fits.data_ptr()
    for rows_, width in ((16, 41), (15, 40), (16, 16), (1, 1)):
        columns = GPU.columns(torch.ones((rows_, width), dtype=torch.uint8))
        assert columns.is_contiguous()
        assert columns.dtype == torch.int8
        assert columns.shape[0] % 8 == columns.shape[1] % 8 == 0
        assert columns.shape[0] > 16
        assert columns.sum() == rows_ * width


def test_only_tiles_on_and_above_the_diagonal_are_computed() -> None:
    H, Y = rows(30, D=80)
    G = integer_products(H, Y, INT8._replace(tile=16))[0]
    for tile in range(16, 80, 16):
        assert not G[tile : tile + 16, :tile].any()
    assert np.array_equal(mirrored(G), mirrored(G).T)


@pytest.mark.parametrize("wrong", [lambda a, b: (a.float() @ b.float().T * 0).int(), None])
def test_int8_that_is_wrong_or_missing_is_not_used(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise RuntimeError("not implemented for this CPU")

    monkeypatch.setattr(products, "INT8", INT8._replace(product=wrong or missing))
    products._int8_pays.cache_clear()
    try:
        assert not products._int8_pays()
        assert products.fastest(np.zeros((4, 4), np.int8)) is FLOAT32
    finally:
        products._int8_pays.cache_clear()


def test_torch_is_imported_when_the_sums_of_a_process_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks of many rows, too: what counts is the work so far."""
    H, Y = rows(10, D=10)
    monkeypatch.setattr(products, "_int8_pays", lambda: True)
    monkeypatch.setattr(products, "WORTH_TORCH", 2500.0)
    monkeypatch.setattr(products._Work, "done", 0.0)
    monkeypatch.delitem(sys.modules, "torch")
    ways = []
    for _ in range(4):
        ways.append(products.fastest(H))
        integer_products(H, Y, FLOAT32)
    assert ways == [FLOAT32, FLOAT32, INT8, INT8]
    assert products.fastest(H[:1], n=100) is INT8


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_largest_block_does_not_overflow(way: Way) -> None:
    n = MAX_ROWS
    H = np.full((n, 2), [127, -127], dtype=np.int8)
    G, Q, y2 = integer_products(H, np.full((n, 1), 127, dtype=np.uint8), way)
    assert mirrored(G).tolist() == [[n * 127**2, -n * 127**2], [-n * 127**2, n * 127**2]]
    assert Q.tolist() == [[n * 127**2], [-n * 127**2]]
    assert y2.tolist() == [n * 127**2]


def test_more_rows_than_a_block() -> None:
    n = MAX_ROWS + 5
    head = AnalyticHead(1, 1, exact=True)
    head.learn(np.full((n, 1), -127, dtype=np.int8), np.full((n, 1), 127, dtype=np.int8))
    assert head.memory()["G"].item() == head.memory()["y2"].item() == n * 127**2
    assert head.memory()["Q"].item() == -n * 127**2


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_rows_in_parts_are_the_rows_at_once_and_all_or_none(exact: bool, device: str | None) -> None:
    H, Y = rows(30, exact=exact)
    head = empty(H, Y, device).learn_parts((H[k : k + 7], Y[k : k + 7]) for k in range(0, 30, 7))
    assert same(head, empty(H, Y).learn(H, Y), 0 if exact else 1e-12)
    twice = empty(H, Y, device).learn_parts([(H[:7], Y[:7]), (H[7:], Y[7:])], times=2)
    assert same(twice, empty(H, Y).learn(H, Y).learn(H, Y), 0 if exact else 1e-12)
    with pytest.raises(HeadError, match="needs its label"):
        head.learn_parts([(H, Y), (H, Y[1:])])
    assert same(head, empty(H, Y).learn(H, Y), 0 if exact else 1e-12)
    assert same(empty(H, Y, device).learn_parts([]), empty(H, Y))


@pytest.mark.parametrize("exact", [True, False])
def test_blocks_bound_memory_and_change_nothing(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    H, Y = rows(3000, exact=exact)
    whole = empty(H, Y).learn(H, Y)
    scores = whole.scores(H)
    monkeypatch.setattr(head_module, "FLOAT_BLOCK", 64)
    monkeypatch.setattr(head_module, "INT8_BLOCK", 64)
    parts = empty(H, Y).learn(H, Y)
    assert same(parts, whole, 0 if exact else 1e-12)
    assert parts.scores(H) == pytest.approx(scores, abs=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_integer_weights_are_the_ridge_solution_of_the_real_numbers(device: str | None) -> None:
    H, Y = rows(200)
    exact = empty(H, Y, device).learn(H, Y)
    expected = ridge_solution(H / 127, Y / 127, 0.1)
    assert host(exact.weights()) == pytest.approx(expected, abs=1e-10)
    assert exact.scores(H) == pytest.approx(H / 127 @ expected, abs=1e-10)


def test_forgets_exactly_from_features_computed_in_another_batch() -> None:
    """End to end: the map, the rounding and the sums."""
    fourier, rng = RandomFourier(20, 50, 4.0), np.random.default_rng(0)
    Z, Y = rng.standard_normal((60, 20)).astype(np.float32), quantize_labels(rng.random((60, 4)))
    head = AnalyticHead(50, 4, exact=True).learn(quantize(fourier.transform(Z)), Y)
    for z, y in zip(Z[10:], Y[10:], strict=True):
        head.forget(fourier.codes(z[None]), y[None])
    assert same(head, AnalyticHead(50, 4, exact=True).learn(fourier.codes(Z[:10]), Y[:10]))


@pytest.mark.parametrize("exact", [True, False])
def test_one_row_no_rows_and_everything_forgotten(exact: bool) -> None:
    H, Y = rows(1, exact=exact)
    fresh = empty(H, Y)
    assert same(empty(H, Y).learn(H[:0], Y[:0]), fresh)
    assert not host(fresh.weights()).any()
    head = fresh.learn(H, Y)
    assert head.n == 1
    assert head.weights() == pytest.approx(
        ridge_solution(H / 127, Y / 127, 0.1) if exact else ridge_solution(H, Y, 0.1), abs=1e-9
    )
    assert same(head.forget(H, Y), empty(H, Y))  # to the bit in floats too: nothing is left


def test_rearranged_outputs() -> None:
    H, Y = rows(20)
    head = empty(H, Y).learn(H, Y).rearranged([2, -1, 0])
    expected = np.stack([Y[:, 2], np.zeros(20, np.int8), Y[:, 0]], axis=1)
    assert same(head, AnalyticHead(5, 3, exact=True).learn(H, expected))
    with pytest.raises(HeadError, match="outputs to take"):
        head.rearranged([3])


# ---- state


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_shared_with_the_outside(exact: bool, device: str | None) -> None:
    H, Y = rows(9, exact=exact)
    head = empty(H, Y, device).learn(H, Y)
    before = {name: array.copy() for name, array in head.memory().items()}
    snapshot, weights = head.memory(), head.weights()
    twin = empty(H, Y, device).merge(head)
    H[:], Y[:] = 1, 1
    weights[:] = 0
    twin.learn(H, Y)
    for name, array in head.memory().items():
        assert np.array_equal(array, before[name])
        assert not array.flags.writeable
    head.learn(H, Y)
    assert np.array_equal(snapshot["G"], before["G"])
    assert np.abs(host(head.weights())).max() > 0


def test_weights_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    H, Y = rows(30, exact=False)
    head, solve = empty(H, Y).learn(H, Y), solution.solve
    solved: list[float] = []

    def counted(A: Any, B: Any) -> Any:
        solved.append(A[0, 0])
        return solve(A, B)

    monkeypatch.setattr(head_module, "solve", counted)
    head.weights()
    head.scores(H)
    assert len(solved) == 1
    assert head.weights(ridge=5.0) == pytest.approx(ridge_solution(H, Y, 5.0), abs=1e-9)
    head.forget(H[:1], Y[:1])
    head.weights()
    assert len(solved) == 3


def test_scores_come_as_the_features_came() -> None:
    H, Y = rows(6, exact=False)
    for device in DEVICES:
        head = empty(H, Y, device).learn(torch.from_numpy(H), torch.from_numpy(Y))
        assert isinstance(head.scores(H.astype(np.float32)), np.ndarray)
        assert torch.is_tensor(head.scores(torch.from_numpy(H)))
        assert np.asarray(head.scores(H[:0])).shape == (0, 3)


def changed(array: Any, value: float) -> Any:
    array = array.copy()
    array[-1, -1] = value
    return array


REFUSED: dict[str, tuple[bool, Callable[[Any, Any], tuple[Any, Any]], str]] = {
    "NaN features": (False, lambda H, Y: (changed(H, np.nan), Y), "NaN"),
    "infinite labels": (False, lambda H, Y: (H, changed(Y, np.inf)), "NaN or infinity"),
    "NaN in a tensor": (False, lambda H, Y: (torch.from_numpy(changed(H, np.nan)), Y), "NaN"),
    "overflow": (False, lambda H, Y: (H * 1e200, Y), "overflow"),
    "integers for floats": (False, lambda H, Y: (H.astype(np.int8), Y), "float32 or float64"),
    "labels missing": (False, lambda H, Y: (H, Y[:-1]), "needs its label"),
    "too few columns": (False, lambda H, Y: (H[:, 1:], Y), r"\(n_frames, 5\)"),
    "one row as a vector": (False, lambda H, Y: (H[0], Y[:1]), "shape"),
    "floats for integers": (True, lambda H, Y: (H / 127, Y), "quantise"),
    "wide integers": (True, lambda H, Y: (H.astype(np.int64), Y), "int8"),
    "-128": (True, lambda H, Y: (changed(H, -128), Y), "-128"),
    "negative label": (True, lambda H, Y: (H, changed(Y, -1)), r"-1\.\."),
    "label over 127": (True, lambda H, Y: (H, changed(Y.astype(np.uint8), 200)), "200"),
    "float labels": (True, lambda H, Y: (H, Y / 127), "quantise"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("device", [None, "cpu"])
def test_refused_rows_leave_the_head_as_it_was(case: str, device: str | None) -> None:
    exact, spoil, reason = REFUSED[case]
    H, Y = rows(8, exact=exact)
    head = empty(H, Y, device).learn(H, Y)
    before = empty(H, Y).merge(head)
    for update in (head.learn, head.forget):
        with pytest.raises(HeadError, match=reason):
            update(*spoil(H, Y))
    assert same(head, before)


@pytest.mark.parametrize("exact", [True, False])
def test_cannot_forget_what_was_never_learned(exact: bool) -> None:
    H, Y = rows(8, exact=exact)
    Y[:, 0] = 0  # nothing of the first output was learned
    head = empty(H, Y).learn(H, Y)
    before = empty(H, Y).merge(head)
    strangers, labels = rows(8, exact=exact, seed=1)
    signs = np.where(np.arange(5) % 2, 1, -1).astype(H.dtype)
    never = {
        "more rows than there are": (np.vstack([H, H[:1]]), np.vstack([Y, Y[:1]])),
        "as many others": (strangers, labels),
        "too large": (np.full_like(H[:6], H.max()), Y[:6]),
        "a label of another output": (H[:1], np.eye(3, dtype=Y.dtype)[:1]),
        "the same squares, other signs": (H * signs, Y),
    }
    for h, y in never.values():
        with pytest.raises(HeadError, match="not all of these rows were learned"):
            head.forget(h, y)
    assert same(head, before)


def test_trouble_in_solving_leaves_the_head_as_it_was() -> None:
    for device in DEVICES:
        H, Y = rows(2, exact=True)  # 2 rows, 5 features: G is singular
        head = empty(H, Y, device, ridge=0.0).learn(H * 0, Y)
        before = empty(H, Y).merge(head)
        with pytest.raises(HeadError, match="not positive definite"):
            head.weights()
        with pytest.raises(HeadError, match="not positive definite"):
            head.scores(H)
        assert same(head, before)
        assert np.isfinite(host(head.weights(ridge=1.0))).all()


def test_interruption_leaves_the_head_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    H, Y = rows(20)
    head = empty(H, Y).learn(H, Y)
    before, calls = empty(H, Y).merge(head), []

    def interrupted(h: Any, y: Any, total: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return integer_products(h, y, total=total)

    monkeypatch.setattr(head_module, "INT8_BLOCK", 50)
    monkeypatch.setattr(head_module, "integer_products", interrupted)
    with pytest.raises(KeyboardInterrupt):
        head.learn(H, Y)
    assert same(head, before)


def test_int64_cannot_overflow() -> None:
    H, Y = rows(1)
    head = empty(H, Y).learn(H, Y)
    head._sums = head._sums._replace(n=head_module.MAX_TOTAL)
    with pytest.raises(HeadError, match="overflow int64"):
        head.learn(H, Y)
    with pytest.raises(HeadError, match="overflow int64"):
        head.merge(head)
    assert head.n == head_module.MAX_TOTAL
    assert head.n * 127**2 < 2**63 <= (head.n + 1) * 127**2


def test_refuses_settings_and_strangers() -> None:
    for sizes in ((0, 3), (3, 0)):
        with pytest.raises(HeadError, match="at least 1"):
            AnalyticHead(*sizes)
    for ridge in (-1.0, float("nan"), float("inf")):
        with pytest.raises(HeadError, match="ridge"):
            AnalyticHead(3, ridge=ridge)
        with pytest.raises(HeadError, match="ridge"):
            AnalyticHead(3).weights(ridge)
    for other in (AnalyticHead(3, 2), AnalyticHead(2, 3), AnalyticHead(3, 3, exact=True)):
        with pytest.raises(HeadError, match="differ"):
            AnalyticHead(3, 3).merge(other)
    for labels in (np.array([1.5]), np.array([np.nan]), torch.tensor([-0.1])):
        with pytest.raises(HeadError, match=r"\[0, 1\]"):
            quantize_labels(labels)
    assert quantize_labels(torch.tensor([0.0, 0.5, 1.0])).tolist() == [0, 64, 127]


def test_works_without_torch() -> None:
    """And importing it never imports torch, nor does a small exact head."""
    program = """
import sys
import numpy as np
import tytoalba.learning.random_features, tytoalba.learning.recursive
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.products import integer_products
H, Y = np.full((40, 9), 127, np.int8), np.full((40, 2), 127, np.int8)
AnalyticHead(9, 2, exact=True).learn(H, Y).weights()
assert "torch" not in sys.modules and "sklearn" not in sys.modules
sys.modules["torch"] = None
assert integer_products(H, Y)[0].min() == 40 * 127**2
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# ---- heads taken out of heads, and sums that were altered


@given(cut_rows(exact=True), st.sampled_from(DEVICES))
@quick
def test_what_was_merged_separates_exactly(data: Any, device: str | None) -> None:
    H, Y, batches = data
    a, b = batches[0], np.concatenate([*batches[1:], batches[0][:0]])
    learned_a, learned_b = empty(H, Y, device).learn(H[a], Y[a]), empty(H, Y).learn(H[b], Y[b])
    before = learned_b.memory()["G"].copy()
    assert same(empty(H, Y, device).learn(H, Y).separate(learned_b), learned_a)
    assert same(empty(H, Y).learn(H, Y).separate(learned_a).separate(learned_b), empty(H, Y))
    assert np.array_equal(learned_b.memory()["G"], before)
    for head in (learned_a, learned_b):
        assert head.check() is head


def test_what_was_never_merged_does_not_separate() -> None:
    H, Y = rows(20)
    head, other = empty(H, Y).learn(H, Y), empty(H, Y).learn(*rows(20, seed=1))
    before = empty(H, Y).merge(head)
    with pytest.raises(HeadError, match="not all of that was learned here"):
        head.separate(other)
    with pytest.raises(HeadError, match="not all of that"):
        head.separate(empty(H, Y).learn(H, Y, times=2))
    with pytest.raises(HeadError, match="differ in"):
        head.separate(AnalyticHead(4, 3, exact=True))
    assert same(head, before)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("G", (0, 0), -1),
        ("G", (0, 0), 127**2 * 20 + 1),
        ("G", (0, 1), 2**60),
        ("G", (3, 1), -(2**63)),
        ("Q", (2, 1), 2**60),
        ("Q", (2, 1), -(2**63)),
        ("y2", (1,), -1),
        ("y2", (1,), 2**62),
        ("n", (), -1),
        ("n", (), 0),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_sums_that_no_rows_have_do_not_pass(
    name: str, place: tuple[int, ...], value: int, device: str | None
) -> None:
    H, Y = rows(20)
    memory = {k: np.array(v) for k, v in empty(H, Y).learn(H, Y).memory().items()}
    assert empty(H, Y, device).restore(memory).check().n == 20
    memory[name][place] = value
    with pytest.raises(HeadError, match="belong to no data; they were altered"):
        empty(H, Y, device).restore(memory).check()


def test_sums_of_equal_columns_pass() -> None:
    """|G_ij| = |h_i| |h_j| where columns are alike: on the edge, and possible."""
    H = np.repeat(rows(30, D=1)[0], 4, axis=1)
    Y = np.abs(H[:, :2])
    assert empty(H, Y).learn(H, Y).check().n == 30
    floats = AnalyticHead(4, 2).learn(H / 127, Y / 127)
    assert floats.check() is floats
