"""The analytic methods: equal to their closed forms, whatever the order; and SRP-PHAT beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.waves import plane_waves
from tytoalba.errors import TytoError
from tytoalba.learning import tyto as tyto
from tytoalba.learning.method import Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods import analytic as analytic
from tytoalba.learning.methods.acil import Acil
from tytoalba.learning.methods.contract import check_method, toy_features, toy_phases, toy_task
from tytoalba.learning.methods.dsal import DsAl
from tytoalba.learning.methods.gkeal import Gkeal
from tytoalba.learning.methods.srp_phat import SrpPhatMethod
from tytoalba.learning.methods.sslcil import SslCil, SslCilRandom
from tytoalba.learning.phases import ORDERS, Order, Phase, groups, split
from tytoalba.learning.random_features import RandomReLU
from tytoalba.learning.tyto import Tyto
from tytoalba.signal.angles import encode
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import SrpPhat

TASK = toy_task(seed=1)
SMALL: dict[str, Any] = {"n_features": 60, "width": 16, "epochs": 3}


def frames(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Frames from anywhere, every third with two sources."""
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 360, (n, 2))
    azimuth[np.arange(n) % 3 > 0, 1] = np.nan
    return toy_features(TASK, azimuth, rng), azimuth


def phases_of(order: Order, n_phases: int = 4) -> list[Phase]:
    return split(*frames(), groups(n_phases, order, seed=2))


def taught(method: Method, phases: list[Phase]) -> Any:
    for phase in phases:
        method.learn(phase)
    return method


def together(phases: list[Phase]) -> Phase:
    return Phase(
        *(np.concatenate([getattr(p, name) for p in phases]) for name in ("X", "azimuth", "directions"))
    )


def features(method: Any, X: Any) -> Any:
    """Z as float64, straight from the backbone in the method's memory."""
    from tytoalba.learning.network import Mlp

    network = Mlp(TASK.n_inputs, TASK.n_directions, width=method.width)
    network.load_arrays({k[9:]: v for k, v in method.memory().items() if k.startswith("backbone.")})
    import torch

    return network.double().predict(torch.tensor(method.task.scale(X)).double(), "features").numpy()


def ridge(H: Any, Y: Any, eta: float) -> Any:
    """The textbook: least squares with sqrt(eta) I below H."""
    D = H.shape[1]
    stacked = np.vstack([H, np.sqrt(eta) * np.eye(D)]), np.vstack([Y, np.zeros((D, Y.shape[1]))])
    return np.linalg.lstsq(*stacked, rcond=None)[0]


def distance(a: Any, b: Any) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cls", [SslCil, SslCilRandom])
def test_ssl_cil_is_the_joint_solution_at_every_phase(cls: type[SslCil], order: Order) -> None:
    options = SMALL if cls is SslCil else {"n_features": 60, "width": 16}
    method, phases = cls(TASK, **options), phases_of(order)
    for k, phase in enumerate(phases):
        method.learn(phase)
        assert method.deviation(phases[: k + 1]) < 1e-8
    everything = together(phases)
    H = RandomReLU(16, 60, TASK.seed).transform(features(method, everything.X))
    W = ridge(H, encode(everything.azimuth), 0.1)
    assert distance(method.weights(), W) < 1e-8
    assert distance(method.posterior(everything.X), H @ W) < 1e-6


def test_ssl_cil_does_not_depend_on_what_comes_after_phase_0() -> None:
    first, *rest = phases_of("contiguous")
    forward, backward = (
        taught(SslCil(TASK, **SMALL), [first, *rest]),
        taught(SslCil(TASK, **SMALL), [first, *rest[::-1]]),
    )
    assert distance(forward.weights(), backward.weights()) < 1e-8


def test_the_backbone_is_frozen_after_phase_0() -> None:
    first, *rest = phases_of("contiguous")
    method = taught(SslCil(TASK, **SMALL), [first])
    before = method.memory()
    taught(method, rest)
    kept = [name for name in before if name.startswith("backbone.")]
    assert kept
    assert all(np.array_equal(before[name], method.memory()[name]) for name in kept)
    untrained = taught(SslCilRandom(TASK, n_features=60, width=16), [first]).memory()
    assert any(not np.array_equal(before[name], untrained[name]) for name in kept)


def test_an_empty_first_phase_leaves_the_backbone_to_the_next() -> None:
    first, second, *_ = phases_of("contiguous")
    nobody = replace(first, X=first.X[:0], azimuth=first.azimuth[:0])
    late, prompt = taught(SslCil(TASK, **SMALL), [nobody, second]), taught(SslCil(TASK, **SMALL), [second])
    assert np.array_equal(late.weights(), prompt.weights())
    empty = taught(SslCil(TASK, **SMALL), [nobody])
    assert not empty.posterior(first.X).any()


