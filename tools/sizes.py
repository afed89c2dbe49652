"""How large networks become: bytes of code, tables and workspace, and what compiling takes, of all their convolutions.

Usage: python tools/sizes.py [--batch N] [--layout NHWC|NCHW] [--json FILE] [NETWORK ...]

A row is a network: all its convolutions, forward and both gradients, each kernel compiled once, without the cache.
Scratch is the largest workspace of one thread. Without names, all networks are looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from convgrad import _kernels  # noqa: E402
from convgrad._apps.bench.layers import LAYOUTS, OPS, Layer  # noqa: E402
from convgrad._apps.bench.networks import NETWORKS  # noqa: E402
from convgrad._base import dtypes  # noqa: E402
from convgrad._base.text import aligned  # noqa: E402
from convgrad._compiler import jit  # noqa: E402
from convgrad._compiler.jit import llvm  # noqa: E402
from convgrad._engine import planner  # noqa: E402
from convgrad._kernels.plan import Plan  # noqa: E402
from convgrad._problem import arguments as _arguments  # noqa: E402
from convgrad._problem import convolution  # noqa: E402

COLUMNS = (
    "network",
    "kernels",
    "code",
    "tables",
    "dense tables",
    "scratch",
    "planning s",
    "LLVM s",
)


def plans(layers: Sequence[Layer], layout: str) -> Iterator[Plan]:
    """Plan the three operations of each layer."""
    dtype = next(row for row in dtypes.DTYPES if row.name == "float32")
    target = jit.host_target()
    for layer in layers:
        calls = [call for call in convolution.OPS if call.depthwise is not layer.is_dense]
        how = _arguments.settings(
            "sizes", _arguments.FRIENDLY, layer.stride, layer.padding, layout, layer.dilation
        )
        for number in range(len(OPS)):
            grad = layer.output_shape(layout) if number else None
            shapes = (layer.input_shape(layout), layer.filter_shape)
            problem = convolution.build(calls[number], how, dtype, *shapes, grad)
            yield planner.choose(problem, target)


def measured(name: str, batch: int, layout: str) -> dict[str, Any]:
    """Return one network's row."""
    target = jit.host_target()
    start = time.perf_counter()
    found = [*plans(NETWORKS[name].layers(batch), layout)]
    planned = time.perf_counter()
    steps = [(plan.algorithm, step) for plan in found for step in plan.steps]
    sources = [_kernels.emit(kernel, target) for kernel in {step.kernel for _, step in steps}]
    llvm.binding()
    compiling = time.perf_counter()
    code = sum(len(llvm.compile_object(source.ir, target)) for source in sources)
    own = max(source.scratch_bytes for source in sources)
    dense = [step for algorithm, step in steps if algorithm == "dense_direct"]
    values = (
        name,
        len(sources),
        code,
        sum(len(step.table) for _, step in steps),
        sum(len(step.table) for step in dense),
        own + max(step.scratch_bytes for _, step in steps),
        round(planned - start, 3),
        round(time.perf_counter() - compiling, 3),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _spelled(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layout", choices=LAYOUTS, default="NHWC")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.networks if name not in NETWORKS]
    if unknown:
        parser.error(f"NETWORK must be one of {', '.join(NETWORKS)}, got {', '.join(unknown)}")
    rows = [measured(name, asked.batch, asked.layout) for name in asked.networks or NETWORKS]
    lines = [[_spelled(value) for value in row.values()] for row in rows]
    print(aligned([COLUMNS, *lines]))
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
