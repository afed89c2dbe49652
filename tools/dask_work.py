"""What the tools for Dask compute: images made inside of tasks, six operations on them, as a graph and as a plain loop.

An image is one random picture times a number of its own, so any part of any image can be made anywhere, at the price of
writing it. A result is added up where it is made, from every 4th row and column, so that only a number travels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import convgrad

OPERATIONS = ("forward", "input gradient", "filter gradient")
SAMPLED = 4
"""Every so many rows and columns of a result are added up."""


@dataclass(frozen=True)
class Case:
    """A layer, and how its images are cut: `images` and `rows` of a chunk. The layer keeps an image's size."""

    name: str
    side: int
    inputs: int
    outputs: int
    images: int
    rows: int
    depthwise: bool = False
    window: int = 3

    def with_chunks(self, megabytes: float) -> Case:
        """Return the same with about so large chunks: more images or fewer in each."""
        return replace(self, images=max(1, round(megabytes * 1e6 * self.images / self.chunk_bytes)))

    @property
    def filter(self) -> tuple[int, int, int, int]:
        last = (self.inputs, self.outputs // self.inputs if self.depthwise else self.outputs)
        return (self.window, self.window, *last)

    @property
    def image_bytes(self) -> int:
        return self.side * self.side * self.inputs * 4

    @property
    def chunk_bytes(self) -> int:
        return self.images * self.rows * self.side * self.inputs * 4

    def shape(self, count: int, channels: int) -> tuple[int, int, int, int]:
        return count, self.side, self.side, channels

    def count(self, gigabytes: float) -> int:
        """Return how many images, in whole chunks, are that many bytes."""
        slabs = round(gigabytes * 1e9 / (self.images * self.image_bytes))
        return max(1, slabs) * self.images

    @property
    def slab(self) -> int:
        """Images at a time in the plain loop: whole ones, of a chunk's bytes."""
        return max(1, self.images * self.rows // self.side)


CASES = (
    Case("depthwise 3x3, 64 channels", 112, 64, 64, 32, 112, depthwise=True),
    Case("dense 3x3, 32 to 32", 56, 32, 32, 256, 56),
    Case("depthwise, rows cut in 4", 224, 64, 64, 32, 56, depthwise=True),
    Case("dense, rows cut in 4", 112, 32, 32, 256, 28),
)
"""Chunks of 103 MB each, unless told otherwise; those of the last two need strips of their neighbours."""


@lru_cache(maxsize=8)
def picture(side: int, channels: int, seed: int) -> Any:
    """Return the image that all are made of, once per process."""
    return np.random.default_rng(seed).standard_normal((side, side, channels), np.float32)


def made(
    side: int, channels: int, seed: int, images: tuple[int, int], rows: tuple[int, int]
) -> Any:
    """Return rows of images, as anybody can make them."""
    numbers = np.arange(*images, dtype=np.float32) % 97
    scales = (1 + numbers / 97)[:, None, None, None]
    return np.multiply(picture(side, channels, seed)[None, rows[0] : rows[1]], scales)


def _chunk(side: int, channels: int, seed: int, block_info: Any = None) -> Any:
    images, rows = block_info[None]["array-location"][:2]
    return made(side, channels, seed, images, rows)


def lazy_images(case: Case, count: int, channels: int, seed: int) -> da.Array:
    """Return images of which nothing exists yet."""
    shape = case.shape(count, channels)
    chunks = da.core.normalize_chunks((case.images, case.rows, -1, -1), shape)
    empty = np.empty((0,) * 4, np.float32)
    plain = (case.side, channels, seed)
    return da.map_blocks(_chunk, *plain, chunks=chunks, dtype=np.float32, meta=empty)


def filters(case: Case) -> Any:
    return np.random.default_rng(3).standard_normal(case.filter).astype(np.float32)


def call(case: Case, operation: str, count: int, x: Any, g: Any, f: Any) -> Any:
    """Call an operation on arrays of any kind; the operand it does not take may be None."""
    family = "depthwise_conv2d" if case.depthwise else "conv2d"
    if operation == "forward":
        return getattr(convgrad, family)(x, f, 1, "SAME")
    if operation == "input gradient":
        sizes = case.shape(count, case.inputs)
        return getattr(convgrad, family + "_backprop_input")(sizes, f, g, 1, "SAME")
    return getattr(convgrad, family + "_backprop_filter")(x, case.filter, g, 1, "SAME")


def sampled(block: Any) -> Any:
    """Return one number for a block, in an array of four dimensions."""
    return block[:, ::SAMPLED, ::SAMPLED].sum(dtype=np.float64, keepdims=True)


def graph(case: Case, operation: str, count: int) -> da.Array:
    """Return what a scheduler computes: a sum over the result, or the filter's gradient."""
    takes_x, takes_g = operation != "input gradient", operation != "forward"
    x = lazy_images(case, count, case.inputs, 1) if takes_x else None
    g = lazy_images(case, count, case.outputs, 2) if takes_g else None
    result = call(case, operation, count, x, g, filters(case))
    if operation == "filter gradient":
        return result
    ones = tuple((1,) * len(sizes) for sizes in result.chunks)
    empty = np.empty((0,) * 4, np.float64)
    sums = result.map_blocks(sampled, chunks=ones, dtype=np.float64, meta=empty)
    return sums.sum(split_every=32)


def optimized(array: da.Array) -> da.Array:
    """Return an array whose graph has the tasks that Dask runs."""
    (found,) = dask.optimize(array)
    return found  # type: ignore[no-any-return]


def slabs(case: Case, count: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, count, case.slab):
        yield begin, min(begin + case.slab, count)


def loop(case: Case, operation: str, count: int) -> tuple[float, Any]:
    """Compute the same with NumPy's arrays, one slab after the other; returns seconds and the result."""
    f, rows = filters(case), (0, case.side)
    filters_wanted = operation == "filter gradient"
    total: Any = 0.0
    x = g = None
    begin = time.perf_counter()
    for images in slabs(case, count):
        if operation != "input gradient":
            x = made(case.side, case.inputs, 1, images, rows)
        if operation != "forward":
            g = made(case.side, case.outputs, 2, images, rows)
        result = call(case, operation, images[1] - images[0], x, g, f)
        total = total + (result.astype(np.float64) if filters_wanted else sampled(result).item())
    return time.perf_counter() - begin, total


def agree(found: Any, expected: Any, terms: int) -> bool:
    """Tell whether two sums of so many terms are the same but for rounding."""
    scale = max(float(np.abs(expected).max()), float(np.sqrt(terms)))
    return bool(np.abs(np.asarray(found, np.float64) - expected).max() <= 1e-4 * scale)


def terms(case: Case, count: int) -> int:
    return prod(case.shape(count, case.outputs))


def peak_bytes() -> int | None:
    """Return the most memory this process has had since `forget_peak`; None where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> None:
    """Begin to look for a new peak, on Linux."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def sent_bytes(dask_worker: Any) -> int:
    """Return the bytes a worker has sent to others."""
    return int(dask_worker.transfer_outgoing_bytes_total)
