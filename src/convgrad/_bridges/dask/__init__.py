"""The bridge to Dask: arrays in chunks, computed later, on threads, processes or a cluster.

A call becomes a plan of blocks (`plan`, `axes`), the plan a graph of tasks (`graph`), and a task, wherever it runs,
one call of the kernels (`tasks`). Planning knows nothing of Dask; only `graph` imports it.
"""
