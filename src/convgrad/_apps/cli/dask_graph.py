"""Lazy arrays of Dask whose chunks are read by tasks, and results whose blocks are written by them.

What is in these graphs are keys, and parts of files and places where blocks go as text (`travel`). A scheduler reads
graphs too and need not have this package, so not even our functions are in them, but their names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib import import_module
from itertools import accumulate, pairwise, product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind, Problem
from . import outputs
from .outputs import OutputPlace
from .parts import Chunked, Chunks, Part
from .slicing import Summary
from .travel import Behind, packed, unpacked


def array(operand: Chunked, chunks: Chunks) -> Any:
    """Return a lazy array, a task for each chunk that is read; nothing is read now."""
    da = _dask_array()
    sizes = operand.readable(chunks)
    # A name of its own in every run: files may have changed since a scheduler has seen the same ones.
    name = f"convgrad-read-{secrets.token_hex(8)}"
    tasks = {(name, *at): _task(read, operand.part(region)) for at, region in _regions(sizes)}
    dtype = operand.dtype.numpy
    whole: Any = da.Array(tasks, name, sizes, dtype, meta=np.empty((0, 0, 0, 0), dtype))
    return whole if sizes == chunks else whole.rechunk(chunks)


def read(text: str) -> AnyArray:
    """Read a chunk; this is a task."""
    part: Part = unpacked(text)
    return part.read()


class Record(NamedTuple):
    """What is told of a block."""

    least: float | None
    most: float | None
    total: float
    elements: int
    checksum: str


def behind(result: Any, place: OutputPlace | None) -> Any:
    """Put a task behind each block of a result; gives an array with a `Record` for each."""
    da = _dask_array()
    from dask.highlevelgraph import HighLevelGraph

    name = f"convgrad-write-{secrets.token_hex(8)}"
    tasks = {
        (name, *at): _task(finish, Behind(place, region), (result.name, *at))
        for at, region in _regions(result.chunks)
    }
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[result])
    chunks = tuple((1,) * count for count in result.numblocks)
    return da.Array(graph, name, chunks, meta=np.empty((0, 0, 0, 0), object))


def finish(text: str, block: AnyArray) -> AnyArray:
    """Summarise a block and write it; this is a task."""
    how: Behind = unpacked(text)
    block = np.ascontiguousarray(block)
    seen = Summary()
    seen.add(block)
    if how.place is not None:
        outputs.write_block(how.place, how.region, block)
    told = np.empty((1, 1, 1, 1), object)
    told[0, 0, 0, 0] = tuple(Record(seen.least, seen.most, seen.total, seen.count, seen.checksum))
    return told


def records(found: AnyArray) -> list[Record]:
    """Return what was told of all blocks, in their order."""
    return [Record(*each) for each in found.reshape(-1)]


def bytes_moved(problems: tuple[Problem, ...], arrays: dict[str, Any]) -> int:
    """Return how many bytes tasks of the operation take from each other, at most."""
    from ..._bridges.dask import story

    if any(problem.is_empty for problem in problems):
        return 0
    first = problems[0]
    image, grad = arrays.get("input"), arrays.get("out_backprop")
    pair = (None, grad) if first.kind is Kind.INPUT_GRADIENT else (image, grad)
    moved = 0
    for problem in problems:
        _, told, result = story.tell(problem, *pair)
        moved += told.traffic.bytes_moved
        pair = (result, None)
    return moved


def _task(function: Callable[..., AnyArray], record: Any, *keys: Any) -> Any:
    """Return a task that calls a function of this module on a record and on what other tasks have computed."""
    from dask.utils import apply

    found = (attrgetter(function.__name__), (import_module, __name__))
    return apply, found, [packed(record), *keys]


def _dask_array() -> Any:
    """Import Dask's arrays as they are documented, whatever a person's settings try out."""
    import dask

    dask.config.set({"array.query-planning": False})
    import dask.array

    return dask.array


def _regions(chunks: Chunks) -> Any:
    """Yield the place of each chunk in the grid, and its region in the array."""
    ranges = [list(pairwise(accumulate(sizes, initial=0))) for sizes in chunks]
    for at in product(*(range(len(each)) for each in ranges)):
        yield at, tuple(ranges[axis][n] for axis, n in enumerate(at))
