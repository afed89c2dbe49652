"""Values that are computed when somebody looks at them: Dask's collections, and what others build on them."""

from __future__ import annotations

from typing import Any


def is_lazy(value: Any) -> bool:
    """Tell whether looking at a value's elements would compute them. Dask need not be loaded to know."""
    graph = getattr(type(value), "__dask_graph__", None)
    # xarray's arrays have the method also where their data are in memory, and give None.
    return graph is not None and graph(value) is not None
