"""Attacks on what is stored, and the audit that runs them.

Imports `localizer` and everything below it; `diagnose`, beside it, imports nothing from here.
"""
