"""Signatures notice every change, swap and downgrade, trust nobody unasked, and survive hostile files."""

from __future__ import annotations
