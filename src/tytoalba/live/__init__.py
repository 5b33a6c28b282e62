"""Who is where, over time: talkers followed from frame to frame, with identities.

Imports `localizer` and everything below it; `privacy` and `diagnose`, beside it, import nothing from here.
"""
