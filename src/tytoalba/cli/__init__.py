"""The command `tyto`: one module per group of commands; `app` puts them together.

A command parses its options, calls one function of the library and prints. Imports everything.
"""
