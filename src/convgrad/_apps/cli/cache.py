"""Look at the compiled kernels on disk, remove them, or compile those of a network in advance.

Kernels are compiled on first use, in 15-40 ms each, and kept; `cache warm` does it before that. A shape reads
8x56x56x144k3s2 (batch, rows, columns, channels, window, stride; depthwise), with o128 for a dense convolution with 128
output channels, d for a dilation, m for a multiplier, g for groups, v for VALID padding.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from ..._base import dtypes
from ..._compiler import jit
from ..._compiler.jit import cache
from ..._problem import arguments, convolution
from . import models, operation
from .info import cache_state, kernel_cache
from .screen import Cell, Screen
from .verb import DONE, NO, Refusal

NAME = "cache"
SUMMARY = "the compiled kernels on disk: stats, clear, warm"
EXAMPLES = """
convgrad cache stats
convgrad cache warm --model mobilenet_v2 --batch 8
convgrad cache warm --shape 8x56x56x144k3s2 --shape 8x56x56x64k1o256 --dtype bfloat16
convgrad cache clear
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the three actions."""
    parser.add_argument("action", choices=("stats", "clear", "warm"), help="what to do")
    warm = parser.add_argument_group("warm")
    warm.add_argument(
        "--model", metavar="NAME", help="a network, such as mobilenet_v2; `list` prints the names"
    )
    warm.add_argument(
        "--shape", action="append", default=[], metavar="SHAPE", help="a layer; may be repeated"
    )
    warm.add_argument(
        "--batch", type=operation.count, default=8, metavar="N", help="of --model; default 8"
    )
    warm.add_argument(
        "--dtype", choices=operation.DTYPES, default="float32", help="default float32"
    )
    warm.add_argument("--layout", choices=("NHWC", "NCHW"), default="NHWC", help="default NHWC")


def run(given: Namespace, screen: Screen) -> int:
    """Do one of the three."""
    if given.action != "warm" and (given.model or given.shape):
        raise Refusal(f"--model and --shape are for `cache warm`, not `cache {given.action}`")
    return {"stats": _stats, "clear": _clear, "warm": _warm}[given.action](given, screen)


def _stats(given: Namespace, screen: Screen) -> int:
    kept = kernel_cache()
    rows: list[tuple[str | Cell, str | Cell]] = [("state", cache_state(kept))]
    if kept["folder"] is not None:
        rows += [
            ("folder", kept["folder"]),
            ("kernels", f"{kept['entries']:,}"),
            ("by text", f"{kept['by_text']:,} are also found where only our sources have changed"),
            ("bytes", f"{kept['bytes']:,} of at most {kept['limit']:,}"),
        ]
    screen.table(("what", "value"), rows, left=2)
    screen.document(kept)
    return DONE


def _clear(given: Namespace, screen: Screen) -> int:
    before = kernel_cache()
    if not before["used"]:
        raise Refusal(f"{_named(before)} is left as it is: {before['reason']}")
    removed = jit.clear()
    after = kernel_cache()
    # Others may have written in the meantime; what we could not remove is known by the reason.
    left = after["entries"] if after["trouble"] is not None else 0
    freed = max(before["bytes"] - after["bytes"], 0)
    screen.line(f"removed {removed:,} kernels, {freed:,} bytes")
    if left:
        screen.line(f"{left:,} are left: {after['reason']}", "bad")
    screen.document(
        {
            "removed": removed,
            "left": left,
            "bytes": freed,
            "folder": before["folder"],
            "trouble": after["trouble"],
            "reason": after["reason"],
        }
    )
    return NO if left else DONE


def _named(kept: dict[str, Any]) -> str:
    return str(kept["folder"] or "the kernel cache")


def _warm(given: Namespace, screen: Screen) -> int:
    if bool(given.model) == bool(given.shape):
        raise Refusal("cache warm needs --model NAME or --shape SHAPE, one of them")
    if given.model == "list":
        for name in models.names():
            screen.line(name)
        screen.document({"models": models.names()})
        return DONE
    layers = models.network(given.model, given.batch) if given.model else models.layers(given.shape)
    from ..._engine import prepare

    kept = kernel_cache()
    if not kept["used"]:
        raise Refusal(f"{_named(kept)} cannot be warmed: {kept['reason']}")
    lost_before = cache.lost()[0]
    before, start = jit.stats(), time.perf_counter()
    spent = jit.counted()
    problems = list(dict.fromkeys(_problems(layers, given.dtype, given.layout)))
    with screen.progress("compiling", len(problems)) as advance:
        for problem in problems:
            prepare.program(problem)
            advance(1, "x".join(map(str, problem.input_shape)))
    after, seconds = jit.stats(), time.perf_counter() - start
    spent = jit.counted() - spent
    lost, why = cache.lost()
    lost -= lost_before
    done = {
        "layers": len(layers),
        "problems": len(problems),
        "kernels": after.kernels - before.kernels,
        "compiled": after.compiled - before.compiled,
        "kept": after.compiled - before.compiled - lost,
        "found": spent.from_disk,
        "found_by_text": spent.from_text,
        "seconds": seconds,
        "writing_s": spent.writing_s,
        "llvm_s": spent.llvm_s,
        "loading_s": spent.loading_s,
        "folder": after.folder,
        "trouble": why.kind if lost and why is not None else None,
        "reason": why.reason if lost and why is not None else None,
    }
    screen.line(
        f"{done['layers']} layers, {done['problems']} problems, {done['kernels']} kernels: "
        f"{done['compiled']} compiled in {seconds:.1f} s, the others were there"
    )
    screen.line(
        f"{spent.llvm_s:.1f} s in LLVM, {spent.writing_s:.1f} writing texts, {spent.loading_s:.1f} loading; "
        f"{spent.from_disk:,} kernels found by key, {spent.from_text:,} by text"
    )
    if lost:
        screen.line(f"{lost} were not kept in {done['folder']}: {done['reason']}", "bad")
    screen.document(done)
    return NO if lost else DONE


def _problems(layers: list[models.Layer], dtype: str, layout: str) -> Iterator[convolution.Problem]:
    """Yield what a training step asks for: the three operations on each layer."""
    row = next(row for row in dtypes.DTYPES if row.name == dtype)
    for layer in layers:
        how = arguments.settings(
            "cache warm", arguments.FRIENDLY, layer.stride, layer.padding, layout, layer.dilation
        )
        shapes = (layer.input_shape(layout), layer.filter_shape)
        for call in convolution.OPS:
            if call.depthwise is not layer.is_dense:
                wanted = (
                    None if call.kind is convolution.Kind.FORWARD else layer.output_shape(layout)
                )
                yield convolution.build(call, how, row, *shapes, wanted)
