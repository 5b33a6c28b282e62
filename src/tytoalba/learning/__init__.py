"""What learns: random features, exact sums, the closed-form head, networks, and the learner `tyto`.

The learner behind a prior needs no torch. Imports `data` and everything below it.
"""
