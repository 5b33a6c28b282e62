"""Live sound: inputs, talkers followed from frame to frame, outputs to other programs, the page (`web`).

Imports `localizer` and everything below it; `privacy` and `diagnose`, beside it, import nothing from here.
"""
