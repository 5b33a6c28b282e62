"""storage: see docs, Architecture."""
