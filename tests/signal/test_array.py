"""Arrays: what is refused, what survives a file, what delays can and cannot tell."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.waves import plane_wave
from tytoalba.errors import ArrayError, TytoError
from tytoalba.signal.angles import distance, signed_difference, wrap
from tytoalba.signal.array import (
    LARGEST_ODAS,
    SPEED_OF_SOUND,
    MicArray,
    builtin_arrays,
    import_odas,
    load_array,
    unit_vector,
)
from tytoalba.signal.audio import frames
from tytoalba.signal.srp import SrpPhat
from tytoalba.texts.parsing import LARGEST_TOML

ARRAYS = builtin_arrays()
SQUARE = ((0.05, 0.05, 0.0), (-0.05, 0.05, 0.0), (-0.05, -0.05, 0.0), (0.05, -0.05, 0.0))
TETRAHEDRON = ((0.05, 0.0, 0.0), (-0.03, 0.04, 0.0), (-0.03, -0.04, 0.0), (0.0, 0.0, 0.06))
light = settings(max_examples=40, deadline=None)
millimetres = st.integers(-500, 500).map(lambda mm: mm / 1000)


@st.composite
def arrays(draw: st.DrawFn) -> MicArray:
    """Any array that is fit to be one."""
    flat = draw(
        st.lists(st.tuples(millimetres, millimetres), min_size=2, max_size=8, unique=True)
    )  # unique as seen from above, so never one above the other
    n = len(flat)
    azimuth = st.floats(-360, 720)
    return MicArray(
        name=draw(st.text(min_size=1, max_size=20).filter(str.strip)),
        positions=tuple((x, y, draw(millimetres)) for x, y in flat),
        sample_rate=draw(st.integers(1000, 1_000_000)),
        channels=tuple(draw(st.lists(st.integers(0, 1023), min_size=n, max_size=n, unique=True))),
        pattern=draw(st.floats(0, 1)),
        facing=tuple(
            draw(st.lists(azimuth, min_size=1, max_size=1) | st.lists(azimuth, min_size=n, max_size=n))
        ),
        yaw=draw(azimuth),
        description=draw(st.text(max_size=40)),
    )


def line(axis: float, yaw: float = 0.0, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> MicArray:
    """Four microphones on a line with the given azimuth in the array's own frame."""
    along = np.outer([-0.11, -0.04, 0.02, 0.1], unit_vector(axis)) + np.array(at)
    return MicArray("line", tuple(map(tuple, along.tolist())), yaw=yaw)


# ------------------------------------------------------------------------------------------- the files


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_built_in_arrays_survive_their_file(array: MicArray, tmp_path: Path) -> None:
    assert load_array(array.name) == array
    file = tmp_path / "mine.toml"
    file.write_text(array.to_toml(), encoding="utf-8")
    assert load_array(file) == array
    assert load_array(str(file)) == array


@light
@given(arrays())
def test_any_array_survives_its_file(array: MicArray) -> None:
    again = MicArray.from_toml(array.to_toml())
    assert again == array
    assert hash(again) == hash(array)
    assert again.to_toml().encode() == array.to_toml().encode()


@pytest.mark.parametrize(
    "name", ["\U0001f989", "del\x7f", 'quote"\\', "a\tb\nc\r\n", "\x00\x1f", "été \u2028"]
)
def test_any_name_survives_its_file(name: str, tmp_path: Path) -> None:
    array = MicArray(name, SQUARE, description=name)
    file = tmp_path / "array.toml"
    file.write_text(array.to_toml(), encoding="utf-8")
    assert load_array(file) == array


def test_numbers_of_numpy_are_plain_numbers_in_the_file() -> None:
    array = MicArray(
        "numpy",
        np.array(SQUARE)[:, :2],  # type: ignore[arg-type]
        sample_rate=np.int64(16000),  # type: ignore[arg-type]
        channels=np.arange(4),  # type: ignore[arg-type]
        pattern=np.float32(0.5),  # type: ignore[arg-type]
        facing=np.zeros(4),  # type: ignore[arg-type]
        yaw=np.float64(30.0),
    )
    plain = MicArray("numpy", SQUARE, 16000, (0, 1, 2, 3), 0.5, (0.0,) * 4, 30.0)
    assert array == plain
    assert array.to_toml() == plain.to_toml()
    assert MicArray.from_toml(array.rotated(np.float64(90)).to_toml()).yaw == 90.0


