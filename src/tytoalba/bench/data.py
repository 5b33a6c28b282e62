"""The data of a benchmark as features: training, validation and test parts, quiet and noisy.

Wherever it comes from - a simulation, SSLR, one's own folder, or the features that the paper's authors
published - methods and tables see the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.datasets import open_dataset
from tytoalba.data.features import FeatureSet, describe, extract, extract_noisy, read_description
from tytoalba.data.mat import Files, open_mat, read_mat
from tytoalba.data.recording import Recording
from tytoalba.data.simulation.features import simulate_features, simulate_noisy
from tytoalba.data.simulation.noise import AnyNoise, Noise
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.scenes import SceneNoise
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.gcc import Band, GccPhat
from tytoalba.storage.age import Keys
from tytoalba.storage.tensors import read_tensors, write_tensors

FORMAT = "tytoalba-benchdata"
CLEAN = "clean"
NOISY = "noisy train"
VALIDATION_SHARE = 0.1
"""Of training recordings, where a data set has no validation part of its own."""
Announce = Callable[[str, int, int], None]
"""Called with (what is being prepared, recordings done, recordings in all)."""


@dataclass(frozen=True)
class Frames:
    """Features X (n_frames, n_inputs) and azimuth (n_frames, n_sources) in degrees, NaN padded.

    place: recording and number of each frame there, (n_frames, 2), where that is known.
    """

    X: NDArray[np.float32]
    azimuth: Float
    place: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def recording(self) -> NDArray[np.int64]:
        """Number of each frame's recording; where that is not known each frame is its own."""
        return np.arange(len(self)) if self.place is None else self.place[:, 0]

    def take(self, rows: NDArray[Any]) -> Frames:
        """Some of them."""
        return Frames(self.X[rows], self.azimuth[rows], None if self.place is None else self.place[rows])

    def with_sources(self, most: int) -> Frames:
        """Those with one source at least and `most` at most."""
        n_sources = np.isfinite(self.azimuth).sum(axis=1)
        return self.take((n_sources >= 1) & (n_sources <= most))


