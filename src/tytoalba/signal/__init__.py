"""What the sound itself says: arrays, angles, framing, GCC-PHAT, SRP-PHAT, MUSIC and metrics.

Pure functions of arrays in memory. Nothing here opens a file; it imports only `errors`.
"""