def test_an_array_is_its_own() -> None:
    mine = replace(load_array("pepper"), name="mine")
    assert load_array(mine) is mine


def test_short_file_gets_the_documented_defaults() -> None:
    array = MicArray.from_toml(
        'name = "pair"\nsample_rate = 8000\npositions = [[0.0, 0.1], [0, -0.1, 0.02]]\nfacing = 90'
    )
    assert array.positions == ((0.0, 0.1, 0.0), (0.0, -0.1, 0.02))
    assert (array.sample_rate, array.channels, array.pattern, array.yaw) == (8000, (0, 1), 1.0, 0.0)
    assert array.facing == (90.0,)


PAIR = "sample_rate = 16000\npositions = [[0.0, 0.1], [0.0, -0.1]]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = ", "not valid TOML"),
        ('name = "a"\nname = "b"', "not valid TOML"),
        ("name = " + "9" * 5000, "not valid TOML"),
        ("name = " + "[" * 5000, "not valid TOML"),
        (PAIR, "'name' is missing"),
        ('name = "a"', "'positions' is missing: one [x, y] or [x, y, z] per microphone, in metres"),
        ('name = "a"\npositions = [[0, 0.1], [0, -0.1]]', "'sample_rate' is missing: Hz, what the array"),
        (f'name = "a"\nposition = 1\n{PAIR}', "unknown key 'position'; known keys: channels, description"),
        (f"name = 5\n{PAIR}", "needs a name"),
        (f'name = " "\n{PAIR}', "needs a name"),
        (f'name = "a"\ndescription = 5\n{PAIR}', "description must be text"),
        (f'name = "a"\nyaw = nan\n{PAIR}', "yaw must be degrees"),
        (f'name = "a"\nyaw = "left"\n{PAIR}', "array file: array 'a': yaw must be degrees, got 'left'"),
        (f'name = "a"\nfacing = "left"\n{PAIR}', "facing must be degrees, got 'left'"),
        (f'name = "a"\npattern = [0.5]\n{PAIR}', "pattern must be a number from 0 to 1, got [0.5]"),
        (f'name = "a"\nchannels = 3\n{PAIR}', "array file: "),
        (f'name = "a"\nchannels = [[0], [1]]\n{PAIR}', "array file: "),
        ('name = "a"\nsample_rate = 16000\npositions = 3', "positions must be numbers"),
        ('name = "a"\nsample_rate = 16000\npositions = [1e400, 2.0]', "positions must be numbers"),
        (
            f'name = "a"\nsample_rate = 1\npositions = [[1{"0" * 400}, 0], [0, 0]]',
            "positions must be numbers",
        ),
    ],
)
def test_damaged_file_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(ArrayError) as refusal:
        MicArray.from_toml(text)
    assert why in str(refusal.value)