@dataclass(frozen=True)
class BenchData:
    """All that a benchmark runs on. tests: frames by (condition, part), e.g. ("white -10 dB", "test").

    noisy_train: the training frames in the noises that priors are trained in, one for each recording.
    """

    name: str
    train: Frames
    valid: Frames | None
    tests: dict[tuple[str, str], Frames]
    array: MicArray | None
    gcc: GccPhat | None
    noisy_train: Frames | None = None

    @property
    def n_inputs(self) -> int:
        """Values of a frame."""
        return int(self.train.X.shape[1])

    def seen_by(self, options: Mapping[str, Any]) -> BenchData:
        """What a method is shown whose options say so (`config.SEES`)."""
        data = self.noisy if options.get("noisy", False) else self
        if options.get("plain", False):
            return data.plain
        return data if options.get("windows", True) else data.whole

    @property
    def noisy(self) -> BenchData:
        """The same with training frames in noise."""
        if self.noisy_train is None:
            raise DataError(f"{self.name} has no training frames in noise: leave out the option noisy")
        return replace(self, train=self.noisy_train, noisy_train=None)

    def valid_halves(self) -> tuple[Frames, Frames]:
        """Validation frames in two halves, by recording: one to stop by, one to judge by.

        Recordings go in twos: those of a simulation take rooms in turn, and both halves shall have all.
        """
        if self.valid is None:
            raise DataError(f"{self.name} has no validation part: leave out the option patience")
        second = self.valid.recording // 2 % 2 == 1
        return self.valid.take(~second), self.valid.take(second)

    @property
    def whole(self) -> BenchData:
        """The same of whole frames, without windows: views of the features, which are not copied."""
        gcc = self._whole_gcc()
        return self._seen(lambda X: X[:, : gcc.n_features], gcc)

    @property
    def plain(self) -> BenchData:
        """The same of whole frames and one band from the lowest to the highest, as the paper has it.

        Bands count by their bins; a bin at an edge of two bands counts twice. Features that come without
        their GCC-PHAT, as the authors' do, stay as they are.
        """
        if self.gcc is None:
            return self
        gcc = self._whole_gcc()
        edges, share = np.array(gcc.band_list), gcc.band_shares.astype(np.float32)
        if not np.array_equal(edges[1:, 0], edges[:-1, 1]):
            raise DataError(
                f"the bands {gcc.band_list} Hz do not follow each other: leave out the option plain"
            )

        def together(X: NDArray[np.float32]) -> NDArray[np.float32]:
            bands = X[:, : gcc.n_features].reshape(len(X), len(share), -1)
            return np.asarray(np.einsum("b,nbf->nf", share, bands))

        return self._seen(together, replace(gcc, bands=(float(edges[0, 0]), float(edges[-1, 1]))))

    def _whole_gcc(self) -> GccPhat:
        if self.gcc is None or self.gcc.n_features != self.n_inputs:
            raise DataError(
                f"nobody knows which features of {self.name} are of whole frames, as they come without their "
                "GCC-PHAT: leave out the options windows and plain"
            )
        return self.gcc.whole

    def _seen(self, how: Callable[[NDArray[np.float32]], NDArray[np.float32]], gcc: GccPhat) -> BenchData:
        """All frames as other features of theirs."""

        def other(frames: Frames) -> Frames:
            return replace(frames, X=how(frames.X))

        tests = {key: other(frames) for key, frames in self.tests.items()}
        valid, noisy = (other(frames) if frames else None for frames in (self.valid, self.noisy_train))
        return replace(self, train=other(self.train), valid=valid, tests=tests, gcc=gcc, noisy_train=noisy)

    def save(self, path: str | Path) -> None:
        """Write everything to a safetensors file, so that a stopped benchmark or a second process has it."""
        sets = {"train": self.train, **({"valid": self.valid} if self.valid else {})}
        sets |= {NOISY: self.noisy_train} if self.noisy_train else {}
        sets |= {f"test/{condition}/{part}": frames for (condition, part), frames in self.tests.items()}
        tensors = {f"{name}/X": np.ascontiguousarray(frames.X) for name, frames in sets.items()}
        labels = {f"{name}/azimuth": np.ascontiguousarray(f.azimuth, np.float64) for name, f in sets.items()}
        places = {f"{name}/place": f.place for name, f in sets.items() if f.place is not None}
        recipe: dict[str, Any] = {"format": FORMAT, "name": self.name, "tests": list(self.tests)}
        if self.array is not None and self.gcc is not None:
            recipe |= {"array": self.array.to_toml(), "gcc": describe(self.gcc)}
        write_tensors(path, {**tensors, **labels, **places}, recipe)

    @classmethod
    def load(cls, path: str | Path) -> BenchData:
        """Read what `save` wrote."""
        try:
            recipe, tensors = read_tensors(path)
            if recipe.get("format") != FORMAT:
                raise DataError("it is something else")
            sets = {
                name: Frames(X, tensors[f"{name}/azimuth"], tensors.get(f"{name}/place"))
                for name, X in ((key.removesuffix("/X"), X) for key, X in tensors.items() if key[-2:] == "/X")
            }
            for frames in sets.values():
                placed = frames.place is None or frames.place.shape == (len(frames), 2)
                if len(frames.X) != len(frames.azimuth) or not placed:
                    raise DataError("features and labels differ in length")
            array = MicArray.from_toml(recipe["array"]) if "array" in recipe else None
            gcc = read_description(recipe["gcc"], array) if array else None
            found = [name.split("/")[1:] for name in sets if name.startswith("test/")]
            listed = recipe.get("tests", found)  # in their order, which the tensors have not kept
            tests = {(condition, part): sets[f"test/{condition}/{part}"] for condition, part in listed}
            parts = sets["train"], sets.get("valid"), tests
            return cls(recipe["name"], *parts, array, gcc, noisy_train=sets.get(NOISY))
        except (OSError, LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DataError(f"{path} is damaged or not the data of a benchmark: {error}") from error


def load_benchdata(
    data: str,
    *,
    bands: Band | Sequence[Band],
    noises: Sequence[Noise] = (),
    noise_share: float = 1.0,
    noisy_train: bool = False,
    parts: int = 1,
    size: float = 1.0,
    seed: int = 0,
    speech: Path | None = None,
    array: str | None = None,
    processes: int = 1,
    announce: Announce | None = None,
    keys: Keys = None,
) -> BenchData:
    """Prepare a benchmark's data.

    data: "simulated:PRESET", or a folder: SSLR, recordings of one's own, or the authors' .mat features.
    bands, parts: of GCC-PHAT, as `GccPhat` takes them; the authors' features are what they are.
    noises: conditions to test under beside the quiet one, on `noise_share` of the test recordings.
    noisy_train: also training frames in the noises of priors.
    size, seed, speech, array: for simulations; recordings name their array themselves. keys: what opens
    sealed recordings.
    """
    if data.startswith("simulated:"):
        preset = data.removeprefix("simulated:")
        simulation = Simulation.of_preset(preset, array, size=size, speech=speech, seed=seed)
        mics = simulation.array
        gcc = _gcc(mics, mics.frame_length, bands, parts)
        return _simulated(data, simulation, gcc, noises, noise_share, noisy_train, processes, announce)
    if array:
        raise DataError(f"{data} names its array itself: leave out the array {array!r}")
    root = Path(data).expanduser()
    if root.is_dir() and any(root.glob("*_GCCPHAT_SSLR*.mat")):
        if noisy_train:
            raise DataError(f"{data} has no sound to add noise to: leave out the option noisy")
        return _from_mat(data_name(data), open_mat(root))
    recordings = open_dataset(root, keys)
    gcc = _gcc(recordings[0].array, recordings[0].frame_length, bands, parts)
    return _recorded(data_name(data), recordings, gcc, noises, noise_share, noisy_train, processes, announce)


def data_name(data: str) -> str:
    """What the data that `load_benchdata` prepares are called."""
    return data if data.startswith("simulated:") else Path(data).expanduser().resolve().name


def _gcc(array: MicArray, n_samples: int, bands: Band | Sequence[Band], parts: int) -> GccPhat:
    try:
        return GccPhat.for_array(array, n_samples, bands, parts=parts)
    except ValueError as error:
        raise DataError(f"these frames have no such GCC-PHAT: {error}; change bands or parts") from error


def _simulated(
    name: str,
    simulation: Simulation,
    gcc: GccPhat,
    noises: Sequence[Noise],
    noise_share: float,
    noisy_train: bool,
    processes: int,
    announce: Announce | None,
) -> BenchData:
    steps = _steps(announce, "train")
    wanted: list[AnyNoise | None] = [None, SceneNoise(simulation.voices)] if noisy_train else [None]
    train = simulate_noisy(simulation, "train", wanted, gcc, processes=processes, on_progress=steps)
    steps = _steps(announce, "valid")
    valid = simulate_features(simulation, "valid", gcc, processes=processes, on_progress=steps)
    tests = {}
    for part in simulation.preset.parts:
        if part.name in ("train", "valid"):
            continue
        steps = _steps(announce, part.name)
        made = simulate_features(simulation, part.name, gcc, processes=processes, on_progress=steps)
        tests[CLEAN, part.name] = _frames(made)
        if noises:
            few = replace(part, n_recordings=max(1, round(part.n_recordings * noise_share)))
            kept = tuple(few if p.name == part.name else p for p in simulation.preset.parts)
            smaller = replace(simulation, preset=replace(simulation.preset, parts=kept))
            steps = _steps(announce, f"{part.name}, noisy")
            each = simulate_noisy(smaller, part.name, noises, gcc, processes=processes, on_progress=steps)
            tests |= {(str(n), part.name): _frames(m) for n, m in zip(noises, each, strict=True)}
    noisy = _frames(train[1]) if noisy_train else None
    return BenchData(name, _frames(train[0]), _frames(valid), tests, simulation.array, gcc, noisy)


def _recorded(
    name: str,
    recordings: list[Recording],
    gcc: GccPhat,
    noises: Sequence[Noise],
    noise_share: float,
    noisy_train: bool,
    processes: int,
    announce: Announce | None,
) -> BenchData:
    by_part: dict[str, list[Recording]] = {"train": [], "valid": [], "test": [], "human": []}
    for recording in recordings:
        part = recording.subset.removeprefix("lsp_").split("_")[0]
        if part not in by_part:
            known = ", ".join(by_part)
            raise DataError(f"part {recording.subset!r} is neither of {known}: rename its folder")
        by_part[part].append(recording)
    if not by_part["train"] or not (by_part["test"] or by_part["human"]):
        raise DataError(f"{name} needs a training and a test part")
    if not by_part["valid"]:  # every tenth recording: none of them is in training then
        step = round(1 / VALIDATION_SHARE)
        by_part["valid"] = by_part["train"][step - 1 :: step]
        by_part["train"] = [r for i, r in enumerate(by_part["train"]) if i % step != step - 1]

    def features(part: str) -> FeatureSet:
        return extract(by_part[part], gcc, processes=processes, on_progress=_steps(announce, part))

    tests = {}
    for part in ("test", "human"):
        if not by_part[part]:
            continue
        tests[CLEAN, part] = _frames(features(part))
        if noises:
            few = by_part[part][:: max(1, round(1 / noise_share))]
            steps = _steps(announce, f"{part}, noisy")
            each = extract_noisy(few, noises, gcc, processes=processes, on_progress=steps)
            tests |= {(str(n), part): _frames(m) for n, m in zip(noises, each, strict=True)}
    valid = _frames(features("valid")) if by_part["valid"] else None
    parts = _frames(features("train")), valid, tests
    noisy = None
    if noisy_train:
        steps, noise = _steps(announce, "train, noisy"), SceneNoise(SyntheticVoices())
        (heard,) = extract_noisy(by_part["train"], [noise], gcc, processes=processes, on_progress=steps)
        noisy = _frames(heard)
    return BenchData(name, *parts, recordings[0].array, gcc, noisy)


def _from_mat(name: str, files: Files) -> BenchData:
    """The authors' features: full band, already scaled; their noisy variants are taken as white noise."""
    tests = {}
    for part, snr in files:
        if part == "train":
            continue
        condition = CLEAN if snr is None else str(Noise("white", snr))
        here = "test" if part == "loudspeaker" else part
        X, azimuth = read_mat(files, part, snr)
        tests[condition, here] = Frames(X, azimuth).with_sources(azimuth.shape[1])
    X, azimuth = read_mat(files, "train")
    array = load_array("pepper")
    frames = Frames(X, azimuth).with_sources(azimuth.shape[1])
    return BenchData(name, frames, None, tests, array, GccPhat.for_array(array))


def _frames(features: FeatureSet) -> Frames:
    return Frames(
        features.flat, features.azimuth, np.stack([features.recording, features.frame], 1, dtype=np.int64)
    )


def _steps(announce: Announce | None, what: str) -> Callable[[int, int], None] | None:
    if announce is None:
        return None
    return lambda done, total: announce(what, done, total)
