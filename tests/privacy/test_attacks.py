"""Attacks: every equality they claim, that they find what is there to find, and chance where nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.random_features import RandomFourier
from tytoalba.learning.sums import SCALE, quantize_labels
from tytoalba.localizer.release import release_gate
from tytoalba.privacy.attacks import (
    FRAMES,
    UNDECLARED,
    by_group,
    counts_from_weight,
    difference,
    evidence,
    in_span,
    inventory,
    invert_fourier,
    kept_rows,
    leverage,
    leverages,
    loss,
    membership,
    presence,
    presence_match,
    residual,
)
from tytoalba.signal.angles import count_directions, encode

quick = settings(max_examples=30)
few_values = st.lists(st.integers(-3, 3), min_size=1, max_size=12).map(np.array)


def frames(n: int, seed: int, D: int = 100, n_inputs: int = 20) -> tuple[Any, Any]:
    """int8 features of normal inputs, and labels that follow from them."""
    Z = np.random.default_rng(seed).standard_normal((n, n_inputs))
    azimuth = np.rad2deg(np.arctan2(Z[:, 0], Z[:, 1])) % 360
    return RandomFourier(n_inputs, D, 1.5 * n_inputs**0.5).codes(Z), quantize_labels(encode(azimuth))


def taught(*lessons: tuple[Any, Any]) -> AnalyticHead:
    head = AnalyticHead(lessons[0][0].shape[1], lessons[0][1].shape[1], 0.1, exact=True)
    for H, Y in lessons:
        head.learn(H, Y)
    return head


# ---- membership


@given(few_values, few_values)
def test_auc_counts_pairs_and_ties_half(inside: Any, outside: Any) -> None:
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert membership(inside, outside, n_bootstrap=0).auc == pytest.approx(np.mean(pairs))


@given(few_values, few_values, st.sampled_from([0.0, 0.01, 0.25, 0.5]))
def test_rates_are_the_best_of_all_thresholds(inside: Any, outside: Any, fpr: float) -> None:
    cuts = [(np.mean(inside >= t), np.mean(outside >= t)) for t in range(-4, 5)]
    found = membership(inside, outside, fpr=fpr, n_bootstrap=0)
    assert found.tpr == pytest.approx(max(i for i, o in cuts if o <= fpr + 1e-12))
    assert found.advantage == pytest.approx(max(i - o for i, o in cuts))


def test_certainty_may_be_infinite() -> None:
    assert membership([np.inf, np.inf], [0.0, 1.0]).auc == 1.0


def test_intervals_hold_the_value_and_are_wider_where_frames_are_alike() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 20)
    inside, outside = (rng.standard_normal(30)[group] + 0.1 * rng.standard_normal(600) for _ in range(2))
    frame_wise = membership(inside + 0.3, outside)
    whole = membership(inside + 0.3, outside, groups_in=group, groups_out=group)
    assert whole.auc_interval[0] < whole.auc < whole.auc_interval[1]
    assert np.ptp(whole.auc_interval) > 2 * np.ptp(frame_wise.auc_interval)
    assert whole.auc == frame_wise.auc
    assert whole.tpr_interval[0] <= whole.tpr <= whole.tpr_interval[1]


def test_a_recording_is_the_mean_of_its_frames() -> None:
    assert by_group([1.0, 5.0, 3.0], [7, 2, 7]).tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    ("wrong", "inside", "options"),
    [
        ("NaN", [np.nan], {}),
        ("at least one", [], {}),
        ("false positive rate", [1.0], {"fpr": 1.0}),
        ("as many groups", [1.0], {"groups_in": [1, 2]}),
    ],
)
def test_scores_that_cannot_be_judged(wrong: str, inside: Any, options: Any) -> None:
    with pytest.raises(TytoError, match=wrong):
        membership(inside, [1.0], **options)
    with pytest.raises(TytoError, match="as many groups"):
        by_group([1.0, 2.0], [1])


# ---- leverage and loss


@quick
@given(arrays(np.float64, (4, 3), elements=st.floats(-3, 3)), st.floats(0.1, 10))
def test_leverage_is_the_explicit_inverse(H: Any, ridge: float) -> None:
    inverse = np.linalg.inv(H.T @ H + ridge * np.eye(3))
    assert np.allclose(leverage(H.T @ H, ridge, H), np.diag(H @ inverse @ H.T))


@quick
@given(arrays(np.float64, (5, 3), elements=st.floats(-3, 3)))
def test_having_been_learned_lowers_leverage_below_one(H: Any) -> None:
    without = leverage(H[1:].T @ H[1:], 0.5, H[:1])
    with_it = leverage(H.T @ H, 0.5, H[:1])
    assert np.allclose(with_it, without / (1 + without))


def test_leverage_goes_block_after_block(monkeypatch: pytest.MonkeyPatch) -> None:
    H = np.random.default_rng(0).standard_normal((11, 4))
    whole = leverage(H.T @ H, 0.1, H)
    monkeypatch.setattr("tytoalba.privacy.attacks.BLOCK", 3)
    assert np.allclose(leverage(H.T @ H, 0.1, H), whole, rtol=1e-12)
    assert leverage(H.T @ H, 0.1, H[:0]).shape == (0,)


def test_members_show_by_leverage_and_by_loss_and_more_so_against_a_reference() -> None:
    A, other, reference = frames(500, 1), frames(500, 2), frames(500, 3)
    head = taught(A)
    G, Q, _, n = head.statistics()
    H, H_out, H_ref = (part[0] / SCALE for part in (A, other, reference))
    Y, Y_out = (part[1] / SCALE for part in (A, other))
    alone = membership(-leverage(G, 0.1, H), -leverage(G, 0.1, H_out)).auc
    against = [evidence(*leverages(G, n, H_ref.T @ H_ref, len(H_ref), part)) for part in (H, H_out)]
    assert 0.6 < alone < membership(*against).auc
    W = head.weights()
    assert np.allclose(loss(W, H, Y), residual(head.scores(A[0]), Y))
    assert membership(-loss(W, H, Y), -loss(W, H_out, Y_out)).auc > 0.6
    assert Q.shape == W.shape


def test_evidence_takes_perfect_fits() -> None:
    assert evidence([0.0, 1.0], [1.0, 1.0]).tolist() == [pytest.approx(708.4, abs=0.1), 0.0]


def test_what_was_forgotten_does_not_show() -> None:
    A, B, never = frames(500, 1, D=200), frames(1500, 2, D=200), frames(3000, 3, D=200)
    head = taught(A, B)
    H, H_never = B[0] / SCALE, never[0] / SCALE

    def auc() -> float:
        G = head.statistics().G
        return membership(-leverage(G, 0.1, H), -leverage(G, 0.1, H_never), n_bootstrap=0).auc

    assert auc() > 0.53
    head.forget(*B)
    assert auc() == pytest.approx(0.5, abs=0.03)
    expected = taught(A).memory()
    assert all(np.array_equal(array, expected[name]) for name, array in head.memory().items())


def test_sums_that_cannot_be_attacked() -> None:
    with pytest.raises(TytoError, match="raise it"):
        leverage(np.zeros((2, 2)), 0.0, np.ones((1, 2)))
    with pytest.raises(TytoError, match=r"\(D, D\)"):
        leverage(np.eye(2), 0.1, np.ones((1, 3)))
    with pytest.raises(TytoError, match="at least one frame"):
        leverages(np.eye(2), 0, np.eye(2), 1, np.ones((1, 2)))
    with pytest.raises(TytoError, match="scores and labels"):
        residual(np.ones((2, 3)), np.ones((2, 2)))


# ---- where people stood


def test_labels_can_be_undone() -> None:
    azimuth = np.repeat([20.0, 32.0, 200.0], [30, 30, 60])
    counts = count_directions(azimuth[:, None])
    y2 = np.square(encode(azimuth, 8.0)).sum(axis=0)
    blurred, sharp = presence(y2), presence(y2, 8.0 / np.sqrt(2))
    assert presence_match(counts, counts).auc == 1.0
    assert presence_match(counts, counts).correlation == pytest.approx(1.0)
    better, worse = (presence_match(profile, counts).correlation for profile in (sharp, blurred))
    assert better > 0.7 > 0.5 > worse
    assert sharp.sum() == pytest.approx(1.0)
    assert sharp[26] < 0.01 * sharp[20] < 0.01 < 100 * blurred[26]


def test_columns_of_sums_and_of_weights_tell_directions() -> None:
    azimuth = np.repeat([20.0, 200.0], 30)
    H, Y = frames(60, 1)[0], quantize_labels(encode(azimuth))
    head = taught((H, Y))
    counts = count_directions(azimuth[:, None])
    for columns in (head.statistics().Q, head.weights()):
        assert presence_match(presence(columns, 8.0), counts).auc > 0.95


def test_the_only_frame_of_a_direction_is_its_column() -> None:
    H, Y = frames(1, 1)[0], quantize_labels(encode(np.array([90.0])))
    elsewhere = frames(50, 2)[0], quantize_labels(encode(np.full(50, 270.0)))
    memory = taught(elsewhere, (H, Y)).memory()
    assert np.array_equal(memory["Q"][:, 90] / np.sqrt(memory["y2"][90]), H[0])


@quick
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_the_weight_of_the_prior_tells_every_count(seed: int, n: int) -> None:
    """As `Tyto` computes it and a model keeps it, in float32."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(360, np.int64)
    counts[rng.integers(0, 360, n)] = rng.integers(1, 300, n)
    around = np.sum([np.roll(counts, k) for k in range(-5, 6)], axis=0)
    weight = (1000.0 / (1000.0 + around)).astype(np.float32)
    assert np.array_equal(counts_from_weight(weight, 1000.0), counts)


