"""What the paper reports: Qian, Yue, Wang, Zhuang, Li, *Analytic Class Incremental Learning for Sound Source
Localization with Privacy Protection*, arXiv 2409.07224.

Real recordings (SSLR), ten phases of 36 directions. Every number is the mean over the phases of the test on
the phases 0..k: MAE in degrees, ACC in % (error of at most 5 degrees). One run each, no spread is given.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "arXiv 2409.07224"
SUBSETS: tuple[tuple[str, int], ...] = (("test", 1), ("test", 2), ("human", 1), ("human", 2))
"""Columns of table 1: part of the test set ("test" is played by a loudspeaker) and number of sources."""


class Reported(NamedTuple):
    """One cell of the paper: MAE in degrees, ACC in %."""

    mae: float
    acc: float


NAMES = {
    "srp": "SRP-PHAT",
    "mlp": "MLP-GCC",
    "joint": "Joint",
    "finetune": "Fine-tune",
    "lwf": "LwF",
    "ssil": "SS-IL",
    "icarl": "iCaRL",
    "sslcil": "SSL-CIL",
    "ssl-cil-random": "SSL-CIL, untrained backbone",  # ours
    # named in its related work, without numbers
    "ewc": "EWC",
    "lfl": "LfL",
    "replay": "replay",  # with a chosen split of the memory; RMM would learn it
    "mnemonics": "Mnemonics",
    "acil": "ACIL",
    "gkeal": "GKEAL",
    "dsal": "DS-AL",
    "music": "MUSIC",
}
"""How the paper prints the methods, by `key`; first those of table 1, in its order."""
_SPELLINGS = {"srpphat": "srp", "mlpgcc": "mlp", "jointtraining": "joint", "rmm": "replay"}
"""The last is what older result files call replay."""

FRAMES = {("test", 1): 178_000, ("test", 2): 29_000, ("human", 1): 788, ("human", 2): 141}
"""The paper's test frames, about: 86 % of them have one source, 14 % two."""
# Columns: the four SUBSETS, then overall, which weights them by their frames.
_TABLE_1 = {
    "srp": ((19.00, 82.0), (36.95, 50.0), (2.62, 93.0), (20.90, 56.0), (21.44, 78.0)),
    "mlp": ((4.06, 94.9), (8.10, 71.5), (4.75, 95.1), (5.98, 75.5), (4.63, 91.6)),
    "joint": ((2.86, 96.1), (5.96, 76.5), (3.02, 96.9), (4.76, 79.1), (3.19, 94.0)),
    "finetune": ((49.02, 47.3), (50.89, 33.7), (63.49, 39.3), (11.62, 46.1), (49.28, 45.8)),
    "lwf": ((36.90, 47.2), (38.56, 34.8), (33.44, 53.7), (36.89, 13.5), (37.06, 46.0)),
    "ssil": ((18.30, 70.4), (35.68, 43.3), (9.38, 87.4), (24.22, 36.9), (20.27, 67.4)),
    "icarl": ((24.15, 72.8), (27.02, 50.6), (3.16, 94.6), (4.14, 74.5), (24.40, 70.5)),
    "sslcil": ((4.38, 94.2), (10.68, 61.6), (3.35, 96.3), (6.44, 70.6), (5.04, 90.9)),
}
TABLE_1: dict[str, dict[tuple[str, int], Reported]] = {
    method: {subset: Reported(*cell) for subset, cell in zip(SUBSETS, cells[:4], strict=True)}
    for method, cells in _TABLE_1.items()
}
OVERALL: dict[str, Reported] = {method: Reported(*cells[4]) for method, cells in _TABLE_1.items()}

# Trained on clean sound, tested at each SNR in dB. The paper does not say which noise; we read it as white.
NOISE_KIND = "white"
SNRS = (-20, -10, 0, 10)
_NOISE = {
    "joint": ((40.24, 13.3), (39.90, 26.4), (23.84, 52.3), (12.07, 75.4), (29.01, 41.9)),
    "finetune": ((63.07, 8.4), (66.46, 13.8), (51.53, 24.5), (60.00, 34.3), (60.27, 20.3)),
    "lwf": ((49.58, 10.6), (44.33, 18.0), (40.15, 27.5), (36.53, 35.1), (42.65, 22.8)),
    "ssil": ((48.08, 10.1), (43.13, 19.7), (34.24, 35.4), (24.92, 52.1), (37.59, 29.3)),
    "icarl": ((45.98, 11.1), (41.17, 21.6), (33.91, 38.6), (27.76, 57.3), (37.22, 32.2)),
    "sslcil": ((46.43, 11.5), (39.90, 25.7), (20.84, 51.8), (12.84, 72.7), (30.00, 40.4)),
}
NOISE: dict[str, dict[int, Reported]] = {
    method: {snr: Reported(*cell) for snr, cell in zip(SNRS, cells[:4], strict=True)}
    for method, cells in _NOISE.items()
}
NOISE_OVERALL: dict[str, Reported] = {method: Reported(*cells[4]) for method, cells in _NOISE.items()}
"""The plain mean over the four SNRs, as printed."""

# SSL-CIL, overall, by the size D of the random expansion and by the ridge eta.
EXPANSION: dict[float, Reported] = {
    1000: Reported(6.68, 88.0),
    5000: Reported(5.61, 89.9),
    10000: Reported(5.33, 90.3),
    15000: Reported(5.14, 90.7),
    20000: Reported(5.04, 90.9),
}
ETA: dict[float, Reported] = {1: Reported(5.58, 90.1), 0.1: Reported(5.04, 90.9), 0.01: Reported(5.43, 86.3)}


def key(method: str) -> str:
    """The key under which the paper's numbers of a method are found, however it is spelt.

    >>> key("Fine-tune"), key("ssl_cil"), key("srp-phat"), key("mine")
    ('finetune', 'sslcil', 'srp', 'mine')
    """
    plain = "".join(letter for letter in method.lower() if letter.isalnum())
    spelt = _SPELLINGS.get(plain, plain)
    return spelt if spelt in NAMES else method


def name(method: str) -> str:
    """How to print a method: as the paper does, or as it is called here.

    >>> name("icarl"), name("tyto"), name("rmm")
    ('iCaRL', 'tyto', 'replay')
    """
    return NAMES.get(key(method), method)
