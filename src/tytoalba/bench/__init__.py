"""How good and how fast: benchmarks, scores, lessons, results, tables, figures and the results page.

Imports everything but `cli`.
"""
