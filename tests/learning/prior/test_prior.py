"""Priors: the same bits everywhere, the network that they were made of, and other microphones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.networks import MINE, heard_all_around, prior_of_mine, trained_like
from tests.helpers.waves import delayed, plane_waves
from tytoalba.data.simulation.voice import SPEECH_RATE, SyntheticVoices, at_rate
from tytoalba.errors import PriorError
from tytoalba.learning.prior.confidence import usual_confidence
from tytoalba.learning.prior.exact import GRID
from tytoalba.learning.prior.features import TOP, full_band, prior_gcc, scores, steering_matrices
from tytoalba.learning.prior.prior import FRAME_GRID, Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import SrpPhat
from tytoalba.signal.symmetry import symmetries

torch = pytest.importorskip("torch")
from tytoalba.learning.prior.network import PriorNetwork  # noqa: E402 - needs torch
from tytoalba.learning.training import squared_loss  # noqa: E402 - needs torch

GCC = prior_gcc(MINE)
quick = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module", name="X")
def heard() -> NDArray[np.float32]:
    return heard_all_around()


@pytest.fixture(scope="module")
def prior() -> Prior:
    return prior_of_mine()


# ---- the network and its rounded weights


@pytest.mark.parametrize(("width", "seed"), [(3, 0), (8, 1)])
def test_the_prior_says_what_its_network_says(width: int, seed: int, X: NDArray[np.float32]) -> None:
    network = trained_like(MINE, GCC, width, seed)
    made = Prior.quantised(MINE, GCC, network.folded())
    expected = network.predict(torch.tensor(X), "logits").numpy()
    assert expected.std() > 0.1
    assert np.abs(made.logits(X) - expected).max() < 0.005  # some steps of 1/1024
    assert made.width == width
    assert made.n_weights == sum(value.size for value in network.folded().values())


@pytest.mark.parametrize(("array", "parts"), [(MINE, 4), (MINE, 1), (load_array("pepper"), 4)])
def test_a_prior_can_be_trained_further(array: MicArray, parts: int) -> None:
    gcc = replace(prior_gcc(array), parts=parts)
    frames = plane_waves(array, np.arange(0, 360, 9.0), noise=0.5)
    X = torch.tensor(np.asarray(gcc(frames), np.float32).reshape(len(frames), -1))
    before = trained_like(array, gcc, 6)
    network = PriorNetwork(steering_matrices(array, gcc), width=6, seed=9)
    network.take_over(Prior.quantised(array, gcc, before.folded()).real_weights(), X)
    expected = before.predict(X, "logits")
    assert float((network.predict(X, "logits") - expected).abs().max()) < 0.005
    assert float((network.train()(X).detach() - expected).abs().max()) < 0.005  # by statistics of the batch
    for name, values in network.folded().items():
        np.testing.assert_allclose(values, before.folded()[name], atol=0.002, err_msg=name)
    deeper = PriorNetwork(steering_matrices(array, gcc), width=6, n_blocks=6, seed=9)
    deeper.take_over(before.folded(), X)
    assert float((deeper.predict(X, "logits") - expected).abs().max()) < 1e-3
    grown = Prior.quantised(array, gcc, deeper.folded())
    assert (grown.n_blocks, grown.width) == (6, 6)
    loss: Any = squared_loss(X, torch.zeros(len(X), 360))(deeper.train(), torch.arange(len(X)))
    loss.backward()
    assert float(deeper.mix[5].grad.abs().max()) > 0  # it can learn


def test_weights_are_as_fine_as_16_bits_allow() -> None:
    weights = trained_like(MINE, GCC).folded()
    made = Prior.quantised(MINE, GCC, weights)
    for name, real in weights.items():
        step = made.steps[name]
        assert np.log2(step) == round(np.log2(step))
        assert np.abs(made.weights[name] * step - real).max() <= step / 2
        assert np.abs(real).max() / (step / 2) > 2**15 - 1  # half the step would not reach


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.0**10])
def test_weights_that_training_ruined_are_refused(wrong: float) -> None:
    weights = trained_like(MINE, GCC).folded()
    weights["mix2"][0, 0] = wrong
    with pytest.raises(PriorError, match="training went wrong"):
        Prior.quantised(MINE, GCC, weights)


def test_a_prior_of_another_array_has_other_weights() -> None:
    pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), sample_rate=16000)
    with pytest.raises(PriorError, match="do not fit each other"):
        Prior.quantised(pair, prior_gcc(pair), trained_like(MINE, GCC).folded())


# ---- the same bits everywhere


@given(st.lists(st.integers(0, 81), max_size=4), st.permutations(range(81)))
@settings(max_examples=8, deadline=None)
def test_logits_and_sound_do_not_depend_on_the_batch_or_the_place(
    prior: Prior, X: NDArray[np.float32], cuts: list[int], order: list[int]
) -> None:
    logits, sound = prior.logits(X), prior.sound(X)
    for rows in np.split(np.array(order), sorted(cuts)):
        if not len(rows):
            continue
        for there in (X[rows], np.asfortranarray(X[rows]), X[rows].astype(np.float64), torch.tensor(X[rows])):
            assert np.array_equal(np.asarray(prior.logits(there)), logits[rows])
            assert np.array_equal(np.asarray(prior.sound(there)), sound[rows])


def test_logits_of_several_blocks_are_those_of_each_frame(
    prior: Prior, X: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = np.concatenate([prior.logits(X[k : k + 1]) for k in range(len(X))])
    assert np.array_equal(prior.logits(X), expected)
    looks = X.reshape(len(X), GCC.n_looks, len(GCC.pairs), GCC.n_lags)
    assert np.array_equal(prior.logits(looks), expected)
    monkeypatch.setattr("tytoalba.learning.prior.prior.BLOCK", 2)
    assert np.array_equal(prior.logits(X), expected)
    assert np.array_equal(prior.logits(torch.tensor(X)).numpy(), expected)


def test_logits_lie_on_their_grid(prior: Prior, X: NDArray[np.float32]) -> None:
    logits = prior.logits(X)
    assert logits.dtype == np.float32
    assert logits.shape == (len(X), prior.n_directions)
    assert np.array_equal(logits * GRID, np.rint(logits * GRID))


def test_a_saved_prior_is_the_same(prior: Prior, X: NDArray[np.float32], tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    prior.save(path)
    again = Prior.load(path)
    assert np.array_equal(again.logits(X), prior.logits(X))
    assert np.array_equal(again.sound(X), prior.sound(X))
    assert np.array_equal(again.standardised(again.logits(X)), prior.standardised(prior.logits(X)))
    assert (again.array, again.gcc) == (prior.array, prior.gcc)
    assert (again.about, again.constants, again.steps) == (prior.about, prior.constants, prior.steps)
    for name, values in prior.frames.items():
        assert np.array_equal(values, again.frames[name])
    assert [file.name for file in tmp_path.iterdir()] == ["mine.safetensors"]


def test_frames_that_are_kept_are_rounded_only(prior: Prior, X: NDArray[np.float32]) -> None:
    logits, sound = prior.simulated_frames()
    assert (str(logits.dtype), str(sound.dtype)) == ("float32", "float64")
    for kept, real, step in (
        (logits, prior.logits(X[:20]), FRAME_GRID["logits"]),
        (sound, prior.sound(X[:20]), FRAME_GRID["sound"]),
    ):
        assert np.abs(kept - real.clip(-127 / step, 127 / step)).max() <= 0.5 / step


@pytest.mark.parametrize("name", ["logits", "sound", "srp_maps"])
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_no_frames_give_nothing(
    prior: Prior, X: NDArray[np.float32], name: str, kind: Callable[[Any], Any]
) -> None:
    width = 360 if name != "sound" else len(GCC.pairs) * GCC.n_lags
    assert tuple(getattr(prior, name)(kind(X[:0])).shape) == (0, width)


def test_features_of_another_size_are_refused(prior: Prior, X: NDArray[np.float32]) -> None:
    for wrong in (X[:, 1:], torch.tensor(X[:, :-2])):
        with pytest.raises(
            PriorError, match=rf"mine takes {GCC.n_features} values a frame, got {wrong.shape[1]}.*prior_gcc"
        ):
            prior.logits(wrong)


# ---- scores, sound and maps


@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=40))
@quick
def test_scores_rise_from_0_to_1_and_are_the_same_everywhere(values: list[float]) -> None:
    logits = np.rint(np.sort(np.array(values, np.float32)) * GRID) / np.float32(GRID)
    found = scores(logits)
    assert found.dtype == np.float32
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.abs(found - 1 / (1 + np.exp(-logits.clip(-TOP, TOP).astype(float)))).max() <= 2.0**-17 + 1e-9
    assert np.array_equal(scores(torch.tensor(logits)).numpy(), found)


def test_the_score_of_every_step_is_at_least_that_of_the_one_below() -> None:
    everything = scores((np.arange(-13 * GRID, 13 * GRID) / GRID).astype(np.float32))
    assert (np.diff(everything) >= 0).all()
    assert everything[0] < 1e-4
    assert everything[-1] > 1 - 1e-4
    assert scores(np.zeros(1, np.float32)).tolist() == [0.5]


def test_sound_is_scaled_frame_by_frame(prior: Prior, X: NDArray[np.float32]) -> None:
    sound = prior.sound(X)
    assert sound.shape == (len(X), len(GCC.pairs) * GCC.n_lags)
    assert np.abs(sound.mean(axis=1)).max() < 1e-12
    assert np.abs(sound[:-1].var(axis=1) - 1).max() < 1e-3
    assert not sound[-1].any()  # silence
    assert np.abs(prior.sound(X / 2)[:-1] - sound[:-1]).max() < 0.05  # whatever the scale, but for the grid


def test_the_full_band_is_that_of_all_bands_together() -> None:
    frames = plane_waves(MINE, np.arange(0, 360, 40.0), noise=0.7)
    union = GccPhat.for_array(MINE, MINE.frame_length, (GCC.band_list[0][0], GCC.band_list[-1][1]))
    bins = [stop - start for start, stop in GCC.bins]
    times = sum(round(n / min(bins)) for n in bins)
    found = full_band(GCC, GCC(frames).reshape(len(frames), -1)) / times
    expected = union(frames).reshape(len(frames), -1)
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    whole = np.random.default_rng(0).integers(-9, 9, (3, GCC.n_features)).astype(float)
    assert np.array_equal(full_band(GCC, whole), np.rint(full_band(GCC, whole)))
    assert np.array_equal(full_band(GCC, torch.tensor(whole)).numpy(), full_band(GCC, whole))


def test_standardised_logits_have_mean_0_and_the_spread_that_was_told(
    prior: Prior, X: NDArray[np.float32]
) -> None:
    logits = prior.logits(X)
    Z = prior.standardised(logits)
    assert np.abs(Z.mean(axis=0)).max() < 1e-5
    assert Z.std(axis=0) == pytest.approx(logits.std(axis=0) / (1 + logits.std(axis=0)), abs=1e-5)
    assert np.array_equal(np.asarray(prior.standardised(torch.tensor(logits))), Z)
    bare = replace(prior, constants={})
    assert np.array_equal(bare.standardised(logits), logits)  # nothing known: as they are


@pytest.mark.parametrize("name", ["respeaker-usb-4", "pepper"])
def test_maps_are_those_of_srp_phat_and_peak_where_a_wave_comes_from(name: str) -> None:
    array = load_array(name) if name == "pepper" else MINE
    gcc = prior_gcc(array)
    azimuth = np.arange(0, 360, 360 if name == "pepper" else 5.0)
    frames = plane_waves(array, azimuth)
    made = Prior.quantised(array, gcc, trained_like_of(array))
    maps = made.srp_maps(gcc(frames).reshape(len(frames), -1))
    assert maps.dtype == np.float32
    assert distance(decode(maps), azimuth).max() <= 1.0
    exact = SrpPhat(array, array.frame_length, (100.0, 8000.0), "exact")(frames)
    assert np.abs(maps - exact).max() < 0.06


def trained_like_of(array: MicArray) -> Any:
    return PriorNetwork(steering_matrices(array, prior_gcc(array)), width=1).folded()


@pytest.mark.parametrize(
    ("name", "off", "agreed"), [("matrix", 2.0, 0.85), ("window_matrix", 3.0, 0.5)], ids=["whole", "windows"]
)
def test_every_band_of_every_look_steers_to_where_a_wave_comes_from(
    name: str, off: float, agreed: float
) -> None:
    azimuth = np.arange(0, 360, 15.0)
    shape = len(GCC.band_list), len(GCC.pairs), GCC.n_lags
    matrix = steering_matrices(MINE, GCC)[name].reshape(*shape, 360)
    assert np.array_equal(matrix * 4096, np.rint(matrix * 4096))
    values = GCC(plane_waves(MINE, azimuth)).reshape(len(azimuth), 1 + GCC.n_windows, *shape)
    looks = values[:, :1] if name == "matrix" else values[:, 1:]
    for look in looks.swapaxes(0, 1):
        for b in range(len(GCC.band_list)):
            each = np.einsum("fpl,pla->fpa", look[:, b], matrix[b])
            assert distance(decode(each.sum(axis=1)), azimuth).max() <= off
            there = each[np.arange(len(azimuth)), :, azimuth.astype(int)]
            assert there.min() > agreed  # each pair agrees: 1 for a pure wave


def test_priors_look_at_whole_frames_and_seven_windows() -> None:
    assert (GCC.parts, GCC.n_windows, GCC.n_looks) == (4, 7, 8 * len(GCC.band_list))
    assert GCC.n_features == 8 * GCC.whole.n_features
    assert list(steering_matrices(MINE, GCC)) == ["matrix", "window_matrix"]
    assert list(steering_matrices(MINE, GCC.whole)) == ["matrix"]


def test_sound_and_maps_are_of_the_whole_frame_and_logits_of_windows_too(
    prior: Prior, X: NDArray[np.float32]
) -> None:
    other = X.copy()
    other[:, GCC.whole.n_features :] = np.random.default_rng(5).uniform(-1, 1, (len(X), 1)).astype(np.float32)
    assert np.array_equal(prior.sound(other), prior.sound(X))
    assert np.array_equal(prior.srp_maps(other), prior.srp_maps(X))
    assert not np.array_equal(prior.logits(other), prior.logits(X))


def test_bands_end_where_the_sample_rate_does() -> None:
    slow = replace(MINE, sample_rate=8000)
    assert [high for _, high in prior_gcc(slow).band_list] == [1000.0, 2000.0, 4000.0]


def test_a_prior_that_was_not_calibrated_has_the_usual_confidence(prior: Prior) -> None:
    with pytest.raises(PriorError, match="prior of mine was not calibrated"):
        prior.counting()
    assert prior.confidence == usual_confidence()
    other = replace(usual_confidence(), least=(0.1, 0.9, 0.9))
    assert replace(prior, constants={"confidence": other.to_dict()}).confidence == other


# ---- other arrays


def voices_around(array: MicArray, azimuth: NDArray[np.float64]) -> NDArray[np.float32]:
    """Features of plane waves of somebody's loudest words, and a little noise."""
    rng, n = np.random.default_rng(5), array.frame_length
    spoken = at_rate(SyntheticVoices().speak(1, 3 * SPEECH_RATE, rng), array.sample_rate)
    loudest = int(np.argmax(np.convolve(spoken**2, np.ones(n), "valid")))
    heard = delayed(array, spoken[loudest : loudest + n], azimuth)
    heard += 0.003 * np.abs(heard).max() * rng.standard_normal(heard.shape)
    return np.asarray(prior_gcc(array)(heard), np.float32).reshape(len(azimuth), -1)