def test_refusal_names_the_file_and_the_built_in_arrays(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("nonsense")
    with pytest.raises(ArrayError, match=r"mine\.toml is not valid TOML"):
        load_array(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArrayError, match=r"cannot read .*mine\.toml"):
        load_array(file)
    for missing in ("peper", str(tmp_path), tmp_path / "none.toml"):
        with pytest.raises(ArrayError, match=r"built in: .*linear-4.*pepper"):
            load_array(missing)
    for wrong, right in (("peper", "pepper"), ("ReSpeaker-USB4", "respeaker-usb-4")):
        with pytest.raises(ArrayError, match=rf"'{wrong}' \(did you mean {right}\?\) and no such file"):
            load_array(wrong)


def test_the_core_v2_is_numbered_clockwise_as_its_board_is() -> None:
    core = load_array("respeaker-core-v2")
    bearing = np.rad2deg(np.arctan2(core.coordinates[:, 1], core.coordinates[:, 0]))
    assert np.allclose(wrap(bearing), wrap(120.0 - 60.0 * np.arange(6)), atol=0.1)


def test_turned_round_the_core_v2_answers_what_an_independent_test_heard() -> None:
    """With its microphones counted the other way, 60 and 180 degrees came out at 183 and 59.5."""
    core = load_array("respeaker-core-v2")
    other = replace(core, positions=tuple(core.positions[k] for k in (0, 5, 4, 3, 2, 1)))
    locator = SrpPhat(other, core.frame_length)
    for spoken, heard in ((60.0, 183.0), (180.0, 59.5)):
        maps = locator(frames(plane_wave(core, spoken, 0.5, seed=1), core.frame_length, 4096))
        assert distance(float(maps.mean(axis=0).argmax()), heard) <= 4


def test_the_array_that_is_probably_mirrored_says_so() -> None:
    assert "Probably mirrored" in load_array("respeaker-6mic").description


toml_values = st.recursive(
    st.sampled_from(["0", "1", "-3", "0.1", "nan", "inf", "-inf", "1e308", "-1e308", "true", '"a"', "''"])
    | st.sampled_from(["2024-01-01", "07:32:00", "1" + "0" * 400, "48000", "[[0.0, 0.1], [0.0, -0.1]]"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | inner.map(lambda item: f"{{ x = {item} }}")
    ),
    max_leaves=8,
)
KEYS = sorted(MicArray.__dataclass_fields__)


def only_array_error(text: str) -> None:
    try:
        array = MicArray.from_toml(text)
    except ArrayError:
        return
    assert MicArray.from_toml(array.to_toml()) == array
    hash(array)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), toml_values, max_size=5))
def test_values_of_any_type_give_an_array_or_an_array_error(table: dict[str, str]) -> None:
    good = {"name": '"a"', "positions": "[[0.0, 0.1], [0.0, -0.1]]"}
    only_array_error("\n".join(f"{key} = {value}" for key, value in (good | table).items()))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_text_gives_an_array_or_an_array_error(data: st.DataObject) -> None:
    text = ARRAYS["pepper"].to_toml()
    for _ in range(data.draw(st.integers(1, 4))):
        at, to = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
        to = data.draw(st.sampled_from([at, min(at + 1, len(text)), to]))
        text = text[:at] + data.draw(st.text(max_size=4)) + text[to:]
    only_array_error(text)


@light
@given(st.text(max_size=80))
def test_any_text_gives_an_array_error(text: str) -> None:
    with pytest.raises(ArrayError):
        MicArray.from_toml(text)


