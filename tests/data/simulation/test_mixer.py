"""Mixes: the same as scenes simulated whole, where they can be compared, and labelled rightly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import oaconvolve

from tytoalba.data.simulation import microphones, scenes
from tytoalba.data.simulation import stems as module
from tytoalba.data.simulation.microphones import CEILING
from tytoalba.data.simulation.recordings import activity
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.stems import Stems, gather_stems
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.angles import distance
from tytoalba.signal.array import SPEED_OF_SOUND, load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import lag_matrix

torch = pytest.importorskip("torch")
from tytoalba.data.simulation import mixer as mixer_module  # noqa: E402 - needs torch
from tytoalba.data.simulation.mixer import N_FRAMES, Machines, Mixer  # noqa: E402 - needs torch

ARRAY = load_array("respeaker-usb-4")
GCC = prior_gcc(ARRAY)
VOICES = (SyntheticVoices(),)
FAMILIES = ("hybrid", "anechoic")


@pytest.fixture(scope="module")
def stems() -> Stems:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "N_VOICES", (24, 24))
        return gather_stems(Scenes(ARRAY, VOICES, FAMILIES, "train", 0), 24)


def under(monkeypatch: pytest.MonkeyPatch, **conditions: Any) -> None:
    """Mixers from now on: other conditions, in calm rooms too."""
    for name in ("ANY", "CALM"):
        monkeypatch.setattr(microphones, name, replace(getattr(microphones, name), **conditions))


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but talkers, and a recorder that changes nothing but the level."""
    nothing = dict.fromkeys(("hard", "local", "muffled", "clipped", "gain", "tilt", "turn", "corner"), 0.0)
    under(monkeypatch, snr=(80.0, 80.0), **nothing)
    monkeypatch.setattr(microphones, "LEVEL", (0.1, 0.1))
    monkeypatch.setattr(microphones, "CORNER", (1e-3, 1e-3))


def test_a_seed_gives_the_same_frames(stems: Stems) -> None:
    def frames(seed: int, n: int = 90) -> tuple[Any, Any]:
        parts = list(Mixer(stems, GCC, seed=seed).frames(n))
        return torch.cat([x for x, _ in parts]), torch.cat([a for _, a in parts])

    (X, azimuth), (again, other) = frames(0), frames(1)
    assert X.shape == (90, GCC.n_features)
    assert azimuth.shape == (90, 2)
    assert torch.equal(frames(0)[0], X)
    assert torch.equal(frames(0)[1].nan_to_num(-1), azimuth.nan_to_num(-1))
    assert not torch.equal(again, X)
    assert not torch.equal(other.nan_to_num(-1), azimuth.nan_to_num(-1))
    assert azimuth.isfinite().any(1).all()  # somebody talks
    assert torch.allclose(frames(0, 30)[0], X[:30], atol=1e-5)


def test_hardly_a_frame_comes_twice(stems: Stems) -> None:
    mixer = Mixer(stems, GCC)
    X = torch.cat([x for x, _ in mixer.frames(300)])
    assert len(torch.unique(X, dim=0)) > 295  # two of a mix may start at the same sample


def test_a_room_is_heard_as_convolution_says(stems: Stems) -> None:
    mixer = Mixer(stems, GCC)
    dry = mixer._stretches("voices", 2, mixer.n_samples)
    room, place = torch.tensor([3, 1]), torch.tensor([0, 2])
    heard = mixer._received(dry, room, place)
    for said, response, found in zip(dry, mixer.banks["responses"][room, place], heard, strict=True):
        expected = oaconvolve(said.numpy()[None], response.float().numpy(), axes=1)[
            :, mixer.n_taps : mixer.n_samples
        ]
        expected /= np.sqrt(np.mean(expected**2))
        assert found.numpy() == pytest.approx(expected, abs=2e-3)


def test_who_talks_is_what_activity_says(stems: Stems) -> None:
    mixer = Mixer(stems, GCC)
    dry = mixer._stretches("voices", 8, mixer.n_samples)
    hop, length = ARRAY.frame_length // 2, ARRAY.frame_length
    n = len(range(0, mixer.n_samples - length, hop))
    delay = 37
    start = torch.arange(1, n).expand(8, -1) * hop - delay
    loud, silent = mixer._talking(dry, start)
    far = delay * SPEED_OF_SOUND / ARRAY.sample_rate
    for who in range(8):
        expected = activity(dry[who].numpy(), far, ARRAY, n)
        for found, wanted in zip((loud, silent), expected, strict=True):
            assert np.mean(found[who].numpy() == wanted[1:]) > 0.93  # usual levels differ a little


