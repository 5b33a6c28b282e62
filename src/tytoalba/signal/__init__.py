"""signal: see docs, Architecture."""