# --------------------------------------------------------------------------------------- the refusals


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"positions": ()}, "at least 2 microphones, got 0"),
        ({"positions": SQUARE[:1]}, "at least 2 microphones, got 1"),
        ({"positions": (*SQUARE[:3], SQUARE[0])}, "microphones 0 and 3 sit at the same place"),
        ({"positions": (*SQUARE[:3], (0.05, 0.05, 0.00005))}, "same place; one of them is a typing error"),
        ({"positions": ((0.0,), (1.0,))}, r"\(x, y\) or \(x, y, z\)"),
        ({"positions": ((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))}, r"\(x, y\) or \(x, y, z\)"),
        ({"positions": (0.0, 1.0)}, "positions must be numbers in metres"),
        ({"positions": (("a", "b"), ("c", "d"))}, "positions must be numbers in metres"),
        ({"positions": None}, "positions must be numbers in metres"),
        ({"positions": ((10**400, 0), (0, 0))}, "positions must be numbers in metres"),
        ({"positions": (*SQUARE[:3], (math.nan, 0.0, 0.0))}, "not finite"),
        ({"positions": (*SQUARE[:3], (0.0, math.inf, 0.0))}, "not finite"),
        ({"positions": ((5.0, 3.0), (-5.0, 3.0))}, "10 m across.*did you give centimetres"),
        ({"positions": ((1e200, 0.0), (0.0, 0.0))}, "larger than 5 m"),
        ({"positions": ((1.7e308, 1.7e308), (-1.7e308, 0.0)), "yaw": 45.0}, "larger than 5 m"),
        ({"positions": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.1), (0.0, 0.0, 0.3))}, "above each other"),
        ({"channels": (0, 1, 2)}, "needs 4 different channels"),
        ({"channels": (0, 1, 2, 3, 4)}, "needs 4 different channels"),
        ({"channels": (0, 1, 2, 2)}, "needs 4 different channels"),
        ({"channels": (-1, 1, 2, 3)}, "channels count from 0"),
        ({"channels": (0.5, 1, 2, 3)}, "channels count from 0"),
        ({"channels": (0, 1, 2, 1024)}, "channels count from 0"),
        ({"sample_rate": 999}, "sample_rate must be whole Hz"),
        ({"sample_rate": 1_000_001}, "sample_rate must be whole Hz"),
        ({"sample_rate": 48000.0}, "sample_rate must be whole Hz"),
        ({"sample_rate": "48000"}, "sample_rate must be whole Hz"),
        ({"sample_rate": True}, "sample_rate must be whole Hz"),
        ({"pattern": -0.1}, "pattern must be between"),
        ({"pattern": 1.1}, "pattern must be between"),
        ({"pattern": math.nan}, "pattern must be between"),
        ({"facing": (0.0, 90.0)}, "facing must be one azimuth"),
        ({"facing": ()}, "facing must be one azimuth"),
        ({"facing": (math.inf,)}, "facing must be one azimuth"),
        ({"yaw": math.nan}, "yaw must be degrees"),
        ({"yaw": math.inf}, "yaw must be degrees"),
        ({"name": ""}, "needs a name"),
        ({"name": None}, "needs a name"),
        ({"description": 5}, "description must be text"),
    ],
)
def test_array_that_cannot_be_right_is_refused(change: dict[str, Any], why: str) -> None:
    fit: dict[str, Any] = {"name": "mine", "positions": SQUARE}
    MicArray(**fit)
    with pytest.raises(ArrayError, match=why):
        MicArray(**{**fit, **change})


def test_array_error_is_the_kind_the_command_line_prints() -> None:
    assert issubclass(ArrayError, TytoError)
    assert issubclass(ArrayError, ValueError)


def test_array_that_would_fit_in_metres_is_refused_in_millimetres() -> None:
    for array in ARRAYS.values():
        with pytest.raises(ArrayError, match="millimetres"):
            replace(array, positions=tuple((1e3 * x, 1e3 * y, 1e3 * z) for x, y, z in array.positions))


# ------------------------------------------------------------------------------------- sizes and delays


def test_pepper_is_the_array_of_the_paper() -> None:
    pepper = load_array("pepper")
    assert pepper.pairs == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    assert (pepper.n_mics, pepper.n_pairs) == (4, 6)
    assert pepper.aperture == pytest.approx(math.hypot(0.058, 0.0686))
    assert round(pepper.max_delay, 1) == 12.6
    assert pepper.max_lag == 25
    assert pepper.frame_length == 8192
    assert replace(pepper, sample_rate=16000).frame_length == 2730


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_no_delay_exceeds_the_largest(array: MicArray) -> None:
    assert array.n_pairs == len(array.pairs) == len(list(combinations(range(array.n_mics), 2)))
    delays = array.pair_delays(np.arange(360.0)) * array.sample_rate
    assert np.abs(delays).max() <= array.max_delay + 1e-9
    assert np.abs(delays).max() > 0.99 * array.max_delay  # and some direction of the circle reaches it
    assert array.max_lag >= array.max_delay
    assert (array.coordinates[:, 2] == 0).all()
    assert np.linalg.norm(array.coordinates.mean(axis=0)) < 0.2 * array.aperture  # origin near the centre


