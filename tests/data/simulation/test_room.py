"""Rooms: against image sources of pyroomacoustics, and against what acoustics says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import csd, welch

from tytoalba.data.simulation.room import (
    MIXING_TIME,
    TREBLE,
    Placement,
    Room,
    diffuse_noise,
    room_response,
    wavefronts,
)
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, load_array, unit_vector

RATE = 48000
ROOM = Room((5.2, 4.5, 2.7), 0.42)
PEPPER = load_array("pepper")
OMNI = replace(PEPPER, pattern=1.0)
# (array's centre in the room, heading, where the talker is as the array sees it), metres and degrees
SCENES = [
    ((2.3, 2.1, 1.2), 0.0, (1.0, 0.2, 0.1)),
    ((2.9, 2.4, 1.3), 75.0, (-0.4, 1.2, 0.3)),
    ((2.0, 1.8, 1.1), 160.0, (-0.9, -0.5, -0.2)),
    ((2.6, 2.6, 1.4), 290.0, (0.7, -1.0, 0.2)),
]
Array3 = NDArray[np.float64]


def in_room(centre: tuple[float, float, float], heading: float, points: Array3) -> Array3:
    """Points of the array's frame in the room's, written out again without Placement."""
    x, y, z = np.moveaxis(np.atleast_2d(points), 1, 0)
    turn = np.deg2rad(heading)
    turned = np.stack([x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn), z], axis=1)
    return np.asarray(centre + turned)


def respond(
    centre: tuple[float, float, float],
    heading: float,
    talker: tuple[float, float, float],
    *,
    array: MicArray = OMNI,
    room: Room = ROOM,
    seed: int = 0,
    talker_pattern: float = 1.0,
    facing: tuple[float, float, float] | None = None,
) -> NDArray[np.float64]:
    """A response of ours, omnidirectional unless told otherwise."""
    return room_response(
        room,
        array,
        Placement(centre, heading),
        np.array(talker),
        np.random.default_rng(seed),
        talker_pattern=talker_pattern,
        facing=None if facing is None else np.array(facing),
    ).astype(np.float64)


def peer(centre: tuple[float, float, float], heading: float, talker: Array3) -> NDArray[np.float64]:
    """The response of pyroomacoustics in the same room: image sources alone, of high order."""
    pra = pytest.importorskip("pyroomacoustics")
    shoebox = pra.ShoeBox(
        ROOM.size, fs=RATE, materials=pra.Material(ROOM.absorption), max_order=22, air_absorption=False
    )
    shoebox.set_sound_speed(SPEED_OF_SOUND)
    shoebox.add_source(in_room(centre, heading, talker)[0])
    shoebox.add_microphone_array(in_room(centre, heading, OMNI.coordinates).T)
    shoebox.compute_rir()
    responses = [rir[0][pra.constants.get("frac_delay_length") // 2 :] for rir in shoebox.rir]
    length = max(len(r) for r in responses)
    return np.stack([np.pad(r, (0, length - len(r))) for r in responses])


def first_arrivals(response: NDArray[np.float64], expected: Array3) -> Array3:
    """Arrival of the direct sound at each microphone in samples, from the phase of its spectrum."""
    start = int(expected.min()) - 20
    omega = 2 * np.pi * np.arange(300.0, 12000.0, 100.0) / RATE
    arrivals = []
    for row in response:
        n = np.arange(start, start + 70)
        spectrum = np.exp(-1j * np.outer(omega, n - start)) @ row[n]
        phase = -np.unwrap(np.angle(spectrum))
        arrivals.append(start + float(phase @ omega / (omega @ omega)))
    return np.array(arrivals)


def distances(talker: tuple[float, float, float], array: MicArray = OMNI) -> Array3:
    return np.asarray(np.linalg.norm(np.array(talker) - array.coordinates, axis=1))


def windows(response: NDArray[np.float64], talker: tuple[float, float, float]) -> Array3:
    """dB of direct over reverberant energy, and of 0-30, 30-60 and 60-120 ms over direct, mean over mics."""
    rows = []
    for row, arrival in zip(response, distances(talker) / SPEED_OF_SOUND * RATE, strict=True):
        energy = np.cumsum(row**2)
        direct, *rest = (energy[int(arrival + ms * RATE / 1000)] for ms in (1.6, 30.0, 60.0, 120.0))
        rows.append([direct / (energy[-1] - direct), *np.diff([direct, *rest]) / direct])
    return np.asarray(10 * np.log10(np.mean(rows, axis=0)))


@pytest.mark.parametrize(("centre", "heading", "talker"), SCENES)
def test_direct_sound_arrives_as_in_the_peer_to_a_fraction_of_a_sample(
    centre: tuple[float, float, float], heading: float, talker: tuple[float, float, float]
) -> None:
    exact = distances(talker) / SPEED_OF_SOUND * RATE
    ours = first_arrivals(respond(centre, heading, talker), exact)
    theirs = first_arrivals(peer(centre, heading, np.array(talker)), exact)
    np.testing.assert_allclose(ours, exact, atol=0.02)
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=0.02)
    assert np.ptp(exact) > 4  # the microphones differ enough for this to say something


def test_energy_over_time_is_the_peers() -> None:
    off = np.array(
        [
            windows(respond(centre, heading, talker), talker)
            - windows(peer(centre, heading, np.array(talker)), talker)
            for centre, heading, talker in SCENES
        ]
    )
    assert (np.abs(off[:, 0]) < 1.5).all()  # direct to reverberant, every place
    assert (np.abs(off.mean(axis=0)) < [1.0, 1.0, 1.5, 2.0]).all()
    assert (np.abs(off) < 2.5).all()


def test_early_echoes_are_the_peers_at_every_heading() -> None:
    """A mirror of the room or of the array would keep the energy but not the echoes."""
    for centre, heading, talker in SCENES:
        ours = respond(centre, heading, talker)
        theirs = peer(centre, heading, np.array(talker))
        first = int(distances(talker).min() / SPEED_OF_SOUND * RATE) - 20
        stretch = slice(first, first + int(0.025 * RATE))  # before the tail begins
        for mine, other in zip(ours[:, stretch], theirs[:, stretch], strict=True):
            alike = mine @ other / np.sqrt((mine @ mine) * (other @ other))
            assert alike > 0.97


@pytest.mark.parametrize("room", [ROOM, Room((7.8, 5.6, 3.1), 0.65), Room((4.7, 4.4, 2.5), 0.33)])
def test_reverberation_time(room: Room) -> None:
    times = []
    for seed in range(2):
        response = respond((2.1, 2.2, 1.2), 30.0, (1.0, 0.5, 0.0), room=room, seed=seed)
        assert response.shape == (4, int((room.rt60 + 0.02) * RATE))
        for row in response:
            decay = 10 * np.log10(np.cumsum(row[::-1] ** 2)[::-1] / np.sum(row**2))
            falling = np.flatnonzero((decay < -5) & (decay > -25))
            times.append(-60.0 / np.polyfit(falling / RATE, decay[falling], 1)[0])
    assert np.mean(times) == pytest.approx(room.rt60, rel=0.10)
    np.testing.assert_allclose(times, room.rt60, rtol=0.15)


def test_direct_sound_has_gain_one_over_distance() -> None:
    near, far = respond((2.5, 2.2, 1.3), 0.0, (0.5, 0.0, 0.0)), respond((2.5, 2.2, 1.3), 0.0, (1.5, 0.0, 0.0))
    for response, metres in ((near, 0.5), (far, 1.5)):
        for row, away in zip(response, distances((metres, 0.0, 0.0)), strict=True):
            arrival = round(away / SPEED_OF_SOUND * RATE)
            assert row[arrival - 14 : arrival + 15].sum() == pytest.approx(1 / away, rel=0.03)


def test_the_heading_turns_front_to_the_left() -> None:
    placement = Placement((1.0, 1.0, 1.0), 90.0)
    turned = placement.to_room(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(turned, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_turning_the_whole_scene_changes_no_delay_between_microphones() -> None:
    talker = (0.8, -0.6, 0.2)
    exact = distances(talker) / SPEED_OF_SOUND * RATE
    for heading in (0.0, 37.0, 90.0, 201.0, 333.0):
        arrivals = first_arrivals(respond((2.6, 2.2, 1.3), heading, talker), exact)
        np.testing.assert_allclose(arrivals, exact, atol=0.02)


def direct_gain(array: MicArray, azimuth: float, **options: object) -> Array3:
    """Gain of the direct sound (times its distance) at each microphone, from 1 m away."""
    x, y, z = unit_vector(azimuth).tolist()
    response = respond((2.6, 2.2, 1.3), 0.0, (x, y, z), array=array, **options)  # type: ignore[arg-type]
    gains = []
    for row, away in zip(response, distances((x, y, z), array), strict=True):
        arrival = round(away / SPEED_OF_SOUND * RATE)
        gains.append(away * row[arrival - 14 : arrival + 15].sum())
    return np.array(gains)


@pytest.mark.parametrize(("azimuth", "gain"), [(0.0, 1.0), (90.0, 0.5), (180.0, 0.0), (60.0, 0.75)])
def test_a_cardioid_hears_the_front_and_not_the_back(azimuth: float, gain: float) -> None:
    cardioid = replace(PEPPER, pattern=0.5)
    np.testing.assert_allclose(direct_gain(cardioid, azimuth), gain, atol=0.05)
    turned = cardioid.rotated(90.0)
    np.testing.assert_allclose(direct_gain(turned, azimuth + 90.0), gain, atol=0.05)


def test_microphones_may_face_apart() -> None:
    apart = replace(PEPPER, pattern=0.5, facing=(0.0, 90.0, 180.0, 270.0))
    np.testing.assert_allclose(direct_gain(apart, 0.0), [1.0, 0.5, 0.0, 0.5], atol=0.05)


def test_a_cardioid_hears_no_echo_of_the_wall_behind() -> None:
    room = Room((8.6, 6.2, 3.2), 0.68)
    arrival = int(2.2 / SPEED_OF_SOUND * RATE)  # 0.6 m to the wall behind, the talker 1 m ahead
    echo = slice(arrival - 25, arrival + 25)
    heard = {}
    for pattern in (1.0, 0.5):
        array = replace(PEPPER, pattern=pattern)
        response = respond((0.6, 3.0, 1.6), 0.0, (1.0, 0.0, 0.0), array=array, room=room)
        heard[pattern] = float(np.sum(response[:, echo] ** 2))
    assert heard[1.0] > 0.1
    assert heard[0.5] < 0.01 * heard[1.0]


def test_a_talker_who_turns_away_is_softer() -> None:
    away, aside = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    np.testing.assert_allclose(direct_gain(OMNI, 0.0, talker_pattern=0.7), 1.0, atol=0.03)
    np.testing.assert_allclose(direct_gain(OMNI, 0.0, talker_pattern=0.7, facing=away), 0.4, atol=0.03)
    np.testing.assert_allclose(direct_gain(OMNI, 0.0, talker_pattern=0.7, facing=aside), 0.7, atol=0.03)


def test_a_talker_who_faces_a_wall_is_heard_from_there() -> None:
    room = Room((8.6, 6.2, 3.2), 0.68)
    talker, away = (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)
    arrival = int((2 * (8.6 - 7.0) - 1.0) / SPEED_OF_SOUND * RATE)  # the image in the wall ahead, 2.2 m away
    echo = slice(arrival - 25, arrival + 25)
    heard = {}
    for pattern in (1.0, 0.5):
        response = respond((7.0, 3.0, 1.6), 0.0, talker, room=room, talker_pattern=pattern, facing=away)
        heard[pattern] = float(np.sum(response[:, echo] ** 2))
    assert heard[1.0] > 0.1
    assert heard[0.5] == pytest.approx(heard[1.0], rel=0.1)  # the image looks back at the array


def test_the_tail_comes_from_the_generator_and_the_echoes_from_the_room() -> None:
    one, again, other = (respond(*SCENES[0], seed=seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    early = slice(0, int(0.025 * RATE))
    assert (one[:, early] == other[:, early]).all()


def test_coherence_of_noise_from_everywhere() -> None:
    noise = diffuse_noise(OMNI, 2**18, np.random.default_rng(0))
    assert noise.shape == (4, 2**18)
    np.testing.assert_allclose(np.mean(noise**2, axis=1), 1.0, rtol=0.03)
    for i, j in OMNI.pairs:
        hertz, cross = csd(noise[i], noise[j], RATE, nperseg=1024)
        _, first = welch(noise[i], RATE, nperseg=1024)
        _, second = welch(noise[j], RATE, nperseg=1024)
        apart = float(np.linalg.norm(OMNI.coordinates[i] - OMNI.coordinates[j]))
        coherence = cross / np.sqrt(first * second)
        expected = np.sinc(2 * hertz * apart / SPEED_OF_SOUND)
        used = (hertz > 100) & (hertz < 20000)
        assert np.sqrt(np.mean(np.abs(coherence - expected)[used] ** 2)) < 0.05
        assert np.abs(coherence.real - expected)[used].max() < 0.2


def test_microphones_that_face_the_front_hear_the_front_first() -> None:
    noise = diffuse_noise(replace(PEPPER, pattern=0.5), 2**17, np.random.default_rng(0))
    rear, front = np.fft.rfft(noise[0].astype(np.float64)), np.fft.rfft(noise[2].astype(np.float64))
    correlation = np.fft.irfft(rear.conj() * front)  # lag by which the front microphone is later
    assert correlation[-8:].sum() > 2 * np.abs(correlation[1:9].sum())


def test_noise_in_directional_microphones_and_its_slope() -> None:
    noise = diffuse_noise(replace(PEPPER, pattern=0.5), 2**17, np.random.default_rng(1), tilt=1.0)
    np.testing.assert_allclose(np.mean(noise**2, axis=1), 1 / 3, rtol=0.1)  # the mean of a cardioid squared
    hertz, power = welch(noise, RATE, nperseg=2048)
    level = [power[:, (hertz > f / 1.1) & (hertz < f * 1.1)].mean() for f in (1000.0, 4000.0)]
    assert level[0] / level[1] == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize(
    ("size", "rt60", "message"),
    [
        ((5.0, 4.0, 0.0), 0.4, "positive"),
        ((-5.0, 4.0, 3.0), 0.4, "positive"),
        ((5.0, 4.0, 3.0), 0.0, "positive"),
        ((5.0, 4.0, 3.0), -0.1, "positive"),
        ((5.0, 4.0, 3.0), 0.05, "no absorption is enough"),
    ],
)
def test_impossible_rooms_are_refused(size: tuple[float, float, float], rt60: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Room(size, rt60)


def test_absorption_is_sabines() -> None:
    room = Room((5.0, 4.0, 3.0), 0.5)
    assert room.absorption_area == pytest.approx(0.161 * 60 / 0.5)
    assert room.absorption == pytest.approx(0.161 * 60 / 0.5 / 94)


def test_inside_and_outside() -> None:
    assert ROOM.contains(np.array([1.0, 1.0, 1.0]), 0.5)
    assert not ROOM.contains(np.array([1.0, 1.0, 0.4]), 0.5)
    assert not ROOM.contains(np.array([4.8, 1.0, 1.0]), 0.5)
    assert not ROOM.contains(np.array([-1.0, 1.0, 1.0]), 0.0)


# ------------------------------------------------------------------- walls, treble, scatter, wavefronts


def varied_response(room: Room, seed: int = 0, **options: Any) -> NDArray[np.float64]:
    """A response in the middle of a room, omnidirectional."""
    source, rng = np.array([1.0, 0.3, 0.1]), np.random.default_rng(seed)
    options = {"talker_pattern": 1.0, **options}
    placement = Placement((2.3, 2.1, 1.2), 20.0)
    return room_response(room, OMNI, placement, source, rng, **options).astype(np.float64)


def test_six_equal_walls_are_one_absorption() -> None:
    equal = Room(ROOM.size, ROOM.rt60, (ROOM.absorption,) * 6)
    np.testing.assert_allclose(varied_response(equal), varied_response(ROOM), atol=1e-6)
    with_walls = Room.with_walls(ROOM.size, [ROOM.absorption] * 6)
    assert with_walls.rt60 == pytest.approx(ROOM.rt60)
    assert with_walls.absorption == pytest.approx(ROOM.absorption)


def test_reverberation_follows_from_the_walls() -> None:
    walls = (0.1, 0.2, 0.3, 0.15, 0.4, 0.05)  # x = 0, x = length, y = 0, y = width, floor, ceiling
    room = Room.with_walls((5.0, 4.0, 3.0), walls, treble=0.7)
    area = 4 * 3 * (0.1 + 0.2) + 5 * 3 * (0.3 + 0.15) + 5 * 4 * (0.4 + 0.05)
    assert room.rt60 == pytest.approx(0.161 * 60 / area)
    assert room.absorption_area == pytest.approx(area)
    assert room.walls == walls
    assert room.treble == 0.7


@pytest.mark.parametrize("wall", range(6))
def test_the_wall_that_absorbs_is_the_one_whose_echo_is_weak(wall: int) -> None:
    size, centre, talker = np.array([7.0, 6.0, 5.0]), np.array([3.0, 2.5, 2.1]), np.array([1.0, 0.4, 0.2])
    plain, dead = [0.1] * 6, [0.1] * 6
    dead[wall] = 0.91

    def response(walls: list[float]) -> NDArray[np.float64]:
        room, place = Room((7.0, 6.0, 5.0), 0.5, tuple(walls)), Placement((3.0, 2.5, 2.1))
        rng = np.random.default_rng(0)
        return room_response(room, OMNI, place, talker, rng, talker_pattern=1.0).astype(np.float64)

    change = response(dead) - response(plain)
    image = centre + talker
    image[wall // 2] = 2 * size[wall // 2] * (wall % 2) - image[wall // 2]
    for row, away in zip(change, np.linalg.norm(image - centre - OMNI.coordinates, axis=1), strict=True):
        arrival = away / SPEED_OF_SOUND * RATE
        step = (np.sqrt(1 - 0.91) - np.sqrt(1 - 0.1)) / away  # of pressure
        assert (np.abs(row) > 0.5 * abs(step)).argmax() == pytest.approx(arrival, abs=1.0)
        first = round(arrival)
        assert row[first - 14 : first + 15].sum() == pytest.approx(step, rel=0.05)


def decay(response: NDArray[np.float64], low: float, high: float) -> float:
    """dB a second by which the band (Hz) falls from 60 to 200 ms."""
    levels = []
    for start in (0.06, 0.2):
        piece = response[:, int(start * RATE) : int((start + 0.06) * RATE)]
        power = np.abs(np.fft.rfft(piece * np.hanning(piece.shape[1]))) ** 2
        hertz = np.fft.rfftfreq(piece.shape[1], 1 / RATE)
        levels.append(10 * np.log10(power[:, (hertz > low) & (hertz < high)].mean()))
    return float((levels[0] - levels[1]) / 0.14)


def test_treble_dies_first_where_curtains_hang() -> None:
    for treble in (1.0, 0.5):
        room = Room(ROOM.size, ROOM.rt60, treble=treble)
        response = np.concatenate([varied_response(room, seed) for seed in range(3)])
        assert decay(response, 200.0, 0.5 * TREBLE) == pytest.approx(60 / ROOM.rt60, rel=0.15)
        assert decay(response, 3 * TREBLE, 20000.0) == pytest.approx(60 / ROOM.rt60 / treble, rel=0.15)


@pytest.mark.parametrize("walls", [(0.1,) * 5, (0.1,) * 7, (0.0, *(0.1,) * 5), (1.0, *(0.1,) * 5)])
def test_impossible_walls_are_refused(walls: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="six walls that absorb between 0 and 1"):
        Room(ROOM.size, ROOM.rt60, walls)
    for treble in (0.0, -1.0):
        with pytest.raises(ValueError, match="positive"):
            Room(ROOM.size, ROOM.rt60, treble=treble)


def test_scatter_moves_the_echoes_and_not_the_direct_sound() -> None:
    mirrors, rough = varied_response(ROOM), varied_response(ROOM, scatter=0.1)
    direct = distances((1.0, 0.3, 0.1)) / SPEED_OF_SOUND * RATE
    first = slice(0, int(direct.max()) + 16)  # the nearest wall's echo comes later
    np.testing.assert_allclose(rough[:, first], mirrors[:, first], atol=1e-3)
    early = slice(first.stop, int(MIXING_TIME[0] * RATE))
    alike = (rough[:, early] * mirrors[:, early]).sum(axis=1) / np.sqrt(
        (rough[:, early] ** 2).sum(axis=1) * (mirrors[:, early] ** 2).sum(axis=1)
    )
    assert np.abs(alike).max() < 0.6
    power = [np.sum(each[:, early] ** 2) for each in (rough, mirrors)]
    assert power[0] == pytest.approx(power[1], rel=0.3)
    np.testing.assert_array_equal(rough, varied_response(ROOM, scatter=0.1))


def test_the_late_field_may_have_the_coherence_of_another_array() -> None:
    tight = replace(OMNI, positions=tuple((x / 20, y / 20, z) for x, y, z in OMNI.positions))
    plain, other = varied_response(ROOM), varied_response(ROOM, late_array=tight)
    early, late = slice(0, int(MIXING_TIME[0] * RATE)), slice(int(0.07 * RATE), None)
    np.testing.assert_array_equal(plain[:, early], other[:, early])
    np.testing.assert_array_equal(varied_response(ROOM, late_array=OMNI), plain)
    alike = [np.asarray(np.corrcoef(each[:, late]))[np.triu_indices(4, 1)].mean() for each in (plain, other)]
    assert alike[0] < 0.5 < 0.8 < alike[1]  # microphones closer together hear more alike


def test_wavefronts_are_delayed_and_weaker_with_distance() -> None:
    position = np.array([[2.0, 1.0, 0.5], [-1.0, 3.0, 0.0]])
    strength, placement = np.array([1.0, 0.5]), Placement((0.3, 0.2, 0.1), 35.0)
    heard = wavefronts(OMNI, placement, position, strength, 2000, -position)
    mics = in_room(placement.centre, 35.0, OMNI.coordinates)
    for row, mic in zip(heard, mics, strict=True):
        for place, gain in zip(position, strength, strict=True):
            away = float(np.linalg.norm(place - mic))
            arrival = round(away / SPEED_OF_SOUND * RATE)
            assert row[arrival - 14 : arrival + 15].sum() * away == pytest.approx(gain, abs=0.02)
    faded = wavefronts(OMNI, placement, position, strength, 2000, -position, fade=(0.0, 1e-4))
    alone = wavefronts(OMNI, placement, position[:1], strength[:1], 2000, -position[:1])
    np.testing.assert_allclose(faded, alone, atol=1e-12)  # the second comes too late


def test_what_arrives_after_the_end_is_left_out() -> None:
    place = np.array([[3.43, 0.0, 0.0]])  # 480 samples
    one = np.ones(1)
    whole = wavefronts(OMNI, Placement((0.0, 0.0, 0.0)), place, one, 1000, -place)
    cut = wavefronts(OMNI, Placement((0.0, 0.0, 0.0)), place, one, 480, -place)
    np.testing.assert_array_equal(cut, whole[:, :480])
    assert not wavefronts(OMNI, Placement((0.0, 0.0, 0.0)), place, one, 400, -place).any()
