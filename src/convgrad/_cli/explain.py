"""Tell how an operation would be computed, before computing it.

Output sizes and pads, the sum with its numbers, work, traffic and the least time this machine could need, every
algorithm with its predicted time or why it cannot, and of the one that is chosen the tiles, the work split and the
memory. Shapes are those of the forward operation, also for its gradients; those of conv2d_transpose are its own.
separable_conv2d is two problems in a row, and both are told. --ir and --asm print the kernels themselves.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import convgrad

from . import operation
from .screen import Screen
from .verb import DONE

NAME = "explain"
SUMMARY = "how an operation would be computed, and why so"
EXAMPLES = """
convgrad explain depthwise_conv2d 8x28x28x192 3x3x192x1
convgrad explain conv2d_backprop_filter 8x56x56x64 3x3x64x64 --strides 2 --threads 1
convgrad explain depthwise_conv2d 8x28x28x192 3x3x192x1 --asm | less
convgrad explain conv2d 1x224x224x3 7x7x3x64 --strides 2 --json
convgrad explain conv2d_transpose 8x28x28x64 3x3x32x64 --strides 2 --output-shape 8x56x56x32
convgrad explain separable_conv2d 8x56x56x64 3x3x64x1 --pointwise-shape 1x1x64x128
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the operation, its shapes and settings, and what to print."""
    operation.add_op(parser, operation.ALL)
    parser.add_argument(
        "input_shape",
        type=operation.shape,
        metavar="INPUT",
        help="8x28x28x192, in --data-format order",
    )
    parser.add_argument(
        "filter_shape",
        type=operation.shape,
        metavar="FILTER",
        help="3x3x192x1 (depthwise: rows, columns, channels, multiplier; others: rows, columns, in / groups, out)",
    )
    parser.add_argument(
        "--output-shape",
        type=operation.shape,
        metavar="SIZES",
        help="for conv2d_transpose: the shape of its result",
    )
    parser.add_argument(
        "--pointwise-shape",
        type=operation.shape,
        metavar="SIZES",
        help="for separable_conv2d: the shape of the pointwise filter, such as 1x1x64x128",
    )
    operation.add_settings(parser)
    parser.add_argument(
        "--dtype", choices=operation.DTYPES, default="float32", help="default float32"
    )
    operation.add_threads(parser)
    code = parser.add_mutually_exclusive_group()
    code.add_argument(
        "--ir", action="store_true", help="print the kernels as LLVM IR, and nothing else"
    )
    code.add_argument(
        "--asm", action="store_true", help="print the kernels' assembly, and nothing else"
    )


def run(given: Namespace, screen: Screen) -> int:
    """Print the story, or the kernels."""
    with operation.threads(given):
        story = convgrad.explain(
            given.op,
            given.input_shape,
            given.filter_shape,
            dtype=given.dtype,
            output_shape=given.output_shape,
            pointwise_shape=given.pointwise_shape,
            **operation.settings(given),
        )
    document = story.to_dict()
    if given.ir:
        kernels = [(source.symbol, source.ir) for source in story.sources()]
    else:
        kernels = story.assembly() if given.asm else []
    if given.ir or given.asm:
        document["ir" if given.ir else "asm"] = dict(kernels)
        for _, text in kernels:
            screen.line(text.rstrip())
        if not kernels:
            screen.note(f"the algorithm {story.algorithm} has no kernels")
    else:
        screen.line(str(story))
    screen.document(document)
    return DONE
