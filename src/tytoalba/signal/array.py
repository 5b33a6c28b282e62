"""Metres: where the microphones sit, what they can and cannot tell apart, and the files that say so.

Origin at the array's centre, x to the front, y to the left, z up; azimuth = atan2(y, x), so 0 is
front and 90 is left. `yaw` is where the array's own front points in the frame that results are
reported in: an array mounted with its front to the left has yaw 90.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import ArrayError
from tytoalba.signal.angles import Float, distance, grid, signed_difference, wrap
from tytoalba.signal.odas import find_settings
from tytoalba.texts.parsing import LARGEST_TOML, parse_toml

SPEED_OF_SOUND = 343.0
LARGEST_ARRAY = 5.0
LARGEST_ODAS = 2**20
"""Bytes of an ODAS configuration; those that come with ODAS have up to 20 KB."""
COINCIDENT = 1e-4
"""Microphones closer than this (metres) are taken for a typing error."""

REQUIRED = {
    "name": 'such as name = "mine"',
    "positions": "one [x, y] or [x, y, z] per microphone, in metres",
    "sample_rate": "Hz, what the array records at, such as sample_rate = 16000",
}
"""Keys that every array file has, and what to write there."""

Position = tuple[float, float, float]


@dataclass(frozen=True, repr=False)
class MicArray:
    """A microphone array: where its microphones are, and how they are recorded.

    Parameters
    ----------
    name : str
    positions : sequence of (x, y, z) or (x, y)
        Metres, one per microphone: x to the front, y to the left, z up.
    sample_rate : int
        Hz, what the array records at.
    channels : sequence of int
        The channel of a recording that each microphone is, counted from 0; by default 0, 1, 2...
    pattern : float
        1 omnidirectional, 0.5 cardioid; gain = pattern + (1 - pattern) cos(angle to facing).
    facing : sequence of float
        Azimuth in degrees that directional microphones point to, in the array's own frame: one for all or
        one per microphone.
    yaw : float
        Degrees, where the array's front points in the frame of the results.
    description : str

    Raises
    ------
    ArrayError
        Where the array cannot be right: microphones at one place, centimetres for metres, channels given
        twice.

    Examples
    --------
    >>> array = MicArray("pair", ((0.0, 0.1), (0.0, -0.1)), sample_rate=16000)
    >>> array
    MicArray('pair', 2 microphones, 16000 Hz, 200 mm across)
    >>> array.n_pairs, round(array.max_delay, 2)
    (1, 9.33)
    >>> array.ambiguities
    ('front/back: directions mirrored at the line 90-270 degrees sound the same',)
    """

    name: str
    positions: tuple[Position, ...]
    sample_rate: int = 48000
    channels: tuple[int, ...] = ()
    pattern: float = 1.0
    facing: tuple[float, ...] = (0.0,)
    yaw: float = 0.0
    description: str = ""

    def __post_init__(self) -> None:
        _set = object.__setattr__  # the only place where a frozen array is touched: tidy the input
        _set(self, "positions", _tidy_positions(self.name, self.positions))
        _set(self, "channels", tuple(map(_plain, self.channels)) or tuple(range(self.n_mics)))
        _set(self, "sample_rate", _plain(self.sample_rate))
        _set(self, "facing", _number(self, "facing", "degrees", _flat))
        _set(self, "yaw", _number(self, "yaw", "degrees"))
        _set(self, "pattern", _number(self, "pattern", "a number from 0 to 1"))
        _check_texts_and_channels(self)
        _check_positions(self)

    def __repr__(self) -> str:
        size = f"{1000 * self.aperture:.0f} mm across"
        return f"MicArray({self.name!r}, {self.n_mics} microphones, {self.sample_rate} Hz, {size})"

    @property
    def n_mics(self) -> int:
        """How many microphones."""
        return len(self.positions)

    @property
    def n_pairs(self) -> int:
        """How many pairs of microphones."""
        return self.n_mics * (self.n_mics - 1) // 2

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs (i, j), i < j, in the order 01 02 03 12 13 23 of every feature."""
        return tuple(combinations(range(self.n_mics), 2))

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """Positions in metres, turned by yaw into the frame of the results: (n_mics, 3)."""
        turn = np.deg2rad(self.yaw)
        rotation = np.array(
            [[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0], [0.0, 0.0, 1.0]]
        )
        turned: NDArray[np.float64] = np.asarray(self.positions) @ rotation.T
        return turned

    @cached_property
    def aperture(self) -> float:
        """Largest distance between two microphones in metres."""
        apart = _distances(self.coordinates)
        farthest = np.argwhere(np.triu(apart >= apart.max() * (1 - 1e-9)))
        norms = [float(np.linalg.norm(self.coordinates[i] - self.coordinates[j])) for i, j in farthest]
        return max(norms, default=float(apart.max()))  # the last where it is not finite

    @property
    def max_delay(self) -> float:
        """Largest delay between two microphones in samples."""
        return self.aperture / SPEED_OF_SOUND * self.sample_rate

    @property
    def max_lag(self) -> int:
        """Lags (samples) that the features keep on either side: twice the largest delay, 25 for Pepper."""
        return max(2, int(2 * self.max_delay))

    @property
    def frame_length(self) -> int:
        """Samples of a frame: 170.7 ms as in the paper, 8192 at 48 kHz; frames advance by half of it."""
        return 2 * round(self.sample_rate * 4096 / 48000)

    def arrival_times(self, azimuth: ArrayLike, elevation: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Seconds after the origin at which a plane wave reaches each microphone: (..., n_mics).

        azimuth, elevation: degrees, where the wave comes from; they broadcast.
        """
        return -(unit_vector(azimuth, elevation) @ self.coordinates.T) / SPEED_OF_SOUND

    def pair_delays(self, azimuth: ArrayLike, elevation: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Seconds by which a plane wave reaches j later than i, for each pair: (..., n_pairs)."""
        arrival = self.arrival_times(azimuth, elevation)
        first, second = np.asarray(self.pairs).T
        return arrival[..., second] - arrival[..., first]

    def gains(self, azimuth: ArrayLike, elevation: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Sensitivity of each microphone to a wave from a direction (degrees): (..., n_mics)."""
        facing = unit_vector(np.broadcast_to(self.facing, self.n_mics) + self.yaw, 0.0)  # (M, 3)
        return self.pattern + (1.0 - self.pattern) * (unit_vector(azimuth, elevation) @ facing.T)

    @cached_property
    def mirror_axis(self) -> float | None:
        """Azimuth (degrees in [0, 180)) of the line the array lies on as seen from above.

        A direction and its mirror image at that line give the same delays. None if the array has
        two horizontal dimensions and tells all azimuths apart.
        """
        spread, axes = _principal_axes(self.coordinates[:, :2])
        if spread[1] > COINCIDENT:
            return None
        return float(wrap(np.rad2deg(np.arctan2(axes[0, 1], axes[0, 0]))).item() % 180.0)

    @cached_property
    def ambiguities(self) -> tuple[str, ...]:
        """What delays between these microphones cannot tell, in words; empty for a 3-D array."""
        if self.mirror_axis is not None:
            line = f"{self.mirror_axis:.0f}-{self.mirror_axis + 180:.0f}"
            return (f"front/back: directions mirrored at the line {line} degrees sound the same",)
        spread, _ = _principal_axes(self.coordinates)
        if spread[2] <= COINCIDENT:
            return ("up/down: directions mirrored at the array's plane sound the same",)
        return ()

    def fold(self, azimuth: ArrayLike) -> NDArray[np.floating[Any]]:
        """The representative of each azimuth (degrees) among those that sound the same.

        For an array on a line: the one nearer to the array's front, or on its left if the line runs
        from front to back; otherwise the azimuth itself.
        """
        if self.mirror_axis is None:
            return wrap(azimuth)
        direct, mirrored = wrap(azimuth), wrap(2 * self.mirror_axis - np.asarray(azimuth))
        ahead = distance(direct, self.yaw) - distance(mirrored, self.yaw)
        left = signed_difference(direct, self.yaw) >= 0
        return np.where((ahead < -1e-9) | ((np.abs(ahead) <= 1e-9) & left), direct, mirrored)

    def alike(self, azimuth: Float) -> Float:
        """Azimuths (n_frames, n_sources) beside all others that sound the same: for an array on a line twice
        as many, otherwise those that were given.

        A learner needs all of them: given one of two, or each in turn, it comes to believe in half of each.

        >>> load_array("linear-4").alike(np.array([[30.0, np.nan]])).tolist()
        [[30.0, nan, 150.0, nan]]
        """
        if self.mirror_axis is None:
            return azimuth
        return np.concatenate([azimuth, wrap(2 * self.mirror_axis - azimuth)], axis=1)

    def without_images(self, maps: Float) -> Float:
        """Maps (n_frames, n_directions) of an array on a line with their mirror images set to -inf.

        Otherwise the second peak of one source would be its own image. Maps of other arrays do not change.
        """
        if self.mirror_axis is None:
            return maps
        directions = grid(maps.shape[1])
        return np.where(distance(self.fold(directions), directions) > 1e-6, -np.inf, maps)

    def rotated(self, yaw: float) -> MicArray:
        """The same array mounted with its front at `yaw` degrees."""
        return replace(self, yaw=yaw)

    def plain_channels(self) -> MicArray:
        """The same array for sound that has one channel a microphone, in order."""
        return replace(self, channels=tuple(range(self.n_mics)))

    def to_toml(self) -> str:
        """The array as the text of its file."""
        rows = ",\n".join(f"    [{x!r}, {y!r}, {z!r}]" for x, y, z in self.positions)
        return (
            f"name = {_quoted(self.name)}\n"
            f"description = {_quoted(self.description)}\n"
            f"sample_rate = {self.sample_rate}\n"
            f"channels = {list(self.channels)}\n"
            f"yaw = {self.yaw!r}\n"
            f"pattern = {self.pattern!r}  # 1 omnidirectional, 0.5 cardioid\n"
            f"facing = {list(self.facing)}\n"
            f"# metres: x front, y left, z up\n"
            f"positions = [\n{rows},\n]\n"
        )

    @classmethod
    def from_toml(cls, text: str, source: str = "array file") -> MicArray:
        """Read an array from the text of its file; unknown keys are refused by name."""
        try:
            table = parse_toml(text)
        except ValueError as error:
            raise ArrayError(f"{source} is not valid TOML: {error}") from error
        known = set(cls.__dataclass_fields__)
        if unknown := sorted(set(table) - known):
            raise ArrayError(
                f"{source}: unknown key {unknown[0]!r:.80}; known keys: {', '.join(sorted(known))}"
            )
        if missing := [key for key in REQUIRED if key not in table]:
            raise ArrayError(f"{source}: key {missing[0]!r} is missing: {REQUIRED[missing[0]]}")
        for key in ("channels", "facing"):
            if isinstance(table.get(key), list):
                table[key] = tuple(table[key])
        try:
            return cls(**table)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArrayError(f"{source}: {error}") from error


def builtin_arrays() -> dict[str, MicArray]:
    """Every array that comes with tytoalba.

    Returns
    -------
    dict of str to MicArray
        By name.

    Examples
    --------
    >>> builtin_arrays()["respeaker-usb-4"]
    MicArray('respeaker-usb-4', 4 microphones, 16000 Hz, 65 mm across)
    """
    folder = resources.files("tytoalba") / "resources" / "arrays"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    arrays = [MicArray.from_toml(f.read_text(encoding="utf-8"), f.name) for f in files]
    return {array.name: array for array in arrays}


def load_array(array: MicArray | str | Path) -> MicArray:
    """A built-in array by its name, or any array from its TOML file.

    Parameters
    ----------
    array : MicArray, str or Path
        A name of `builtin_arrays` (`tyto array list`), or a TOML file (docs/your-array.md). An array is given
        back as it is.

    Returns
    -------
    MicArray

    Raises
    ------
    ArrayError
        No such array or file, or a file that holds no array.

    Examples
    --------
    >>> load_array("pepper").channels
    (0, 1, 2, 3)
    """
    if isinstance(array, MicArray):
        return array
    builtin, name = builtin_arrays(), str(array)
    if name in builtin:
        return builtin[name]
    path = Path(array)
    if not path.is_file():
        near = get_close_matches(name.lower(), builtin, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ArrayError(
            f"no array called {name!r}{meant} and no such file; built in: {', '.join(builtin)}. "
            "Your own: a TOML file (tyto array show pepper --toml)"
        )
    return MicArray.from_toml(_read_text(path), str(path))


def import_odas(path: str | Path) -> MicArray:
    """The array of an ODAS configuration.

    Parameters
    ----------
    path : str or Path
        A file (`.cfg`) with positions `mu = (x, y, z)`, the channel map `map` (counted from 1) and the
        sample rate `fS` (16000 Hz where it is missing).

    Returns
    -------
    MicArray
        Named as the file.

    Raises
    ------
    ArrayError
        A file that cannot be read, or holds no microphones.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", prefix="robot", suffix=".cfg") as file:
    ...     _ = file.write("raw: { fS = 16000; } mics = ({ mu = (0.02, 0, 0); }, { mu = (-0.02, 0, 0); });")
    ...     file.flush()
    ...     import_odas(file.name).positions
    ((0.02, 0.0, 0.0), (-0.02, 0.0, 0.0))
    """
    path = Path(path)
    found = find_settings(_read_text(path, LARGEST_ODAS))
    if not found.positions:
        raise ArrayError(f"{path}: no microphone found; expected ODAS entries like mu = ( x, y, z );")
    if found.channels == []:
        raise ArrayError(f"{path}: the channel map is empty; expected map: (1, 2, ...), one per microphone")
    try:
        return MicArray(
            name=path.stem,
            positions=tuple((float(x), float(y), float(z)) for x, y, z in found.positions),
            sample_rate=int(found.rate or 16000),
            channels=tuple(int(channel) - 1 for channel in found.channels or ()),
            description=f"imported from the ODAS configuration {path.name}",
        )
    except ValueError as error:
        raise ArrayError(f"{path}: {str(error)[:300]}") from error  # a number may be as long as a book


def unit_vector(azimuth: ArrayLike, elevation: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Unit vectors pointing to directions in degrees: (..., 3)."""
    az, el = np.broadcast_arrays(np.deg2rad(azimuth), np.deg2rad(elevation))
    return np.stack([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)], axis=-1)


def _distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Metres between each two of some points: (n, n)."""
    found: NDArray[np.float64] = np.linalg.norm(points[:, None] - points, axis=2)
    return found


def _principal_axes(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centred = points - points.mean(axis=0)
    _, spread, axes = np.linalg.svd(centred)
    return np.pad(spread, (0, points.shape[1] - len(spread))), axes


def _plain(value: Any) -> Any:
    """Whole numbers of numpy, and bool, as int: what their file can say."""
    return int(value) if isinstance(value, int | np.integer) else value


def _quoted(text: str) -> str:
    """A TOML string: JSON's, but TOML knows no surrogate pairs, and what steers a terminal is escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _read_text(path: Path, most: int = LARGEST_TOML) -> str:
    """What a file says. most: bytes; a longer one is refused before it is read."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ArrayError(f"{path} has more than {most} bytes, and no array file has; check the path")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArrayError(f"cannot read {path}: {error}") from error


def _tidy_positions(name: str, positions: Any) -> tuple[Position, ...]:
    try:
        rows = [tuple(float(value) for value in row) for row in positions]
    except (TypeError, ValueError, OverflowError) as error:
        raise ArrayError(
            f"array {name!r}: positions must be numbers in metres, got {positions!r:.200}"
        ) from error
    if any(len(row) not in (2, 3) for row in rows):
        raise ArrayError(f"array {name!r}: each position needs (x, y) or (x, y, z) in metres")
    return tuple((*row, 0.0)[:3] for row in rows)  # type: ignore[misc]


def _number(array: MicArray, key: str, expected: str, convert: Callable[[Any], Any] = float) -> Any:
    value = getattr(array, key)
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        _refuse(array, f"{key} must be {expected}, got {value!r}")


def _flat(values: Any) -> tuple[float, ...]:
    return tuple(np.ravel(np.asarray(values, dtype=np.float64)).tolist())


def _check_texts_and_channels(array: MicArray) -> None:
    if not isinstance(array.name, str) or not array.name.strip():
        raise ArrayError("an array needs a name")
    if not isinstance(array.description, str):
        _refuse(array, f"description must be text, got {array.description!r}")
    if len(array.channels) != array.n_mics or len(set(array.channels)) != array.n_mics:
        _refuse(array, f"needs {array.n_mics} different channels, one per microphone, got {array.channels}")
    if not all(isinstance(c, int) and 0 <= c < 1024 for c in array.channels):
        _refuse(array, f"channels count from 0 (first channel), got {list(array.channels)}")
    if not isinstance(array.sample_rate, int) or not 1000 <= array.sample_rate <= 1_000_000:
        _refuse(array, f"sample_rate must be whole Hz between 1000 and 1000000, got {array.sample_rate!r}")
    if not 0.0 <= array.pattern <= 1.0:
        _refuse(
            array,
            f"pattern must be between 0 (figure of eight) and 1 (omnidirectional), got {array.pattern}",
        )
    if len(array.facing) not in (1, array.n_mics) or not np.isfinite(array.facing).all():
        _refuse(array, "facing must be one azimuth, or one per microphone, in degrees")
    if not np.isfinite(array.yaw):
        _refuse(array, f"yaw must be degrees, got {array.yaw}")


def _check_positions(array: MicArray) -> None:
    xyz = np.asarray(array.positions)
    if array.n_mics < 2:
        _refuse(array, f"needs at least 2 microphones, got {array.n_mics}")
    if not np.isfinite(xyz).all():
        _refuse(array, "a position is not finite")
    with np.errstate(over="ignore", invalid="ignore"):
        aperture = array.aperture
    if not aperture <= LARGEST_ARRAY:  # or not a number: positions so large that they overflow
        _refuse(
            array,
            f"{aperture:.4g} m across, larger than {LARGEST_ARRAY:g} m; "
            "positions are metres: did you give centimetres or millimetres?",
        )
    for i, j in np.argwhere(np.triu(_distances(xyz) < COINCIDENT, 1))[:1]:
        _refuse(array, f"microphones {i} and {j} sit at the same place; one of them is a typing error")
    if _principal_axes(array.coordinates[:, :2])[0][0] <= COINCIDENT:
        _refuse(array, "all microphones are above each other: no azimuth can be told from them")


def _refuse(array: MicArray, why: str) -> NoReturn:
    raise ArrayError(f"array {array.name[:80]!r}: {why[:500]}")
