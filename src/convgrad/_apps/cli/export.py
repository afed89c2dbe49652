"""Write kernels for problems as a static library with C around it, for programs without Python: a pack.

PROBLEMS are any of: lines such as "conv2d 1x28x28x64 3x3x64x64 strides=2", one in quotes each or one in bare words;
layers such as 8x56x56x144k3s2, which stand for their three operations; networks such as mobilenet_v2; @FILE, or just
FILE, with lines, such as a recording, or with a page of blocks; - for lines from standard input.

A line with bias=output has a bias (bias=input for an input gradient). For batch norm with an activation the line is
"batch_norm_act.forward 8x196x32 NHWC float32 relu given=weight,bias epsilon=0.001". A convolution and its batch norm in
one function are "conv2d 1x28x28x64 3x3x64x64 | batch_norm_act.forward relu given=weight,bias epsilon=0.001".

The folder then holds libNAME.a, NAME.c, NAME.h and convgrad_pack.h, which is all a program needs; NAME_test.c, a
program that knows what the pack must compute; files for CMake and pkg-config; and NAME.txt, the problems and their
sizes. Equal calls write equal bytes.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

import convgrad

from ..._base.errors import ArgumentError
from ..._compiler import targets
from ..._problem import text as _problem_text
from ..._problem.norm import normalisation
from . import operation
from .screen import Cell, Screen
from .verb import DONE

NAME = "export"
SUMMARY = "kernels as a static library for C and C++, other systems and devices"
EXAMPLES = """
convgrad export mobilenet_v2 -o pack --name mobile
convgrad export mobilenet_v2 --batch 8 --ops fwd -o pack --name mobile --target neon --system android
convgrad export conv2d 1x28x28x8 3x3x8x16 strides=2 -o pack --name small --target cortex_m4
convgrad export "conv2d 1x28x28x8 3x3x8x16 bias=output" -o pack --name small
convgrad export @recorded.txt -o pack --name app --target host
convgrad export @page.json -o pack --name page --target wasm_simd --json
"""

_SYSTEMS = tuple(dict.fromkeys(system.name for row in targets.SYSTEMS.values() for system in row))
_MOST_INPUT = 1 << 26
"""Characters of standard input."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the problems, the folder, the target, and what plans depend on."""
    parser.add_argument(
        "problems", nargs="+", metavar="PROBLEMS", help="what to compute; see above"
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--name", required=True, help="a C identifier that all names begin with")
    rows = ", ".join(row.name for row in targets.ALL)
    parser.add_argument(
        "--target",
        metavar="ROW",
        help=f"{rows}; default this machine's. host: the same with this machine's cache sizes",
    )
    parser.add_argument(
        "--system",
        metavar="SYSTEM",
        help=f"{', '.join(_SYSTEMS)}; default the target's first (linux, or none)",
    )
    for level in (1, 2, 3):
        parser.add_argument(
            f"--l{level}",
            type=cache_bytes,
            metavar="BYTES",
            help=f"plan for this level {level} cache, such as 32K; default the row's",
        )
    of_layers = parser.add_argument_group("of layers and networks, which do not say these")
    of_layers.add_argument(
        "--batch",
        type=operation.count,
        metavar="N",
        help="images: of networks, default 1, and of pages that leave it open",
    )
    of_layers.add_argument(
        "--dtype", choices=("float16", *operation.DTYPES), help="default float32"
    )
    of_layers.add_argument("--data-format", choices=("NHWC", "NCHW"), help="default NHWC")
    rest = parser.add_argument_group("what is written")
    rest.add_argument("--ops", metavar="LIST", help="keep these of fwd,dx,dw; default all")
    rest.add_argument(
        "--no-self-test", action="store_true", help="write no NAME_test.c, which takes time"
    )
    rest.add_argument(
        "--skip-refused", action="store_true", help="leave out and list what no kernel computes"
    )
    rest.add_argument("--force", action="store_true", help="replace files that are there")


def run(given: Namespace, screen: Screen) -> int:
    """Write the pack and print its sizes."""
    wanted = problems(given.problems)
    # How many there are is found out inside; a bar that ends early is better than none.
    with screen.progress("export", 3 * _guess(wanted)) as advance:
        report = convgrad.export(
            wanted,
            given.output,
            name=given.name,
            target=given.target,
            system=given.system,
            l1=given.l1,
            l2=given.l2,
            l3=given.l3,
            batch=given.batch,
            dtype=given.dtype,
            data_format=given.data_format,
            ops=None if given.ops is None else given.ops.split(","),
            with_test=not given.no_self_test,
            skip_refused=given.skip_refused,
            force=given.force,
            progress=advance,
        )
    from ..export.listing import COLUMNS

    *rows, total = report.rows()
    bold: list[str | Cell] = [Cell(cell, "strong") for cell in total]
    screen.table(COLUMNS, [*rows, bold], left=2)
    for refused in report.pack.refused:
        screen.note(f"refused: {refused.line}: {refused.reason}")
    for note in report.notes:
        screen.note(f"note: {note}")
    screen.line(
        f"\n{report.folder}: {len(report.files)} files for {report.pack.label}, {report.seconds:.1f} s",
        "good",
    )
    screen.document(report.to_dict())
    return DONE


def problems(words: list[str]) -> list[str]:
    """Return the texts that words of the command line stand for.

    >>> problems(["conv2d", "1x8x8x4", "3x3x4x8", "strides=2"]), problems(["8x56x56x144k3s2", "vgg16"])
    (['conv2d 1x8x8x4 3x3x4x8 strides=2'], ['8x56x56x144k3s2', 'vgg16'])
    """
    if words[0] in _problem_text.OPS or (normalisation.is_text(words[0]) and " " not in words[0]):
        return [" ".join(words)]
    return [_standard_input() if word == "-" else word for word in words]


def _standard_input() -> str:
    try:
        text = sys.stdin.read(_MOST_INPUT + 1)
    except UnicodeDecodeError:
        raise ArgumentError("export: standard input must be text in UTF-8.") from None
    if len(text) > _MOST_INPUT:
        raise ArgumentError(f"export: standard input has more than {_MOST_INPUT:,} characters.")
    return text + "\n"


def _guess(words: list[str]) -> int:
    return sum(max(1, text.count("\n")) * (50 if " " not in text else 1) for text in words)


def cache_bytes(text: str) -> int:
    """Read bytes, or 32K, 1M.

    >>> cache_bytes("32768"), cache_bytes("32K"), cache_bytes("1M")
    (32768, 32768, 1048576)
    """
    unit = text[-1:].lower()
    digits = text[:-1] if unit in _UNITS and unit else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ArgumentTypeError(f"bytes must be a number such as 32768 or 32K, got {text!r}")
    return int(digits) * _UNITS.get(unit, 1)
