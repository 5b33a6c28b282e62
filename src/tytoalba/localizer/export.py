"""Models in files: private ones, for anybody, and exact ones, for one's own devices.

A private one spends some of the state's budget. That is written to the ledger first, and the model second:
who is killed in between has spent it, and never the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tytoalba.errors import FileError, MissingExtraError, TytoError
from tytoalba.localizer.budget import (
    Step,
    budget_in,
    check_promise,
    has_accounting,
    needed_noise,
    require_left,
)
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import KIND as MODEL
from tytoalba.localizer.model import Model
from tytoalba.localizer.release import UNITS, Unit, private_model
from tytoalba.storage.age import Keys, Recipient
from tytoalba.storage.files import locked
from tytoalba.storage.sealed import opened, write_secret
from tytoalba.storage.signatures import signature_path
from tytoalba.storage.tensors import kind_of
from tytoalba.storage.writing import require_writable, write_whole

if TYPE_CHECKING:
    from tytoalba.localizer.worth import Worth  # which simulates, and takes half a second to import

SEALED_SUFFIX = ".age"
Facts = Mapping[str, str | int | float]
Sign = Callable[[Path, Facts], Path | None]
"""Signs a model, with some facts about it; None where that is not possible."""


@dataclass(frozen=True)
class Form:
    """How a model is written. name: what errors call it ("a model"); knows: whether bytes are one."""

    name: str
    to_bytes: Callable[[Model], bytes]
    knows: Callable[[bytes], bool]


AS_MODEL: Form = Form("a model", Model.to_bytes, lambda data: kind_of(data) == MODEL)
"""As `Localizer.load` reads it."""


@dataclass(frozen=True)
class Source:
    """A state that nobody changes meanwhile, the steps of its ledger, and what writes "exported" there."""

    localizer: Localizer
    steps: Sequence[Step]
    spend: Callable[[Facts], None]


@dataclass(frozen=True)
class Exported:
    """A model that was written, and its signature, if it has one.

    worth: of a private one, and how much epsilon all releases have spent of the budget, at its delta.
    weaker: units of releases before that hid less than this one: what they told is not hidden any more.
    advice: of an exact one, reasons against giving it away (`release_gate`).
    """

    path: Path
    model: Model
    signature: Path | None
    worth: Worth | None = None
    spent: float = 0.0
    budget: float = 0.0
    weaker: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def check_private(
    output: Path, epsilon: float, delta: float, unit: str, keys: Keys, form: Form = AS_MODEL
) -> None:
    """Refuse what cannot be released, before the state is read and anything is spent."""
    if unit not in UNITS:
        raise TytoError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
    check_promise(epsilon, delta)
    if not has_accounting():
        raise MissingExtraError("private releases", "privacy")
    refuse_taken(output, keys, form)


def write_private(
    source: Source,
    output: Path,
    epsilon: float,
    delta: float,
    unit: Unit,
    keys: Keys,
    sign: Sign,
    form: Form = AS_MODEL,
) -> Exported:
    """Make and write a private model of a state that is locked; what it spends is in the ledger before."""
    require_left(source.steps, needed_noise(epsilon, delta), delta)
    with locked(output):
        refuse_taken(output, keys, form)
        release = private_model(source.localizer, epsilon, delta, unit)
        promise, content = release.model.private, form.to_bytes(release.model)
        assert promise
        after = require_left(source.steps, float(promise["noise"]), delta)
        source.spend(promise)
        write_whole(output, content)
        signature = sign(output, promised(promise))
    before = {str(step.about.get("unit")) for step in source.steps if step.what == "exported"}
    weaker = tuple(
        name for name in UNITS if name in before and list(UNITS).index(name) < list(UNITS).index(unit)
    )
    worth, budget = release.worth, budget_in(source.steps)
    return Exported(output, release.model, signature, worth, after, budget, weaker)


def promised(promise: Facts) -> Facts:
    """What a signature tells of a private model."""
    return {name: promise[name] for name in ("unit", "epsilon", "delta")}


def write_exact(
    localizer: Localizer,
    output: Path,
    recipients: Sequence[Recipient] | None,
    keys: Keys,
    sign: Sign,
    form: Form = AS_MODEL,
) -> Exported:
    """Write the exact model: sealed for the recipients, with the suffix .age; None: open.

    A localizer that is a model itself can be written in another form.
    """
    if form is AS_MODEL:
        localizer.state  # noqa: B018 - a model is refused, in words
    if recipients is not None and output.suffix != SEALED_SUFFIX:
        output = output.with_name(output.name + SEALED_SUFFIX)
    if recipients is None and output.suffix == SEALED_SUFFIX:
        raise TytoError(f"{output.name} would not be sealed: choose another suffix, or leave out --plain")
    advice = tuple(localizer.state.against_release()) if localizer.can_learn else ()
    model = localizer.model.coarse()
    with locked(output):
        refuse_taken(output, keys, form)
        write_secret(output, form.to_bytes(model), recipients)
        signature = sign(output, {"frames": localizer.n_frames, "exact": "as secret as the state"})
    return Exported(output, model, signature, advice=advice)


def refuse_taken(path: Path, keys: Keys, form: Form = AS_MODEL) -> None:
    """Refuse to write over anything but a model of that form: it may be the state itself.

    Its signature must fit, too.
    """
    require_writable(signature_path(path))
    if not os.path.lexists(path):
        return
    is_model = False
    if path.is_file() and not path.is_symlink():
        try:
            is_model = form.knows(opened(path.read_bytes(), keys, str(path)))
        except TytoError:
            is_model = False
    if not is_model:
        raise FileError(f"{path} exists, is not {form.name} and stays as it is; choose another name")