def polygon(n_mics: int, radius: float, rate: int) -> MicArray:
    angles = np.arange(n_mics) * 2 * np.pi / n_mics
    places = [(radius * float(np.cos(a)), radius * float(np.sin(a)), 0.0) for a in angles]
    return MicArray("polygon", tuple(places), rate)


@pytest.mark.parametrize(
    "array",
    [
        polygon(2, 0.05, 16000),
        polygon(3, 0.05, 16000),
        polygon(4, 0.08, 8000),
        polygon(5, 0.04, 22050),
        polygon(6, 0.06, 44100),
        polygon(8, 0.1, 16000),
    ],
    ids=lambda array: f"{array.n_mics} at {array.sample_rate}",
)
def test_a_network_moved_to_another_array_hears_from_all_around(array: MicArray) -> None:
    """Without having learned anything there: what pairs say of an azimuth means the same in all arrays."""
    moved = Prior.load(shipped_priors()["respeaker-usb-4"]).moved(array)
    assert (moved.array, moved.about["array"]) == (array, "respeaker-usb-4")
    assert not moved.frames
    assert not moved.constants
    azimuth = np.arange(0.0, 360.0, 10.0)
    maps = array.without_images(scores(moved.logits(voices_around(array, azimuth))))
    off = distance(decode(maps), array.fold(azimuth))
    assert (off <= 5).mean() >= (0.9 if array.mirror_axis is None else 0.8)  # a pair hears little of its ends


