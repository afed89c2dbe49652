"""Sharpen a blurred image that is larger than memory, chunk by chunk.

What you learn: deconvolution.py does this to a small photograph that NumPy holds. Here the image is a Dask array, cut
along rows and columns, and the functions are called in the same way: each gives a Dask array, which knows what to
compute and has computed nothing. Writing it to a store computes it, a few chunks at a time, with strips of neighbouring
chunks where windows reach over. A step downhill reads one store and writes the next, so that a few rows of chunks are
in memory, however tall the image is.

    pip install '.[dask,examples,plot]'
    python examples/dask_sharpen.py
    python examples/dask_sharpen.py --megapixels 400 --workers 2 --plot sharpened.png

The first takes 26 seconds of processor time. It exits with 1 if the image gained less than 2.5 dB, or if it has a
gigabyte or more and was in memory as a whole.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from deconvolution import Array, decibels, draw, motion, photograph

import convgrad

LENGTH = 7  # of the blur, in pixels
CHUNK = (1, 256, 4096, 1)  # one colour, 4 MB: flat and wide, because whole rows of chunks are held
REQUIRED = 2.5  # dB
LARGE = 1e9  # bytes; below, Python with its libraries and memory kept for new chunks count too much


def scene(height: int, width: int) -> Any:
    """A view as [colours, rows, columns, 1]: one photograph mirrored at its edges. No pixel is made yet."""
    import dask.array as da

    chunks = da.core.normalize_chunks(CHUNK, (3, height, width, 1))
    meta = np.empty((0, 0, 0, 0), np.float32)
    return da.map_blocks(part_of_scene, chunks=chunks, dtype=meta.dtype, meta=meta)


def part_of_scene(block_info: dict[Any, Any]) -> Array:
    """Make one chunk; Dask says which."""
    (first, last), rows, columns, _ = block_info[None]["array-location"]
    part = photograph()[first:last]
    for axis, (begin, end) in ((1, rows), (2, columns)):
        size = part.shape[axis]
        at = np.arange(begin, end) % (2 * size)
        part = part.take(np.minimum(at, 2 * size - 1 - at), axis)
    return part


def blur(x: Any, kernel: Array) -> Any:
    """A: on an array of NumPy now, on one of Dask later."""
    return convgrad.depthwise_conv2d(x, kernel, strides=1, padding="SAME")


def blur_adjoint(y: Any, kernel: Array) -> Any:
    """A^T: each pixel is sent back to all the pixels that it was made of."""
    return convgrad.depthwise_conv2d_backprop_input(y.shape, kernel, y, strides=1, padding="SAME")


def step_lengths(steps: int, least: float = 0.02) -> list[float]:
    """Lengths that together undo the blur as far as so many steps can: one over the roots of Chebyshev's polynomial.

    A^T A scales each wave of the image by a number up to 1. Waves that it scales to less than `least` are given up.
    """
    waves = np.cos(np.pi * (np.arange(steps) + 0.5) / steps)  # from 1 down to -1
    return [float(2 / (1 + least + (1 - least) * wave)) for wave in waves]


class Stores:
    """Arrays on disk, in the chunks they come in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, x: Any) -> Any:
        """Compute an array of Dask into a store, chunk by chunk; return the array that is read from there."""
        import dask.array as da
        import zarr

        store = zarr.create_array(
            self.folder / name, shape=x.shape, chunks=x.chunksize, dtype=x.dtype, compressors=None
        )
        da.store(x, store, lock=False)  # no two chunks share a file
        return da.from_zarr(store)

    def forget(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)


def sharpen(y: Any, kernel: Array, steps: int, stores: Stores) -> Any:
    """Minimise |A x - y|^2, a pass over the image for each step."""
    x = y
    for number, length in enumerate(step_lengths(steps), start=1):
        started = time.perf_counter()
        better = x - np.float32(length) * blur_adjoint(blur(x, kernel) - y, kernel)
        x = stores.write(f"step-{number}", better)
        stores.forget(f"step-{number - 1}")
        print(f"step {number:<9} {length:.2f} long, {time.perf_counter() - started:.1f} s")
    return x.clip(0, 1)


