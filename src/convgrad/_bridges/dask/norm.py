"""Batch norm on arrays of Dask: statistics and sums over all chunks first, then block by block.

A block cannot be normalised before the last one has been seen. So mean and variance of the batch are reductions, which
Dask adds up by its trees, and all other work has statistics that are given. The chunks of the images stay as they are;
everything else is cut as they are. Each result has its own tasks: what is not asked for is not computed.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from ..._base.dtypes import DType, accumulator
from ..._problem.norm.call import BACKWARD, FORWARD, ONE, Settings
from ..._problem.norm.normalisation import IMAGES, Normalisation, write
from .carrier import Task
from .graph import switches


def normalise(settings: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return y, mean and variance, not computed yet."""
    arrays = _cut(settings, given)
    if settings.is_training:
        arrays |= dict(
            zip(("running_mean", "running_var"), _moments(settings, row, arrays["x"]), strict=True)
        )
    call = _frozen(settings, row, arrays)
    places = tuple(place for place in ("residual", *call.rows) if place in arrays)
    y = _blocks("normalise", (FORWARD, write(call), switches()), ("x", *places), arrays, row)
    return y, arrays["running_mean"], arrays["running_var"]


def normalise_back(settings: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, ...]:
    """Return the gradients of the images, scale, offset and a residual, not computed yet."""
    arrays = _cut(settings, given)
    call = _frozen(settings, row, arrays)
    plain = (BACKWARD, write(call), switches())
    beside = ("residual",) if call.task.residual == "before" else ()
    places = ("x", "grad", *beside, *call.rows)
    shares = _blocks("norm_sums", plain, places, arrays, None)
    sums = shares.sum(axis=(0, 1, 2))
    dweight, dbias = (sums[at].astype(accumulator(row).numpy) for at in (0, 1))
    if settings.is_training:
        dx = _blocks("norm_moved_together", plain, places, arrays | {"sums": sums}, row)
    else:
        dx = _blocks("norm_moved", plain, places, arrays, row)
    if not call.task.residual:
        return dx, dweight, dbias, None
    bent = call.task.residual == "before" and call.task.activation != "none"
    inner = _blocks("norm_inner", plain, places, arrays, row) if bent else arrays["grad"]
    return dx, dweight, dbias, inner


def _frozen(settings: Settings, row: DType, arrays: dict[str, Any]) -> Normalisation:
    """Return the call of a block, whose sizes are those of the block."""
    how = replace(settings, is_training=False)
    return how.normalisation(row, ONE, arrays, "residual" in arrays)


def _cut(settings: Settings, given: dict[str, Any]) -> dict[str, Any]:
    """Return all operands as arrays of Dask, cut as the images are."""
    images = [given[place] for place in ("x", "grad", "residual") if place in given]
    leading = next((each for each in images if isinstance(each, da.Array)), None)
    # Images of NumPy beside rows of Dask.
    whole = tuple((size,) for size in images[0].shape)
    chunks = whole if leading is None else leading.chunks
    channels = (chunks[settings.channel_axis],)
    return {
        place: _as_cut(each, chunks if place in IMAGES else channels)
        for place, each in given.items()
    }


def _as_cut(array: Any, chunks: Any) -> da.Array:
    if isinstance(array, da.Array):
        return array if array.chunks == chunks else array.rechunk(chunks)
    # A copy: the caller may change theirs before it is computed.
    return da.from_array(array.copy(), chunks=chunks)


def _moments(settings: Settings, row: DType, x: da.Array) -> list[da.Array]:
    """Return mean and variance of each channel: Dask joins those of blocks, in float64."""
    parameter = accumulator(row).numpy
    axes = tuple(axis for axis in range(4) if axis != settings.channel_axis)
    if not prod(x.shape):
        size, cut = x.shape[settings.channel_axis], (x.chunks[settings.channel_axis],)
        return [da.full(size, np.nan, dtype=parameter, chunks=cut) for _ in range(2)]
    # A chunk without a value has no mean.
    kept = {axis: tuple(filter(None, x.chunks[axis])) for axis in axes}
    wide = x.rechunk(kept).astype(np.float64)
    return [found(wide, axis=axes).astype(parameter) for found in (da.mean, da.var)]


def _blocks(
    name: str,
    plain: tuple[Any, ...],
    places: tuple[str, ...],
    arrays: dict[str, Any],
    row: DType | None,
) -> da.Array:
    """Return the array that a task makes block by block; without a dtype, it has two rows of sums in each."""
    axes = "NHWC" if "NHWC" in plain[1].split(" ") else "NCHW"
    operands: list[Any] = []
    for place in places:
        operands += [arrays[place], axes if place in IMAGES else "C"]
    told: Any = (*plain, places)
    if "sums" in arrays:
        operands += [arrays["sums"], "KC"]
        x = arrays["x"]
        told = (told, x.size // max(x.shape[axes.index("C")], 1))
    token = tokenize(name, told, *(each for each in operands if isinstance(each, da.Array)))
    how: dict[str, Any] = {"dtype": np.float64 if row is None else row.numpy}
    result = axes
    if row is None:
        result, how["new_axes"] = "NHWKC", {"K": 2}
        how["adjust_chunks"] = dict.fromkeys("NHW", lambda size: 1)
    elif "sums" in arrays:
        how["concatenate"] = True
    meta = np.empty((0,) * len(result), how["dtype"])
    return da.blockwise(
        *(Task(name, told), result, *operands),
        **how,
        name=f"convgrad-{name}-{token}",
        align_arrays=False,
        meta=meta,
    )
