"""A configuration for `odaslive`: sound from a file, tracks to a file, an array of ours, given settings.

`odaslive` reads every key below and gives up where one is missing, also those of its separation and its
classification, whose results go nowhere here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tytoalba.bench.odas.settings import OdasSettings
from tytoalba.signal.array import MicArray

RATE, HOP, FRAME = 16000, 128, 256
"""Samples per second, per hop and per frame in ODAS's own configurations."""

Value = str | int | float | tuple[Any, ...] | list[Any] | Mapping[str, Any]


def configuration(
    array: MicArray, settings: OdasSettings, sound: str, tracks: str, potential: str | None = None
) -> str:
    """The text of a configuration.

    sound: path of the sound, 16-bit samples at `RATE`, channels interleaved, one per microphone of the array.
    tracks: path that tracks are written to. potential: path for potential sources, which go nowhere if None.
    """
    return "".join(
        f"{name} = {_text(group)};\n"
        for name, group in {
            **_input(array, sound),
            "sne": {"b": 3, "alphaS": 0.1, "L": 150, "delta": 3.0, "alphaD": 0.1},
            "ssl": _localization(settings, potential),
            "sst": _tracking(settings, tracks),
            "sss": _separation(),
            "classify": _classification(),
        }.items()
    )


def _input(array: MicArray, sound: str) -> dict[str, Value]:
    up = {"direction": (0.0, 0.0, 1.0), "angle": (80.0, 100.0)}
    mics = [
        {"mu": tuple(map(float, place)), "sigma2": (0.0,) * 9, **up} for place in array.coordinates.tolist()
    ]
    return {
        "raw": {
            "fS": RATE,
            "hopSize": HOP,
            "nBits": 16,
            "nChannels": array.n_mics,
            "interface": {"type": "file", "path": sound},
        },
        "mapping": {"map": tuple(range(1, array.n_mics + 1))},
        "general": {
            "epsilon": 1e-20,
            "size": {"hopSize": HOP, "frameSize": FRAME},
            "samplerate": {"mu": RATE, "sigma2": 0.01},
            "speedofsound": {"mu": 343.0, "sigma2": 25.0},
            "mics": mics,
            "spatialfilters": [up],
            "nThetas": 181,
            "gainMin": 0.25,
        },
    }


def _localization(settings: OdasSettings, potential: str | None) -> dict[str, Value]:
    nowhere = {"format": "undefined", "interface": {"type": "blackhole"}}
    to_file = {"format": "json", "interface": {"type": "file", "path": potential or ""}}
    return {
        "nPots": settings.n_pots,
        "nMatches": settings.n_matches,
        "probMin": 0.5,
        "nRefinedLevels": 1,
        "interpRate": settings.interp_rate,
        "scans": [{"level": 2, "delta": -1}, {"level": settings.fine_level, "delta": -1}],
        "potential": to_file if potential else nowhere,
    }


def _tracking(settings: OdasSettings, tracks: str) -> dict[str, Value]:
    def energy(mu: float, sigma2: float) -> list[dict[str, float]]:
        return [{"weight": 1.0, "mu": mu, "sigma2": sigma2}]

    return {
        "mode": settings.mode,
        "add": "dynamic",
        "active": energy(settings.active_mu, settings.active_sigma2),
        "inactive": energy(settings.inactive_mu, settings.inactive_sigma2),
        "sigmaR2_prob": settings.sigma_r2_prob,
        "sigmaR2_active": settings.sigma_r2_active,
        "sigmaR2_target": 0.0025,
        "Pfalse": settings.p_false,
        "Pnew": settings.p_new,
        "Ptrack": settings.p_track,
        "theta_new": settings.theta_new,
        "N_prob": settings.n_prob,
        "theta_prob": settings.theta_prob,
        "N_inactive": (settings.n_inactive,) * settings.n_tracks,
        "theta_inactive": settings.theta_inactive,
        "kalman": {"sigmaQ": settings.sigma_q},
        "particle": {
            "nParticles": settings.n_particles,
            "st_alpha": 2.0,
            "st_beta": settings.st_beta,
            "st_ratio": 0.5,
            "ve_alpha": 0.05,
            "ve_beta": settings.ve_beta,
            "ve_ratio": 0.3,
            "ac_alpha": 0.5,
            "ac_beta": settings.ac_beta,
            "ac_ratio": 0.2,
            "Nmin": 0.7,
        },
        "target": (),
        "tracked": {"format": "json", "interface": {"type": "file", "path": tracks}},
    }


def _separation() -> dict[str, Value]:
    out = {"fS": RATE, "hopSize": HOP, "nBits": 16, "interface": {"type": "blackhole"}}
    return {
        "mode_sep": "dds",
        "mode_pf": "ss",
        "gain_sep": 1.0,
        "gain_pf": 1.0,
        "dds": {},
        "dgss": {"mu": 0.01, "lambda": 0.5},
        "dmvdr": {},
        "ms": {
            "alphaPmin": 0.07,
            "eta": 0.5,
            "alphaZ": 0.8,
            "thetaWin": 0.3,
            "alphaWin": 0.3,
            "maxAbsenceProb": 0.9,
            "Gmin": 0.01,
            "winSizeLocal": 3,
            "winSizeGlobal": 23,
            "winSizeFrame": FRAME,
        },
        "ss": {"Gmin": 0.01, "Gmid": 0.9, "Gslope": 10.0},
        "separated": out,
        "postfiltered": out,
    }


def _classification() -> dict[str, Value]:
    return {
        "frameSize": 1024,
        "winSize": 3,
        "tauMin": 88,
        "tauMax": 551,
        "deltaTauMax": 20,
        "alpha": 0.3,
        "gamma": 0.05,
        "phiMin": 0.5,
        "r0": 0.2,
        "category": {"format": "undefined", "interface": {"type": "blackhole"}},
    }


def _text(value: Value) -> str:
    """A value in libconfig's format: groups in braces, lists in parentheses, floats with a point.

    >>> _text({"fS": 16000, "mu": (0.02, -1e-05), "path": 'a"b', "mics": [{"angle": (80.0,)}]})
    '{ fS = 16000; mu = ( 0.02, -1e-05 ); path = "a\\\\"b"; mics = ( { angle = ( 80.0 ); } ); }'
    """
    if isinstance(value, Mapping):
        return f"{{ {''.join(f'{name} = {_text(one)}; ' for name, one in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"( {', '.join(map(_text, value))} )" if value else "( )"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)
