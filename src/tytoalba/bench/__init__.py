"""bench: see docs, Architecture."""
