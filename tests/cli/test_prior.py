"""`tyto prior`: from an array to a file and numbers, and refusals in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.data.simulation import stems as stems
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.errors import TytoError
from tytoalba.learning.prior import make as make
from tytoalba.learning.prior import manifest as manifest
from tytoalba.learning.prior import train as train
from tytoalba.learning.prior.features import prior_gcc, steering_matrices
from tytoalba.learning.prior.make import MadePrior, PriorSettings
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import find_prior, shipped_priors
from tytoalba.signal.array import MicArray, load_array

torch = pytest.importorskip("torch")
USB = load_array("respeaker-usb-4")
MINE = replace(USB, name="mine", yaw=7.0)
"""Mounted as no array that a prior is shipped for."""
TINY = (
    "--scenes", "40", "--frames", "60", "--width", "4", "--epochs", "1", "--families", "hybrid,anechoic",
    "-j", "1", "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def tyto(tyto: Tyto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tyto:
    """The command on short scenes, and with no user's folder of priors."""
    monkeypatch.setattr(make, "Scenes", partial(Scenes, seconds=0.8))
    monkeypatch.setenv("TYTO_PRIORS", str(tmp_path / "priors"))
    return tyto


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """How many scenes were asked for; 16 at most are made (or as a test asks), and of 8 rooms."""
    numbers: list[int] = []

    def counted(simulated: Any, most: int) -> Any:
        def made(scenes: Scenes, n_scenes: int, **how: Any) -> Any:
            numbers.append(n_scenes)
            return simulated(scenes, min(n_scenes, most), **how)

        return made

    monkeypatch.setattr(stems, "N_VOICES", (8, 8))
    monkeypatch.setattr(train, "N_KEPT", 50)
    monkeypatch.setattr(make, "simulate", counted(make.simulate, getattr(request, "param", 16)))
    monkeypatch.setattr(make, "gather_stems", counted(stems.gather_stems, 8))
    return numbers


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The file of an array of one's own."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE.to_toml())
    return path


def small(array: MicArray) -> Prior:
    """A prior of a network that was never trained."""
    from tytoalba.learning.prior.network import PriorNetwork

    gcc = prior_gcc(array)
    made = Prior.quantised(array, gcc, PriorNetwork(steering_matrices(array, gcc), width=4).folded())
    return made.with_frames(0.2 * np.random.default_rng(0).standard_normal((30, gcc.n_features), np.float32))


@pytest.fixture
def untrained(tmp_path: Path) -> None:
    """A prior for the array of one's own."""
    (tmp_path / "priors").mkdir()
    small(MINE).save(tmp_path / "priors" / "mine.safetensors")


def check_judged(judged: dict[str, Any]) -> None:
    assert list(judged) == ["hybrid", "anechoic"]
    for rows in judged.values():
        assert [row["who"] for row in rows[:2]] == ["srp", "prior"]
        assert all(0 <= row["acc"] <= 100 and row["n_frames"] > 0 for row in rows)


# ---- tyto prior


def test_a_prior_in_a_file(tyto: Tyto, tmp_path: Path, asked: list[int]) -> None:
    path, results = tmp_path / "new" / "usb.safetensors", tmp_path / "judged" / "usb.json"
    ran = tyto("prior", "respeaker-usb-4", *TINY, "-o", path, "--results", results, "--json")
    assert ran.code == 0, ran.err
    assert asked == [40, 200, 300]
    (line,) = ran.out.splitlines()
    told = json.loads(line)
    assert json.loads(results.read_text()) == told
    assert told["array"] == "respeaker-usb-4"
    check_judged(told["judged"])
    assert "left_out" not in told
    made = Prior.load(path)
    assert made.array == load_array("respeaker-usb-4")
    assert (made.width, made.about) == (4, told["about"])
    assert (made.about["n_scenes"], made.about["families"]) == (40, ["hybrid", "anechoic"])
    assert (made.about["speech"], made.about["recipe"]["epochs"]) == ("synthetic", 1)
    assert (made.about["calm"], made.about["recipe"]["lr"]) == (0.5, 0.002)
    assert len(made.counting()) == 2
    assert (len(made.simulated_frames()[0]), made.about["n_frames"]) == (50, 60)
    assert f"{made.n_weights} weights" in ran.err
    assert path.name in ran.err.replace("\n", "")


