"""What is on a disk: whole files, tensors, sound files, keys, sealed files, signatures and the ledger.

Imports `signal`, `errors` and `texts`. Secret keys of sealed files are arguments; the environment may only
say where a user's own files lie: the data folder, the signing key, the list of trusted keys.
"""
