"""Every kind of file that strangers may hand us: how it is read, how it is damaged, and what must hold.

Input number i of a kind is a pure function of the kind, i, the seeds and the kept corpus (`Kind.input`).
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.slow import inside, mutate
from tests.slow.mutate import Change
from tests.slow.seeds import SEEDS, read_identities_of_tests
from tests.slow.small import ARRAY
from tytoalba.errors import DataError, LedgerError

CORPUS = Path(__file__).with_name("corpus")
PRIVACY = ("pyrage", "cryptography")
KNOWN = "somebody without the key made something that is accepted"


class InvalidError(AssertionError):
    """Something was read that cannot be right."""


def require(holds: bool, why: str) -> None:
    """Refuse what was read."""
    if not holds:
        raise InvalidError(why)


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    number: inputs of a whole run. read: takes the file's path and the mutation by name, and checks what it
    read. mutations: by name; those that end in "inside" were made with the owner's key, or with a digest
    that fits. needs: modules that reading takes. suffix: of the file's name. seconds: for one reading.
    """

    name: str
    number: int
    read: Callable[[Path, str], object]
    mutations: Mapping[str, Change] = field(default_factory=lambda: {"bytes": mutate.of_bytes})
    needs: tuple[str, ...] = ()
    suffix: str = ""
    mode: int = 0o644
    seconds: float = 2.0

    @cached_property
    def bases(self) -> list[bytes]:
        """Seeds and corpus, in the order of their names."""
        folders = (SEEDS / self.name, CORPUS / self.name)
        return [file.read_bytes() for folder in folders for file in sorted(folder.glob("*"))]

    @cached_property
    def seeds(self) -> list[bytes]:
        """Valid files."""
        return [file.read_bytes() for file in sorted((SEEDS / self.name).glob("*"))]

    def input(self, number: int) -> tuple[bytes, str]:
        """Input number i and the name of the mutation that made it; the first ones are the bases."""
        if number < len(self.bases):
            return self.bases[number], "none"
        rng = Random(f"{self.name} {number}")
        base = rng.choice(self.seeds if rng.random() < 0.7 else self.bases)
        how = rng.choice(sorted(self.mutations))
        return self.mutations[how](base, self.seeds, rng), how

    @property
    def missing(self) -> list[str]:
        """Modules that are not installed here."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


# ---- reading, and what must hold of what was read ----


def _state(path: Path, _how: str) -> None:
    from tytoalba.localizer.state import State

    state = State.from_bytes(path.read_bytes())
    data = state.to_bytes()
    require(State.from_bytes(data).to_bytes() == data, "the state is another one when it is written and read")


def _model(path: Path, _how: str) -> None:
    from tytoalba.localizer.model import Model

    model = Model.from_bytes(path.read_bytes())
    data = model.to_bytes()
    require(Model.from_bytes(data).to_bytes() == data, "the model is another one when it is written and read")
    if model.options["n_features"] <= 50:
        require(
            bool(np.isfinite(model.scores(np.zeros((1, model.prior.gcc.n_features), np.float32))).all()),
            "NaN",
        )


def _prior(path: Path, _how: str) -> None:
    from tytoalba.learning.prior.files import load_prior, prior_of_parts

    prior = load_prior(path)
    header, arrays = prior.parts()
    again, values = prior_of_parts(header, arrays, "again").parts()
    require(repr(again) == repr(header), "the prior is another one when it is written and read")
    require(all(np.array_equal(arrays[name], values[name]) for name in arrays), "its arrays are others")
    found = prior.logits(np.zeros((1, prior.gcc.n_features), np.float32))
    require(bool(np.isfinite(found).all()), "NaN")


def _array(path: Path, _how: str) -> None:
    from tytoalba.signal.array import MicArray, load_array

    array = load_array(path)
    require(
        MicArray.from_toml(array.to_toml()) == array, "the array is another one when it is written and read"
    )


def _odas(path: Path, _how: str) -> None:
    from tytoalba.signal.array import MicArray, import_odas

    array = import_odas(path)
    require(
        MicArray.from_toml(array.to_toml()) == array, "the array is another one when it is written and read"
    )


def _ledger(path: Path, how: str) -> None:
    from tytoalba.storage.ledger import Ledger

    ledger = Ledger.open(path, trusted=[inside.key().fingerprint])
    try:
        ledger.verify()
    except LedgerError:
        return
    content = path.read_bytes()
    lines = content[: content.rfind(b"\n") + 1]
    known = how.endswith("inside") or any(seed.startswith(lines) for seed in LEDGER.bases)
    require(known, KNOWN)


def _signature(path: Path, how: str) -> None:
    from tytoalba.storage.signatures import verify_bytes

    raw = path.read_bytes()
    kind = "state" if b'"kind":"state"' in raw else "model"
    verify_bytes(b"content", raw, "name.tyto", kind, trusted=[inside.key().fingerprint])
    require(how.endswith("inside") or raw in SIGNATURE.bases, KNOWN)


@cache
def _keys() -> Sequence[Any]:
    return read_identities_of_tests()


def _age(path: Path, _how: str) -> None:
    from tytoalba.storage.sealed import read_secret

    plain, right = read_secret(path, _keys()), b"who stood where\n" * 6
    require(plain in (right, right * 900, path.read_bytes()), KNOWN)


def _sound(path: Path, _how: str) -> None:
    from tytoalba.storage.soundfiles import read_audio, stream_audio

    audio = read_audio(path, ARRAY)
    require(audio.samples.shape[0] == ARRAY.n_mics, "channels are missing")
    require(bool(np.isfinite(audio.samples).all()), "samples are not finite")
    streamed = sum(block.shape[1] for block in stream_audio(path, ARRAY))
    require(streamed == audio.samples.shape[1], "streamed it has another length")


def _pickle(path: Path, _how: str) -> None:
    from tytoalba.data import sslr, unpickle

    value = unpickle.load(path)
    require(_is_plain(value, 0), "something else than plain values came out of a pickle")
    with suppress(DataError):
        sslr._frames(value, path)


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, tuple | list):
        return depth < 60 and all(_is_plain(item, depth + 1) for item in value[:1000])
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biuf"
    return value is None or type(value) in (bool, int, float, str, bytes)


def _bench(path: Path, _how: str) -> None:
    from tytoalba.bench.config import load_config

    config = load_config(str(path))
    require(len(config.jobs()) >= 1, "a benchmark without a job")


def _results(path: Path, _how: str) -> None:
    from tytoalba.bench.results import load_results
    from tytoalba.bench.summary import summarise

    summarise([load_results(path)])


def _labels(path: Path, _how: str) -> None:
    from tytoalba.data.folder import _read_labels

    frames, azimuth = _read_labels(path, None)
    require(len(frames) == len(azimuth) and bool((np.diff(frames) > 0).all()), "frames are not in order")
    found = azimuth[~np.isnan(azimuth)]
    require(bool(((found >= 0) & (found < 360)).all()), "no azimuth")


def _features(path: Path, _how: str) -> None:
    from tytoalba.data.features import FeatureSet

    found = FeatureSet.load(path)
    require(found.flat.shape == (len(found), found.gcc.n_features), "features do not fit")
    found.select(slice(0, 1))
    require(all(isinstance(name, str) for name in found.names), "a name that is no text")


def _cache(path: Path, _how: str) -> None:
    from tytoalba.bench.data import BenchData

    BenchData.load(path)


def _stems(path: Path, _how: str) -> None:
    from tytoalba.data.simulation.stems import Stems

    Stems.load(path)


def _identity(path: Path, _how: str) -> None:
    from tytoalba.storage.keys import read_identities

    for key in read_identities(path):
        require("SECRET" not in repr(key), "a key shows itself")


def _trusted(path: Path, _how: str) -> None:
    from tytoalba.storage.signatures import TrustStore, is_fingerprint

    require(all(map(is_fingerprint, TrustStore(path).list())), "somebody who is no key is trusted")


def _remembered(path: Path, _how: str) -> None:
    from tytoalba.storage.remembered import Memory

    try:
        memory = Memory.from_bytes(path.read_bytes())
    except ValueError as error:  # which `recall` makes a warning of
        raise DataError(str(error)) from error
    again = Memory.from_bytes(memory.to_bytes())
    require(again.to_bytes() == memory.to_bytes(), "what is remembered changes when it is written and read")


def _settings(path: Path, _how: str) -> None:
    import os

    from tytoalba.cli.settings import read_settings

    os.environ["XDG_CONFIG_HOME"] = str(path.parent)
    here = path.parent / "tytoalba" / "config.toml"
    here.parent.mkdir(exist_ok=True)
    path.replace(here)
    try:
        require(
            all(isinstance(value, str) for value in read_settings().values()), "a setting that is no text"
        )
    finally:
        here.replace(path)
        here.parent.rmdir()


def _mat(path: Path, _how: str) -> None:
    from tytoalba.data.mat import read_mat

    X, azimuth = read_mat({("train", None): path}, "train")
    require(len(X) == len(azimuth) and X.shape[1] == 306, "features and labels differ in length")
    require(bool(np.isfinite(X).all()), "features that are not finite")


TEXT: dict[str, Change] = {"bytes": mutate.of_bytes, "text": mutate.of_text}
JSON: dict[str, Change] = {**TEXT, "json": mutate.of_json}
TENSORS: dict[str, Change] = {"bytes": mutate.of_bytes, "tensors": mutate.of_tensors}
PACKED: dict[str, Change] = {**TENSORS, "digest inside": inside.of_packed}
LEDGER = Kind("ledger", 60_000, _ledger, {**JSON, "signed inside": inside.of_ledger}, PRIVACY, seconds=3.0)
SIGNATURE = Kind("signature", 60_000, _signature, {**JSON, "signed inside": inside.of_signature}, PRIVACY)
KINDS = {
    kind.name: kind
    for kind in (
        Kind("state", 60_000, _state, PACKED),
        Kind("model", 50_000, _model, PACKED),
        Kind("prior", 60_000, _prior, {**TENSORS, "values inside": inside.of_saved}),
        Kind("array", 80_000, _array, TEXT, suffix=".toml"),
        Kind("odas", 80_000, _odas, TEXT, suffix=".cfg"),
        LEDGER,
        SIGNATURE,
        Kind("age", 80_000, _age, {"bytes": mutate.of_bytes, "text": mutate.of_text}, PRIVACY),
        Kind("wav", 60_000, _sound, needs=("soundfile",), suffix=".wav"),
        Kind("sound", 20_000, _sound, needs=("soundfile",)),
        Kind(
            "pickle",
            150_000,
            _pickle,
            {"bytes": mutate.of_bytes, "steps": mutate.of_pickle},
            suffix=".gt.pkl",
        ),
        Kind("bench", 60_000, _bench, TEXT, suffix=".toml"),
        Kind("results", 50_000, _results, JSON, suffix=".json"),
        Kind("labels", 80_000, _labels, TEXT, suffix=".csv"),
        Kind("features", 50_000, _features, {**TENSORS, "values inside": inside.of_saved}),
        Kind("cache", 10_000, _cache, {**TENSORS, "values inside": inside.of_saved}),
        Kind("stems", 10_000, _stems, {**TENSORS, "values inside": inside.of_saved}),
        Kind("identity", 10_000, _identity, TEXT, PRIVACY, mode=0o600),
        Kind("trusted", 10_000, _trusted, TEXT, PRIVACY, mode=0o600),
        Kind("settings", 10_000, _settings, TEXT),
        Kind("remembered", 20_000, _remembered, JSON, PRIVACY),
        Kind("hdf5", 3_000, _mat, needs=("h5py",), suffix=".mat"),
        Kind("mat", 1_500, _mat, suffix=".mat", seconds=20.0),
    )
}
"""By name; all numbers together are a little more than a million."""
assert math.fsum(kind.number for kind in KINDS.values()) > 1_000_000
