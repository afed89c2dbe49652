"""NCHW to NHWC as a launch of its own, for sources that many items would turn block by block, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import KernelBuilder, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import transposed_copy
from ..shared.words import arguments

WORDS = ("channels", "pixels", "parts", "part")
"""Pixels of an image, and in how many parts of how many pixels they are turned."""


@dataclass(frozen=True)
class TurnKernel:
    """Writes ``target[image][pixel][channel] = source[image][channel][pixel]``, in the compute type.

    Items are parts of an image's pixels.
    """

    dtype: str


def emit(kernel: TurnKernel, target: Target) -> KernelSource:
    """Write the kernel: words are source, target, then `WORDS`."""
    k = KernelBuilder(symbol("dense_turn", kernel.dtype, "", target, kernel), target)
    storage = element(kernel.dtype)
    source, there = k.arg_pointer(0, storage), k.arg_pointer(1, arithmetic(storage))
    word = arguments(k, 2, WORDS)
    channels, pixels = word["channels"], word["pixels"]
    with k.loop(k.begin, k.end) as item:
        image, start = item // word["parts"], item % word["parts"] * word["part"]
        count = k.min(word["part"], pixels - start)
        base = image * channels * pixels
        here, to = source.offset(base + start), there.offset(base + start * channels)
        transposed_copy(k, here, to, channels, count, pixels, channels)
    return k.finish()
