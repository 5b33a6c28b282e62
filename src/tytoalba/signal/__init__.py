"""What the sound itself says: arrays, angles, framing, GCC-PHAT, SRP-PHAT, MUSIC and metrics.

Pure functions of arrays in memory. Nothing here opens a file; it imports only `errors`.
"""

import lazy_loader

# `tytoalba.metrics` is this package's; it is imported when first asked for
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["metrics"])
