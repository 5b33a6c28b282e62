"""The valid files that mutations start from: tests/slow/seeds/KIND/NAME, small, and of every version.

    python -m tests.slow.seeds [KIND ...]

writes those that are missing, and those of some kinds anew, as today's program writes them. Where a format
changes, files of the old one stay, by another name: mutated old files are read, too.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from tests.golden.contents import GOLDEN, IDENTITY, SIGNING_KEY, at_home
from tests.helpers.localizers import closed, opened
from tests.slow import small
from tytoalba.bench.config import shipped_configs
from tytoalba.bench.data import BenchData, Frames
from tytoalba.data.simulation.stems import Stems
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.localizer import store
from tytoalba.localizer.frontend import STEADY
from tytoalba.localizer.release import private_model
from tytoalba.signal.array import load_array
from tytoalba.storage.age import Identity, seal_bytes
from tytoalba.storage.keys import read_identities
from tytoalba.storage.ledger import Ledger, keyed_id
from tytoalba.storage.remembered import remembered_path
from tytoalba.storage.signatures import SigningKey, sign_file
from tytoalba.storage.steps import Facts

SEEDS = Path(__file__).with_name("seeds")
ODAS = b"""# a microphone array
raw: { fS = 16000; hopSize = 128; nBits = 32; };
mapping: { map: (1, 2, 3, 4); };
general: {
    /* metres */ epsilon = 1E-20;
    size: { hopSize = 128; frameSize = 256; };
    mics = (
        { mu = ( -0.032, +0.000, +0.000 ); sigma2 = ( +1E-6, 0.0, 0.0 ); },   // first
        { mu = ( +0.032, +0.000, +0.000 ); },
        { mu = ( +0.000, -3.2e-2, +0.000 ); },
        { mu = ( +0.000, +0.032, +0.000 ); }
    );
};
"""
PICKLED = [(0, [((1.0, 2.0, 0.5), 1, "f01")]), (4096, []), [np.int32(8192), ((0.5, -1.0, 0.1), 0, "m02")]]
PYTHON_2 = (
    b"\x80\x02]q\x01(K\x00]q\x02\x86K\x02]q\x03cnumpy.core.multiarray\n_reconstruct\nq\x04cnumpy\nndarray\nq"
    b"\x05K\x00\x85U\x01b\x87Rq\x06(K\x01(K\x02tcnumpy\ndtype\nq\x07(U\x02f8K\x00K\x01tRq\x08(K\x03U\x01<NNNJ"
    b"\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x10" + bytes(16) + b"tba\x86e."
)


def main(anew: Collection[str] = ()) -> None:
    """Write every seed that is missing, and those of some kinds anew."""
    for kind, make in MAKERS.items():
        if kind in anew or not (SEEDS / kind).exists():
            (SEEDS / kind).mkdir(parents=True, exist_ok=True)
            for name, data in make().items():
                (SEEDS / kind / name).write_bytes(data)


def _states() -> dict[str, bytes]:
    taught = {"new": small.state(), "taught": small.state(0, 1), "kept": small.state(0, 1, 2, kept=1)}
    taught["shared"] = small.state(0, 1, of=small.shared_prior())
    taught["steady"] = small.state(0, 1, frontend=STEADY)
    made = {name: state.to_bytes() for name, state in taught.items()}
    return {**made, "old": _as_before(small.state(0, 1).to_bytes())}


def _as_before(data: bytes) -> bytes:
    """A state as tytoalba 0.1 wrote it: float32 features, and no sums for releases."""
    header, arrays = opened(data)
    later = ("frontend", "constants", "release")
    return closed(
        {name: value for name, value in header.items() if name not in later},
        {name: values for name, values in arrays.items() if "release" not in name},
    )


def _models() -> dict[str, bytes]:
    steady, private = small.state(0, 1, of=small.shared_prior(), frontend=STEADY), small.localizer(0, 1)
    made = {
        "untaught": small.state().model(),
        "taught": small.state(0, 1).model(),
        "steady": steady.model(),
        "private": private_model(private).model,
    }
    return {name: model.to_bytes() for name, model in made.items()}


def _priors() -> dict[str, bytes]:
    return {"trio": _saved(small.prior().save), "shared": _saved(small.shared_prior().save)}


def _saved(save: Callable[[Path], object], suffix: str = "") -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        save(path)
        return path.read_bytes()


def _ledgers() -> dict[str, bytes]:
    """The ledger of a state that was taught, forgot and was merged into; and one with every kind of step."""
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        key = SigningKey.load(home / SIGNING_KEY)
        ledger = Ledger.open(Path(folder) / "a.ledger", key)
        ledger.append("created", "1" * 64)
        for number, what in enumerate(("learned", "forgot", "merged"), 2):
            ledger.append(what, str(number) * 64, number, keyed_id(key, bytes([number])))
        later = Ledger.open(Path(folder) / "b.ledger", key)
        summed: Facts = {"first": "9" * 64, "steps": 7, "exported": 1, "budget": 10.0, "spent": 0.5}
        later.append("summary", "1" * 64, about=summed)
        later.append("exported", "1" * 64, about={"unit": "lesson", "epsilon": 3.0, "noise": 1.64})
        later.append("learned", "2" * 64, 2, keyed_id(key, b"2"))
        later.append("recovered", "1" * 64, about={"step": 3})
        later.append("restored", "3" * 64, about={"step": 1, "undone": 2, "spent": -1})
        state = Path(folder) / "state.tyto"
        store.create(state, small.localizer())
        with store.edit(state) as localizer:
            localizer.merge(small.localizer(0))
        return {
            "steps": ledger.path.read_bytes(),
            "later": later.path.read_bytes(),
            "state": state.with_name("state.tyto.ledger").read_bytes(),
            "golden": (GOLDEN / "plain.tyto.ledger").read_bytes(),
        }


def _remembered() -> dict[str, bytes]:
    """What a user remembers of a state that was taught and of a model that was signed."""
    with TemporaryDirectory() as folder, at_home(Path(folder)):
        state = Path(folder) / "state.tyto"
        store.create(state, small.localizer())
        with store.edit(state) as localizer:
            localizer.merge(small.localizer(0))
        return {"state": remembered_path().read_bytes().replace(folder.encode(), b"/home/anna")}


def _signatures() -> dict[str, bytes]:
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        path = home / "name.tyto"
        path.write_bytes(b"content")
        key = SigningKey.load(home / SIGNING_KEY)
        about: dict[str, str | int | float] = {"frames": 3, "why": "few"}
        return {kind: sign_file(path, key, kind, 4, about).read_bytes() for kind in ("model", "state")}


def _sealed() -> dict[str, bytes]:
    (key,) = read_identities_of_tests()
    plain = b"who stood where\n" * 6
    return {
        "binary": seal_bytes(plain, [str(key.public)]),
        "armored": seal_bytes(plain, [str(key.public)], armored=True),
        "long": seal_bytes(plain * 900, [str(key.public)]),
    }


def read_identities_of_tests() -> list[Identity]:
    """The golden key, whose file git leaves open to others."""
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        return read_identities(home / IDENTITY)


def _noise() -> NDArray[np.float64]:
    """Two frames of three channels."""
    return np.asarray(0.1 * np.sin(np.arange(2400)[:, None] * np.array([0.1, 0.2, 0.3])))


def _waves() -> dict[str, bytes]:
    import soundfile

    sound = _noise()
    made = {}
    for name, form, subtype in (
        ("pcm16", "WAV", "PCM_16"),
        ("pcm24", "WAV", "PCM_24"),
        ("float", "WAV", "FLOAT"),
        ("extensible", "WAVEX", "PCM_16"),
        ("rf64", "RF64", "PCM_16"),
    ):
        made[name] = _saved(lambda p, f=form, s=subtype: soundfile.write(p, sound, 8000, s, format=f))  # type: ignore[misc]
    return made


def _sounds() -> dict[str, bytes]:
    import soundfile

    sound = _noise()
    forms = ("FLAC", "OGG", "AIFF", "AU", "CAF", "W64")
    return {f: _saved(lambda p, f=f: soundfile.write(p, sound, 8000, format=f)) for f in forms}  # type: ignore[misc]


def _pickles() -> dict[str, bytes]:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    plain = {f"labels{p}": pickle.dumps(PICKLED, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)}
    arrays = {f"array{p}": pickle.dumps((array, array.T, array.sum()), p) for p in (0, 2, 4, 5)}
    return {**plain, **arrays, "python2": PYTHON_2}


def _benches() -> dict[str, bytes]:
    shipped = shipped_configs()
    chosen = {name: shipped[name].read_bytes() for name in sorted(shipped)[:4]}
    full = (
        'name = "all"\nmethods = ["srp-phat", "tyto"]\nseeds = [0, 1]\nn_phases = 3\nbands = [[100, 8000]]\n'
    )
    full += 'noises = ["white"]\nsnr = [-10.0]\ncontext = [1]\norders = ["contiguous"]\n'
    full += "[options.tyto]\nn_features = 60\n[[variants.tyto]]\n[[variants.tyto]]\nsigma = 11.0\n"
    return {**chosen, "all": full.encode()}


def _results() -> dict[str, bytes]:
    whole = json.loads((GOLDEN / "results.json").read_bytes())
    short = {**whole, "rows": whole["rows"][:2]}
    return {"whole": json.dumps(whole).encode(), "short": json.dumps(short).encode()}


def _labels() -> dict[str, bytes]:
    return {
        "one": b"frame,azimuth\n0,10.5\n1,10.5\n1,200.0\n2,\n",
        "windows": b"\xef\xbb\xbfframe,azimuth\r\n0,359.9\r\n7,0.0\r\n",
        "quoted": b'frame,azimuth\n"3","12.25"\n',
    }


def _mats() -> dict[str, bytes]:
    from scipy.io import savemat

    return {
        "v5": _saved(lambda path: savemat(path, _matrices()), ".mat"),
        "compressed": _saved(lambda path: savemat(path, _matrices(), do_compression=True), ".mat"),
        "v4": _saved(lambda path: savemat(path, _matrices(), format="4"), ".mat"),
    }


def _matrices() -> dict[str, NDArray[np.float64]]:
    Y = np.zeros((3, 360))
    Y[[0, 1], [10, 20]] = 1
    return {"Xtr": np.full((3, 306), 0.25), "Ytr": Y, "Itr": np.array([[1.0], [1.0], [0.0]])}


def _hdf5() -> dict[str, bytes]:
    import h5py

    def write(path: Path) -> None:
        with h5py.File(path, "w", userblock_size=512) as file:
            for name, values in _matrices().items():
                file[name] = values.T.astype(np.float32)

    return {"v73": _saved(write, ".mat")}


def _bench_caches() -> dict[str, bytes]:
    frames = Frames(small.features(4), small.feature_set().azimuth)
    data = BenchData("toy", frames, frames, {("quiet", "test"): frames}, small.ARRAY, prior_gcc(small.ARRAY))
    return {"toy": _saved(data.save)}


def _stems() -> dict[str, bytes]:
    return {"golden": _saved(Stems.load(GOLDEN / "stems.safetensors").save)}


def _trusted() -> dict[str, bytes]:
    with TemporaryDirectory() as folder, at_home(Path(folder)) as home:
        own = SigningKey.load(home / SIGNING_KEY).fingerprint
    return {"two": f"# whose\n{own} my own key\ntyto-ed25519:{'A' * 42}E anna\n".encode()}


MAKERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "state": _states,
    "model": _models,
    "prior": _priors,
    "array": lambda: {n: load_array(n).to_toml().encode() for n in ("pepper", "respeaker-usb-4", "linear-4")},
    "odas": lambda: {"four": ODAS},
    "ledger": _ledgers,
    "remembered": _remembered,
    "signature": _signatures,
    "age": _sealed,
    "wav": _waves,
    "sound": _sounds,
    "pickle": _pickles,
    "bench": _benches,
    "results": _results,
    "labels": _labels,
    "features": lambda: {"trio": _saved(small.feature_set().save)},
    "cache": _bench_caches,
    "stems": _stems,
    "identity": lambda: {"golden": (GOLDEN / IDENTITY).read_bytes()},
    "trusted": _trusted,
    "settings": lambda: {"array": b'array = "pepper"\n'},
    "mat": _mats,
    "hdf5": _hdf5,
}
"""Seeds by kind and name."""


if __name__ == "__main__":
    main(sys.argv[1:])
