"""How much memory a call of ours takes beyond its operands, as the operating system counts it.

`tracemalloc` sees neither scratch mapped outside Python nor LLVM's heap, so a fresh process (`main`) does: operands;
the same operation on a tiny layer, which loads the compiler; note the resident size; call, drop, call again; read the
peak. The second call's peak less the noted size is its result, its scratch, whatever the library keeps, and the code of
one kernel. Linux only; elsewhere the reason is reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import convgrad

from ..._base import children
from .contests import Contest, Tensors, our_call
from .layers import DTYPES, parse


def extra_memory(contest: Contest, threads: int) -> dict[str, Any]:
    """Return bytes ``{"grown": ..., "result": ..., "extra": ...}``, or ``{"reason": ...}``."""
    request = [contest.layer.text, contest.op, contest.dtype, contest.layout, threads]
    command = children.command(__name__, "main", json.dumps(request))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return {"reason": "no answer within 120 s"}
    if done.returncode:
        return {"reason": (done.stderr.strip().splitlines() or ["unknown"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _measure(contest: Contest) -> dict[str, Any]:
    layer = contest.layer
    tiny = replace(
        layer,
        batch=1,
        height=2 * layer.kernel_h,
        width=2 * layer.kernel_w,
        dilation=1,
        stride=1,
        padding="SAME",
    )
    our_call(replace(contest, layer=tiny), filled(replace(contest, layer=tiny)))()
    call = our_call(contest, filled(contest))
    _trim()
    before = _status("VmRSS")
    call()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    result = call()
    grown = _status("VmHWM") - before
    return {"grown": grown, "result": result.nbytes, "extra": grown - result.nbytes}


def filled(contest: Contest) -> Tensors:
    """Operands without temporaries."""
    layer, kind = contest.layer, DTYPES[contest.dtype].numpy
    shapes = (
        layer.input_shape(contest.layout),
        layer.filter_shape,
        layer.output_shape(contest.layout),
    )
    x, f, g = (np.full(shape, 1, kind) for shape in shapes)
    return Tensors(x, f, g)


def _trim() -> None:
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status has no {field}")
    return int(found[1]) * 1024


def main() -> None:
    """Be the child: measure what is asked for and print it."""
    text, op, dtype, layout, count = json.loads(sys.argv[1])
    with convgrad.threads(count):
        print(json.dumps(_measure(Contest(parse(text), op, dtype, layout))))
