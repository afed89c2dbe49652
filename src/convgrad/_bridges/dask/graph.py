"""From a plan to Dask's graph: a task per block, strips of neighbours cut by tasks of their own, sums in a fixed tree.

Only keys and plain data are in it, and a filter that came as a NumPy array. Strips are cut where the chunk is, so
that what moves between workers is the strip; a chunk of which a block needs more than half is taken whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from ..._base import config
from ..._problem import text as _problem_text
from ..._problem.convolution import Kind, Problem
from . import aligned
from . import plan as plans
from .boxes import Box, Chunks, Overlaps, Piece
from .carrier import Task
from .plan import ChunkPlan, PlannedBlock, by_axis
from .traffic import Traffic

Key = Hashable

INSIDE = 64 << 10
"""Bytes of a NumPy array's filter up to which it is put into each task. A task that takes one chunk and nothing else is
run by Dask together with the one that makes the chunk: one task in the place of two."""


class CallGraph:
    """The graph of one call, as Dask takes it: a dictionary of tasks by key."""

    def __init__(self, function: str, name: str, plan: ChunkPlan, operands: Sequence[Any]) -> None:
        """Write all tasks. Operands are arrays of Dask; a filter may be an array of NumPy."""
        self.tasks: dict[Key, Any] = {}
        self.blocks: dict[Key, aligned.BlockTask] = {}
        self.strips: dict[Key, Any] = {}
        """Tasks that cut strips, or hold parts of a filter: what blocks take beside chunks."""
        self.traffic = Traffic()
        self._function, self._name, self._plan, self._operands = function, name, plan, operands
        self._filters: dict[Box, Any] = {}
        self._switches = switches()
        self._text = cache(_problem_text.write)  # blocks are mostly alike
        made = f"block-{name}" if plan.result_is_joined else name
        self.of_blocks = f"part-{name}" if plan.parts > 1 else made
        """The first word of their keys."""
        parts: dict[tuple[int, ...], list[Key]] = {}
        for block in plan.blocks():
            key: Key = (self.of_blocks, *block.place)
            if plan.parts > 1:
                key = (self.of_blocks, *block.place, *plan.part_place(block.part))
                parts.setdefault(block.place, []).append(key)
            self._write_block(key, block)
        for place, keys in parts.items():
            self._write_sum(made, place, keys)
        if plan.result_is_joined:
            self._write_joined(made)

    def graph(self) -> HighLevelGraph:
        """Return all this in Dask's words."""
        arrays = [each for each in self._operands if isinstance(each, da.Array)]
        found = aligned.layer(self.of_blocks, self.blocks, self._operands)
        if found is None:
            blocks = {key: block.written for key, block in self.blocks.items()}
            every = self.strips | blocks | self.tasks
            return HighLevelGraph.from_collections(self._name, every, dependencies=arrays)
        graph = HighLevelGraph.from_collections(self.of_blocks, found.blocks, dependencies=arrays)
        layers, needed = dict(graph.layers), dict(graph.dependencies)
        if found.strips:
            name = f"strips-{self.of_blocks}"
            layers[name] = MaterializedLayer(self.strips | found.strips)
            needed[name] = found.cut
            needed[self.of_blocks] = {*needed[self.of_blocks], name}
        if self.tasks:
            layers[self._name] = MaterializedLayer(self.tasks)
            needed[self._name] = {self.of_blocks}
        return HighLevelGraph(layers, needed)

    def _write_block(self, key: Key, block: PlannedBlock) -> None:
        self.traffic.blocks += 1
        problem, row = block.problem, self._plan.problem.dtype
        lead, shape = None, problem.result_shape
        if any(block.lead):
            lead = (block.shape, plans.ordered(problem, (0, *block.lead, 0)))
            shape = block.shape
        if problem.is_empty:
            zeros = Task("zeros", (self._function, problem.dtype.name, shape))
            self.blocks[key] = aligned.BlockTask(zeros)
            return
        boxes, keys, taken = [], [], [0]
        for number, box in enumerate((block.first, block.second)):
            if number == self._plan.filter_operand:
                part = self._filter(box)
                keys.append([part])
                if not isinstance(part, np.ndarray):
                    self.traffic.strip_bytes += prod(box.shape) * row.itemsize
                boxes.append((box.shape, (_everything(box.shape),)))
                continue
            placed: list[Any] = []
            keys.append([])
            for piece in box.pieces:
                found, where = self._piece(number, piece)
                keys[-1].append(found)
                placed.append(where)
                taken.append(prod(where[0]) * row.itemsize)
            boxes.append((box.shape, tuple(placed)))
        self.traffic.strip_bytes += sum(taken) - max(taken)
        if self._plan.parts > 1:
            added = problem.kind is Kind.FILTER_GRADIENT and block.halo is not None  # in float64
            self.traffic.sum_bytes += prod(shape) * (8 if added else problem.dtype.itemsize)
        bands = self._bands(block)
        core = problem if block.halo is None else block.halo.core
        plain = (
            self._function,
            self._text(core),
            self._switches,
            row.name,
            lead,
            tuple(boxes),
            bands,
        )
        self.blocks[key] = aligned.BlockTask(Task("block", plain), tuple(keys))

    def _bands(self, block: PlannedBlock) -> Any:
        """Return what is computed beside the edges of a chunk: which operand's, its piece, and the problems."""
        if block.halo is None:
            return None
        ordered, problem = plans.ordered, block.problem
        haloed = self._plan.haloed
        box = (block.first, block.second)[haloed]
        whole = by_axis(problem, tuple((0, size) for size in box.shape))
        bands = []
        for band in block.halo.bands:
            inside = ordered(problem, (whole[0], *map(tuple, band.inside), whole[3]))
            rows, cols = band.at
            # Images and channels have no bands: all of them are taken.
            at = ordered(problem, ((0, None), tuple(rows), tuple(cols), (0, None)))
            bands.append((self._text(band.problem), inside, at))
        return haloed, box.middle, tuple(bands)

    def _piece(self, number: int, piece: Piece) -> tuple[Key, Any]:
        """Return the key of a chunk, or of a strip of it, and where it goes."""
        array = self._operands[number]
        shape = tuple(int(sizes[at]) for sizes, at in zip(array.chunks, piece.chunk, strict=True))
        wanted = tuple(each.size for each in piece.inside)
        key: Key = (array.name, *piece.chunk)
        if wanted == shape:
            return key, (shape, None, piece.at)
        inside = tuple(map(tuple, piece.inside))
        if 2 * prod(wanted) > prod(shape):
            return key, (shape, inside, piece.at)
        begins = (each.begin for each in piece.inside)
        strip: Key = (f"strip-{number}-{self._name}", *piece.chunk, *begins, *wanted)
        if strip not in self.strips:
            self.traffic.strips += 1
            plain = (self._function, self._plan.problem.dtype.name, (shape, inside, piece.at))
            self.strips[strip] = (Task("cut", plain), key)
        return strip, (wanted, None, piece.at)

    def _filter(self, box: Box) -> Any:
        """Return a part of the filter, or its key, which all blocks with those channels share."""
        if box in self._filters:
            return self._filters[box]
        number = self._plan.filter_operand
        assert number is not None
        array = self._operands[number]
        key: Key = (f"filter-{self._name}", len(self._filters))
        if isinstance(array, np.ndarray):
            piece = box.pieces[0]  # it is one chunk
            inside = tuple(slice(begin, end) for begin, end in piece.inside)
            # A copy: the caller may change theirs before it is computed.
            part = np.array(array[inside], order="C")
            if part.nbytes <= INSIDE:
                self._filters[box] = part
                return part
            self.strips[key] = part
        else:
            placed = [self._piece(number, piece) for piece in box.pieces]
            if len(placed) == 1 and placed[0][1][1] is None:
                key = placed[0][0]
            else:
                self._write_assembled(self.strips, key, box.shape, placed)
        self._filters[box] = key
        return key

    def _write_sum(self, made: str, place: tuple[int, ...], keys: list[Key]) -> None:
        """Add partial sums, a few in a task, and round the last sum."""
        row = self._plan.problem.dtype
        size = prod(cut[at].size for cut, at in zip(self._plan.blocks_along, place, strict=True))
        level = 0
        while len(keys) > plans.FAN_IN:
            above: list[Key] = []
            for begin in range(0, len(keys), plans.FAN_IN):
                few = keys[begin : begin + plans.FAN_IN]
                above.append((f"sum-{self._name}", *place, level, len(above)))
                self.tasks[above[-1]] = (Task("add", ""), *few)
            self.traffic.sums += len(above)
            self.traffic.sum_bytes += size * 8 * len(above)
            keys, level = above, level + 1
        self.traffic.sums += 1
        total: Key = (made, *place)
        self.tasks[total] = (Task("add", row.name), *keys)

    def _write_joined(self, made: str) -> None:
        """Put blocks of the result together to chunks."""
        blocks = tuple(tuple(each.size for each in cut) for cut in self._plan.blocks_along)
        overlaps = Overlaps(blocks)
        numbered = [list(enumerate(cut)) for cut in self._plan.joined]
        for chunk in product(*numbered):
            place, wanted = zip(*chunk, strict=True)
            box = overlaps.box(wanted)
            placed = [
                ((made, *piece.chunk), (tuple(each.size for each in piece.inside), None, piece.at))
                for piece in box.pieces
            ]
            self._write_assembled(self.tasks, (self._name, *place), box.shape, placed)

    def _write_assembled(
        self,
        tasks: dict[Key, Any],
        key: Key,
        shape: tuple[int, ...],
        placed: Sequence[tuple[Key, Any]],
    ) -> None:
        self.traffic.joins += 1
        if len(placed) > 1:
            self.traffic.join_bytes += prod(shape) * self._plan.problem.dtype.itemsize
        pieces = tuple(where for _, where in placed)
        plain = (self._function, self._plan.problem.dtype.name, shape, pieces)
        tasks[key] = (Task("assemble", plain), *(key for key, _ in placed))


