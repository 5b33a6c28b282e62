"""What golden files hold and how golden values are computed: golden/make.py writes, test_golden.py compares.

Exact values are the same bytes on any machine; close ones depend on how a machine adds. The keys are for
tests only: they are in the repository, so whatever they sign or open is nobody's secret.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.config import Config
from tytoalba.bench.data import BenchData, load_benchdata
from tytoalba.bench.onnx import open_session
from tytoalba.bench.run import run
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation import stems as stems_module
from tytoalba.data.simulation.noise import Noise
from tytoalba.data.simulation.presets import QUICK
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.stems import Stems, gather_stems
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.learning.inputs import Inputs
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import MapFinder, locate
from tytoalba.localizer.model import Model, task_of
from tytoalba.localizer.onnx.graph import Known, onnx_bytes
from tytoalba.localizer.signed import sign
from tytoalba.localizer.state import Kept, State
from tytoalba.localizer.stream import Finder, Located
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import frames as all_frames
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.music import Music
from tytoalba.signal.srp import SrpPhat
from tytoalba.storage.keys import read_identities
from tytoalba.storage.ledger import Ledger, keyed_id
from tytoalba.storage.remembered import remembering
from tytoalba.storage.signatures import SigningKey, sign_file
from tytoalba.storage.soundfiles import read_audio, write_audio
from tytoalba.storage.tensors import pack

Arrays = dict[str, NDArray[Any]]
GOLDEN = Path(__file__).parent
SIGNING_KEY, IDENTITY = "test-signing-key.pem", "test-identity.txt"
NOW = 1_700_000_000
"""Seconds since 1970, whenever something is written."""
ARRAY = load_array("respeaker-usb-4")
MAPPED = ("respeaker-usb-4", "pepper", "linear-4")
"""Arrays of which plane waves are stored as maps."""
BENCH = Config(
    "golden",
    methods=("srp-phat", "tyto"),
    n_phases=3,
    noises=("white",),
    snr=(-10.0,),
    context=(1,),
    options={"tyto": {"n_features": 60}},
    variants={"tyto": [{}, {"sigma": 11.0, "views": 1}]},
)
VARYING = ("versions", "machine", "seconds")
"""What a result file says of the program and the machine."""


def sha256(*content: bytes | NDArray[Any]) -> str:
    """SHA-256 of bytes, and of arrays with their type and shape."""
    found = hashlib.sha256()
    for piece in content:
        if isinstance(piece, np.ndarray):
            found.update(f"{piece.dtype.str} {piece.shape} ".encode())
            piece = piece.tobytes()
        found.update(piece)
    return found.hexdigest()


def grid(*shape: int, start: int = 0) -> NDArray[np.float32]:
    """Multiples of 1/64 from -24/64 to 24/64 in no order, without chance: the same on every machine."""
    number = np.arange(start, start + int(np.prod(shape)), dtype=np.uint64)
    whole = (number * np.uint64(2654435761) >> np.uint64(7)) % np.uint64(49)
    return ((whole.astype(np.float32) - 24) / 64).astype(np.float32).reshape(shape)


def plane_wave(array: MicArray, *azimuth: float, n_samples: int) -> NDArray[np.float32]:
    """White noise from some directions, the first the loudest, and a little of each microphone's own."""
    rng = np.random.default_rng(7)
    hertz = np.fft.rfftfreq(n_samples, 1 / array.sample_rate)
    heard = 0.05 * rng.standard_normal((array.n_mics, n_samples))
    for number, source in enumerate(azimuth):
        spectrum = np.fft.rfft(rng.standard_normal(n_samples)) / (1 + number)
        delay = array.arrival_times(source)[:, None]
        heard += np.fft.irfft(spectrum * np.exp(-2j * np.pi * hertz * delay), n_samples)
    return (0.1 * heard).astype(np.float32)


