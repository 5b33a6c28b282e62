"""What is on a disk: whole files, tensors, sound files, keys, sealed files, signatures and the ledger.

Imports `signal` and `errors`. Keys are arguments: nothing here reads the environment.
"""
