"""Settings of ODAS: as shipped, the best on validation scenes, and files of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tytoalba.errors import TytoError
from tytoalba.storage.files import read_json, read_toml

MODES = ("kalman", "particle")
PLACES = ("end", "middle")
CHANCES = ("p_false", "p_new", "p_track", "theta_new", "theta_prob", "theta_inactive")
AT_LEAST_ONE = ("n_pots", "interp_rate", "n_matches", "n_prob", "n_inactive", "n_tracks", "n_particles")
LARGEST = 10_000
"""Of any number: nothing sensible is larger, and some reserve memory."""
MOST_TRACKS = 8
"""What fits into the line that ODAS reserves for its tracks."""


@dataclass(frozen=True)
class OdasSettings:
    """Settings of ODAS, with the values of its own configuration for the ReSpeaker USB 4 Mic Array.

    Names are those of its configuration, in our spelling. Two are ours: which of its tracks count, and when.

    Parameters
    ----------
    mode : str
        Its filter: kalman or particle.
    n_pots : int
        Potential sources of each hop.
    interp_rate : int
        How many times finer the cross-correlations are interpolated.
    n_matches : int
        Coarse directions that are refined.
    fine_level : int
        How fine the sphere is divided in the end: 4 for 2562 directions, 5 for 10242.
    active_mu, active_sigma2 : float
        Mean and variance of the energy of a potential source that is active.
    inactive_mu, inactive_sigma2 : float
        The same of one that is not.
    sigma_r2_prob, sigma_r2_active : float
        Variance of an observed direction, on the unit sphere, of a track on probation and of a confirmed one.
    p_false, p_new, p_track : float
        Chances of a potential source to be false, new, or of a track.
    theta_new : float
        Chance from which a potential source begins a track.
    n_prob : int
        Hops of probation.
    theta_prob : float
        Mean chance during probation from which a track is confirmed.
    n_inactive : int
        Hops without the source after which its track ends.
    theta_inactive : float
        Chance below which a hop counts as without the source.
    n_tracks : int
        Tracks at most.
    sigma_q : float
        Kalman filter: standard deviation of how the velocity changes per hop.
    n_particles : int
        Particle filter: particles per track.
    st_beta, ve_beta, ac_beta : float
        Particle filter: how far particles spread that stand, walk and speed up.
    least_activity : float
        Ours. A track counts as talking where its mean activity over a frame is at least this; 0: every track
        that is reported.
    heard : str
        Ours. Which report belongs to a frame: the last one at the "end" of the frame, which has heard as much
        as our tracker, or at its "middle", where the truth is taken.
    """

    mode: str = "kalman"
    n_pots: int = 4
    interp_rate: int = 4
    n_matches: int = 10
    fine_level: int = 4
    active_mu: float = 0.4
    active_sigma2: float = 0.0025
    inactive_mu: float = 0.25
    inactive_sigma2: float = 0.0025
    sigma_r2_prob: float = 0.0025
    sigma_r2_active: float = 0.0225
    p_false: float = 0.1
    p_new: float = 0.1
    p_track: float = 0.8
    theta_new: float = 0.9
    n_prob: int = 5
    theta_prob: float = 0.8
    n_inactive: int = 250
    theta_inactive: float = 0.9
    n_tracks: int = 4
    sigma_q: float = 0.001
    n_particles: int = 1000
    st_beta: float = 0.04
    ve_beta: float = 0.2
    ac_beta: float = 0.2
    least_activity: float = 0.0
    heard: str = "end"

    def __post_init__(self) -> None:
        for field in fields(self):
            kind, value = type(field.default), getattr(self, field.name)
            _check(field.name, value, kind)
            if kind is float:  # to ODAS, 1 is something else than 1.0
                object.__setattr__(self, field.name, float(value))
        if self.n_tracks > MOST_TRACKS:
            raise TytoError(f"n_tracks of ODAS must be at most {MOST_TRACKS}, got {self.n_tracks}")

    @classmethod
    def read(cls, path: str | Path) -> OdasSettings:
        """From a TOML or JSON file; what it does not name is as shipped.

        The JSON file of `tools/choose_odas.py` has them under "best".
        """
        given = read_json(path) if Path(path).suffix.lower() == ".json" else read_toml(path)
        if isinstance(given, dict) and isinstance(given.get("best"), dict):
            given = given["best"]
        if not isinstance(given, dict):
            raise TytoError(f'{path}: expected names and values such as {{"n_prob": 10}}')
        unknown = sorted(set(given) - {field.name for field in fields(cls)})
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise TytoError(f"{path}: ODAS has no setting {unknown[0]!r} here; known: {known}")
        return cls(**given)


def _check(name: str, value: Any, kind: type) -> None:
    if kind is str:
        allowed = MODES if name == "mode" else PLACES
        if value not in allowed:
            raise TytoError(f"{name} of ODAS must be {' or '.join(allowed)}, got {value!r}")
        return
    number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise TytoError(f"{name} of ODAS must be {'a whole' if kind is int else 'a'} number, got {value!r}")
    low, high = (0.0, 1.0) if name in (*CHANCES, "least_activity") else (0.0, float(LARGEST))
    if name in AT_LEAST_ONE:
        low = 1.0
    elif name.startswith("sigma_") or name.endswith("_sigma2"):
        low = 1e-12
    if name == "fine_level":
        low, high = 3.0, 5.0
    if not low <= value <= high:
        raise TytoError(f"{name} of ODAS must be from {low:g} to {high:g}, got {value}")


SHIPPED = OdasSettings()
"""As in ODAS's configuration for the ReSpeaker USB 4 Mic Array; every track that it reports counts."""

BEST = OdasSettings(
    mode="particle",
    n_pots=2,
    active_mu=0.5,
    inactive_mu=0.1,
    sigma_r2_prob=0.0075,
    p_track=0.9,
    n_tracks=2,
    st_beta=0.08,
)
"""Of least loss on validation scenes: what tools/choose_odas.py chose (results/tracking/odas-search.json)."""
