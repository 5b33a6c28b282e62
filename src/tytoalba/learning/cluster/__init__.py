"""Work on many machines: shards that are pure functions of their name, and sums that are added in a tree.

A task is the name of one of our functions with plain arguments, its answer is bytes in our own format, and
whoever gets one checks it. So a shard can be computed twice, late, or on another machine, and the result has
the same bits. Dask is imported only where a cluster is asked for.
"""