def test_tyto_is_the_same_to_the_bit_in_any_order_and_any_pieces() -> None:
    phases = phases_of("contiguous")
    reference = taught(Tyto(TASK, n_features=50), phases)
    head, *tail = phases
    pieces = [
        Phase(head.X[rows], head.azimuth[rows], head.directions)
        for rows in (slice(0, 1), slice(1, 2), slice(2, 37), slice(37, None))
    ]
    X, azimuth = frames()
    shuffled = np.random.default_rng(5).permutation(len(X))
    mixed = Phase(X[shuffled], azimuth[shuffled], np.arange(360))
    columns_first = replace(mixed, X=np.asfortranarray(mixed.X))
    for other in (phases[::-1], [*tail, *pieces], phases_of("interleaved"), [mixed], [columns_first]):
        method = taught(Tyto(TASK, n_features=50), other)
        for name, array in reference.memory().items():
            assert np.array_equal(array, method.memory()[name]), name
        assert np.array_equal(reference.posterior(mixed.X), method.posterior(mixed.X))


def test_tyto_learns_and_wider_labels_make_wider_scores() -> None:
    X, azimuth = frames(800)
    X_test, azimuth_test = frames(300, seed=9)
    one = np.isnan(azimuth_test[:, 1])
    near, wide = (
        taught(Tyto(TASK, n_features=300, sigma=sigma), [Phase(X, azimuth, np.arange(360))])
        for sigma in (8.0, 30.0)
    )
    off = np.abs((near.posterior(X_test[one]).argmax(axis=1) - azimuth_test[one, 0] + 180) % 360 - 180)
    assert np.median(off) < 6
    assert (wide.posterior(X_test) > 0.3).sum() > 1.5 * (near.posterior(X_test) > 0.3).sum()


def test_acil_loses_what_spills_over_the_edge_of_what_it_has_seen() -> None:
    phases = phases_of("contiguous")
    block, joint = taught(Acil(TASK, **SMALL), phases), taught(SslCil(TASK, **SMALL), phases)
    off = np.linalg.norm(block.weights() - joint.weights(), axis=0)
    assert not off[:90].any()  # phase 0: all its columns were there
    assert off[90] > 1e3 * off[135]  # the edge of phase 1, which labels of phase 0 reach, and its middle
    assert off[359] > 1e3 * off[315]  # so does the other end of phase 0, around the circle


def test_acil_is_the_joint_solution_for_labels_that_do_not_spill() -> None:
    task = replace(TASK, sigma=0.05)
    rng = np.random.default_rng(0)
    azimuth = rng.integers(0, 360, (300, 1)).astype(np.float64)
    phases = split(toy_features(task, azimuth, rng), azimuth, groups(4))
    block, joint = taught(Acil(task, **SMALL), phases), taught(SslCil(task, **SMALL), phases)
    assert distance(block.weights(), joint.weights()) < 1e-9


def test_ds_al_without_compensation_is_its_main_stream() -> None:
    phases = phases_of("contiguous")
    X = frames()[0]
    main = taught(Acil(TASK, **SMALL), phases)
    assert np.array_equal(taught(DsAl(TASK, weight=0.0, **SMALL), phases).posterior(X), main.posterior(X))


def test_ds_al_compensates_the_residual_of_the_main_stream() -> None:
    first, second, *_ = phases_of("contiguous")
    method = taught(DsAl(TASK, weight=0.5, ridge_compensation=0.3, **SMALL), [first])
    main = taught(Acil(TASK, **SMALL), [first])
    W = RandomReLU(16, 60, TASK.seed).weights
    seen = np.isin(np.arange(360), first.directions)
    Z = features(method, first.X)
    residual = (encode(first.azimuth) - np.maximum(Z @ W, 0) @ main.weights()) * seen
    V = ridge(np.tanh(Z @ W), residual, 0.3)
    Z = features(method, second.X)
    expected = np.maximum(Z @ W, 0) @ main.weights() + 0.5 * np.tanh(Z @ W) @ V
    assert distance(method.posterior(second.X), expected) < 1e-6
    before = method.memory()["compensation.Q"]
    method.learn(second)
    changed = (method.memory()["compensation.Q"] != before).any(axis=0)
    assert not changed[~np.isin(np.arange(360), second.directions)].any()  # previous labels are cleansed


def test_gkeal_is_what_its_formula_says() -> None:
    phases = phases_of("contiguous")
    method = taught(Gkeal(TASK, n_centres=30, width=16, epochs=3), phases)
    kept = method.memory()
    Z = features(method, phases[0].X)
    nearest = np.linalg.norm(kept["centres"][:, None] - Z, axis=2).argmin(axis=1)
    assert np.abs(Z[nearest] - kept["centres"]).max() < 1e-12
    assert len(set(nearest)) == 30
    assert nearest.tolist() != list(range(30))

    def kernel(X: Any) -> Any:
        apart = features(method, X)[:, None] - kept["centres"]
        return np.exp(-(apart**2).sum(axis=2) / (2 * float(kept["kernel_width"]) ** 2))

    seen, grown = np.zeros(360), []
    for phase in phases:
        seen[phase.directions] = 1.0
        grown.append(encode(phase.azimuth) * seen)
    X = together(phases).X
    expected = kernel(X) @ ridge(kernel(X), np.concatenate(grown), 0.1)
    assert distance(method.posterior(X), expected) < 1e-6