def test_profiles_that_cannot_be() -> None:
    assert presence(np.zeros(4), 8.0).tolist() == [0.0] * 4
    with pytest.raises(TytoError, match="sigma"):
        presence(np.ones(4), 0.0)
    with pytest.raises(TytoError, match="finite"):
        presence(np.array([np.nan]))
    with pytest.raises(TytoError, match="prior_frames"):
        counts_from_weight(np.zeros(360), 1000.0)
    with pytest.raises(TytoError, match="some are not"):
        presence_match(np.ones(3), np.ones(3))


# ---- two states


@quick
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_one_frame_between_two_states_is_recovered_to_the_bit(seed: int, times: int) -> None:
    H, Y = frames(1, seed, D=30)
    head = taught(frames(20, seed + 1, D=30))
    before = head.memory()
    after = head.learn(H, Y, times).memory()
    seen = difference(before["G"], after["G"], before["Q"], after["Q"], int(after["n"] - before["n"]))
    assert seen.rank == 1
    assert seen.features is not None
    assert seen.labels is not None
    assert np.array_equal(np.rint(seen.features), H[0])
    assert np.array_equal(np.rint(seen.labels), Y[0])


@quick
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_a_few_frames_are_a_subspace_in_which_they_lie_alone(seed: int, n: int) -> None:
    H, Y = frames(n, seed, D=40)
    head = AnalyticHead(40, 360)  # in floats
    head.learn(*(part / SCALE for part in frames(50, seed + 1, D=40)))
    before = head.statistics()
    after = head.learn(H / SCALE, Y / SCALE).statistics()
    seen = difference(before.G, after.G, before.Q, after.Q, n)
    assert (seen.rank, seen.features) == (n, None)
    assert in_span(seen.basis, H).min() > 1 - 1e-6
    assert in_span(seen.basis, frames(30, seed + 2, D=40)[0]).max() < 1 - 1e-3


