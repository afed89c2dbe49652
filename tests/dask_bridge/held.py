"""A program that counts how many chunks a task of the bridge holds, in a process of its own, and prints them as JSON.

Resident memory is read around each block: what it is given, and what it takes beside that at most. Kernels are
compiled, and memory kept between calls is given back, before that counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import convgrad
from convgrad._bridges.dask import tasks

CHUNK = 8 << 20
"""Bytes of each chunk."""


def image(cut: str, dtype: Any, off: int = 0) -> da.Array:
    """Return ones in four chunks, along images or along rows, the first `off` rows larger."""
    batch = 4 // np.dtype(dtype).itemsize
    if cut == "images":
        shape, chunks = (4 * batch, 256, 512, 16), ((batch,) * 4, (256,), (512,), (16,))
    else:
        rows = (256 + off, 256, 256, 256 - off)
        shape, chunks = (batch, 1024, 512, 16), ((batch,), rows, (512,), (16,))
    ones = da.zeros(shape, chunks=chunks, dtype=dtype)
    return ones.map_blocks(lambda chunk: np.ones(chunk.shape, dtype), dtype=dtype, meta=ones._meta)


def forward(cut: str, taps: int) -> da.Array:
    x = image(cut, np.float32)
    if taps == 3:
        return convgrad.depthwise_conv2d(x, np.ones((3, 3, 16, 1), np.float32), 1, "SAME")
    return convgrad.conv2d(x, np.ones((taps, taps, 16, 16), np.float32), 1, "SAME")


def filter_gradient(cut: str, taps: int, dtype: Any = np.float32, off: int = 0) -> da.Array:
    x, g = image(cut, dtype), image(cut, dtype, off)
    if taps == 3:
        return convgrad.depthwise_conv2d_backprop_filter(x, (3, 3, 16, 1), g, 1, "SAME")
    return convgrad.conv2d_backprop_filter(x, (taps, taps, 16, 16), g, 1, "SAME")


CASES: dict[str, Callable[[], da.Array]] = {
    "images": lambda: forward("images", 3),
    "rows, copied": lambda: forward("rows", 5),
    "rows, not copied": lambda: forward("rows", 3),
    "filter gradient, images": lambda: filter_gradient("images", 5),
    "filter gradient, rows": lambda: filter_gradient("rows", 5),
    "filter gradient, rows that differ": lambda: filter_gradient("rows", 5, off=50),
    "filter gradient, half": lambda: filter_gradient("images", 5, np.float16),
}


def resident(word: str) -> int:
    words = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(words[words.index(word) + 1]) * 1024


def held(make: Callable[[], da.Array]) -> float:
    """Return the most chunks that a block of a call holds."""
    worst, block = 0, tasks.block

    def watched(plain: Any, *chunks: Any) -> Any:
        nonlocal worst
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak
        before = resident("VmRSS:")
        result = block(plain, *chunks)
        given = sum(chunk.nbytes for chunk in chunks)
        worst = max(worst, resident("VmHWM:") - before + given)
        return result

    y = make()
    # Blocks are forgotten as soon as they are made.
    last = y.map_blocks(lambda each: each[:1, :1, :1, :1].copy(), dtype=y.dtype, meta=y._meta)
    for _ in range(2):  # the first time compiles
        worst = 0
        tasks.block = watched
        dask.compute(last, scheduler="synchronous")
        tasks.block = block
    return worst / CHUNK


if __name__ == "__main__":
    print(json.dumps({name: held(make) for name, make in CASES.items()}))
