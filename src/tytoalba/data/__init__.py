"""Labelled sound: data sets, one module each (`datasets` opens a folder), the demo, and simulations.

Imports `storage`, `signal`, `errors` and `texts`.
"""
