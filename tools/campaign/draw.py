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
from convgrad._apps.check.draws import (
    ONE,
    TWO,
    WORDS,
    Each,
    Families,
    Family,
    Mix,
    Spread,
    Value,
    emptied,
    fields,
    pick,
)
from convgrad._apps.check.draws import pads as pads_of
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from kernels import problem_of
from layouts import LAYOUTS

from .trial import DENSE_OPS, DEPTHWISE_OPS, DOORS, Trial, kinds_of, target_of, targets

CHANNELS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 36, 40, 47, 48, 49),
    *(63, 64, 65, 72, 80, 96, 100, 127, 128, 129, 160, 191, 192, 255, 256, 257, 300),
)
"""Below, at and above every vector and panel of any target, and what is left over."""

DTYPES = {"float32": 0.36, "half": 0.18, "bfloat16": 0.18, "float64": 0.21, "int32": 0.07}
DTYPE = Mix(*((share, name) for name, share in DTYPES.items()))
FLOATS = Mix((0.43, "float32"), *((DTYPES[name], name) for name in ("half", "bfloat16", "float64")))
"""Depthwise knows no int32."""
WINDOWS = ((3, 3), (3, 3), (3, 3), (1, 1), (1, 1), (5, 5), (7, 7), (2, 2), (3, 1), (1, 7), (4, 4))
GEOMETRY: Family = {
    "window": Mix((0.6, tuple(map(Value, WINDOWS))), (0.4, Each(range(1, 10)))),
    "strides": Mix((0.5, ONE), (0.19, TWO), (0.28, Each(range(1, 5))), (0.03, Each(range(1, 12)))),
    "dilations": Mix((0.65, ONE), (0.35, Each(range(1, 5)))),
    "padding": Mix(
        (0.4, "SAME"), (0.3, "VALID"), *((0.1, pads_of(range(most))) for most in (2, 3, 8))
    ),
    "data_format": ("NHWC", "NCHW"),
    "dtype": DTYPE,
}
"""Unequal ones often."""
MULTIPLIERS = (1, 1, 1, 1, 2, 3, 4)


def _sized(share: float, side: int, channels: int, most: int) -> Families:
    """Return the families with images and channels up to a size: depthwise, any channels in few groups, narrow groups.

    Small sides are as likely as large ones.
    """
    some = tuple(each for each in CHANNELS if each <= channels)
    plain = {**GEOMETRY, "size": Each(Spread(1, side)), "most": most}
    dense = {**plain, "depthwise": False, "batch": (1, 1, 2, 2, 3, 5, 9)}
    few = {"groups": (1, 1, 1, 1, 1, 1, 2, 3, 4), "group_in": some, "group_out": some}
    narrow = {
        "groups": (8, 16, 24, 32),
        "group_in": (1, 2, 4, 8),
        "group_out": (1, 2, 3, 4, 8),
    }
    depthwise = {
        "depthwise": True,
        "batch": (1, 1, 2, 3, 5),
        "groups": some,
        "group_in": 1,
        "group_out": MULTIPLIERS,
        "dtype": FLOATS,
    }
    return (
        (0.34 * share, {**plain, **depthwise}),
        (0.475 * share, {**dense, **few}),
        (0.065 * share, {**dense, **narrow}),
    )


WIDE = (16, 31, 32, 33, 36, 40, 48, 64, 65, 96, 133)
USUAL: Family = {
    **GEOMETRY,
    "depthwise": False,
    "batch": (1, 1, 2, 3),
    "size": Each(Spread(1, 24)),
    "groups": (1, 1, 1, 1, 1, 2),
    "group_in": WIDE,
    "group_out": WIDE,
    "window": Value((3, 3)),
    "strides": ONE,
    "dilations": ONE,
    "padding": (*WORDS, *map(Value, (((0, 2), (1, 0)), ((3, 1), (0, 4)), ((1, 1), (1, 1))))),
    "most": 8_000_000,
}
"""The layer most networks are made of, with channels enough for Winograd."""
FAMILIES: Families = (  # share, largest image side, largest channels, most products
    *_sized(0.40, 10, 9, 100_000),
    *_sized(0.40, 24, 72, 1_000_000),
    *_sized(0.17, 64, 300, 5_000_000),
    *_sized(0.03, 96, 300, 40_000_000),
    (0.12, USUAL),
)
POOLED: Family = {
    **GEOMETRY,
    "group_out": MULTIPLIERS,
    "dtype": ("float32", "half", "bfloat16", "float64"),
}
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
        drawn = emptied(rng, fields(rng, FAMILIES), 0.1)
        most = drawn.pop("most")
        case = Case(**drawn)
        if not case.legal or case.products > most or _bytes(case) > 1 << 24:
            continue
        chance = 0.15 if case.is_empty else 1.0
        if rng.random() < chance or _hangs_over(case, 0) or _hangs_over(case, 1):
            return case


def _hangs_over(case: Case, which: int) -> bool:
    """Whether the window is larger than the padded image by more than a stride: rare, legal, and rounded up to 0."""
    size, window, stride, dilation, _ = case.axis(which)
    return dilation * (window - 1) + 1 - size - sum(pads(*case.axis(which))) > stride


def _bytes(case: Case) -> int:
    return 8 * sum(prod(s) for s in (case.input_shape, case.filter_shape, case.output_shape))


@cache
def _pooled(which: int) -> tuple[dict[str, Any], str, str]:
    """Return what shapes the kernels of one part of the pool: part of a case, the operation, the target."""
    rng = np.random.default_rng([POOL, which])
    own, *others = targets()
    target = own if rng.random() < 0.5 else str(rng.choice(others))
    shape = fields(rng, [(1.0, POOLED)])
    shape["columns"] = [pick(rng, Spread(1, side)) for side in (10, 10, 24, 24, 64)]
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
    if drawn.mixing or case.is_empty:
        return ()
    problem, target = problem_of(case, drawn.kind), target_of(drawn)
    chances = rng.random(len(ALGORITHMS))
    return tuple(
        name
        for name, chance in zip(ALGORITHMS, chances, strict=True)
        if name != "reference"
        and planner.why_not(name, problem, target) is None
        and chance < (0.25 if case.depthwise else 0.8)
    )
