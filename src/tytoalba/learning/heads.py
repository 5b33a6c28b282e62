"""Analytic heads inside a method's memory."""

from __future__ import annotations

from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.method import Memory


def listed(head: AnalyticHead, prefix: str) -> Memory:
    """What a head keeps, under names that begin with a prefix."""
    return {prefix + name: array for name, array in head.memory().items()}


def restored(like: AnalyticHead, memory: Memory, prefix: str = "") -> AnalyticHead:
    """A head of the same settings that knows what the memory says."""
    head = AnalyticHead(like.n_features, like.n_outputs, like.ridge, like.exact, like.device)
    return head.restore(memory, prefix)
