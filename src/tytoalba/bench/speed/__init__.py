"""How fast: ratios to peers measured in the same run, ceilings of the machine, and what follows at scale."""
