"""Drawing trials: trial i of a seed is a pure function of both, in any process and at any time.

Dense kernels are few, so their geometry is free. A depthwise kernel knows its window, stride, dilation and often its
columns, and nearly every free draw would compile one (60 ms, the time of a dozen problems). So most depthwise trials
take what shapes their kernel from a pool; batch, rows, channels and all else stay free.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from cases import KINDS, Case, pads
from convgrad._engine import planner
from kernels import problem_of
from layouts import LAYOUTS

from .trial import DENSE_OPS, DEPTHWISE_OPS, DOORS, Trial, kinds_of, target_of, targets

CHANNELS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 36, 40, 47, 48, 49),
    *(63, 64, 65, 72, 80, 96, 100, 127, 128, 129, 160, 191, 192, 255, 256, 257, 300),
)
"""Below, at and above every vector and panel of any target, and what is left over."""

SIZES = (  # share, largest image side, largest channels, most products
    (0.40, 10, 9, 100_000),
    (0.40, 24, 72, 1_000_000),
    (0.17, 64, 300, 5_000_000),
    (0.03, 96, 300, 40_000_000),
)
DTYPES = {"float32": 0.36, "half": 0.18, "bfloat16": 0.18, "float64": 0.21, "int32": 0.07}
WINDOWS = ((3, 3), (3, 3), (3, 3), (1, 1), (1, 1), (5, 5), (7, 7), (2, 2), (3, 1), (1, 7), (4, 4))
POOL = 500
PEERS = ("torch", "jax", "tensorflow")
THREADS = (1, 2, 3, 8)


def trial(seed: int, index: int, peers: float = 0.0) -> Trial:
    """Return one trial; `peers` is the share that is compared with a framework."""
    rng = np.random.default_rng([seed, index])
    own, *others = targets()
    target = own if rng.random() < 0.6 else str(rng.choice(others))
    case = _case(rng)
    kinds = kinds_of(case)
    kind = kinds[int(rng.integers(len(kinds)))]
    full = 0 not in (*case.input_shape, *case.output_shape)
    if case.depthwise and full and rng.random() < 0.94:
        case, kind, target = _from_pool(rng, case)
    op, mixing = _operation(rng, case, kind)
    data = _data(rng, case, op)
    bits = rng.random() < 0.18
    drawn = Trial(
        op=op,
        case=case,
        mixing=mixing,
        data=data,
        seed=int(rng.integers(2**31)),
        target=target,
        winograd=str(rng.choice(["auto", "auto", "off", "fast"])),
        door=str(rng.choice(DOORS)) if op in (*DENSE_OPS, *DEPTHWISE_OPS) else "friendly",
        layouts=_layouts(rng),
        named=(),
        place=str(rng.choice(["start", "end", "end", "shifted"])),
        threads=(*THREADS, int(rng.choice(THREADS))) if bits else (int(rng.choice(THREADS)),),
        paired=bits,
    )
    if rng.random() < peers and data == "normal" and case.dtype in ("float32", "float64"):
        drawn = replace(drawn, peer=str(rng.choice(PEERS)))
    return replace(drawn, named=_named(rng, drawn))


def _case(rng: np.random.Generator) -> Case:
    while True:
        pick = int(rng.choice(len(SIZES), p=[row[0] for row in SIZES]))
        _, side, channels, most = SIZES[pick]
        kind = rng.random()
        if kind < 0.34:
            draw = _depthwise(rng, side, channels)
        elif kind < 0.46:
            draw, most = _plain(rng), 8_000_000
        else:
            draw = _dense(rng, side, channels)
        draw["data_format"] = str(rng.choice(["NHWC", "NCHW"]))
        draw["dtype"] = str(rng.choice(list(DTYPES), p=list(DTYPES.values())))
        if draw["depthwise"] and draw["dtype"] == "int32":
            draw["dtype"] = "float32"
        if rng.random() < 0.1:
            name = str(rng.choice(["batch", "group_out", "size"]))
            draw[name] = (0, draw["size"][1]) if name == "size" else 0
        case = Case(**draw)
        if not case.legal or case.products > most or _bytes(case) > 1 << 24:
            continue
        shapes = (case.input_shape, case.filter_shape, case.output_shape)
        chance = 1.0 if all(0 not in shape for shape in shapes) else 0.15
        if rng.random() < chance or _hangs_over(case, 0) or _hangs_over(case, 1):
            return case


def _hangs_over(case: Case, which: int) -> bool:
    """Whether the window is larger than the padded image by more than a stride: rare, legal, and rounded up to 0."""
    size, window, stride, dilation, _ = case.axis(which)
    return dilation * (window - 1) + 1 - size - sum(pads(*case.axis(which))) > stride


def _bytes(case: Case) -> int:
    return 8 * sum(prod(s) for s in (case.input_shape, case.filter_shape, case.output_shape))


def _side(rng: np.random.Generator, largest: int) -> tuple[int, int]:
    """Small sides are as likely as large ones."""
    draw = np.exp(rng.uniform(0, np.log(largest + 1), 2))
    return int(draw[0]), int(draw[1])


def _channels(rng: np.random.Generator, most: int) -> int:
    return int(rng.choice([each for each in CHANNELS if each <= most]))


def _geometry(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a window, strides, dilations and pads; unequal ones often."""
    window = (
        WINDOWS[int(rng.integers(len(WINDOWS)))]
        if rng.random() < 0.6
        else tuple(int(each) for each in rng.integers(1, 10, 2))
    )
    strides, dilations = (1, 1), (1, 1)
    if rng.random() < 0.5:
        strides = (2, 2) if rng.random() < 0.4 else tuple(int(n) for n in rng.integers(1, 5, 2))
        if rng.random() < 0.06:
            strides = tuple(int(n) for n in rng.integers(1, 12, 2))
    if rng.random() < 0.35:
        dilations = tuple(int(n) for n in rng.integers(1, 5, 2))
    padding: Any = ("SAME", "VALID", "")[int(rng.choice(3, p=[0.4, 0.3, 0.3]))]
    if not padding:
        top, bottom, left, right = (int(n) for n in rng.integers(0, rng.choice([2, 3, 8]), 4))
        padding = ((top, bottom), (left, right))
    return {"window": window, "strides": strides, "dilations": dilations, "padding": padding}


