"""privacy: see docs, Architecture."""