@pytest.mark.parametrize("n_sources", [1, 2])
def test_sound_comes_from_where_labels_say(
    stems: Stems, monkeypatch: pytest.MonkeyPatch, n_sources: int
) -> None:
    quiet(monkeypatch)
    mixer = Mixer(stems.only(["anechoic"]), GCC, two_sources=float(n_sources - 1))
    wide = GccPhat.for_array(ARRAY, GCC.n_samples, (500.0, 7000.0))
    matrix = lag_matrix(wide, ARRAY).reshape(-1, 360)
    frames, azimuth, _ = mixer.mixed(40)
    maps = wide(frames.numpy()).reshape(len(frames), -1) @ matrix
    there = np.isfinite(azimuth.numpy())
    rows = there.sum(axis=1) == n_sources
    assert rows.sum() > 60
    best = maps.argmax(axis=1)[:, None]
    nearest = np.nanmin(np.where(there, distance(best, np.nan_to_num(azimuth.numpy())), np.nan)[rows], axis=1)
    assert np.mean(nearest <= 10) > 0.7
    if n_sources == 2:
        apart = distance(*azimuth.numpy()[rows].T.astype(np.float64))
        assert apart.min() >= 15


def test_two_talkers_as_often_as_asked(stems: Stems) -> None:
    for share in (0.0, 0.5, 1.0):
        _, azimuth, _ = Mixer(stems, GCC, two_sources=share).mixed(40)
        second = azimuth[:, 1].isfinite().reshape(40, N_FRAMES).any(1).float().mean()
        assert float(second) == pytest.approx(share, abs=0.2)
        assert share > 0 or not second


def test_a_recorder_keeps_levels_in_bounds(stems: Stems, monkeypatch: pytest.MonkeyPatch) -> None:
    mixer = Mixer(stems, GCC)
    x = mixer._normal(60, 4, mixer.n_taps)
    room = torch.arange(60) % 24
    sound = mixer._recorded(x, room)
    assert float(sound.abs().max()) <= 1.0
    assert torch.equal(sound, (sound * 32768).round() / 32768)
    level = sound.square().mean((1, 2)).sqrt()
    assert float(level.min()) == pytest.approx(microphones.LEVEL[0], rel=0.6)
    under(monkeypatch, clipped=1.0)
    cut = Mixer(stems, GCC)._recorded(x, room)
    assert (cut.abs().amax((1, 2)) > CEILING).all()
    quiet(monkeypatch)
    same = Mixer(stems, GCC)._recorded(x, room)
    scale = (same * x).sum((1, 2)) / x.square().sum((1, 2))
    assert float((same - scale[:, None, None] * x).abs().max()) < 2e-3


