"""From sound to tracks: a recording, or blocks as they come, with any method or a `Localizer`.

Frames and maps come from `localizer.stream`, the one loop for all; the `Tracker` takes them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tytoalba.errors import PriorError, TytoError
from tytoalba.learning.prior.registry import fitting_prior
from tytoalba.live.background import Background
from tytoalba.live.segments import Moment, Segment, segments
from tytoalba.live.settings import Settings
from tytoalba.live.tracker import AUTO, Tracker
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import new_stream
from tytoalba.localizer.stream import Blocks, Heard, Sound, Stream, sound_blocks
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import SILENCE_DB
from tytoalba.signal.gcc import Band
from tytoalba.storage.age import Keys

NO_SOUND = -240.0
"""dB of full scale: the level of digital silence, and of no sound at all."""


class Following:
    """Sound in, who is there out, as soon as a frame is complete; it never looks ahead.

    Parameters
    ----------
    array, method, background, settings, band, silence_db, ignore_steady, sample_rate, keys
        As for `track`; sample_rate and keys are for a background.

    Examples
    --------
    >>> import numpy as np
    >>> following = Following("respeaker-usb-4", "srp")
    >>> noise = np.random.default_rng(0).standard_normal((4, 4096)) * 0.1
    >>> [len(following.feed(block)) for block in np.split(noise, 4, axis=1)]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        array: MicArray | Localizer | str | Path,
        method: str | None = None,
        *,
        background: Sound | Background | float | None = None,
        settings: Settings | None = None,
        band: Band | None = None,
        silence_db: float = SILENCE_DB,
        ignore_steady: bool = False,
        sample_rate: int | None = None,
        keys: Keys = None,
    ) -> None:
        stream = self._stream = tracking_stream(
            array, method, band=band, silence_db=silence_db, ignore_steady=ignore_steady
        )
        known: Background | float | str | None
        if background is None or isinstance(background, Background):
            known = background
        elif isinstance(background, int | float):
            known = float(background)
        elif isinstance(background, str) and background == AUTO:
            known = AUTO
        else:
            known = learn_background(background, stream, sample_rate=sample_rate, keys=keys)
        self._tracker = Tracker(stream.finder.counting, settings or Settings(), known)

    @property
    def array(self) -> MicArray:
        """The array, as it is mounted."""
        return self._stream.finder.array

    def use(self, localizer: Localizer) -> None:
        """Go on with another localizer of the same array, such as one that was taught; tracks stay.

        It may come from another thread than the sound. Only for what began with a localizer.
        """
        assert localizer.model  # solved here, not in the thread of the sound
        self._stream.use(tracking_stream(localizer).finder)

    def feed(self, block: NDArray[Any]) -> list[Moment]:
        """Take a block of sound, give the frames that are now complete.

        Parameters
        ----------
        block : array, (n_mics, any length)
            Floats in [-1, 1] at the array's rate.

        Returns
        -------
        list of Moment
            Who is there in each frame: `time`, `level`, `tracks`, `scores`.

        Raises
        ------
        AudioError
            A block that cannot be right.
        """
        return [self._moment(heard) for heard in self._stream.hear(block)]

    def run(self, blocks: Iterable[NDArray[Any]]) -> Iterator[Moment]:
        """All of a recording that comes in blocks; AudioError where it is too short for one frame."""
        return (self._moment(heard) for heard in self._stream.run_heard(blocks))

    def restart(self, start: int) -> None:
        """Sound was lost: the next block begins at this sample, counted at the array's rate.

        No frame joins what came before and after, tracks go on.
        """
        self._stream.restart(start)

    def absent(self, time: float) -> Moment:
        """Who is there at a time, in seconds, of which there is no sound, such as of an unplugged device.

        Time must rise, and `restart` must follow before sound does.
        """
        return self._moment(Heard(time, NO_SOUND, None))

    def _moment(self, heard: Heard) -> Moment:
        array = self.array
        scores = scores_of(self._stream, heard)
        found = self._tracker.update(scores, heard.time, heard.level)
        if array.mirror_axis is not None:  # the belief may reach a little behind the line
            found = [one.at(float(array.fold(one.azimuth))) for one in found]
        return Moment(round(heard.time, 4), round(heard.level, 1), tuple(found), scores)


def scores_of(stream: Stream, heard: Heard) -> Float | None:
    """Scores of a frame that was heard, (360,); None in silence."""
    return None if heard.maps is None else stream.finder.scores(heard.maps[None])[0]