def test_srp_phat_finds_plane_waves_where_srp_phat_does() -> None:
    array, azimuth = load_array("pepper"), np.arange(0.0, 360.0, 24.0)
    waves = plane_waves(array, azimuth, 2048)
    gcc = GccPhat.for_array(array, 2048, (100.0, 8000.0))
    method = SrpPhatMethod(Task(gcc.n_features, array=array, gcc=gcc))
    found = method.posterior(gcc(waves).reshape(len(waves), -1)).argmax(axis=1)
    assert found.tolist() == SrpPhat(array, 2048)(waves).argmax(axis=1).tolist() == azimuth.tolist()


def test_srp_phat_of_several_bands_is_that_of_all_together() -> None:
    array, bands = load_array("pepper"), ((100.0, 2000.0), (2000.0, 4000.0), (4000.0, 8000.0))
    waves = plane_waves(array, [33.0, 200.0], 2048)

    def scores(band: Any) -> Any:
        gcc = GccPhat.for_array(array, 2048, band)
        return SrpPhatMethod(Task(gcc.n_features, array=array, gcc=gcc)).posterior(gcc(waves).reshape(2, -1))

    assert np.allclose(scores(bands), scores((100.0, 8000.0)), atol=0.01)  # bins on the edge count twice


def test_srp_phat_needs_an_array_and_its_features() -> None:
    with pytest.raises(TytoError, match="needs to know the array"):
        SrpPhatMethod(Task(306))
    with pytest.raises(TytoError, match="30 values a frame, the task 31"):
        SrpPhatMethod(replace(TASK, n_inputs=31))
    with pytest.raises(TytoError, match="keeps nothing"):
        SrpPhatMethod(TASK).restore({"G": np.zeros(1)})


@pytest.mark.parametrize("cls", [Tyto, SslCil, DsAl, Gkeal])
def test_blocks_change_nothing(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {
        Tyto: {"n_features": 30},
        Gkeal: {"n_centres": 30, "width": 16, "epochs": 1},
    }.get(cls, SMALL)
    phases, X = phases_of("contiguous"), frames()[0]
    whole = taught(cls(TASK, **options), phases)
    scores = whole.posterior(X)
    monkeypatch.setattr("tytoalba.learning.method.BLOCK", 7)
    cut = taught(cls(TASK, **options), phases)
    assert np.allclose(cut.posterior(X), scores, atol=1e-6)
    assert np.allclose(whole.posterior(X), scores, atol=1e-6)
    if cls is Tyto:
        assert np.array_equal(cut.memory()["G"], whole.memory()["G"])


@pytest.mark.parametrize(
    ("cls", "room"), [(Tyto, tyto), (SslCil, analytic), (Acil, analytic), (DsAl, analytic)]
)
def test_an_interruption_leaves_the_method_as_it_was(
    cls: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = phases_of("contiguous")
    method = taught(cls(TASK, **({"n_features": 30} if cls is Tyto else SMALL)), [first])
    before = method.memory()
    calls = iter(range(100))

    def interrupted(*args: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    name = "gaussian_labels" if cls is Tyto else "encode"
    real = getattr(room, name)
    monkeypatch.setattr("tytoalba.learning.method.BLOCK", 20)
    monkeypatch.setattr(room, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        method.learn(second)
    after = method.memory()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_settings_and_memories_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TytoError, match="'trained' or 'random'"):
        SslCil(TASK, backbone="borrowed")  # type: ignore[arg-type]
    with pytest.raises(TytoError, match=r"in \[0, 2\]"):
        DsAl(TASK, weight=3.0)
    with pytest.raises(TytoError, match="learn a phase first"):
        SslCil(TASK, **SMALL).joint_solution(toy_phases(TASK))
    memory = taught(Tyto(TASK, n_features=20), toy_phases(TASK)[:1]).memory()
    method = Tyto(TASK, n_features=30)
    with pytest.raises(TytoError, match=r"'G' must be int64 \(30, 30\), got int64 \(20, 20\)"):
        method.restore(memory)
    assert not method.memory()["G"].any()
    with pytest.raises(TytoError, match="got nothing"):
        method.restore({})


@pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="needs a GPU")
@pytest.mark.parametrize("name", ["tyto", "ssl-cil", "acil", "ds-al", "gkeal"])
def test_on_a_gpu(name: str) -> None:
    options = {"tyto": {"n_features": 50}, "gkeal": {"n_centres": 30, "width": 16, "epochs": 3}}.get(
        name, SMALL
    )
    cuda = replace(TASK, device="cuda")
    check_method(lambda task: METHODS[name](task, **options), cuda)
    phases = phases_of("contiguous")
    here, there = (taught(METHODS[name](task, **options), phases) for task in (TASK, cuda))
    if name == "tyto":
        assert all(np.array_equal(a, there.memory()[key]) for key, a in here.memory().items())
        assert np.allclose(here.posterior(phases[0].X), there.posterior(phases[0].X), atol=1e-5)
    if name == "ssl-cil":
        assert there.deviation(phases) < 1e-8
