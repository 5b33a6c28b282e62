"""localizer: see docs, Architecture."""