def test_noise_is_as_loud_as_drawn(stems: Stems, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    mixer = Mixer(stems, GCC)
    speech = mixer._normal(30, 4, mixer.n_taps) * 3.0
    room, place = torch.zeros(30, dtype=torch.long), torch.ones(30, dtype=torch.long)

    def ratio() -> np.ndarray:
        noise = Mixer(stems, GCC)._noisy(speech, room, place) - speech
        return np.asarray(10 * torch.log10(speech.square().mean((1, 2)) / noise.square().mean((1, 2))))

    for snr in (-5.0, 20.0):
        under(monkeypatch, snr=(snr, snr))
        assert ratio() == pytest.approx(np.full(30, snr), abs=0.7)
    under(monkeypatch, local=1.0, snr=(80.0, 80.0))
    monkeypatch.setattr(scenes, "LOCAL_SNR", (6.0, 6.0))
    assert ratio() == pytest.approx(np.full(30, 6.0), abs=0.2)


def test_calm_rooms_are_mixed_calmly(stems: Stems) -> None:
    """In rooms of both kinds, side by side: less noise, and microphones that hardly differ in gain."""
    both = replace(stems, calm=np.arange(24) < 12)
    mixer = Mixer(both, GCC)
    room = torch.arange(240) % 24
    x = mixer._normal(240, 1, mixer.n_taps).expand(-1, 4, -1)
    level = 10 * torch.log10(mixer._recorded(x, room).square().mean(2))
    apart = (level.amax(1) - level.amin(1)).numpy()
    noise = mixer._noisy(x, room, torch.ones_like(room)) - x
    snr = -10 * torch.log10(noise.square().mean((1, 2))).numpy()
    calm = both.calm[room.numpy()]
    assert apart[calm].max() < 2.5 < np.median(apart[~calm])
    assert np.median(snr[calm]) > np.median(snr[~calm]) + 3
    assert np.quantile(snr[calm], 0.02) < microphones.CALM.snr[0]  # some are loud all the same


def test_mixes_look_like_scenes_simulated_whole(stems: Stems) -> None:
    """Not the same rooms and voices: the same statistics of features, and as many frames with two talkers."""
    simulated = Scenes(ARRAY, VOICES, FAMILIES, "train", 0)
    whole = scene_features(simulated, range(24), GCC)
    mixed = list(Mixer(stems, GCC, two_sources=simulated.two_sources).frames(len(whole)))
    X, azimuth = torch.cat([x for x, _ in mixed]).numpy(), torch.cat([a for _, a in mixed]).numpy()
    share = np.isfinite(azimuth).all(axis=1).mean()
    assert share == pytest.approx((whole.n_sources == 2).mean(), abs=0.12)
    zero = GCC.max_lag

    def look(frames: np.ndarray) -> np.ndarray:
        shaped = np.abs(frames.reshape(len(frames), GCC.n_looks, -1, GCC.n_lags))
        return np.concatenate([shaped.mean(axis=(0, 2, 3)), shaped[..., zero].mean(axis=(0, 2))])

    assert look(X) == pytest.approx(look(whole.flat), rel=0.2)


def test_silence_does_not_last_for_ever(stems: Stems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixer_module, "PATIENCE", 3)
    mute = replace(stems, voices=np.zeros_like(stems.voices[:, :9000]))
    with pytest.raises(DataError, match="nobody talks in these stems"):
        list(Mixer(mute, prior_gcc(ARRAY)).frames(1))


def test_frames_longer_than_rooms_ring_are_refused(stems: Stems) -> None:
    with pytest.raises(DataError, match="longer than rooms ring"):
        Mixer(stems, GccPhat.for_array(ARRAY, 2 * stems.responses.shape[-1]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_mixes_as_well(stems: Stems) -> None:
    X, azimuth = next(iter(Mixer(stems, GCC, device="cuda").frames(500)))
    assert X.is_cuda
    assert azimuth.is_cuda
    assert bool(X.isfinite().all())
    here = torch.cat([x for x, _ in Mixer(stems, GCC).frames(500)])
    assert float(X.abs().mean()) == pytest.approx(float(here.abs().mean()), rel=0.1)


def machines(share: float, nobody: float = 0.0, pauses: float = 1.0) -> Machines:
    rng = np.random.default_rng(0)
    sounds = np.repeat(rng.choice([-1.0, 1.0], (3, 1)), 2 * ARRAY.sample_rate, axis=1)
    return Machines(sounds.astype(np.float16), share, nobody, pauses)


def test_without_machines_mixes_are_as_they_were(stems: Stems) -> None:
    plain, none = (Mixer(stems, GCC, machines=m).mixed(8) for m in (None, machines(0.0)))
    assert plain[0].shape == none[0].shape
    assert torch.equal(plain[2], plain[1].isfinite().any(1) | plain[2])  # who is heard is certain


def test_machines_alone_have_no_place(stems: Stems) -> None:
    sound, azimuth, sure = Mixer(stems, GCC, machines=machines(1.0, nobody=1.0)).mixed(8)
    assert azimuth.isnan().all()
    assert sure.all()
    assert sound.square().mean() > 1e-8  # something is heard


def test_pauses_are_kept_as_often_as_asked(stems: Stems) -> None:
    for pauses in (0.0, 1.0):
        mixer = Mixer(stems, GCC, machines=machines(0.5, nobody=0.5, pauses=pauses))
        azimuth = torch.cat([a for _, a in mixer.sounds(300)])
        nobody = azimuth.isnan().all(1).float().mean()
        assert (float(nobody) > 0.1) == bool(pauses)


def test_machines_are_heard_beside_talkers(stems: Stems, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    loud: list[float] = []
    faint: list[float] = []
    for snr, found in (((-20.0, -20.0), loud), ((80.0, 80.0), faint)):
        monkeypatch.setattr(mixer_module, "STEADY_SNR", snr)
        tone = np.sin(2 * np.pi * 0.25 * np.arange(3 * ARRAY.sample_rate))[None]  # 4 kHz
        mixer = Mixer(stems, GCC, machines=Machines(tone.astype(np.float16), share=1.0, nobody=0.0))
        spectrum = torch.fft.rfft(mixer.mixed(4)[0]).abs().square().mean((0, 1))
        at = round(0.25 * GCC.n_samples)
        found.append(float(spectrum[at - 2 : at + 3].sum() / spectrum.sum()))
    assert loud[0] > 0.5 > 0.2 > faint[0]