@contextmanager
def at_home(folder: Path) -> Iterator[Path]:
    """A user with the test keys, whose home is a folder and whose clock stands still."""
    home = folder / "home"
    home.mkdir()
    for name in (SIGNING_KEY, IDENTITY):
        shutil.copy(GOLDEN / name, home)
        (home / name).chmod(0o600)  # which git does not keep
    told = {"TYTO_SIGNING_KEY": SIGNING_KEY, "TYTO_IDENTITY": IDENTITY, "TYTO_TRUSTED": "trusted"}
    told = {name: str(home / file) for name, file in told.items()} | {"XDG_DATA_HOME": str(home)}
    ids = (f"{number:032x}" for number in count(1))
    with (
        patch.dict(os.environ, told),
        patch("time.time", return_value=float(NOW)),
        patch("secrets.token_hex", side_effect=lambda _: next(ids)),
    ):
        with remembering():  # who has these keys was here before
            pass
        yield home


def copied(folder: Path) -> Path:
    """The golden files in a folder of one's own, with the permissions that they were written with."""
    return Path(shutil.copytree(GOLDEN, folder / "golden", ignore=shutil.ignore_patterns("*.py", "__pyca*")))


# ---- what is written ----


@cache
def small_prior() -> Prior:
    """The shipped prior of the small array, with few of its simulated frames."""
    found = Prior.load(shipped_priors()[ARRAY.name])
    return replace(found, frames={name: values[:20] for name, values in found.frames.items()})


@cache
def small_features() -> FeatureSet:
    """Frames of no sound in particular, of one and of two sources."""
    gcc = small_prior().gcc
    X = grid(15, gcc.n_looks, *gcc_shape(gcc))
    recording = np.repeat(np.arange(5, dtype=np.int32), 3)
    azimuth = np.stack([37.5 * recording, (37.5 * recording + 100) % 360], axis=1)
    azimuth[recording % 2 == 0, 1] = np.nan
    frame = np.tile(np.arange(3, dtype=np.int32), 5)
    return FeatureSet(X, azimuth, recording, frame, tuple(f"r{k}" for k in range(5)), ARRAY, gcc)


def gcc_shape(gcc: GccPhat) -> tuple[int, int]:
    """Pairs and lags of one look."""
    return len(gcc.pairs), gcc.n_lags


def lesson(features: FeatureSet, number: int) -> Phase:
    """One recording of a set."""
    own = features.select(features.recording == number)
    azimuth = own.azimuth[:, : int(own.n_sources[0])]
    return Phase(own.flat, azimuth, np.unique(azimuth.astype(np.intp)))


def small_stems() -> Stems:
    """Stems on a coarse grid, too short to mix from."""
    return Stems(
        ARRAY,
        ("hybrid", "anechoic"),
        responses=grid(2, 4, 4, 64).astype(np.float16),
        azimuth=np.arange(8, dtype=np.float32).reshape(2, 4) * 45,
        delay=np.arange(8, dtype=np.int32).reshape(2, 4),
        calm=np.array([True, False]),
        family=np.array([0, 1], np.int32),
        noises=grid(2, 4, 80, start=1).astype(np.float16),
        noise_family=np.array([0, 1], np.int32),
        voices=grid(3, 160, start=2).astype(np.float16),
        disturbances=grid(1, 80, start=3).astype(np.float16),
    )


def small_bench() -> BenchData:
    """Few recordings of the quick preset."""
    noises = BENCH.noise_conditions
    return load_benchdata(
        BENCH.data, bands=BENCH.bands[0], noises=noises, noise_share=0.5, size=0.06, array=ARRAY.name
    )


def keep_states(folder: Path) -> None:
    """A plain and a sealed state of the same history, each step in its ledger, and a signed model."""
    features = small_features()
    keys = read_identities(os.environ["TYTO_IDENTITY"])
    for path in (folder / "plain.tyto", folder / "sealed.tyto.age"):
        start = Localizer(State.new(ARRAY, small_prior(), seed=5, n_features=8, views=2))
        other = Localizer.like(start)
        other.state.teach(lesson(features, 3))
        store.create(path, start, sealed=path.suffix == ".age", keys=keys)
        with store.edit(path, keys) as localizer:
            kept = Kept("anna", (75.0,), NOW)
            localizer._taught((lesson(features, k), kept if k == 2 else None) for k in range(3))
        with store.edit(path, keys) as localizer:
            localizer._forgot([lesson(features, 1)])
        with store.edit(path, keys) as localizer:
            localizer.merge(other)
    localizer, model = store.read(folder / "plain.tyto"), folder / "model.tyto"
    model.write_bytes(localizer.model.coarse().to_bytes())
    sign(model, "model", {"frames": localizer.n_frames, "released against": "few frames"})


