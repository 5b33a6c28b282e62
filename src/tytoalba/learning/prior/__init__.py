"""prior: see docs, Architecture."""