def test_states_that_do_not_follow_each_other() -> None:
    small, large = taught(frames(5, 1)).memory(), taught(frames(5, 1), frames(1, 2)).memory()
    with pytest.raises(TytoError, match="swap"):
        difference(large["G"], small["G"], large["Q"], small["Q"])
    assert difference(small["G"], large["G"], small["Q"], large["Q"]).rank == 1
    assert difference(small["G"], small["G"], small["Q"], small["Q"]).rank == 0
    with pytest.raises(TytoError, match="same size"):
        difference(np.eye(2), np.eye(3), np.ones((3, 1)), np.ones((3, 1)))


def test_candidates_are_found_with_the_seed_and_at_chance_without() -> None:
    Z = np.random.default_rng(0).standard_normal((100, 20))
    right, wrong = (RandomFourier(20, 200, 1.5 * 20**0.5, seed) for seed in (0, 1))
    ranks: dict[str, list[int]] = {"right": [], "wrong": []}
    for k in range(30):
        h = right.transform(Z[k : k + 1]).astype(float)
        seen = difference(np.zeros((200, 200)), h.T @ h, np.zeros((200, 1)), h.T)
        for name, expansion in (("right", right), ("wrong", wrong)):
            share = in_span(seen.basis, expansion.transform(Z))
            ranks[name].append(int((share >= share[k]).sum()))
    assert ranks["right"] == [1] * 30
    assert 30 < np.mean(ranks["wrong"]) < 70