def bench_result(output: Path) -> dict[str, Any]:
    """A tiny bench run over the stored bench cache."""
    with patch("time.perf_counter", return_value=0.0):
        return run(BENCH, BenchData.load(GOLDEN / "bench.safetensors"), output, command="tyto bench golden")


def write_files(folder: Path) -> None:
    """Write all golden files but the keys and the values."""
    with TemporaryDirectory() as temporary, at_home(Path(temporary)) as home:
        written = home / "written"
        written.mkdir()
        keep_states(written)
        small_prior().save(written / "prior.safetensors")
        small_features().save(written / "features.safetensors")
        publics = [str(key.public) for key in read_identities(home / IDENTITY)]
        small_features().save(written / "sealed-features.age", publics)
        small_stems().save(written / "stems.safetensors")
        small_bench().save(written / "bench.safetensors")
        silence = np.zeros((ARRAY.n_mics, 2 * ARRAY.frame_length), np.float32)
        sound = plane_wave(ARRAY, 70.0, 200.0, n_samples=3 * ARRAY.frame_length)
        write_audio(written / "wave.wav", np.concatenate([sound, silence], axis=1), ARRAY.sample_rate)
        for file in sorted(written.iterdir()):
            if not file.name.startswith(".") and file.suffix != ".lock":
                shutil.copy(file, folder / file.name)
    (folder / "results.json").unlink(missing_ok=True)
    bench_result(folder / "results.json")


# ---- values that are the same on any machine ----


def _logits(name: str) -> str:
    prior = Prior.load(shipped_priors()[name])
    X = grid(2, prior.gcc.n_features)
    return sha256(prior.logits(X), prior.sound(X))


def _codes() -> str:
    prior = Prior.load(GOLDEN / "prior.safetensors")
    inputs = Inputs(task_of(prior, 3), prior, 24, 1.5, 1.0, 3)
    H, B = inputs.codes(FeatureSet.load(GOLDEN / "features.safetensors").flat[:4])
    return sha256(H, B)


def _history() -> str:
    """Digests of a state after each of some changes."""
    features = FeatureSet.load(GOLDEN / "features.safetensors")
    prior = Prior.load(GOLDEN / "prior.safetensors")
    state = State.new(replace(ARRAY, yaw=30.0), prior, seed=11, n_features=6, views=2)
    other, seen = state.copy(), [state.to_bytes()]
    for k in range(3):
        state.teach(lesson(features, k), Kept("ben", (1.5,), NOW) if k == 1 else None)
        seen.append(state.to_bytes())
    state.forget(lesson(features, 0))
    seen.append(state.to_bytes())
    other.teach(lesson(features, 4))
    state.merge(other)
    seen.append(state.to_bytes())
    state.forget_kept(lambda kept: kept.who == "ben")
    return sha256(*seen, state.to_bytes())


def _model_scores() -> str:
    """What a stored model says of stored frames: sums of whole numbers."""
    model = Model.from_bytes((GOLDEN / "model.tyto").read_bytes())
    return sha256(model.scores(FeatureSet.load(GOLDEN / "features.safetensors").flat))