def tracking_stream(
    array: MicArray | Localizer | str | Path,
    method: str | None = None,
    *,
    band: Band | None = None,
    silence_db: float = SILENCE_DB,
    ignore_steady: bool = False,
) -> Stream:
    """What `Following` runs on; method: "prior" where the array has one, else "srp", if not given."""
    if isinstance(array, str | Path):
        array = load_array(array)
    if method is None and isinstance(array, MicArray):
        method = "prior" if band is None and _has_prior(array) else "srp"
    return new_stream(
        array, method, n_sources="auto", band=band, silence_db=silence_db, ignore_steady=ignore_steady
    )


def follow(
    source: Sound | Blocks,
    array: MicArray | Localizer | str | Path,
    method: str | None = None,
    *,
    background: Sound | Background | float | None = None,
    settings: Settings | None = None,
    band: Band | None = None,
    silence_db: float = SILENCE_DB,
    ignore_steady: bool = False,
    sample_rate: int | None = None,
    keys: Keys = None,
) -> Iterator[Moment]:
    """As `track`, frame by frame: who is there in each, as soon as its last sample has come."""
    following = Following(
        array,
        method,
        background=background,
        settings=settings,
        band=band,
        silence_db=silence_db,
        ignore_steady=ignore_steady,
        sample_rate=sample_rate,
        keys=keys,
    )
    return following.run(sound_blocks(source, following.array, sample_rate, keys))


def track(
    source: Sound | Blocks,
    array: MicArray | Localizer | str | Path,
    method: str | None = None,
    *,
    background: Sound | Background | float | None = None,
    settings: Settings | None = None,
    band: Band | None = None,
    silence_db: float = SILENCE_DB,
    ignore_steady: bool = False,
    sample_rate: int | None = None,
    keys: Keys = None,
) -> list[Segment]:
    """Tell who talks when and where in a recording: segments with identities.

    Parameters
    ----------
    source : path, list of paths, binary file object, array or iterator of blocks
        As for `tytoalba.locate`.
    array : MicArray, str, Path or Localizer
        The array that recorded it, or a localizer.
    method : {"prior", "srp", "music"}, optional
        "prior" where the array has one, else "srp", if not given. Without a prior there are no calibrated
        probabilities, and a quarter of what two talkers say is missed. None with a `Localizer`.
    background : float, "auto", recording or Background, optional
        What sounds all the time, a fan or a television, to be left out: seconds at the start of the recording
        in which nobody talks; or "auto", a fan that is learned by itself; or a recording of it.
    settings : Settings, optional
        How talkers are followed.
    band, silence_db, ignore_steady, sample_rate, keys
        As for `tytoalba.locate`.

    Returns
    -------
    list of Segment
        By their start.

    Raises
    ------
    AudioError
        The recording cannot be used: missing, damaged, too short, the wrong channels.
    TytoError
        Options that do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from tytoalba import load_array, track
    >>> array = load_array("respeaker-usb-4")
    >>> noise = np.random.default_rng(0).standard_normal(16000)
    >>> spectrum, hertz = np.fft.rfft(noise), np.fft.rfftfreq(16000, 1 / 16000)
    >>> shift = np.exp(-2j * np.pi * hertz * array.arrival_times(130.0)[:, None])
    >>> wave = 0.1 * np.fft.irfft(spectrum * shift)  # one second from 130 degrees, (4, 16000)
    >>> [(one.id, one.start, round(one.azimuth)) for one in track(wave, array, "srp")]
    [(1, 0.043, 130)]
    """
    found = follow(
        source,
        array,
        method,
        background=background,
        settings=settings,
        band=band,
        silence_db=silence_db,
        ignore_steady=ignore_steady,
        sample_rate=sample_rate,
        keys=keys,
    )
    return sorted(segments(found), key=lambda one: (one.start, one.id))


def learn_background(
    source: Sound | Blocks, stream: Stream, *, sample_rate: int | None = None, keys: Keys = None
) -> Background:
    """The background in a recording of it alone; stream: of `tracking_stream`, as new afterwards."""
    heard = stream.run_heard(sound_blocks(source, stream.finder.array, sample_rate, keys))
    learned = Background.learned(scores_of(stream, frame) for frame in heard)
    if not learned.n_frames:
        raise TytoError("the recording of the background is silent: there is nothing to leave out")
    return learned


def _has_prior(array: MicArray) -> bool:
    try:
        fitting_prior(array)
    except PriorError:
        return False
    return True
