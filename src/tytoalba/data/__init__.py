"""Labelled sound: recordings, their features, data sets and simulations."""
