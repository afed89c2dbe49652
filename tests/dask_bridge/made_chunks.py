"""Chunks made in workers, also in those that lack convgrad: this module does not import it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def chunk(dtype: Any, seed: int, wait: float, block_info: Any = None) -> Any:
    """Return random numbers, the same ones for the same place, after some seconds."""
    place = block_info[None]
    time.sleep(wait)
    rng = np.random.default_rng([seed, *place["chunk-location"]])
    return rng.standard_normal(place["chunk-shape"], np.float32).astype(dtype)


def another_shape(block: Any) -> Any:
    """Return less of a chunk than there is."""
    return block[:, 1:]


def another_dtype(block: Any) -> Any:
    return block.astype(np.float64)


def importable() -> bool:
    """Tell whether a process has convgrad."""
    try:
        import convgrad  # noqa: F401
    except ImportError:
        return False
    return True
