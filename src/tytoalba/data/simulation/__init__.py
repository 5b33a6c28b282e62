"""simulation: see docs, Architecture."""
