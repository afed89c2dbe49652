"""Which chunks the operands of a run through Dask are cut into."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .parts import Chunked, Chunks
from .stores import Stored, cut
from .verb import Refusal

CHUNK_BYTES = 64 << 20
"""Of a chunk that no store has chosen: large against the cost of a task, small against a worker's memory."""
_MOST = 300_000
"""Chunks of an operand. A chunk takes some 0.5 ms and 5 kB of planning: so many are minutes before a start."""


def choose_chunks(
    operands: Mapping[str, Chunked], wanted: tuple[int, ...] | None, rows: int
) -> dict[str, Chunks]:
    """Return the chunks of each operand: those that are wanted, a store's own, or images up to `CHUNK_BYTES`.

    One image that is larger is cut along its rows; `rows` is their axis.

    Operands that can be cut anywhere are cut where a store beside them is: a filter gradient reads both together.
    """
    for name, each in operands.items():
        if len(each.shape) != 4:  # the library has said so already
            raise Refusal(f"{name} must have 4 dimensions, got the shape {list(each.shape)}")
    if wanted is not None:
        found = {
            name: tuple(
                cut(size, size if chunk == -1 else min(chunk, size))
                for size, chunk in zip(each.shape, wanted, strict=True)
            )
            for name, each in operands.items()
        }
    else:
        found = _own(operands, rows)
    for name, chunks in found.items():
        count = math.prod(map(len, chunks))
        if count > _MOST:
            raise Refusal(
                f"--{name.replace('_', '-')} has {count:,} chunks, and Dask would take too long over more than "
                f"{_MOST:,}; choose larger ones by --chunks"
            )
    return found


def _own(operands: Mapping[str, Chunked], rows: int) -> dict[str, Chunks]:
    found: dict[str, Chunks] = {}
    for name, each in operands.items():
        if isinstance(each, Stored):
            found[name] = tuple(map(cut, each.shape, each.chunks))
    free = {name: each for name, each in operands.items() if name not in found}
    if free:
        image = max(math.prod(each.shape[1:]) * each.dtype.itemsize for each in free.values())
        most = max(1, CHUNK_BYTES // max(image, 1))
        batch = next(iter(free.values())).shape[0]
        batches = next((chunks[0] for chunks in found.values()), (batch,))
        batches = tuple(piece for size in batches for piece in cut(size, most))
        pieces = max(1, -(-image // CHUNK_BYTES))  # of an image: as many of a smaller one beside it
        for name, each in free.items():
            sizes = [cut(size, size) for size in each.shape]
            sizes[rows] = cut(each.shape[rows], max(1, -(-each.shape[rows] // pieces)))
            found[name] = (batches, *sizes[1:])
    return {name: found[name] for name in operands}
