"""The gradient of a bias: the sum over all pixels of an image, channel by channel.

Filter gradients that have the image in registers or near them add it up on the way (`added_up`, `sum_of_rows`) and end
with `with_bias`. For all others `complete` puts two launches behind the plan: one adds up units of the pixels, the
other adds these as a tree. The order is that of `_problem.sums.bias_contract`, so the bits do not depend on who adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..._compiler.codegen import (
    Int,
    IntLike,
    KernelBuilder,
    Mask,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..._problem.sums.gather import LINE, sum_bytes
from ..._problem.sums.pixels import bias_contract, cut
from ..plan import Operand, Plan, Step
from .reduce import part_step, tree_step
from .words import arguments, in_order

WORDS = ("pixels", "channels", "span", "unit", "run_span", "run")
"""The run-time words behind the two pointers for NHWC, image and partial: pixels of all images, and `sums.pixels.Cut`
of these into units and of a unit into runs."""
PLANE_WORDS = ("pixels", "channels", "images", "unit_images", "unit", "pieces")
"""Those for NCHW: pixels of one image, images of a unit, pixels of an image in it, and units of an image."""

_CHAINS = 4
"""Sums that take turns, so that none waits for the one before."""
_RUN = 64
"""Rows that are added up before they go to the next level."""
_SIDE_BY_SIDE = 4
"""Chains that run at the same time: vectors of neighbouring channels, runs where there are few channels, or planes.
One chain of additions waits 3 to 4 cycles for each."""
_CLAIMS = 64
"""Of all items, at least: 16 threads have four each."""


@dataclass(frozen=True)
class PixelSumKernel:
    """Adds up units of an image's pixels: ``partial[unit][channel]``.

    Items are units for NHWC, and some channels of a unit for NCHW.
    """

    dtype: str
    planes: bool
    """Whether the image is NCHW."""


def added_up(values: Sequence[Vector]) -> Vector:
    """Return the sum of some vectors, halves onto halves."""
    while len(values) > 1:
        half = (len(values) + 1) // 2
        pairs = zip(values[:half], values[half:], strict=False)
        values = [*(a + b for a, b in pairs), *values[len(values) - half : half]]
    return values[0]


def sum_of_rows(
    k: KernelBuilder, rows: Sequence[Pointer], count: Int, pitch: IntLike, lanes: int
) -> list[Vector]:
    """Return the sums of `count` vectors, `pitch` apart, from each of some addresses on: runs, and then their sums."""
    zero = k.zeros(arithmetic(rows[0].element), lanes)
    totals = [k.variable(zero) for _ in rows]
    with k.loop(0, count, _RUN, carry=totals) as start:
        stop = k.min(start + _RUN, count)
        whole = stop - (stop - start) % _CHAINS
        chains = [[k.variable(zero) for _ in range(_CHAINS)] for _ in rows]
        for first, last, step in ((start, whole, _CHAINS), (whole, stop, 1)):
            carry = [chain for each in chains for chain in each[:step]]
            with k.loop(first, last, step, carry=carry) as at:
                for row, each in zip(rows, chains, strict=True):
                    here = row.offset(at * pitch)
                    for i in range(step):
                        value = here.offset(pitch * i if isinstance(pitch, Int) else i * pitch)
                        each[i].value = each[i].value + value.load(lanes)
        for total, each in zip(totals, chains, strict=True):
            total.value = total.value + added_up([chain.value for chain in each])
    return [total.value for total in totals]


def with_bias(
    dtype: str, partial: str, shares: int, elements: int, channels: int
) -> tuple[Step, ...]:
    """Return the launches that end a filter gradient whose rows of partial sums have those of a bias behind them."""
    pitch = elements + channels
    return (
        part_step(dtype, elements, shares, partial, pitch=pitch, start=0, to="result"),
        part_step(dtype, channels, shares, partial, pitch=pitch, start=elements, to="bias"),
    )


def complete(plan: Callable[[], Plan]) -> Plan:
    """Return a plan that writes the gradient of its problem's bias too: by launches of its own if no kernel does."""
    found = plan()
    problem = found.problem
    assert problem.kind is Kind.FILTER_GRADIENT and problem.bias, problem
    if not found.steps or any("bias" in step.operands for step in found.steps):
        return found
    dtype, channels, planes = problem.dtype.short, problem.bias_c, problem.data_format == "NCHW"
    order = bias_contract(problem)
    images, _, cols = order.out
    units = cut(order.out, order.unit)
    if planes:
        words = in_order(
            PLANE_WORDS,
            pixels=cols,
            channels=channels,
            images=images,
            unit_images=order.unit.images,
            unit=order.unit.cols,
            pieces=-(-cols // order.unit.cols),
        )
        items = order.units * -(-channels // _SIDE_BY_SIDE)
    else:
        runs = cut(order.unit, order.run)
        words = in_order(
            WORDS,
            pixels=prod(order.out),
            channels=channels,
            span=units.span,
            unit=units.length,
            run_span=runs.span,
            run=runs.length,
        )
        items = order.units
    image: Operand = "first" if problem.bias == "input" else "second"
    added = Step(
        PixelSumKernel(dtype, planes),
        (image, "partial"),
        words,
        items,
        grain=max(1, items // _CLAIMS),
    )
    last = tree_step(dtype, channels, order.units, pitch=channels, to="bias")
    return replace(
        found,
        steps=(*found.steps, added, last),
        # The launches before have done with theirs.
        partial_bytes=max(found.partial_bytes, order.units * channels * sum_bytes(problem)),
    )


def emit(kernel: PixelSumKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    k = KernelBuilder(symbol("pixel_sum", kernel.dtype, "", target, kernel), target)
    with k.loop(k.begin, k.end) as item:
        if kernel.planes:
            _plane_unit(k, kernel, arguments(k, 2, PLANE_WORDS), item)
        else:
            _unit(k, kernel, arguments(k, 2, WORDS), item)
    return k.finish()


def _unit(k: KernelBuilder, kernel: PixelSumKernel, word: dict[str, Int], unit: Int) -> None:
    """Add up a unit of the pixels of NHWC: runs one after the other, so that their lines are read in order."""
    image = k.arg_pointer(0, element(kernel.dtype))
    number = arithmetic(image.element)
    channels, pixels, span, size = (word[name] for name in ("channels", "pixels", "span", "unit"))
    pieces = (span + size - 1) // size
    begin = unit // pieces * span + unit % pieces * size
    end = k.min(k.min(begin + size, (unit // pieces + 1) * span), pixels)
    total = k.arg_pointer(1, number).offset(unit * channels)
    lanes = k.lanes(number)
    whole = channels - channels % lanes
    with k.loop(0, whole, lanes) as channel:
        total.offset(channel).store(k.zeros(number, lanes))
    with k.loop(whole, channels) as channel:
        total.offset(channel).store(k.zeros(number, 1))
    wide = channels - channels % (lanes * _SIDE_BY_SIDE)

    def add(start: Int, count: Int, runs: int) -> None:
        """Add `runs` runs of `count` pixels: wide vectors of channels run by run, the others of all runs at once."""
        starts = [image.offset((start + count * i) * channels) for i in range(runs)]

        def chains(channel: Int, lanes: int, vectors: int, rows: list[Pointer]) -> None:
            sums = [k.variable(k.zeros(number, lanes)) for _ in range(len(rows) * vectors)]
            firsts = [row.offset(channel) for row in rows]
            with k.loop(0, count, carry=sums, nonempty=True) as at:
                pixel = at * channels
                for i, chain in enumerate(sums):
                    here = firsts[i // vectors].offset(pixel).offset(i % vectors * lanes)
                    chain.value = chain.value + here.load(lanes)
            for vector in range(vectors):
                place = total.offset(channel).offset(vector * lanes)
                so_far = place.load(lanes)
                for chain in sums[vector::vectors]:
                    so_far = so_far + chain.value
                place.store(so_far)

        for row in starts:
            with k.loop(0, wide, lanes * _SIDE_BY_SIDE) as channel:
                chains(channel, lanes, _SIDE_BY_SIDE, [row])
        # Of what is left there is at most one piece of each width.
        place, piece = wide, lanes * _SIDE_BY_SIDE // 2
        while piece:
            with k.when(((channels - wide) & piece).differs(0)):
                chains(place, min(piece, lanes), max(1, piece // lanes), starts)
            place, piece = place + ((channels - wide) & piece), piece // 2

    run_span, run = word["run_span"], word["run"]
    with k.loop(0, (end - begin + (run_span - 1)) // run_span, nonempty=True) as number_of_span:
        first = begin + number_of_span * run_span
        last = k.min(first + run_span, end)
        runs = (last - first) // run
        even = runs - runs % _SIDE_BY_SIDE
        with k.loop(0, even, _SIDE_BY_SIDE) as at:
            add(first + at * run, run, _SIDE_BY_SIDE)
        with k.loop(even, (last - first + (run - 1)) // run) as at:
            start = first + at * run
            add(start, k.min(last - start, run), 1)


def _plane_unit(k: KernelBuilder, kernel: PixelSumKernel, word: dict[str, Int], item: Int) -> None:
    """Add up some channels of a unit of the pixels of NCHW."""
    image = k.arg_pointer(0, element(kernel.dtype))
    number = arithmetic(image.element)
    channels, pixels, size = word["channels"], word["pixels"], word["unit"]
    blocks = (channels + (_SIDE_BY_SIDE - 1)) // _SIDE_BY_SIDE
    unit, first = item // blocks, item % blocks * _SIDE_BY_SIDE
    start = unit % word["pieces"] * size
    count = k.min(pixels - start, size)
    begin = unit // word["pieces"] * word["unit_images"]
    end = k.min(begin + word["unit_images"], word["images"])
    lanes = k.lanes(number)
    chains = LINE // number.size
    whole = count - count % chains

    def add(channel: Int, some: int) -> None:
        sums = [
            [k.variable(k.zeros(number, lanes)) for _ in range(0, chains, lanes)]
            for _ in range(some)
        ]
        carry = [each for plane in sums for each in plane]
        with k.loop(begin, end, carry=carry, nonempty=True) as n:
            plane = image.offset((n * channels + channel) * pixels + start)
            planes = [plane.offset(pixels * i) for i in range(some)]

            def at_once(
                at: Int, masks: Sequence[Mask | None], planes: list[Pointer] = planes
            ) -> None:
                for here, vectors in zip(planes, sums, strict=True):
                    for i, (each, mask) in enumerate(zip(vectors, masks, strict=True)):
                        place = here.offset(at).offset(i * lanes)
                        each.value = each.value + place.load(lanes, mask=mask)

            with k.loop(0, whole, chains, carry=carry) as at:
                at_once(at, [None] * (chains // lanes))
            with k.when(whole < count):
                left = range(0, chains, lanes)
                at_once(whole, [k.first_lanes(lanes, count - whole - lane) for lane in left])
        row = k.arg_pointer(1, number).offset(unit * channels + channel)
        for i, vectors in enumerate(sums):
            row.offset(i).store(added_up([each.value for each in vectors]).sum())

    stop = k.min(first + _SIDE_BY_SIDE, channels)
    with k.branch((stop - first).equals(_SIDE_BY_SIDE)) as ways:
        with ways.then():
            add(first, _SIDE_BY_SIDE)
        with ways.otherwise(), k.loop(first, stop, nonempty=True) as channel:
            add(channel, 1)
