"""Between passes: the shares of sums become gradients of parameters and coefficients, or results of [images, channels].

Shares are added in float64, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import F64, Int, KernelBuilder, Mask, Vector, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import SAVED
from . import walk

COEFFICIENTS = ("slope", "offset")
"""Of ``dx = scale * (g - offset + (x - mean) * slope)``: rows of one number per channel."""
COEFFICIENT_WORDS = (*("at_saved", "at_dweight", "at_dbias", "channels", "shares", "values"),)
TOTAL_WORDS = ("at_result", "channels", "shares", "pixels", "blocks")
BLOCK = 64
"""Channels of an item."""


@dataclass(frozen=True)
class CoefficientsKernel:
    """Gradients of weight and bias, and what the second pass backwards needs; items are blocks of channels."""

    parameter: str
    frozen: bool


@dataclass(frozen=True)
class TotalsKernel:
    """One number per image and channel; items are blocks of channels of an image."""

    dtype: str
    mean: bool
    """Whether the sum is divided by the number of pixels."""


def emit_coefficients(kernel: CoefficientsKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    way = "frozen" if kernel.frozen else "batch"
    k = KernelBuilder(symbol("norm_coefficients", kernel.parameter, way, target, kernel), target)
    frame = walk.Frame(k, COEFFICIENT_WORDS, False, kernel.parameter)
    channels = frame.word["channels"]
    number = element(kernel.parameter)
    saved = frame.image("saved")
    rows = {name: frame.row(saved, i) for i, name in enumerate(SAVED)}
    results = {name: frame.image(name) for name in ("dweight", "dbias")}
    coefficients = [frame.row(k.arg_pointer(2, number), i) for i in range(len(COEFFICIENTS))]
    lanes = k.lanes(F64)
    values = k.number(frame.word["values"], F64).broadcast(lanes)
    with k.loop(k.begin, k.end) as item:
        stop = k.min((item + 1) * BLOCK, channels)
        with k.loop(item * BLOCK, stop, lanes, nonempty=True) as channel:
            mask = k.first_lanes(lanes, stop - channel)
            total, product = _added(frame, k.i64(0), channel, mask, 2)
            read = {
                name: walk.wide(row.offset(channel).load(lanes, mask=mask))
                for name, row in rows.items()
            }
            weight = product * read["inverse"]
            for name, value in (("dweight", weight), ("dbias", total)):
                inside = k.select(frame.present(name), stop - channel, k.i64(0))
                results[name].offset(channel).store(
                    walk.rounded(value, kernel.parameter), mask=k.first_lanes(lanes, inside)
                )
            if not kernel.frozen:
                found = (-(read["inverse"] * weight) / values, total / values)
                for row, value in zip(coefficients, found, strict=True):
                    row.offset(channel).store(walk.rounded(value, kernel.parameter), mask=mask)
    return k.finish()


def emit_totals(kernel: TotalsKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    way = "mean" if kernel.mean else "sum"
    k = KernelBuilder(symbol("norm_totals", kernel.dtype, way, target, kernel), target)
    frame = walk.Frame(k, TOTAL_WORDS, False, kernel.dtype)
    channels, blocks = frame.word["channels"], frame.word["blocks"]
    result = frame.image("result")
    number = arithmetic(frame.storage).short
    lanes = k.lanes(F64)
    with k.loop(k.begin, k.end) as item:
        image, block = item // blocks, item % blocks
        stop = k.min((block + 1) * BLOCK, channels)
        with k.loop(block * BLOCK, stop, lanes, nonempty=True) as channel:
            mask = k.first_lanes(lanes, stop - channel)
            (total,) = _added(frame, image, channel, mask, 1)
            if kernel.mean:
                total = total / k.number(frame.word["pixels"], F64).broadcast(lanes)
            place = result.offset(image * channels).offset(channel)
            place.store(walk.rounded(total, number), mask=mask)
    return k.finish()


def _added(frame: walk.Frame, group: Int, channel: Int, mask: Mask, count: int) -> list[Vector]:
    """Return the sums of a group's shares."""
    k, shares = frame.k, frame.word["shares"]
    lanes = k.lanes(F64)
    pitch = frame.word["channels"] * count
    rows = k.arg_pointer(1, F64).offset(group * shares * pitch).offset(channel)
    totals = [k.variable(k.zeros(F64, lanes)) for _ in range(count)]
    with k.loop(0, shares, carry=totals) as share:
        here = rows.offset(share * pitch)
        for i, total in enumerate(totals):
            total.value = total.value + frame.row(here, i).load(lanes, mask=mask)
    return [total.value for total in totals]