@pytest.mark.usefixtures("asked")
def test_a_prior_is_written_before_it_is_judged(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = make.simulate

    def fails(scenes: Scenes, *more: Any, **how: Any) -> Any:
        if scenes.speakers == "test":
            raise TytoError("the lights went out")
        return simulate(scenes, *more, **how)

    monkeypatch.setattr(make, "simulate", fails)
    path = tmp_path / "usb.safetensors"
    ran = tyto("prior", "respeaker-usb-4", *TINY, "-o", path)
    assert "the lights went out" in ran.error
    assert len(Prior.load(path).counting()) == 2


def test_kept_scenes_are_not_simulated_again(tyto: Tyto, tmp_path: Path, asked: list[int]) -> None:
    cache = tmp_path / "kept" / "scenes"

    def made(name: str, *more: str) -> Prior:
        path = tmp_path / name
        ran = tyto("prior", "respeaker-usb-4", *TINY, "-o", path, *more)
        assert ran.code == 0, ran.err
        return Prior.load(path)

    first, again = made("1", "--cache", str(cache)), made("2", "--cache", str(cache))
    assert asked == [40, 200, 300]
    assert len(list(cache.iterdir())) == 3
    assert np.array_equal(first.digest, again.digest)
    further = made("further", "--cache", str(cache), "--start", str(tmp_path / "1"), "--width", "9")
    assert (further.width, further.about["start"]) == (4, first.about)
    assert further.about["recipe"]["lr"] < first.about["recipe"]["lr"]
    assert not np.array_equal(first.digest, further.digest)
    slowly = made("slowly", "--cache", str(cache), "--rate", "1e-9")
    assert slowly.about["recipe"]["lr"] == 1e-9
    assert not np.array_equal(first.digest, slowly.digest)
    other = made("3", "--cache", str(cache), "--seed", "1")  # other scenes
    assert asked[3:] == [40, 200, 300]
    assert not np.array_equal(first.digest, other.digest)
    calm = made("4", "--cache", str(cache), "--calm", "1")  # other rooms, to learn from only
    assert asked[6:] == [40]
    assert not np.array_equal(first.digest, calm.digest)
    assert calm.about["calm"] == 1.0


@pytest.mark.parametrize("asked", [28], indirect=True)  # each family has to calibrate
@pytest.mark.usefixtures("asked")
def test_a_prior_of_ones_own_array_is_found_and_judged(tyto: Tyto, tmp_path: Path, mine: Path) -> None:
    assert find_prior(MINE) is None
    ran = tyto(
        "prior", mine, *TINY, "--scenes", "20", "--leave-one-out", "--results", tmp_path / "judged.json"
    )
    assert ran.code == 0, ran.err
    found = find_prior(MINE)
    assert found is not None
    assert found.array == MINE
    assert [path.name for path in (tmp_path / "priors").iterdir()] == ["mine.safetensors"]
    told = json.loads((tmp_path / "judged.json").read_text())
    check_judged(told["judged"])
    check_judged(told["left_out"])
    for heading in (
        "Acoustics it was trained on",
        "Acoustics that each was not trained on",
        "SRP-PHAT",
        "prior",
    ):
        assert heading in ran.out
    for name in ("hybrid", "anechoic"):
        rows = [line for line in ran.out.splitlines() if name in line]
        assert len(rows) >= 2
        assert f"{told['judged'][name][1]['acc']:.1f} / {told['judged'][name][1]['mae']:.1f}" in rows[0]


@pytest.mark.usefixtures("asked")
def test_a_prior_of_another_array_is_a_beginning(
    tyto: Tyto, tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, usb = tmp_path / "small.safetensors", replace(small(USB), about={"n_scenes": 1})
    usb.save(path)
    monkeypatch.setattr("tytoalba.learning.prior.registry.shipped_priors", lambda: {"respeaker-usb-4": path})
    ran = tyto("prior", mine, *TINY, "--start", "respeaker-usb-4", "--epochs", "0", "--json")
    assert ran.code == 0, ran.err
    found = find_prior(MINE)
    assert found is not None
    assert found.about["start"] == {"array": "respeaker-usb-4", **usb.about}
    moved = usb.moved(MINE).real_weights()
    for name, weights in found.real_weights().items():
        np.testing.assert_allclose(weights, moved[name], atol=0.01)
    assert len(found.counting()) == 2
    check_judged(json.loads(ran.out)["judged"])


@pytest.mark.usefixtures("untrained")
def test_a_prior_is_calibrated_anew(tyto: Tyto, tmp_path: Path, mine: Path, asked: list[int]) -> None:
    first, again = tmp_path / "priors" / "mine.safetensors", tmp_path / "again.safetensors"
    ran = tyto("prior", mine, *TINY, "--start", first, "--epochs", "0", "-o", again)
    assert ran.code == 0, ran.err
    assert asked == [200, 300]  # no room: there is nothing to learn
    before, after = Prior.load(first), Prior.load(again)
    assert (before.array, before.about) == (after.array, after.about)
    assert after.constants.keys() - before.constants.keys() == {"counting"}
    assert before.constants.items() <= after.constants.items()
    assert np.array_equal(before.digest, after.digest)  # what was taught behind it stays good
    for k in (0, 1):
        assert np.array_equal(before.simulated_frames()[k], after.simulated_frames()[k])


def test_shipping_writes_what_brings_it_again(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    for folder in (manifest.shipped_folder(source), source / "results" / "priors"):
        folder.mkdir(parents=True)

    def make(array: MicArray, _: PriorSettings, **how: Any) -> MadePrior:
        shutil.copy(shipped_priors()[array.name], how["output"])
        how["results"].write_text("{}")
        return MadePrior(Prior.load(how["output"]), how["output"], {})

    monkeypatch.setattr(manifest, "make_prior", make)
    monkeypatch.setattr(manifest, "checkout", lambda: source)
    options = ("--speech", tmp_path, "--cache", tmp_path, "--rate", "0.001", "--leave-one-out", "--ship")
    ran = tyto("prior", "respeaker-usb-4", *TINY, "--start", shipped_priors()["pepper"], *options)
    assert ran.code == 0, ran.err
    text = (manifest.shipped_folder(source) / "manifest.json").read_text()
    assert json.loads(text)["priors"]["respeaker-usb-4"]["commands"] == [
        "tyto prior respeaker-usb-4 --scenes 40 --frames 60 --width 4 --epochs 1 --rate 0.001 "
        "--families hybrid,anechoic --start pepper.safetensors --speech SPEECH --leave-one-out --ship"
    ]
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("pepper", "--families", "hybrid,cave"), "no acoustics called 'cave'; known: "),
        (("pepper", "--families", "hybrid,anechoic", "--scenes", "19"), "scenes must be at least 20"),
        (("pepper", "--scenes", "49"), "scenes must be at least 50"),
        (("pepper", "--width", "0"), "width and blocks at least 1"),
        (("pepper", "--blocks", "0"), "width and blocks at least 1"),
        (("pepper", "--frames", "0"), "frames, width"),
        (("pepper", "--epochs", "0"), "epochs 0 learns nothing: that needs a prior to start from"),
        (("pepper", "--epochs", "-1"), "epochs and seed must not be negative"),
        (("pepper", "--seed", "-1"), "epochs and seed must not be negative"),
        (("pepper", "--rate", "0"), "rate must be a positive number, got 0"),
        (("pepper", "--rate", "nan"), "rate must be a positive number, got nan"),
        (("pepper", "--families", "hybrid", "--leave-one-out"), "needs at least two families"),
        (("pepper", "--families", "hybrid,hybrid", "--leave-one-out"), "needs at least two families"),
        (("pepper", "--speech", "no-such-folder"), "no-such-folder"),
    ],
)
def test_what_makes_no_prior_is_refused(
    tyto: Tyto, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    assert complaint in tyto("prior", *arguments).error
    assert not list(tmp_path.iterdir())


class SimulatedError(Exception):
    """Scenes were made, which takes minutes, before a refusal that was due at once."""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--device", "nowhere"), "nowhere"),  # in the end a RuntimeError of torch, with its traceback
        (("--device", "cuda:77"), "cuda:77"),
        (("--frames", "1000000000000"), "GB, more than there is: mix fewer frames"),
        (("-o", "."), ". is a folder, not a file to write"),  # the finished prior is lost
        (("--results", "."), ".: is a folder, not a file to write"),
        (("--results", "a-file/x.json"), "a-file/x.json: Not a directory"),
        (("--ship", "-o", "x"), "leave -o and --results out"),
        (("--cache", "a-file"), "a-file is a file, not a folder"),
        (("--start", "nothing.safetensors"), "no such file: nothing.safetensors"),
        (("--start", "a-file"), "a-file is damaged or no prior"),
        (("--start", "violin"), "no such file: violin"),
        (("--start", str(shipped_priors()["respeaker-usb-4"]), "--leave-one-out"), "priors that start anew"),
    ],
)
def test_what_cannot_end_well_does_not_begin(
    tyto: Tyto,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    def simulate(*_: Any, **__: Any) -> None:
        raise SimulatedError

    monkeypatch.setattr(make, "gather_stems", simulate)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    assert complaint in tyto("prior", "respeaker-usb-4", *TINY, *arguments).error


def test_without_torch_the_extra_is_named() -> None:
    blocked = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
sys.argv = ["tyto", "prior", "respeaker-usb-4"]
from tytoalba.cli.app import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "new priors need the extra 'train'" in ran.stderr
    assert "Traceback" not in ran.stderr


# ---- help


def test_help_shows_examples(tyto: Tyto) -> None:
    ran = tyto("prior", "--help")
    assert ran.code == 0
    for words in ("Examples:", "tyto prior my-array.toml", "tyto prior pepper --scenes"):
        assert words in ran.out
