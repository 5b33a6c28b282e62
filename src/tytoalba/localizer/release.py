"""When a model may be given away: reasons against it, from counts alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.errors import TytoError

FRAMES_A_FEATURE, SMALLEST_PHASE, SMALLEST_DIRECTION, REACH = 20, 20, 20, 5.0
"""The release gate: frames for each feature, in a phase, and within REACH degrees of a taught direction."""


def release_gate(n_frames: int, n_features: int, smallest_phase: int, counts: ArrayLike) -> list[str]:
    """Reasons against giving a model away; none if it is empty. It lowers the risk and proves nothing.

    n_frames: learned; n_features: D; smallest_phase: frames of the smallest lesson that states were saved
    around; counts: frames of each direction (n_directions,).

    >>> release_gate(4000, 200, 50, [0, 0, 30, 40])
    []
    >>> release_gate(300, 200, 50, [300, 0, 0, 0])
    ['300 frames are fewer than 20 for each of the 200 features (4000): members can be told from others']
    """
    taught = np.asarray(counts)
    if taught.ndim != 1 or not len(taught) or taught.dtype.kind not in "iu" or taught.min() < 0:
        raise TytoError(f"counts must be whole numbers from 0, (n_directions,), got shape {taught.shape}")
    if min(n_frames, smallest_phase) < 0 or n_features < 1:
        raise TytoError(
            f"sizes must not be negative, got {n_frames} frames, {n_features} features and a phase of "
            f"{smallest_phase}"
        )
    reasons = []
    if n_frames < FRAMES_A_FEATURE * n_features:
        reasons.append(
            f"{n_frames} frames are fewer than {FRAMES_A_FEATURE} for each of the {n_features} features "
            f"({FRAMES_A_FEATURE * n_features}): members can be told from others"
        )
    if smallest_phase < SMALLEST_PHASE:
        reasons.append(
            f"the smallest phase has {smallest_phase} frames, fewer than {SMALLEST_PHASE}: two states around "
            "it give them away"
        )
    reach = int(REACH * len(taught) / 360.0)
    around = np.sum([np.roll(taught, k) for k in range(-reach, reach + 1)], axis=0)
    rare = np.flatnonzero((taught > 0) & (around < SMALLEST_DIRECTION)) * (360.0 / len(taught))
    if len(rare):
        shown = ", ".join(f"{azimuth:g}" for azimuth in rare[:5]) + (", ..." if len(rare) > 5 else "")
        reasons.append(
            f"{len(rare)} directions have fewer than {SMALLEST_DIRECTION} frames within {REACH:g} degrees "
            f"({shown}): their columns are nearly those frames"
        )
    return reasons
