"""The page and the interface for other programs: live directions, recordings, lessons, checks over HTTP."""
