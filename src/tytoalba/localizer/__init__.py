"""The product: one object that locates, is taught, forgets and merges, and the files it lives in.

Imports `learning` and everything below it, but no rival method and no data-set reader.
"""