def peak() -> int:
    """Return the most bytes of memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        words = status.read_text(encoding="ascii").split()
        return int(words[words.index("VmHWM:") + 1]) * 1024
    import resource  # not on Windows: say 0 there

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def in_mb(nbytes: int) -> str:
    return f"{nbytes / 1e6:.0f} MB"


def cluster(workers: int, stack: ExitStack) -> Callable[[], int]:
    """Have so many processes compute from here on; return what tells the memory of the largest of them."""
    from distributed import Client, LocalCluster

    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    client = stack.enter_context(Client(stack.enter_context(local)))
    return lambda: max(client.run(peak).values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--megapixels", type=float, default=40.0, help="of the image (40)")
    parser.add_argument("--width", type=int, help="in pixels (as its height)")
    parser.add_argument("--steps", type=int, default=4, help="downhill (4)")
    parser.add_argument("--workers", type=int, default=0, metavar="N",
                        help="processes of a LocalCluster; 0 for threads of this one (0)")  # fmt: skip
    parser.add_argument(
        "--folder",
        type=Path,
        help="where stores go for the while, 9 bytes for each pixel and colour",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where a picture of a part goes")
    given = parser.parse_args()
    if not 0.1 <= given.megapixels <= 1e6:
        parser.error(f"--megapixels must be from 0.1 to 1000000, not {given.megapixels:g}")
    pixels = round(given.megapixels * 1e6)
    width = round(pixels**0.5) if given.width is None else given.width
    if not 320 <= width <= pixels // 256:
        parser.error(f"the image must have at least 256 x 320 pixels, {width} wide are not right")
    if given.steps < 1 or given.workers < 0:
        parser.error("--steps must be at least 1, --workers at least 0")
    for name in ("dask", "distributed", "zarr"):
        if find_spec(name) is None:
            sys.exit(f"dask_sharpen.py: {name} is missing: pip install '.[dask]'")

    sharp, kernel = scene(round(pixels / width), width), motion(LENGTH)
    size, chunks = f"{sharp.shape[1]} x {width}", sharp.npartitions
    print(f"image          {size} pixels in 3 colours, {in_mb(sharp.nbytes)}, {chunks} chunks")
    with ExitStack() as stack:
        stores = Stores(Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.folder))))
        most = cluster(given.workers, stack) if given.workers else peak
        empty = most()
        bits = stores.write("taken", (blur(sharp, kernel) * 255).round().astype(np.uint8))
        blurred = bits.astype(np.float32) / np.float32(255)
        before = decibels(blurred, sharp)
        print(f"camera         {LENGTH} x {LENGTH} motion blur, 8 bits: {before:.2f} dB")
        found = sharpen(blurred, kernel, given.steps, stores)
        after, held = decibels(found, sharp), most()
        print(f"sharpened      {after:.2f} dB after {given.steps} steps, {after - before:+.2f} dB")
        if given.plot:
            left = 3840 if width > 4160 else 0  # one photograph; chunks meet at column 4096
            part = (slice(None), slice(0, 256), slice(left, left + 320))
            names = ("original", f"blurred: {before:.1f} dB", f"sharpened: {after:.1f} dB")
            images = [np.asarray(each[part]) for each in (sharp, blurred, found)]
            title = f"A part of {given.megapixels:g} megapixels, sharpened chunk by chunk"
            draw(dict(zip(names, images, strict=True)), kernel, given.plot, title)
            print(f"picture        {given.plot}")
    whose = f"in the largest of {given.workers} workers" if given.workers else "in this process"
    print(f"memory         {in_mb(held)} at most {whose}, {in_mb(empty)} before the first chunk")
    print(f"               NumPy would hold five arrays of {in_mb(sharp.nbytes)}")
    right = after - before >= REQUIRED and (sharp.nbytes < LARGE or held < sharp.nbytes)
    required = f"{REQUIRED:g} dB are required, and of large images less memory than they have bytes"
    print(f"verdict        {'ok' if right else 'NOT GOOD ENOUGH'}, {required}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