def test_inputs_follow_from_features_and_their_seed() -> None:
    z = np.random.default_rng(0).standard_normal(20)
    right, wrong = (RandomFourier(20, 200, 1.5 * 20**0.5, seed) for seed in (0, 1))
    h = right.codes(z[None])[0] / SCALE

    def cosine(e: RandomFourier) -> float:
        found = invert_fourier(h, e.weights, e.phases, e.bandwidth)
        return float(found @ z / np.linalg.norm(found) / np.linalg.norm(z))

    assert cosine(right) > 0.999
    assert abs(cosine(wrong)) < 0.6
    with pytest.raises(TytoError, match="agree in D"):
        invert_fourier(h[1:], right.weights, right.phases, right.bandwidth)


# ---- what is kept, and the gate


def test_the_inventory_says_what_is_whose() -> None:
    memory: dict[str, Any] = {"X": np.zeros((3, 2), np.float32), "net.w": np.zeros(4), "strange": np.zeros(1)}
    items = inventory(memory, {"X": FRAMES, "net.": "weights"})
    assert [(i.name, i.shape, i.dtype, i.bytes, i.purpose, i.raw) for i in items] == [
        ("X", (3, 2), "float32", 24, FRAMES, True),
        ("net.w", (4,), "float64", 32, "weights", False),
        ("strange", (1,), "float64", 8, UNDECLARED, False),
    ]


def test_kept_rows_are_found_to_the_bit() -> None:
    X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    assert kept_rows(X[[3, 1]].copy(), X).tolist() == [False, True, False, True, False]
    assert not kept_rows(X.astype(np.float64), X).any()
    assert not kept_rows(X[:, :2], X).any()


def test_the_gate() -> None:
    counts = np.zeros(360, np.int64)
    counts[[10, 15, 200]] = 15, 10, 4
    (reason,) = release_gate(20 * 50, 50, 20, counts)
    assert "1 direction has fewer than 20 frames within 5 degrees (200)" in reason
    assert len(release_gate(999, 50, 19, counts)) == 3
    counts[200] = 20
    assert release_gate(1000, 50, 20, counts) == []
    counts = np.zeros(360, np.int64)
    counts[77] = 6000
    assert release_gate(6000, 300, 6000, counts) == []  # one recording of one person: frames are counted
    with pytest.raises(TytoError, match="counts"):
        release_gate(1000, 50, 20, [-1, 2])
    with pytest.raises(TytoError, match="negative"):
        release_gate(-1, 50, 20, counts)