def test_axes_and_the_sign_of_delays() -> None:
    pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)))  # left, right
    arrival = pair.arrival_times([0.0, 90.0, 180.0, 270.0])
    assert arrival.shape == (4, 2)
    late = 0.1 / SPEED_OF_SOUND
    np.testing.assert_allclose(arrival, np.outer([0, 1, 0, -1], [-late, late]), atol=1e-18)
    # a source on the left reaches microphone 0 first and microphone 1 later: a positive delay
    np.testing.assert_allclose(pair.pair_delays(90.0), [2 * late])
    above = MicArray("above", ((0.0, 0.1, 0.0), (0.0, 0.0, 0.2)))
    assert above.arrival_times(0.0, 90.0)[1] == pytest.approx(-0.2 / SPEED_OF_SOUND)


@light
@given(arrays(), st.lists(st.floats(0, 360), min_size=1, max_size=4), st.floats(-90, 90))
def test_delays_are_differences_of_path(array: MicArray, azimuth: list[float], elevation: float) -> None:
    delays = array.pair_delays(azimuth, elevation)
    assert delays.shape == (len(azimuth), array.n_pairs)
    turn = math.radians(array.yaw)
    mounted = [
        (x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn), z)
        for x, y, z in array.positions
    ]
    for row, a in zip(delays, azimuth, strict=True):
        el, az = math.radians(elevation), math.radians(a)
        towards = (math.cos(el) * math.cos(az), math.cos(el) * math.sin(az), math.sin(el))
        ahead = [sum(p * u for p, u in zip(mic, towards, strict=True)) for mic in mounted]
        expected = [(ahead[i] - ahead[j]) / SPEED_OF_SOUND for i, j in array.pairs]
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-14)


@light
@given(arrays(), st.floats(-360, 360))
def test_turning_the_array_turns_what_it_hears(array: MicArray, yaw: float) -> None:
    azimuth, straight, turned = np.arange(0.0, 360.0, 30.0), array.rotated(0.0), array.rotated(yaw)
    assert turned.positions == array.positions
    np.testing.assert_allclose(
        turned.arrival_times(azimuth + yaw, 20.0), straight.arrival_times(azimuth, 20.0), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(
        turned.gains(azimuth + yaw, 20.0), straight.gains(azimuth, 20.0), rtol=0, atol=1e-12
    )


def test_front_of_an_array_mounted_to_the_left_points_left() -> None:
    pair = MicArray("pair", ((0.1, 0.0, 0.0), (-0.1, 0.0, 0.0)), yaw=90.0)
    np.testing.assert_allclose(pair.coordinates, [[0, 0.1, 0], [0, -0.1, 0]], atol=1e-16)


def test_directional_microphones() -> None:
    cardioid = MicArray("c", SQUARE, pattern=0.5, facing=(0.0, 90.0, 180.0, 270.0), yaw=90.0)
    np.testing.assert_allclose(cardioid.gains(90.0), [1.0, 0.5, 0.0, 0.5], atol=1e-12)
    eight = MicArray("8", SQUARE, pattern=0.0)
    np.testing.assert_allclose(eight.gains([0.0, 90.0, 180.0])[:, 0], [1.0, 0.0, -1.0], atol=1e-12)
    assert (MicArray("o", SQUARE).gains(np.arange(360.0), 30.0) == 1.0).all()


def test_plain_channels_forgets_the_recording() -> None:
    array = load_array("respeaker-usb-4")
    assert array.channels == (1, 2, 3, 4)
    assert array.plain_channels() == replace(array, channels=(0, 1, 2, 3))


# ------------------------------------------------------------------------------------------ ambiguities


def test_ambiguities_in_words() -> None:
    (across,) = load_array("linear-4").ambiguities
    assert across == "front/back: directions mirrored at the line 90-270 degrees sound the same"
    (along,) = load_array("linear-4").rotated(90.0).ambiguities
    assert "line 0-180" in along
    standing = MicArray("standing", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0), (0.0, 0.0, 0.2)))
    assert standing.mirror_axis == pytest.approx(90.0)
    assert "front/back" in standing.ambiguities[0]
    for name in set(ARRAYS) - {"linear-4"}:
        assert ARRAYS[name].mirror_axis is None
        assert [text[:7] for text in ARRAYS[name].ambiguities] == ["up/down"]
    tilted = MicArray("tilted", tuple((x, y, 0.5 * x) for x, y, _ in SQUARE))
    assert tilted.ambiguities[0].startswith("up/down")
    solid = MicArray("solid", TETRAHEDRON)
    assert solid.mirror_axis is None
    assert solid.ambiguities == ()


