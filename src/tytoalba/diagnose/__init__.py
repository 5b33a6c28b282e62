"""Is the array wired and mounted as its file says? Channel faults, channel order, turn and mirror image.

Imports `localizer` and everything below it; `privacy`, beside it, imports nothing from here.
"""
