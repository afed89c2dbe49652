"""Tell how an operation would be computed, before computing it.

Output sizes and pads, the sum with its numbers, work, traffic and the least time this machine could need, every
algorithm with its predicted time or why it cannot, and of the one that is chosen the tiles, the work split and the
memory. Shapes are those of the forward operation, also for its gradients; those of conv2d_transpose are its own.
separable_conv2d is two problems in a row, and both are told. --ir and --asm print the kernels themselves.
--target, --vector-bits and --caches describe another machine, whose plan is then told; nothing is run.

A problem may also be written in one line, quoted or as words: its settings are then key=value. A layer such as
8x56x56x144k3s2 is its three operations, and @FILE is a file with a problem on each line.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any

import convgrad

from ..._compiler import targets
from ..._problem.text import KEYS, write
from . import operation, problem_lines
from .screen import Screen
from .verb import DONE, Refusal

NAME = "explain"
SUMMARY = "how an operation would be computed, and why so"
EXAMPLES = """
convgrad explain depthwise_conv2d 8x28x28x192 3x3x192x1
convgrad explain conv2d_backprop_filter 8x56x56x64 3x3x64x64 --strides 2 --threads 1
convgrad explain conv2d_backprop_filter 8x56x56x64 3x3x64x64 strides=2 dtype=float16
convgrad explain 'conv2d_backprop_filter 8x56x56x64 3x3x64x64 strides=2 padding=0,1:0,1'
convgrad explain @recorded.txt --json
convgrad explain depthwise_conv2d 8x28x28x192 3x3x192x1 --asm | less
convgrad explain conv2d 1x224x224x3 7x7x3x64 --strides 2 --json
convgrad explain conv2d_transpose 8x28x28x64 3x3x32x64 --strides 2 --output-shape 8x56x56x32
convgrad explain separable_conv2d 8x56x56x64 3x3x64x1 --pointwise-shape 1x1x64x128
convgrad explain conv2d 8x28x28x64 3x3x64x64 --target avx512 --caches 48K,2M,32M
convgrad explain depthwise_conv2d 1x28x28x192 3x3x192x1 --target cortex_m7 --asm
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the operation, its shapes and settings, and what to print."""
    op = operation.add_op(parser, operation.ALL)
    image = parser.add_argument(
        "input_shape",
        type=operation.read_shape,
        metavar="INPUT",
        help="8x28x28x192, in --data-format order",
    )
    taps = parser.add_argument(
        "filter_shape",
        type=operation.read_shape,
        metavar="FILTER",
        help="3x3x192x1 (depthwise: rows, columns, channels, multiplier; others: rows, columns, in / groups, out)",
    )
    parser.add_argument(
        "words",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help=f"settings, instead of the options below: {', '.join(KEYS)}",
    )
    _take_lines(op, (image, taps))
    parser.add_argument(
        "--output-shape",
        type=operation.read_shape,
        metavar="SIZES",
        help="for conv2d_transpose: the shape of its result",
    )
    parser.add_argument(
        "--pointwise-shape",
        type=operation.read_shape,
        metavar="SIZES",
        help="for separable_conv2d: the shape of the pointwise filter, such as 1x1x64x128",
    )
    operation.add_settings(parser)
    parser.add_argument("--dtype", choices=operation.DTYPES, help="default float32")
    parser.set_defaults(**dict.fromkeys(KEYS), takes=("words", problem_lines.is_setting))
    operation.add_threads(parser)
    machine = parser.add_argument_group("another machine than this one, on which nothing is run")
    machine.add_argument(
        "--target",
        metavar="ROW",
        choices=[row.name for row in targets.ALL],
        help=f"{', '.join(row.name for row in targets.ALL)}; default this machine's",
    )
    machine.add_argument(
        "--vector-bits",
        type=operation.count,
        choices=targets.VECTOR_BITS,
        metavar="BITS",
        help=f"{', '.join(map(str, targets.VECTOR_BITS))}; default the row's",
    )
    machine.add_argument(
        "--caches",
        metavar="L1,L2,L3",
        help="sizes of three levels of cache, such as 48K,2M,32M, or row; "
        "default the usual ones of --target's row, else this machine's",
    )
    code = parser.add_mutually_exclusive_group()
    code.add_argument(
        "--ir", action="store_true", help="print the kernels as LLVM IR, and nothing else"
    )
    code.add_argument(
        "--asm", action="store_true", help="print the kernels' assembly, and nothing else"
    )


class _Operations(tuple[str, ...]):
    """The operations, for errors and completion; a whole problem may stand in their place."""

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or problem_lines.is_line(str(word))


def _take_lines(op: Action, shapes: tuple[Action, ...]) -> None:
    """Let a whole problem stand in the operation's place, where no shapes need to follow it."""
    names: tuple[str, ...] = operation.ALL

    def read(text: str) -> str:
        if not problem_lines.is_line(text):
            return operation.read_operation(text, names)
        for each in shapes:
            each.required, each.type = False, str
        return text

    op.type, op.choices = read, _Operations(names)
    op.help = f"{op.help}; or {problem_lines.FORMS}"


def run(given: Namespace, screen: Screen) -> int:
    """Print the stories, or the kernels."""
    with operation.threads(given):
        stories = _stories(given)
    documents = [
        _told(given, story, screen, more=number > 0) for number, story in enumerate(stories)
    ]
    screen.document(documents if _several(given) else documents[0])
    return DONE


def _several(given: Namespace) -> bool:
    """Whether what was asked for may be any number of problems, so that the document is a list."""
    return given.op.split()[0] not in operation.ALL


def _stories(given: Namespace) -> list[convgrad.Explanation]:
    options = {key: getattr(given, key) for key in KEYS if getattr(given, key) is not None}
    shapes: dict[str, Any] = {
        "output_shape": given.output_shape,
        "pointwise_shape": given.pointwise_shape,
        "target": given.target,
        "vector_bits": given.vector_bits,
        "caches": given.caches,
    }
    whole = problem_lines.is_line(given.op)
    sizes = [shape for shape in (given.input_shape, given.filter_shape) if shape is not None]
    if not whole and not given.words:
        return [
            convgrad.explain(given.op, given.input_shape, given.filter_shape, **options, **shapes)
        ]
    for key in options:
        raise Refusal(
            f"--{key.replace('_', '-')} is not for a problem in one line: write {key}=... there"
        )
    if not whole and given.op not in operation.NAMES:
        raise Refusal(f"{given.op} takes options, such as --strides 2, got {given.words[0]!r}")
    between = sizes if whole else ["x".join(map(str, shape)) for shape in sizes]
    lines = problem_lines.read([" ".join([given.op, *between, *given.words])])
    return [convgrad.explain(write(line.problem), **shapes) for line in lines]


def _told(
    given: Namespace, story: convgrad.Explanation, screen: Screen, more: bool
) -> dict[str, Any]:
    """Print one story, or its kernels; returns its document."""
    if more:
        screen.line()
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
    return document
