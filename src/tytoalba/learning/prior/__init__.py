"""What is learned from simulations of an array: the prior, its calibration, and how one is made and found.

`exact` computes a prior with the same bits everywhere; `make` trains one and needs the extra `train`.
"""