def test_a_moved_network_knows_no_pair_and_no_place_from_another() -> None:
    """So a turned world gives turned answers, where turns bring microphones to microphones."""
    array = load_array("respeaker-6mic")
    moved = Prior.load(shipped_priors()["pepper"]).moved(array)
    X = voices_around(array, np.array([3.0, 77.0, 250.0]))
    straight = moved.logits(X)
    turns = [view for view in symmetries(array) if not view.mirrored]
    assert len(turns) == 6
    for view in turns:
        np.testing.assert_allclose(view.back(moved.logits(X[:, view.order(moved.gcc)])), straight, atol=0.1)


def test_all_pairs_together_weigh_what_they_did() -> None:
    far, near = polygon(3, 0.05, 48000), polygon(4, 0.05, 4000)  # three and two bands are missing there
    for old, new in ((MINE, far), (MINE, near), (near, far)):
        gcc = prior_gcc(old)
        prior = Prior.quantised(old, gcc, trained_like(old, gcc).folded())
        moved = prior.moved(new)

        def by_band(prior: Prior, name: str) -> NDArray[np.float64]:
            bands, pairs = len(prior.gcc.band_list), len(prior.gcc.pairs)
            rows = prior.real_weights()[name][: bands * pairs * 3]
            return np.asarray(rows.reshape(bands, pairs, -1).sum(axis=1))

        n = min(len(gcc.band_list), len(moved.gcc.band_list))
        for name in ("hear", "enter"):
            before, after = by_band(prior, name), by_band(moved, name)
            np.testing.assert_allclose(after[:n], before[:n], atol=1e-2)
            assert not after[n:].any()
        for name in ("near0", "mix1", "leave"):
            assert np.array_equal(moved.real_weights()[name], prior.real_weights()[name])
