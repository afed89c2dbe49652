"""Blocks that take a chunk of each operand, told to Dask as such, so that it makes the chunks in the same task.

Dask fuses layers of the kind `Blockwise` with those that make their operands. A filter gradient then reads, say, both
of its chunks from disk in the task that uses them: neither is kept, or sent to the worker that has the other one. Of
tasks with two operands Dask would make three, and every second pair of chunks on two different workers.

Where windows reach over, a chunk of the one image is taken with strips of its neighbours. It is made for all of them,
in a task of its own; the other image's chunk is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.blockwise import Blockwise, BlockwiseDepDict, blockwise

from .carrier import Task

Place = tuple[int, ...]


class BlockTask(NamedTuple):
    """The task of a block, and the keys of all it takes, by operand; or an array, of a filter that is small."""

    task: Task
    taken: tuple[list[Any], ...] = ()

    @property
    def written(self) -> tuple[Any, ...]:
        """The task as Dask takes it."""
        return (self.task, *(each for some in self.taken for each in some))


class Aligned(NamedTuple):
    """Tasks of blocks in a layer that Dask can fuse, and lists of the strips they take, by key."""

    blocks: Blockwise
    strips: dict[Hashable, list[Any]]
    cut: set[str]
    """The name of the array whose strips they are."""


def layer(
    name: str, blocks: Mapping[Hashable, BlockTask], operands: Sequence[Any]
) -> Aligned | None:
    """Return tasks of blocks, by keys `(name, *place)`, as a layer that Dask can fuse; None if it cannot.

    It can if each takes a chunk of each operand, found by its place along the axes. A chunk that several blocks take
    would be made for each of them, so there must be none; strips do not count as such.
    """
    places: list[Place] = [key[1:] for key in blocks]  # type: ignore[index]  # keys are tuples
    counts = tuple(max(each) + 1 for each in zip(*places, strict=True))
    if len(places) != prod(counts) or not all(block.taken for block in blocks.values()):
        return None
    tasks = {place: block.task for place, block in zip(places, blocks.values(), strict=True)}
    everywhere = tuple(range(len(counts)))
    pairs: list[Any] = []
    numblocks: dict[str, Place] = {}
    strips: dict[Hashable, list[Any]] = {}
    cut = set()
    for number, array in enumerate(operands):
        taken = [block.taken[number] for block in blocks.values()]
        if not isinstance(array, da.Array):
            inside = taken[0][0]
            if type(inside) is not np.ndarray or any(each[0] is not inside for each in taken):
                return None
            pairs += [inside, None]
            continue
        at = [which for each in taken if (which := _own(array.name, each)) is not None]
        if not len(at) == len(places) == prod(array.numblocks):
            return None
        chunks = [each[which][1:] for each, which in zip(taken, at, strict=True)]
        along = _axes(places, counts, chunks, array.numblocks)
        if along is None:
            return None
        pairs += [array.name, along]
        numblocks[array.name] = array.numblocks
        if max(map(len, taken)) > 1:
            if strips or sum(isinstance(each, da.Array) for each in operands) == 1:
                return None  # nothing is left to fuse
            listed = f"strips-{name}"
            for place, each, which in zip(places, taken, at, strict=True):
                key: Hashable = (listed, *place)
                strips[key] = each[:which] + each[which + 1 :]
                tasks[place] = Task("around", (number, which, tasks[place].plain))
            pairs += [listed, everywhere]
            numblocks[listed] = counts
            cut.add(array.name)
    given = BlockwiseDepDict(tasks, numblocks=counts)
    run = Task("given", None)
    found = blockwise(run, name, everywhere, given, everywhere, *pairs, numblocks=numblocks)
    return Aligned(found, strips, cut)


def _own(name: str, taken: Sequence[Any]) -> int | None:
    """Return which of the keys a block takes is a chunk of an array, if it is the only one."""
    found = [at for at, key in enumerate(taken) if key[0] == name]
    return found[0] if len(found) == 1 else None


def _axes(
    places: Sequence[Place], counts: Place, chunks: Sequence[Place], numblocks: Place
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
            and all(chunk[axis] == place[each] for chunk, place in zip(chunks, places, strict=True))
        )
        each = next(along, None)
        if each is None:
            return None
        found[axis] = each
        free.remove(each)
    return tuple(free.pop() if each is None else each for each in found)
