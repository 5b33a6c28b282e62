"""Simulated recordings: rooms, voices, noise, devices as built, and frames mixed from them for training.

Every recording follows from a seed and its number alone. Imports what `data` imports.
"""