@cache
def _pooled(which: int) -> tuple[dict[str, Any], str, str]:
    """Return what shapes the kernels of one part of the pool: part of a case, the operation, the target."""
    rng = np.random.default_rng([POOL, which])
    own, *others = targets()
    target = own if rng.random() < 0.5 else str(rng.choice(others))
    dtypes = [name for name in DTYPES if name != "int32"]
    shape = {
        **_geometry(rng),
        "group_out": int(rng.choice([1, 1, 1, 1, 2, 3, 4])),
        "data_format": str(rng.choice(["NHWC", "NCHW"])),
        "dtype": str(rng.choice(dtypes)),
        "columns": [_side(rng, side)[1] for side in (10, 10, 24, 24, 64)],
    }
    return shape, KINDS[int(rng.integers(3))], target


def _from_pool(rng: np.random.Generator, free: Case) -> tuple[Case, str, str]:
    """Give a free depthwise case a kernel that others have too."""
    while True:
        shape, kind, target = _pooled(int(POOL * rng.random() ** 2))  # some often, some seldom
        shape = dict(shape)
        # The more columns the draw had, the wider the image.
        columns = min(shape.pop("columns"), key=lambda each: abs(each - free.size[1]))
        case = replace(free, **shape, size=(max(free.size[0], int(rng.integers(1, 9))), columns))
        if case.legal and case.products <= 5_000_000 and 0 not in case.output_shape:
            return case, kind, target


