"""Blocks that take one chunk of each operand, told to Dask as such, so that it makes the chunks in the same task.

Dask fuses layers of the kind `Blockwise` with those that make their operands. A filter gradient then reads, say, both of
its chunks from disk in the task that uses them: neither is kept, or sent to the worker that has the other one. Of
free tasks with two operands Dask makes three, and computes every second pair of chunks on two different workers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.blockwise import Blockwise, BlockwiseDepDict, blockwise

from .carrier import Task

Place = tuple[int, ...]


def layer(name: str, blocks: Mapping[Hashable, Any], operands: Sequence[Any]) -> Blockwise | None:
    """Return tasks of blocks, by keys `(name, *place)`, as a layer that Dask can fuse; None if it cannot.

    It can if each takes a chunk of each operand, found by its place along the axes. A chunk that several blocks take
    would be made for each of them, so there must be none.
    """
    taken = _taken(blocks, operands)
    if taken is None:
        return None
    places = [key[1:] for key in blocks]  # type: ignore[index]  # keys are tuples
    counts = tuple(max(each) + 1 for each in zip(*places, strict=True))
    if len(places) != prod(counts):
        return None
    pairs: list[Any] = []
    numblocks = {}
    for number, array in enumerate(operands):
        if not isinstance(array, da.Array):
            pairs += [taken[number][0], None]
            continue
        if prod(array.numblocks) != len(places):
            return None
        found = _letters(places, counts, taken[number], array.numblocks)
        if found is None:
            return None
        pairs += [array.name, found]
        numblocks[array.name] = array.numblocks
    tasks = {place: task[0] for place, task in zip(places, blocks.values(), strict=True)}
    everywhere = tuple(range(len(counts)))
    return blockwise(
        Task("given", None),
        name,
        everywhere,
        BlockwiseDepDict(tasks, numblocks=counts),
        everywhere,
        *pairs,
        numblocks=numblocks,
    )


def _taken(blocks: Mapping[Hashable, Any], operands: Sequence[Any]) -> list[list[Any]] | None:
    """Return, by operand, the chunk that each block takes, or the array that is put into all of them."""
    taken: list[list[Any]] = [[] for _ in operands]
    for task in blocks.values():
        if len(task) != 1 + len(operands):
            return None
        for number, (array, given) in enumerate(zip(operands, task[1:], strict=True)):
            if not isinstance(array, da.Array):
                if not isinstance(given, np.ndarray) or given is not (taken[number] or [given])[0]:
                    return None
                taken[number].append(given)
            elif given[0] != array.name:
                return None
            else:
                taken[number].append(given[1:])
    return taken


def _letters(
    places: Sequence[Place], counts: Place, taken: Sequence[Place], numblocks: Place
) -> tuple[int, ...] | None:
    """Return which axis of the blocks' places each axis of an operand's chunks goes along.

    An axis of one chunk may go along any that is left over: its chunk is taken everywhere.
    """
    free = list(range(len(counts)))
    found: list[int | None] = [None] * len(numblocks)
    for axis, count in enumerate(numblocks):
        if count == 1:
            continue
        along = (
            each
            for each in free
            if counts[each] == count
            and all(chunk[axis] == place[each] for chunk, place in zip(taken, places, strict=True))
        )
        each = next(along, None)
        if each is None:
            return None
        found[axis] = each
        free.remove(each)
    return tuple(free.pop() if each is None else each for each in found)
