"""Property tests have no deadline on shared machines; the profile "steady" gives the same examples always."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("exploring", deadline=None)
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "exploring"))
