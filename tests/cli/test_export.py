"""`tyto export --onnx`, from end to end; models of `tyto export` are in test_localizer.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.releases import simulate_nothing
from tests.helpers.states import settle, write_wave
from tytoalba.localizer.onnx.graph import PUBLIC

pytest.importorskip("pyrage")
pytest.importorskip("dp_accounting")
onnx = pytest.importorskip("onnx")


@pytest.fixture
def folder(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A taught state k.tyto, in a user's folder that is the working one."""
    settle(monkeypatch, tmp_path)
    simulate_nothing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    write_wave(tmp_path / "a.wav", 135.0, seconds=1.0, seed=1)
    assert tyto("new", "k.tyto", "--array", "respeaker-usb-4", "--features", "20").code == 0
    assert tyto("teach", "k.tyto", "a.wav", "--at", "135").code == 0
    return tmp_path


def facts(path: str | Path) -> dict[str, str]:
    made = onnx.load_model(str(path))
    return {entry.key: entry.value for entry in made.metadata_props}


def test_the_prior_alone(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = tyto("export", "--onnx", "--array", "respeaker-usb-4", "-o", "r.onnx")
    assert (ran.code, ran.out) == (0, "")
    assert f"r.onnx: 1.6 MB, {PUBLIC}\n" in ran.err
    ran = tyto("export", "r.onnx", "--onnx", "-a", "respeaker-usb-4", "--precision", "fast", "--json")
    assert json.loads(ran.out) == {"model": "r.onnx", "secrecy": PUBLIC}
    assert facts("r.onnx")["precision"] == "fast"
    assert "which array?" in tyto("export", "--onnx", "-o", "n.onnx").error
    monkeypatch.setenv("TYTO_ARRAY", "respeaker-usb-4")
    assert tyto("export", "--onnx", "-o", "n.onnx").code == 0
    assert not list(tmp_path.glob("*.sig"))


def test_a_state_a_private_model_and_an_exact_one(tyto: Tyto, folder: Path) -> None:
    ran = tyto("export", "k.tyto", "--onnx", "-o", "k.onnx", "--epsilon", "2")
    assert ran.code == 0
    assert "k.onnx: 1.6 MB, private, signed: k.onnx.sig\n" in ran.err
    assert "spent, with all releases before: epsilon 2.00 of 10\n" in ran.out
    assert json.loads(facts("k.onnx")["private"])["epsilon"] == 2.0
    assert tyto("export", "k.tyto", "k.model", "--epsilon", "2").code == 0
    ran = tyto("export", "k.model", "--onnx", "-o", "m.onnx")
    assert "spent: nothing more than the model itself" in ran.out
    assert json.loads(facts("m.onnx")["private"])["epsilon"] == 2.0
    assert (
        json.loads(tyto("export", "k.model", "m.onnx", "--onnx", "--json").out)["private"]["epsilon"] == 2.0
    )
    assert tyto("keygen").code == 0
    ran = tyto("export", "k.tyto", "--onnx", "--exact", "-o", "e.onnx")
    assert "e.onnx.age: " in ran.err
    assert "this file is as secret as the state" in ran.err
    assert tyto("export", "k.tyto", "--onnx", "--exact", "--plain", "-o", "p.onnx").code == 0
    assert facts("p.onnx")["secrecy"] == "as secret as the state that it was made from"
    assert not (folder / "e.onnx").exists()


REFUSED = (
    ("export k.tyto k.model --precision fast", "--precision and --array are for --onnx"),
    ("export k.tyto k.model --array respeaker-usb-4", "--precision and --array are for --onnx"),
    ("export k.tyto --onnx --array respeaker-usb-4 -o k.onnx", "--array is for the prior alone"),
    ("export --onnx --array respeaker-usb-4 --exact -o k.onnx", "--array is for the prior alone"),
    ("export k.tyto k.onnx --onnx -o m.onnx", "say once where to write"),
    ("export k.tyto --onnx", "say where to write, such as -o kitchen.model"),
    ("export k.tyto", "say where to write, such as -o kitchen.model"),
    ("export -o k.model", "say which state to export, and where to"),
    ("export k.tyto --onnx -o k.onnx --precision half", "precision must be one of same, fast"),
    ("export k.tyto --onnx -o k.onnx --plain", "--plain is for --exact"),
    ("export k.tyto --onnx -o a.wav", "is not an ONNX file of tytoalba and stays as it is"),
)


def test_refusals(tyto: Tyto, folder: Path) -> None:
    before = sorted(folder.iterdir())
    for command, why in REFUSED:
        assert why in tyto(*command.split()).error, command
        assert sorted(folder.iterdir()) == before, command