@light
@given(st.floats(0, 360), st.floats(-360, 720), st.tuples(millimetres, millimetres, millimetres))
def test_mirror_axis_is_the_line_of_the_array(
    axis: float, yaw: float, at: tuple[float, float, float]
) -> None:
    found = line(axis, yaw, at).mirror_axis
    assert found is not None
    assert 0.0 <= found < 180.0
    assert float(distance(2 * found, 2 * (axis + yaw))) < 1e-6


HALF_DEGREES = np.arange(0.0, 360.0, 0.5)


def assert_folds(array: MicArray, axis: float) -> None:
    """fold() of an array whose line has the given azimuth in the frame of the results."""
    folded = np.asarray(array.fold(HALF_DEGREES))
    assert ((folded >= 0) & (folded < 360)).all()
    np.testing.assert_allclose(array.pair_delays(folded), array.pair_delays(HALF_DEGREES), rtol=0, atol=1e-14)
    assert distance(array.fold(folded), folded).max() < 1e-9
    assert distance(array.fold(2 * axis - HALF_DEGREES), folded).max() < 1e-6
    mirrored = 2 * axis - folded
    assert (distance(folded, array.yaw) <= distance(mirrored, array.yaw) + 1e-6).all()


@pytest.mark.parametrize("axis", [0.0, 90.0, 27.0])
def test_folding_a_line_keeps_its_delays_at_every_yaw(axis: float) -> None:
    for yaw in range(360):
        array = line(axis, float(yaw))
        assert_folds(array, axis + yaw)


@light
@given(st.floats(0, 360), st.floats(-360, 720))
def test_folding_any_line_keeps_its_delays(axis: float, yaw: float) -> None:
    assert_folds(line(axis, yaw), axis + yaw)


@light
@given(st.floats(0, 360), st.floats(-360, 720), st.lists(st.floats(-720, 720), min_size=1, max_size=4))
def test_what_sounds_the_same_is_told_at_both_places(axis: float, yaw: float, azimuth: list[float]) -> None:
    array = line(axis, yaw)
    given_ = np.array([[a, np.nan] for a in azimuth])
    one, nobody, image, nobody_either = array.alike(given_).T
    assert np.isnan([nobody, nobody_either]).all()
    assert np.array_equal(one, azimuth)
    np.testing.assert_allclose(array.arrival_times(image), array.arrival_times(one), atol=1e-9)
    assert distance(array.fold(image), array.fold(one)).max() < 1e-6
    flat = MicArray("square", SQUARE, yaw=yaw)
    assert flat.alike(given_) is given_


@pytest.mark.parametrize("yaw", range(0, 360, 15))
def test_line_across_folds_to_the_front_and_line_along_to_the_left(yaw: float) -> None:
    across, along = line(90.0, yaw), line(0.0, yaw)
    assert distance(across.fold(HALF_DEGREES), yaw).max() <= 90.0 + 1e-9
    turn = signed_difference(along.fold(HALF_DEGREES), yaw)
    on_the_line = np.minimum(distance(HALF_DEGREES, yaw), distance(HALF_DEGREES, yaw + 180)) < 1e-6
    assert (turn[~on_the_line] > 0).all()


@light
@given(st.lists(st.floats(-720, 720), min_size=1, max_size=5))
def test_array_that_tells_all_azimuths_apart_folds_nothing(azimuth: list[float]) -> None:
    for array in (MicArray("square", SQUARE, yaw=33.0), MicArray("solid", TETRAHEDRON)):
        assert np.array_equal(array.fold(azimuth), wrap(azimuth))


