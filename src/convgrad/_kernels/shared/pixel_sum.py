"""The gradient of a bias: the sum over all pixels of an image, channel by channel.

Filter gradients that have the image in registers or near them add it up on the way (`added_up`, `sum_of_rows`) and end
with `with_bias`. For all others `complete` puts two launches behind the plan: one adds up shares of the pixels, the
other adds the shares. Which shares there are depends on the problem alone, so the bits do not depend on who adds.

Sums have three levels: runs of some pixels in four chains, the runs of a share in a wider type, and the shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..._compiler.codegen import (
    Int,
    IntLike,
    KernelBuilder,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..plan import Operand, Plan, Step
from .reduce import part_step, partial_type
from .words import arguments, in_order

WORDS = ("pixels", "channels", "images", "shares")
"""The run-time words behind the two pointers: image, partial. `pixels` are those of one image for NCHW, else all."""

_CHAINS = 4
"""Sums that take turns, so that none waits for the one before."""
_RUN = 64
"""Rows that are added up before they go to the next level."""
_SHARES = 16
"""Shares of the pixels, if there are enough of them."""
_LEAST_PIXELS = 128
"""Of a share."""


@dataclass(frozen=True)
class PixelSumKernel:
    """Adds up shares of an image's pixels: ``partial[share][channel]``.

    Items are shares of all pixels for NHWC, and channels of a share of the images for NCHW.
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
    partial = partial_type(dtype)
    wide = element(partial).size
    inner = problem.bias == "input"
    pixels = problem.rows.size * problem.cols.size if inner else problem.rows.out * problem.cols.out
    images = problem.batch
    if planes:
        shares = max(1, min(images, -(-_SHARES // channels), images * pixels // _LEAST_PIXELS))
    else:
        pixels, images = pixels * images, 1
        shares = max(1, min(_SHARES, pixels // _LEAST_PIXELS))
    image: Operand = "first" if inner else "second"
    added = Step(
        PixelSumKernel(dtype, planes),
        (image, "partial"),
        in_order(WORDS, pixels=pixels, channels=channels, images=images, shares=shares),
        shares * (channels if planes else 1),
        grain=max(1, shares * channels // 64) if planes else 1,
    )
    last = part_step(dtype, channels, shares, partial, pitch=channels, start=0, to="bias")
    return replace(
        found,
        steps=(*found.steps, added, last),
        # The launches before have done with theirs.
        partial_bytes=max(found.partial_bytes, shares * channels * wide),
    )


def emit(kernel: PixelSumKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    k = KernelBuilder(symbol("pixel_sum", kernel.dtype, "", target, kernel), target)
    word = arguments(k, 2, WORDS)
    with k.loop(k.begin, k.end) as item:
        if kernel.planes:
            _plane(k, kernel, word, item)
        else:
            _share(k, kernel, word, item)
    return k.finish()


def _widened(kernel: PixelSumKernel, value: Vector) -> Vector:
    wide = element(partial_type(kernel.dtype))
    return value if value.element is wide else value.cast("fpext", wide)


def _share(k: KernelBuilder, kernel: PixelSumKernel, word: dict[str, Int], share: Int) -> None:
    """Add up a share of the pixels of NHWC: blocks of pixels, so that their lines are read in order."""
    image = k.arg_pointer(0, element(kernel.dtype))
    partial = k.arg_pointer(1, element(partial_type(kernel.dtype)))
    channels, pixels, shares = word["channels"], word["pixels"], word["shares"]
    begin, end = share * pixels // shares, (share + 1) * pixels // shares
    there = partial.offset(share * channels)
    lanes = k.lanes(arithmetic(image.element))
    with k.loop(begin, end, _RUN, nonempty=True) as start:
        count = k.min(end - start, _RUN)
        first = start.equals(begin)
        here = image.offset(start * channels)

        def add(channel: Int, lanes: int, rows: Pointer = here, count: Int = count) -> None:
            (total,) = sum_of_rows(k, [rows.offset(channel)], count, channels, lanes)
            place, more = there.offset(channel), _widened(kernel, total)
            place.store(k.select(first, more, place.load(lanes) + more))

        whole = channels - channels % lanes
        with k.loop(0, whole, lanes) as channel:
            add(channel, lanes)
        with k.loop(whole, channels) as channel:
            add(channel, 1)


def _plane(k: KernelBuilder, kernel: PixelSumKernel, word: dict[str, Int], item: Int) -> None:
    """Add up one channel of a share of the images of NCHW."""
    image = k.arg_pointer(0, element(kernel.dtype))
    wide = element(partial_type(kernel.dtype))
    channels, pixels, shares = word["channels"], word["pixels"], word["shares"]
    share, channel = item // channels, item % channels
    begin, end = share * word["images"] // shares, (share + 1) * word["images"] // shares
    lanes = k.lanes(arithmetic(image.element))
    total, rest = k.variable(k.zeros(wide, lanes)), k.variable(k.zeros(wide, 1))
    whole = pixels - pixels % lanes
    with k.loop(begin, end, carry=[total, rest], nonempty=True) as n:
        plane = image.offset((n * channels + channel) * pixels)
        with k.loop(0, whole, _RUN * lanes, carry=[total]) as start:
            count = k.min(whole - start, _RUN * lanes) // lanes
            (sums,) = sum_of_rows(k, [plane.offset(start)], count, lanes, lanes)
            total.value = total.value + _widened(kernel, sums)
        with k.loop(whole, pixels, carry=[rest]) as at:
            rest.value = rest.value + _widened(kernel, plane.offset(at).load())
    partial = k.arg_pointer(1, wide)
    partial.offset(share * channels + channel).store(total.value.sum() + rest.value)
