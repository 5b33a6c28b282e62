"""learning: see docs, Architecture."""