def compute(function: str, problem: Problem, first: Any, second: Any) -> da.Array:
    """Return the result of a problem, to be computed when it is asked for."""
    plan, operands = planned(problem, first, second)
    dtype = problem.dtype.numpy
    if problem.is_empty:
        return da.zeros(problem.result_shape, dtype=dtype, chunks=plan.chunks)
    name = f"convgrad-{function}-{tokenize(_problem_text.write(problem), switches(), *operands)}"
    layer = CallGraph(function, name, plan, operands)
    return da.Array(layer.graph(), name, plan.chunks, meta=np.empty((0,) * 4, dtype))


def planned(problem: Problem, first: Any, second: Any) -> tuple[ChunkPlan, list[Any]]:
    """Plan a problem on arrays of Dask or NumPy; returns the operands as the graph takes them, too."""
    operands = [first, second]
    for number, each in enumerate(operands):
        if isinstance(each, np.ndarray) and number != plans.filter_operand(problem):
            operands[number] = da.from_array(
                each, chunks=chunks_like(problem, operands[1 - number])
            )
    return plans.cut(problem, *map(_chunks, operands)), operands


def chunks_like(problem: Problem, other: Any) -> Any:
    """Return the chunks of an image that came as an array of NumPy: those of another image, or of Dask's usual size."""
    if problem.is_empty:  # whose chunks Dask cannot choose
        return (-1,) * 4
    images = problem.kind is Kind.FILTER_GRADIENT and isinstance(other, da.Array)
    return (other.chunks[0] if images else "auto", -1, -1, -1)


def _chunks(array: Any) -> Chunks:
    if isinstance(array, np.ndarray):
        return tuple((size,) for size in array.shape)
    return tuple(tuple(int(size) for size in sizes) for sizes in array.chunks)


def switches() -> tuple[tuple[str, Any], ...]:
    """Return the switches that decide what computes a problem: those of the call hold wherever it is computed.

    Which CPU to compile for is a worker's own matter, unless the caller has said it.
    """
    pairs = zip(config.DECIDING, config.deciding(), strict=True)
    return tuple((name, value) for name, value in pairs if value is not None)


def _everything(shape: tuple[int, ...]) -> Any:
    return shape, None, (0,) * len(shape)