def _wave_scores(name: str, as_onnx: bool) -> str:
    """Scores of every frame of the wave, by the prior or the stored model, here or in an ONNX runtime."""
    samples = read_audio(GOLDEN / "wave.wav", ARRAY).samples
    cut = np.asarray(all_frames(samples, ARRAY.frame_length, ARRAY.frame_length // 2), np.float32)
    finder: Finder = MapFinder(ARRAY, "prior")
    known = Known.of_array(ARRAY)
    if name == "model":
        localizer = Localizer.from_bytes((GOLDEN / "model.tyto").read_bytes())
        finder, known = localizer.finder, Known.of_model(localizer.model)
    if as_onnx:
        (found,) = open_session(onnx_bytes(known)).run(None, {"frames": cut})
    else:
        found = finder.scores(finder.maps(cut))
    return sha256(np.asarray(found))


def _written(save: Callable[[Path], object]) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        save(path)
        return sha256(path.read_bytes())


def _states() -> str:
    """The plain state and both ledgers, made anew."""
    with TemporaryDirectory() as folder, at_home(Path(folder)):
        keep_states(Path(folder))
        names = ("plain.tyto", "plain.tyto.ledger", "sealed.tyto.age.ledger")
        return sha256(*(Path(folder, name).read_bytes() for name in names))


def _ledger_line() -> str:
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        key = SigningKey.load(home / SIGNING_KEY)
        ledger = Ledger.open(Path(folder) / "a.ledger", key)
        ledger.append("created", "1" * 64)
        ledger.append("learned", "2" * 64, 3, keyed_id(key, b"lesson"))
        return sha256(ledger.path.read_bytes(), ledger.head.encode())


def _signature() -> str:
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        key = SigningKey.load(home / SIGNING_KEY)
        path = home / "name.tyto"
        path.write_bytes(b"content")
        return sha256(sign_file(path, key, "model", 4, {"frames": 3}).read_bytes())


def _model_bytes() -> str:
    W, weight = grid(8, 720), np.linspace(0, 1, 361, dtype=np.float32)[:360]
    state = State.new(ARRAY, small_prior(), seed=5, n_features=8, views=2)
    model = Model(ARRAY, state.prior, state.options, W, weight, 9)
    return sha256(model.to_bytes(), model.coarse().to_bytes())


def _bench_cache() -> str:
    frames = BenchData.load(GOLDEN / "bench.safetensors")
    return _written(frames.save)


EXACT: dict[str, Callable[[], str]] = {
    **{f"logits of {name}": partial(_logits, name) for name in shipped_priors()},
    "random codes": _codes,
    "state after a history": _history,
    "states and ledgers": _states,
    "scores of the stored model": _model_scores,
    "scores of the wave, prior": partial(_wave_scores, "prior", False),
    "scores of the wave, model": partial(_wave_scores, "model", False),
    "scores of the wave, prior, ONNX": partial(_wave_scores, "prior", True),
    "scores of the wave, model, ONNX": partial(_wave_scores, "model", True),
    "bytes of a model": _model_bytes,
    "bytes of a container": lambda: sha256(
        pack("state", 1, {"b": [1, 2.5], "a": "é"}, {"y": grid(3, 2), "x": np.arange(4, dtype=np.int64)})
    ),
    "bytes of a ledger": _ledger_line,
    "bytes of a signature": _signature,
    "bytes of a prior": lambda: _written(small_prior().save),
    "bytes of features": lambda: _written(small_features().save),
    "bytes of stems": lambda: _written(small_stems().save),
    "bytes of a bench cache": _bench_cache,
    "samples of the sound file": lambda: sha256(read_audio(GOLDEN / "wave.wav", ARRAY).samples),
}
"""SHA-256 by name, each computed when it is asked for."""


# ---- values that depend a little on the machine ----


def _maps(name: str) -> Arrays:
    array = load_array(name)
    n = array.frame_length
    frames = plane_wave(array, 70.0, n_samples=2 * n).reshape(array.n_mics, 2, n).swapaxes(0, 1)
    return {
        "gcc": GccPhat.for_array(array, n)(frames),
        "gcc in bands": GccPhat.for_array(array, n, ((100.0, 2000.0), (2000.0, 6000.0)))(frames),
        "srp": SrpPhat(array, n)(frames),
        "srp exact": SrpPhat(array, n, form="exact")(frames),
        "music": Music(array, n)(frames),
    }


def _simulated() -> Arrays:
    made = Simulation(QUICK, ARRAY, SyntheticVoices(), seed=2).recording((0, 0))
    return {"sound": made.samples[:, 20000:20600], "azimuth": made.azimuth, "frame": made.frame_ids}


def _noise() -> Arrays:
    sound = plane_wave(ARRAY, 70.0, n_samples=4000)
    return {"white": Noise("white", -10.0).added_to(sound, ARRAY, "golden")[:, :600]}


def _scenes() -> Arrays:
    scenes = Scenes(ARRAY, (SyntheticVoices(),), seconds=0.5, seed=1)
    made = scene_features(scenes, range(4), small_prior().gcc)
    return {"X": made.flat[::3], "azimuth": made.azimuth, "frame": made.frame}


def _gathered() -> Arrays:
    scenes = Scenes(ARRAY, (SyntheticVoices(),), ("hybrid", "anechoic"), seconds=0.5, seed=1)
    with patch.object(stems_module, "N_VOICES", (2, 2)):
        made = gather_stems(scenes, 2)
    start = int(made.delay.min())
    return {
        "responses": made.responses[..., start : start + 100].astype(np.float32),
        "noises": made.noises[..., :100].astype(np.float32),
        "voices": made.voices[:, 4000:4200].astype(np.float32),
        "disturbances": made.disturbances[:, 4000:4200].astype(np.float32),
        "azimuth": made.azimuth,
        "delay": made.delay,
    }


def _answers(found: list[Located], sure: str = "score") -> NDArray[np.float64]:
    """Time, directions, and score or probability of each frame: (n_frames, 7), NaN where there are fewer."""
    table = np.full((len(found), 7), np.nan)
    for row, one in zip(table, found, strict=True):
        row[0], row[1 : 1 + one.n_sources], row[4 : 4 + one.n_sources] = (
            one.time,
            one.azimuth,
            getattr(one, sure),
        )
    return table


def _located() -> Arrays:
    wave, asked = GOLDEN / "wave.wav", [(m, n) for m in ("srp", "music", "prior") for n in (1, 2)]
    found = {f"{m} {n}": _answers(list(locate(wave, ARRAY, m, n_sources=n))) for m, n in asked}
    found["srp auto"] = _answers(list(locate(wave, ARRAY, n_sources="auto")))
    for name in ("plain", "model"):
        localizer = Localizer.from_bytes((GOLDEN / f"{name}.tyto").read_bytes())
        found[f"{name} 2"] = _answers(localizer.locate(wave, n_sources=2, context=1), "probability")
        found[f"{name} auto"] = _answers(localizer.locate(wave, n_sources="auto"), "probability")
    return found


def _solved() -> Arrays:
    """Weights of the stored state's model, and what they say of stored frames."""
    model = Localizer.from_bytes((GOLDEN / "plain.tyto").read_bytes()).model
    X = FeatureSet.load(GOLDEN / "features.safetensors").flat
    return {"W": model.W, "weight": model.weight, "scores": model.scores(X), "maps": model.prior.srp_maps(X)}


def _bench_data() -> Arrays:
    data = small_bench()
    tests = {f"test {condition} {part}": frames for (condition, part), frames in data.tests.items()}
    found: Arrays = {}
    for name, frames in {"train": data.train, **tests}.items():
        assert frames.place is not None
        found |= {f"{name} X": frames.X[::9], f"{name} azimuth": frames.azimuth, f"{name} at": frames.place}
    return found


CLOSE: dict[str, Callable[[], Arrays]] = {
    **{f"maps of {name}": partial(_maps, name) for name in MAPPED},
    "simulated recording": _simulated,
    "noise": _noise,
    "scene features": _scenes,
    "gathered stems": _gathered,
    "located": _located,
    "solved model": _solved,
    "bench data": _bench_data,
}
"""Arrays by group and name, each group computed when it is asked for."""


def exact() -> dict[str, str]:
    """All exact values."""
    return {name: compute() for name, compute in EXACT.items()}


def close() -> Arrays:
    """All close values, named GROUP/NAME."""
    return {
        f"{group}/{name}": np.ascontiguousarray(v)
        for group, compute in CLOSE.items()
        for name, v in compute().items()
    }


def read_values() -> dict[str, str]:
    """The exact values that are stored."""
    return dict(json.loads((GOLDEN / "values.json").read_text(encoding="utf-8")))