def _depthwise(rng: np.random.Generator, side: int, channels: int) -> dict[str, Any]:
    return {
        **_geometry(rng),
        "depthwise": True,
        "batch": int(rng.choice([1, 1, 2, 3, 5])),
        "size": _side(rng, side),
        "groups": _channels(rng, channels),
        "group_in": 1,
        "group_out": int(rng.choice([1, 1, 1, 1, 2, 3, 4])),
    }


def _dense(rng: np.random.Generator, side: int, channels: int) -> dict[str, Any]:
    """Any channels in one or a few groups, or many narrow groups."""
    narrow = rng.random() < 0.12
    return {
        **_geometry(rng),
        "depthwise": False,
        "batch": int(rng.choice([1, 1, 2, 2, 3, 5, 9])),
        "size": _side(rng, side),
        "groups": int(rng.choice([8, 16, 24, 32] if narrow else [1, 1, 1, 1, 1, 1, 2, 3, 4])),
        "group_in": int(rng.choice([1, 2, 4, 8])) if narrow else _channels(rng, channels),
        "group_out": int(rng.choice([1, 2, 3, 4, 8])) if narrow else _channels(rng, channels),
    }


def _plain(rng: np.random.Generator) -> dict[str, Any]:
    """The layer most networks are made of, with channels enough for Winograd."""
    pads = ("SAME", "VALID", ((0, 2), (1, 0)), ((3, 1), (0, 4)), ((1, 1), (1, 1)))
    return {
        "depthwise": False,
        "batch": int(rng.choice([1, 1, 2, 3])),
        "size": _side(rng, 24),
        "groups": int(rng.choice([1, 1, 1, 1, 1, 2])),
        "group_in": int(rng.choice([16, 31, 32, 33, 36, 40, 48, 64, 65, 96, 133])),
        "group_out": int(rng.choice([16, 31, 32, 33, 36, 40, 48, 64, 65, 96, 133])),
        "window": (3, 3),
        "strides": (1, 1),
        "dilations": (1, 1),
        "padding": pads[int(rng.integers(len(pads)))],
    }


def _operation(rng: np.random.Generator, case: Case, kind: str) -> tuple[str, int]:
    """Name the operation, or now and then one that is made of it."""
    rare = rng.random() < 0.1
    full = 0 not in (*case.input_shape, *case.output_shape)
    if rare and full and case.depthwise and kind == "forward":
        return "separable_conv2d", int(rng.choice([1, 3, 8, 17]))
    if rare and full and not case.depthwise and kind == "input":
        return "conv2d_transpose", 0
    return (DEPTHWISE_OPS if case.depthwise else DENSE_OPS)[KINDS.index(kind)], 0


def _data(rng: np.random.Generator, case: Case, op: str) -> str:
    if case.dtype == "int32":
        return str(rng.choice(["whole", "wrapping"]))
    if op == "separable_conv2d":
        return "whole"
    return str(rng.choice(["whole", "normal", "special"], p=[0.58, 0.34, 0.08]))


def _layouts(rng: np.random.Generator) -> tuple[str, str]:
    """Half of all arrays are plain, a quarter lie against a forbidden page, a quarter in any other way."""
    odd = [*LAYOUTS, "broadcast"]
    first, second = (
        str(rng.choice(["C", "start", "end", ""], p=[0.5, 0.1, 0.15, 0.25])) or str(rng.choice(odd))
        for _ in range(2)
    )
    return first, second


def _named(rng: np.random.Generator, drawn: Trial) -> tuple[str, ...]:
    """Choose among the algorithms that take the problem: all dense ones, one in three depthwise ones."""
    case = drawn.case
    shapes = (case.input_shape, case.filter_shape, case.output_shape)
    if drawn.mixing or any(0 in shape for shape in shapes):
        return ()
    reasons = planner.refusals(problem_of(case, drawn.kind), target_of(drawn))
    chances = rng.random(len(reasons))
    return tuple(
        name
        for (name, reason), chance in zip(reasons.items(), chances, strict=True)
        if name != "reference"
        and (reason is None or "opt-in" in reason or reason == "switched off")
        and chance < (0.25 if case.depthwise else 0.8)
    )
