"""Batch norm in a worker: a block of images and its rows of channels in, arrays out.

All here runs with statistics that are given: what a block would need of the others, `norm` has found out before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ... import _engine
from ..._base import config, dtypes
from ..._base.dtypes import AnyArray, DType, accumulator, round_once
from ..._base.errors import AllocationError, ArgumentError
from ..._base.fp_mode import default_mode
from ..._problem.norm import Task, oracle
from ..._problem.norm.normalisation import IMAGES, Normalisation, read
from ..._runtime.pointers import data_pointer
from ..._runtime.results import new_result
from . import share

Plain = tuple[str, str, tuple[tuple[str, Any], ...], tuple[str, ...]]
"""The function, a forward call as text, switches, and the places of the arrays."""


def normalise(plain: Plain, *chunks: Any) -> AnyArray:
    """Return y of a block."""
    block = _Block(plain, chunks)
    return block.image() if block.is_empty else block.run(block.call.task, "y", "saved")[0]


def norm_sums(plain: Plain, *chunks: Any) -> AnyArray:
    """Return a block's share of the gradients of scale and offset, [1, 1, 1, 2, channels] in float64."""
    block = _Block(plain, chunks)
    sums = np.zeros((1, 1, 1, 2, block.channels))
    if not block.is_empty:
        back = block.call.backward(x=False, parameters=True, residual=False)
        sums[0, 0, 0] = block.back(back, "dweight", "dbias")
    return sums


def norm_inner(plain: Plain, *chunks: Any) -> AnyArray:
    """Return the gradient of a residual before an activation."""
    block = _Block(plain, chunks)
    if block.is_empty:
        return block.image()
    back = block.call.backward(x=False, parameters=False, residual=True)
    return block.back(back, "dresidual")[0]


def norm_moved(plain: Plain, *chunks: Any) -> AnyArray:
    """Return the gradient of the images where mean and variance do not move with them."""
    block = _Block(plain, chunks)
    if block.is_empty:
        return block.image()
    return block.back(block.call.backward(x=True, parameters=False, residual=False), "dx")[0]


def norm_moved_together(plain: tuple[Plain, int], *chunks: Any) -> AnyArray:
    """Return the gradient of the images where mean and variance are the batch's, of so many values per channel.

    The last chunk has the whole sums, [2, channels]. Narrow images are widened first, so that they are rounded once.
    """
    (function, text, switches, places), values = plain
    *operands, sums = chunks
    call = _call(text)
    row, wide = call.task.dtype, accumulator(call.task.dtype)
    block = _Block((function, text, switches, places), operands, wide)
    if block.is_empty:
        return new_result(block.shape, row.numpy)
    (dx,) = block.back(block.call.backward(x=True, parameters=False, residual=False), "dx")
    with default_mode(), np.errstate(all="ignore"):
        found = block.statistics()
        dweight, dbias = np.asarray(sums)
        a = -found.scale * found.inverse * dweight / values
        b = -found.scale * dbias / values - a * found.mean
        return round_once(dx + (block.arrays["x"] * block.spread(a) + block.spread(b)), row)


class _Block:
    """The arrays of one block, checked against each other: Dask believes what an array's maker declared."""

    def __init__(self, plain: Plain, chunks: Any, dtype: DType | None = None) -> None:
        self._function, text, self._switches, places = plain
        call = _call(text)
        declared = call.task.dtype
        given = dict(zip(places, map(np.asarray, chunks), strict=True))
        self.shape = given["x"].shape
        last = call.task.data_format == "NHWC"
        self.channels = self.shape[3 if last else 1]
        for place, each in given.items():
            image = place in (*IMAGES, "grad")
            wanted = self.shape if image else (self.channels,)
            row = declared if image else accumulator(declared)
            if (
                each.shape != wanted
                or dtypes.find(each.dtype) is not row
                or each.ndim not in (1, 4)
            ):
                raise ArgumentError(
                    f"{self._function}: a chunk must have the shape {list(wanted)} and the dtype {row.name}, as its "
                    f"Dask array says, got {list(each.shape)} of {each.dtype}."
                )
        self._row = dtype or declared
        kinds = {
            place: self._row if each.ndim == 4 else accumulator(declared)
            for place, each in given.items()
        }
        self.arrays = {
            place: np.require(each, kinds[place].numpy, ("C", "A")) for place, each in given.items()
        }
        images, pixels = (
            self.shape[0],
            self.shape[1] * self.shape[2] if last else self.shape[2] * self.shape[3],
        )
        self.is_empty = 0 in self.shape
        sizes = (1, 1, 1) if self.is_empty else (images, pixels, self.channels)
        sized = call.sized(*sizes)
        self.call = replace(sized, task=replace(sized.task, dtype=self._row))

    def image(self) -> AnyArray:
        return self._new(self.shape, self._row)

    def spread(self, row: AnyArray) -> AnyArray:
        """Return a row of channels so that it meets images."""
        return row if self.call.task.data_format == "NHWC" else row[:, None, None]

    def statistics(self) -> oracle.Statistics:
        """Return what follows from mean and variance, in float64."""
        rows = {
            place: self.arrays[place].astype(np.float64) if place in self.arrays else None
            for place in ("running_mean", "running_var", "weight", "bias")
        }
        mean, variance = rows["running_mean"], rows["running_var"]
        assert mean is not None and variance is not None
        with default_mode(), np.errstate(all="ignore"):
            return oracle.statistics(
                mean, variance, self.call.epsilon, rows["weight"], rows["bias"]
            )

    def back(self, call: Normalisation, *wanted: str) -> list[AnyArray]:
        """Run a backward call."""
        parameter = accumulator(self._row)
        arrays = self.arrays
        arrays["saved"] = round_once(np.stack(self.statistics()), parameter)
        if call.task.beside == "residual":
            arrays["beside"] = arrays["residual"]
        elif call.task.beside:
            # The derivative is told from the result; the argument itself tells it as well.
            plain = replace(self.call.task, name="apply", activation="none")
            (arrays["beside"],) = self.run(plain, "y")
        return self.run(call.task, *wanted)

    def run(self, task: Task, *wanted: str) -> list[AnyArray]:
        """Carry out a task, and return what it wrote."""
        call = replace(self.call, task=task)
        made = {
            place: self._new(
                self.shape if place in IMAGES else call.shape(place), call.dtype(place)
            )
            for place in wanted
        }
        every: Mapping[str, AnyArray] = {
            **self.arrays,
            **made,
            "scalars": np.array(call.scalars),
        }
        try:
            with config.scope(**dict(self._switches)), share.limited():
                _engine.run(
                    task,
                    *(data_pointer(every[place]) if place in every else 0 for place in task.places),
                )
        except AllocationError as error:
            raise AllocationError(f"{self._function}: {error}.") from None
        return [made[place] for place in wanted]

    def _new(self, shape: tuple[int, ...], row: DType) -> AnyArray:
        try:
            return new_result(shape, row.numpy)
        except AllocationError as error:
            raise AllocationError(f"{self._function}: {error}.") from None


@lru_cache(maxsize=256)
def _call(text: str) -> Normalisation:
    return read(text)
