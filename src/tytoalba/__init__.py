"""tytoalba."""