def test_array_of_two_dimensions_has_no_two_directions_with_the_same_delays() -> None:
    for array in (MicArray("square", SQUARE, yaw=33.0), MicArray("solid", TETRAHEDRON)):
        delays: NDArray[np.float64] = array.pair_delays(np.arange(360.0))
        nearest = np.abs(delays[:, None] - delays[None]).max(axis=-1) + np.eye(360)
        assert nearest.min() > 1e-6  # seconds: no two whole degrees have the same delays


def test_planar_array_cannot_tell_up_from_down_and_a_solid_one_can() -> None:
    azimuth = np.arange(0.0, 360.0, 10.0)
    for name in set(ARRAYS) - {"linear-4"}:
        array = ARRAYS[name]
        np.testing.assert_array_equal(array.pair_delays(azimuth, 40.0), array.pair_delays(azimuth, -40.0))
    solid = MicArray("solid", TETRAHEDRON)
    apart = np.abs(solid.pair_delays(azimuth, 40.0) - solid.pair_delays(azimuth, -40.0)).max(axis=-1)
    assert apart.min() > 1e-5


# ------------------------------------------------------------------------------------------------ ODAS

ODAS = """
# Configuration file for an array of four on a sound card of eight
version = "2.1";
raw:
{
    fS = 44100;   // samples a second
    hopSize = 512;
    nBits = 16;
    nChannels = 8;
    interface: { type = "soundcard"; card = 1; device = 0; }
}
mapping:
{
    map: (5, 6, 7, 8);  # counts from 1
}
general:
{
    samplerate: { mu = 16000; sigma2 = 0.01; };
    speedofsound: { mu = 343.0; sigma2 = 25.0; };
    mics = (
        # Microphone 1
        { mu = ( -0.0405, +0.0000, +0.0000 ); sigma2 = ( +1E-6, 0.0, 0.0 ); direction = ( 0.0, 0.0, 1.0 ); },
        # { mu = ( 9.0, 9.0, 9.0 ); } was here once
        { mu = ( 0.0, 4.05e-2, 0.0 ); },
        /* and
           { mu = ( 8.0, 8.0, 8.0 ); } too */
        { mu=(0.0405,0.0,0.0); },
        // { mu = ( 7.0, 7.0, 7.0 ); }
        { mu = (
            0.0,
            -0.0405,
            0.01 ); }
    );
}
sss: { separated: { fS = 16000; } }
"""


def odas(folder: str | Path, text: str | bytes) -> MicArray:
    file = Path(folder) / "card.cfg"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return import_odas(file)


def test_odas_configuration(tmp_path: Path) -> None:
    array = odas(tmp_path, ODAS)
    assert array.name == "card"
    assert array.channels == (4, 5, 6, 7)
    assert array.sample_rate == 44100
    assert array.positions == (
        (-0.0405, 0.0, 0.0),
        (0.0, 0.0405, 0.0),
        (0.0405, 0.0, 0.0),
        (0.0, -0.0405, 0.01),
    )
    assert "card.cfg" in array.description
    assert MicArray.from_toml(array.to_toml()) == array


def test_odas_configuration_without_map_and_rate(tmp_path: Path) -> None:
    array = odas(tmp_path, "mics = ( { mu = (0, 0.1, 0); }, { mu = (0, -0.1, 0); } );")
    assert (array.channels, array.sample_rate) == ((0, 1), 16000)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("mu", "nu", "no microphone found"),
        ("(5, 6, 7, 8)", "(5, 6, 7)", "needs 4 different channels"),
        ("(5, 6, 7, 8)", "(5, 6, 7, 7)", "needs 4 different channels"),
        ("(5, 6, 7, 8)", "(0, 1, 2, 3)", "channels count from 0"),
        ("(5, 6, 7, 8)", "(5, 6, 7, eight)", "eight"),
        ("(5, 6, 7, 8)", "()", r"card\.cfg"),
        ("4.05e-2", "4.05e--2", "could not convert"),
        ("4.05e-2", "40.5", "did you give centimetres"),
        ("4.05e-2", "1e999", "not finite"),
        ("44100", "44", "sample_rate"),
        ("44100", "9" * 5000, r"card\.cfg"),
        ("0.0, 4.05e-2, 0.0", "0.0405, 0.0, 0.0", "same place"),
    ],
)
def test_damaged_odas_configuration_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in ODAS
    with pytest.raises(ArrayError, match=why):
        odas(tmp_path, ODAS.replace(old, new))


