"""How a call on arrays of Dask would be cut, without their data: for `explain`."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from ..._problem.convolution import Problem
from . import graph
from . import plan as plans
from .traffic import Chunked


def tell(problem: Problem, first: Any, second: Any) -> tuple[Problem, Chunked, Any]:
    """Return the block with most work, the story, and an array in the result's chunks.

    An operand is an array of Dask, or None for one that will be an array of NumPy.
    """
    dtype, taps = problem.dtype.numpy, plans.filter_operand(problem)
    operands = [
        # Of one cell: an array that has its shape and takes no memory.
        np.broadcast_to(np.zeros((), dtype), shape) if each is None else each
        for each, shape in zip((first, second), problem.operand_shapes, strict=True)
    ]
    for number, each in enumerate(operands):
        if number != taps and isinstance(each, np.ndarray):
            along = graph.chunks_like(problem, operands[1 - number])
            operands[number] = da.zeros(each.shape, dtype=dtype, chunks=along)
    plan, operands = graph.planned(problem, *operands)
    layer = graph.CallGraph("explain", "explained", plan, operands)
    block = max((block.problem for block in plan.blocks()), key=lambda each: each.flops)
    told = Chunked(problem.result_shape, plan.chunks, plan.parts, layer.traffic)
    return block, told, da.zeros(problem.result_shape, dtype=dtype, chunks=plan.chunks)
