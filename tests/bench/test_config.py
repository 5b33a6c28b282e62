"""What the TOML file of a benchmark may say, and how the command changes it."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from tytoalba.bench.config import SEES, Job, load_config, row_of, shipped_choices, shipped_configs
from tytoalba.errors import TytoError
from tytoalba.learning.method import Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.array import load_array

PEPPER = load_array("pepper")
GCC = prior_gcc(PEPPER)
N = GCC.n_features
NOBODY = Phase(np.empty((0, N), np.float32), np.empty((0, 1)), np.arange(360))
TASK = Task(N, array=PEPPER, gcc=GCC, valid=NOBODY)
GRADIENT = ("mlp-gcc", "joint", "fine-tune", "lwf", "ss-il", "icarl", "ewc", "lfl", "replay")


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_benchmark_can_be_read(name: str) -> None:
    config = load_config(name)
    assert config.name == name
    assert config.about
    assert config.jobs()
    assert load_config(str(shipped_configs()[name])) == config
    if name.startswith("tune"):
        assert config.judged_on == "valid"


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_option_is_one_of_its_method(name: str) -> None:
    config = load_config(name)
    assert config.variants.keys() | config.options.keys() <= set(config.methods)  # none is there in vain
    options = [(job.method, job.options) for job in config.jobs()] + list(config.options.items())
    for method, chosen in options:
        taken = inspect.signature(METHODS[method]).parameters
        small = {key: 20 for key in ("n_features", "n_centres") if key in taken}  # these take memory at once
        METHODS[method](TASK, **{k: v for k, v in {**chosen, **small}.items() if k not in SEES})
        assert not {"n_features", "n_centres"} & chosen.keys() - taken.keys()


def test_what_rows_of_the_table_are_shown() -> None:
    """The paper's methods see what the paper has; the prior's kin see its windows and bands."""
    table = load_config("table1")
    assert (table.bands, table.parts) == (GCC.bands, GCC.parts)
    windows = [row_of(job.method, job.variant) for job in table.jobs() if not job.options.get("plain", False)]
    assert windows[: len(windows) // len(table.seeds)] == [
        "joint, of the prior's network", "joint, from the prior", "joint, from the prior, mirrored",
        "joint, in the prior's noises", "tyto, learns=False", "tyto", "tyto, without prior",
    ]  # fmt: skip
    assert not any("windows" in job.options for job in table.jobs())
    assert {job.variant for job in table.jobs() if job.options.get("noisy")} == {"in the prior's noises"}
    assert all(job.options["answers"] == "anywhere" for job in table.jobs() if job.method == "tyto")


@pytest.mark.parametrize("name", [name for name in shipped_configs() if load_config(name).chosen])
def test_every_experiment_has_the_rows_of_the_table(name: str) -> None:
    """What is varied differs; what was chosen, and what methods see, does not."""
    rows = {(job.method, job.variant): job.options for job in load_config("table1").jobs()}
    config = load_config(name)
    varied = {key for listed in config.variants.values() for variant in listed for key in variant}
    for job in config.jobs():
        variant = "" if name in ("expansion", "eta", "orders", "ss-il-terms") else job.variant
        wanted, found = rows[job.method, variant], job.options
        assert {k: v for k, v in found.items() if k not in varied} == {
            k: v for k, v in wanted.items() if k not in varied
        }
    assert config.judged_on == ("valid" if name == "ss-il-terms" else "test")
    assert config.noise_share == (1.0 if name == "noise" else 0.25)


def test_chosen_options_are_of_rows_that_there_are() -> None:
    rows = {row_of(job.method, job.variant) for job in load_config("table1").jobs()}
    assert set(shipped_choices()) == {"table1"}
    assert set(load_config("table1").chosen) <= rows


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'about = "x"\nmethods = ["tyto"]\nseeds = [3, 1]\nbands = [[0, inf], [500, 4000]]\n'
        "[options.tyto]\nn_features = 7\n",
    )
    config = load_config(path)
    assert (config.name, config.methods, config.seeds) == ("mine", ("tyto",), (3, 1))
    assert config.bands == ((0.0, np.inf), (500.0, 4000.0))
    assert config.jobs()[0] == Job("tyto", "", "contiguous", 3, {"n_features": 7})


def test_a_file_upon_another(tmp_path: Path) -> None:
    base = load_config("quick")
    path = written(
        tmp_path, 'base = "quick"\nmethods = ["tyto", "lwf"]\n[options.lwf]\nwidth = 8\n[variants]\ntyto=[{}]'
    )
    config = load_config(path)
    assert (config.name, config.methods, config.data) == ("mine", ("tyto", "lwf"), base.data)
    lwf = {**base.options["lwf"], "width": 8}
    assert config.options == {"tyto": base.options["tyto"], "lwf": lwf}  # none of other methods
    assert (config.bands, config.parts) == (base.bands, base.parts)
    with pytest.raises(TytoError, match="more than 4 files"):
        load_config(written(tmp_path, f"base = {path!r}"))


def test_rows_with_names_and_options_that_were_chosen_for_them(tmp_path: Path) -> None:
    (tmp_path / "mine.options").write_text(
        '[tyto]\nridge = 0.5\nsigma = 6.0\n["tyto, plain"]\nridge = 2.0\n[lwf]\nlr = 1.0\n'
    )
    path = written(
        tmp_path,
        f'methods = ["tyto"]\noptions_from = {str(tmp_path / "mine.options")!r}\n'
        "[options.tyto]\nsigma = 9.0\nviews = 1\n"
        '[variants]\ntyto = [{}, {name = "plain", views = 2}, {name = ""}, {ridge = 3.0}]\n',
    )
    with pytest.raises(TytoError, match="listed twice"):
        load_config(path)
    changed = ["variants.tyto=[{}, {name='plain', views=2}, {ridge=3.0}]"]
    plain, named, swept = load_config(path, changed).jobs()
    assert (plain.variant, plain.options) == ("", {"sigma": 6.0, "views": 1, "ridge": 0.5})
    assert (named.variant, named.options) == ("plain", {"sigma": 9.0, "views": 2, "ridge": 2.0})
    assert (swept.variant, swept.options["ridge"]) == ("ridge=3.0", 3.0)  # what is swept is what it says
    assert "lwf" not in load_config(path, changed).chosen
    again = load_config(path, [*changed, "chosen.tyto.ridge=0.25"]).jobs()[0]
    assert again.options == {"sigma": 6.0, "views": 1, "ridge": 0.25}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("options_from = 'nosuch'", "no options called 'nosuch' and no such file; shipped: table1"),
        ("options_from = 'table1'\nmethods = 3", "a value is of another kind than expected"),
        ("options_from = 'table1'\nchosen = 3", "a value is of another kind than expected"),
        ('options_from = "a\\u0000b"', "no options called"),
        ("options_from = '" + "x" * 5000 + "'", "no options called '" + "x" * 80 + "' and"),
        ("[chosen.nobody]", "no method called 'nobody'"),
        ("[chosen]\ntyto = 3", "options must be tables of options"),
        ("methods=['tyto']\n[variants]\ntyto=[{name=3}]", "the name of a variant must be text; got 3"),
        ("[options.tyto]\nnoisy = 1", "the option noisy must be true or false"),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TytoError, match=message):
        load_config(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("methods = [", "not valid TOML"),
        ('base = "nosuch"', "no benchmark called 'nosuch'"),
        ('base = "' + "x" * 5000 + '"', "no benchmark called '" + "x" * 80 + "' and"),
        ('method = ["tyto"]', "unknown key 'method'; known: about, array, bands"),
        ('methods = ["tito"]', "no method called 'tito'; known: mlp-gcc"),
        ("[options.tito]\nx = 1", "no method called 'tito'"),
        ("[variants]\ntito = [{x = 1}]", "no method called 'tito'"),
        ('noises = ["rain"]', "no noise called 'rain'; known: white, babble, fan"),
        ('orders = ["backwards"]', "no order called 'backwards'; known: contiguous"),
        ('scaling = "max"', "no scaling called 'max'; known: frame"),
        ('judged_on = "train"', "no part to judge on called 'train'"),
        ("methods = []", "at least one method"),
        ("seeds = []", "at least one method, one seed"),
        ("bands = []", "one band"),
        ("seeds = 0", "seeds must be a list, got 0"),
        ('methods = "tyto"', "methods must be a list, got 'tyto'"),
        ("seeds = [-1]", r"seeds must be whole numbers from 0; got \(-1,\)"),
        ("seeds = [0.5]", "seeds must be whole numbers"),
        ("seeds = [0, 0]", "listed twice"),
        ('methods = ["tyto", "tyto"]', "listed twice"),
        ("[variants]\ntyto = [{ridge = 1}, {ridge = 1}]", "listed twice"),
        ("n_phases = 0", "n_phases must be from 1 to 360; got 0"),
        ("n_phases = 361", "n_phases must be"),
        ("n_phases = 2.5", "n_phases must be"),
        ("bands = [[8000, 100]]", "bands must be each"),
        ("bands = [8000]", "mine.toml: "),
        ("bands = [[1, 2, 3]]", "mine.toml: "),
        ("parts = 0", "parts must be a whole number from 1; got 0"),
        ("parts = 2.0", "parts must be a whole number"),
        ("parts = true", "parts must be a whole number"),
        ("[options.tyto]\nwindows = 0", "the option windows must be true or false; got 0"),
        ('[variants]\ntyto = [{windows = "no"}]', "windows must be true or false; got 'no'"),
        ("overlap = 1", "overlap must be"),
        ('overlap = "much"', "mine.toml: "),
        ("imbalance = 0.5", "imbalance must be at least 1"),
        ("noise_share = 0", "noise_share must be above 0"),
        ("size = 0", "size must be a positive factor; got 0"),
        ("size = inf", "size must be a positive factor"),
        ("snr = [1e9]", "snr must be decibels"),
        ("context = [0]", "context must be whole numbers"),
        ("context = 3", "context must be a list"),
        ('name = "../x"', "name must be a file name"),
        ("name = 3", "name must be a file name"),
        ("data = 3", "data must be text"),
        ("[options]\ntyto = 3", "options must be tables"),
        ("[variants]\ntyto = [3]", "options must be tables"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_say(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TytoError, match=message):
        load_config(written(tmp_path, text))


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    for lost in ("nosuch", str(tmp_path), str(tmp_path / "x.toml")):
        with pytest.raises(TytoError, match=r"no benchmark called .* shipped: ablation, eta, expansion"):
            load_config(lost)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TytoError, match="not valid TOML"):
        load_config(str(tmp_path / "bytes.toml"))


def test_changes() -> None:
    changes = [
        "seeds=[4, 5]", "data = simulated:twin", 'judged_on="valid"', "verify=true", "noise_share=0.5",
        "options.tyto.n_features=50", "options.lwf.schedule=constant", "options.ewc.epochs=2",
        "variants.tyto=[{ridge=1.0}]",
    ]  # fmt: skip
    config, before = load_config("quick", changes), load_config("quick")
    assert (config.seeds, config.data, config.judged_on) == ((4, 5), "simulated:twin", "valid")
    assert (config.verify, config.noise_share) == (True, 0.5)
    assert config.options == {
        **before.options,  # what was not changed stays, in the changed tables too
        "tyto": {"n_features": 50},
        "lwf": {**before.options["lwf"], "schedule": "constant"},
        "ewc": {"epochs": 2},
    }
    assert config.variants == {"tyto": [{"ridge": 1.0}]}
    assert load_config("quick") == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seeds", "a change is KEY=VALUE, such as seeds=.*got 'seeds'"),
        ("speed=3", "unknown key 'speed'"),
        ("seeds=[0,1", "seeds must be a list, got"),
        ("seeds=0,1", "seeds must be a list, got '0,1'"),
        ("=3", "not valid TOML"),
        ("a b=3", "not valid TOML"),
        ("options=3", "quick.toml: "),
    ],
)
def test_changes_that_are_refused(change: str, message: str) -> None:
    with pytest.raises(TytoError, match=message):
        load_config("quick", [change])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "[" * 5000, "nested more than"),
        ("seeds = [" + "1" * 5000 + "]", "digits"),
        (".".join("a" * 50_000) + " = 1", "more than 10 parts"),
        ("bands = [[1" + "0" * 400 + ", 2]]", "of another kind than expected"),
        ("options = 3", "of another kind than expected"),
        ("variants = [1]", "no method called 1"),
        ("variants = {tyto = 3}", "of another kind than expected"),
        ("base = 'quick'\noptions = 3", "does not fit the benchmark that is its base"),
        ("base = 'quick'\nmethods = 3", "must be a list|does not fit"),
        ("base = []", "no benchmark called"),
        ("methods = [[]]", "of another kind than expected"),
        ("methods = ['tyto']\nvariants = {tyto = []}", "there is nothing to run"),
        (f"{'x' * 10_000} = 1", "^.{0,1000}$"),
        ("options = {tyto = {day = 1979-05-27}}", "of another kind than expected"),
        (f"seeds = {list(range(20_000))}\norders = {['contiguous'] * 2000}", "more than 100000 runs"),
        ("#" * 300_000, "larger than"),
    ],
)
def test_hostile_files_are_refused_in_words(tmp_path: Path, text: str, why: str) -> None:
    """They ended in tracebacks."""
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(TytoError, match=why):
        load_config(str(tmp_path / "x.toml"))


@pytest.mark.parametrize(
    "change", ["seeds=" + "[" * 5000, "seeds=[" + "1" * 5000 + "]", "a.b.c.d.e.f.g.h.i.j.k=1"]
)
def test_hostile_changes_are_refused_in_words(change: str) -> None:
    with pytest.raises(TytoError, match="is not valid TOML"):
        load_config("quick", [change])