def test_odas_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ArrayError, match="cannot read"):
        import_odas(tmp_path / "none.cfg")
    with pytest.raises(ArrayError, match="cannot read"):
        odas(tmp_path, b"\xff\xfe" + ODAS.encode())
    with pytest.raises(ArrayError, match="no microphone found"):
        odas(tmp_path, "")


TOKENS = [*"=:(),;{}#-e12 \n\u0663", "mu", "map", "fS", "//", "/*", "*/", "0.1", "-0.1", "1e308", "16000"]
STATEMENTS = [
    "mu = (0.1, 0, 0);",
    "mu = (0, 0.1, 0);",
    "mu = (-1e308, 1e308, 0);",
    "map: (1, 2);",
    "fS = 8000;",
]
tokens = st.sampled_from(TOKENS + STATEMENTS)


@settings(max_examples=150, deadline=None)
@given(st.lists(tokens, max_size=25).map("".join) | st.text(max_size=60))
def test_odas_of_any_text_gives_an_array_or_an_array_error(text: str) -> None:
    with TemporaryDirectory() as folder:
        try:
            array = odas(folder, text)
        except ArrayError:
            return
    assert MicArray.from_toml(array.to_toml()) == array


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 170_000,
        "/* * " * 70_000,
        "map = (" * 50_000,
        "map = (1," * 36_000,
        "mu = (1, 2," * 30_000,
        "mu=(" + "1" * 1_000_000,
        '"\\"' * 100_000,
        "mu = (0.1, 0.2, 0.3);\n" * 15_000,
        "mu" + " " * 1_000_000,
    ],
    ids=lambda text: text[:9].strip(),
)
def test_a_long_hostile_odas_file_takes_no_time(tmp_path: Path, text: str) -> None:
    """Comments that were never closed took minutes, with the square of their number."""
    started = time.process_time()
    with pytest.raises(ArrayError):
        odas(tmp_path, text)
    assert time.process_time() - started < 1


def test_strings_of_an_odas_file_hold_no_settings(tmp_path: Path) -> None:
    array = odas(tmp_path, ODAS.replace('"2.1"', '"\\"/* mu = (9, 9, 9); map: (9); fS = 9; "'))
    assert array == odas(tmp_path, ODAS)


def test_files_that_are_too_large_are_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * (LARGEST_TOML + 1))
    with pytest.raises(ArrayError, match="no array file has"):
        load_array(tmp_path / "large.toml")
    with pytest.raises(ArrayError, match="no array file has"):
        odas(tmp_path, "#" * (LARGEST_ODAS + 1))


def test_the_most_microphones_are_checked_in_time() -> None:
    ring = tuple((float(np.cos(t)), float(np.sin(t)), 0.0) for t in np.linspace(0, 6.28, 1024))
    started = time.process_time()
    assert MicArray("ring", ring).aperture == pytest.approx(2, abs=1e-4)
    with pytest.raises(ArrayError, match="microphones 3 and 1023 sit at the same place"):
        MicArray("ring", (*ring[:-1], ring[3]))
    with pytest.raises(ArrayError, match="channels count from 0"):
        MicArray("ring", (*ring, *ring))
    assert time.process_time() - started < 3


def test_names_in_a_file_steer_no_terminal() -> None:
    array = MicArray("a\x9b31m\u202e\x7f", SQUARE, description="b\x1b[0m\n")
    assert array.to_toml().replace("\n", "").isprintable()
    assert MicArray.from_toml(array.to_toml()) == array


def test_a_long_number_of_an_odas_file_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    file = tmp_path / "long.cfg"
    file.write_text("mics = ({ mu = (0.02, 0, 0); }, { mu = (" + "1.2" * 5000 + ", 0, 0); });")
    with pytest.raises(ArrayError, match="could not convert") as refused:
        import_odas(file)
    assert len(str(refused.value)) < 1000
