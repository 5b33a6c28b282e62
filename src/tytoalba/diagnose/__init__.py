"""diagnose: see docs, Architecture."""
