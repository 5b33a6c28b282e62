"""ODAS's tracker as a way to follow: its settings, its configuration, its program, and what it reports."""
