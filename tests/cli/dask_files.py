"""Arrays for `convgrad run` through Dask, as files, stores and stacks, and what it made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import convgrad
from convgrad._apps.cli import sink, stacks

zarr = pytest.importorskip("zarr")

GENERATOR = np.random.default_rng(0)


def numbers(*shape):
    """Return whole numbers: their sums are exact in any order, so that chunks do not change a bit."""
    return GENERATOR.integers(-4, 5, shape).astype(np.float32)


X, G, GD = numbers(7, 11, 10, 6), numbers(7, 6, 5, 12), numbers(7, 6, 5, 4)
F, DENSE, MIXING = numbers(3, 3, 6, 2), numbers(3, 3, 6, 4), numbers(1, 1, 12, 5)
FORWARD = ("run", "depthwise_conv2d", "--filter", "f.npy", "--strides", 2)


def save():
    """Save images and filters in the current folder."""
    for name, array in (("x", X), ("f", F), ("d", DENSE), ("p", MIXING)):
        np.save(f"{name}.npy", array)


def store(name, array, chunks=(3, 4, 5, 6), **how):
    made = zarr.create_array(name, shape=array.shape, chunks=chunks, dtype=array.dtype, **how)
    made[...] = array
    return name


def stack(folder, arrays, names="frame{}.npy"):
    Path(folder).mkdir()
    for number, array in enumerate(arrays):
        np.save(Path(folder) / names.format(number), array)
    return folder


def wanted(dtype=np.float32):
    return convgrad.depthwise_conv2d(X.astype(dtype), F.astype(dtype), 2, "SAME")


def opened(name):
    """Read a result, of whatever kind."""
    if name.rstrip("/").endswith(".zarr"):
        return zarr.open_array(name, mode="r")[...]
    if name.endswith((".npy", ".npz")) and "{" not in name:
        found = np.load(name)
        return found if isinstance(found, np.ndarray) else found[sink.MEMBER]
    folder = Path(name) if name.endswith("/") else Path(name).parent
    return np.stack([np.load(path) for path in sorted(folder.iterdir(), key=stacks.natural)])


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]
