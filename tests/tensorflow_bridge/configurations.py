"""The convolutions the bridge is tried with: a table of edges written by hand, and a drawn list for what lies between.

A row is a `Case` of the other tests: one geometry that stands for three problems, in one layout and one dtype. Sizes
are small, so that whole derivatives fit a test; what matters is which words, attributes and kernels a row leads to.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from cases import Case, random_case

_dense = Case(False, 2, (6, 7), 1, 4, 6, (3, 3), (1, 1), (1, 1), "SAME")
_depthwise = Case(True, 2, (6, 7), 4, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")
_grouped = replace(_dense, groups=2, group_in=3, group_out=2)
_asymmetric = ((0, 2), (3, 1))

_ways = (
    # Paddings, strides and dilations: each alone, then together.
    {},
    {"padding": "VALID"},
    {"padding": _asymmetric},
    {"padding": ((4, 5), (5, 4))},
    {"strides": (2, 2)},
    {"strides": (2, 2), "padding": "VALID", "window": (2, 2)},
    {"strides": (1, 2)},
    {"strides": (3, 1), "padding": _asymmetric},
    {"dilations": (2, 2)},
    {"dilations": (1, 3), "padding": "VALID", "window": (4, 2)},
    {"dilations": (2, 2), "strides": (2, 2)},
    {"dilations": (2, 1), "strides": (1, 3), "padding": _asymmetric},
    # Windows and images of odd kinds: even ones, one pixel, one row, steps that leave pixels unread.
    {"window": (2, 4)},
    {"window": (1, 1)},
    {"window": (1, 1), "strides": (2, 2)},
    {"window": (5, 1), "size": (9, 1)},
    {"size": (1, 1)},
    {"window": (2, 2), "strides": (3, 4), "padding": "VALID"},
    {"batch": 1},
)
_empty = (
    replace(_dense, batch=0),
    replace(_dense, size=(0, 5)),
    replace(_dense, group_out=0),
    replace(_dense, size=(2, 2), strides=(4, 4), window=(4, 4), padding="VALID"),
    replace(_depthwise, batch=0),
    replace(_depthwise, size=(4, 0)),
    replace(_depthwise, group_out=0),
)
EDGES = (
    *(
        replace(kind, **way, data_format=layout)  # type: ignore[arg-type]
        for layout in ("NHWC", "NCHW")
        for kind in (_dense, _depthwise, _grouped)
        for way in _ways
    ),
    # Multipliers, vectors that are filled and overflow, a first layer, more groups than channels of each.
    replace(_depthwise, group_out=2),
    replace(_depthwise, group_out=3, dilations=(2, 2)),
    replace(_depthwise, groups=1),
    replace(_depthwise, groups=18),
    replace(_depthwise, groups=17, group_out=2, data_format="NCHW"),
    replace(_dense, group_in=17, group_out=19),
    replace(_dense, group_in=16, group_out=33, window=(1, 1)),
    replace(_dense, group_in=3, window=(7, 7), strides=(2, 2)),
    replace(_dense, group_in=1, group_out=1),
    replace(_grouped, groups=6, group_in=1, group_out=1),
    replace(_grouped, groups=4, group_in=8, group_out=4),
    *_empty,
)
_CYCLE = ("float32", "float64", "half", "bfloat16")
DRAWN = 90


def _drawn() -> tuple[Case, ...]:
    """Draw legal cases; the list is the same in every process."""
    rng = np.random.default_rng(18)
    return tuple(random_case(rng) for _ in range(DRAWN))


CONFIGURATIONS = (
    *(replace(each, dtype=_CYCLE[at % len(_CYCLE)]) for at, each in enumerate(EDGES)),
    *_drawn(),
)
"""All of them, the dtypes in turns: every kind of row meets every dtype somewhere."""


def some(number: int, seed: int = 1, **fixed: object) -> list[Case]:
    """Return some of the list with some settings fixed; the same each time."""
    rng = random.Random(seed)
    chosen = rng.sample(CONFIGURATIONS, len(CONFIGURATIONS))
    made = (replace(each, **fixed) for each in chosen)  # type: ignore[arg-type]
    return [each for each in made if each.legal][:number]


def taken_by_tensorflow(case: Case) -> bool:
    """Tell whether TensorFlow's plain CPU kernels compute all three sums, and right: no groups, dilations, NCHW."""
    return (
        case.data_format == "NHWC"
        and case.dilations == (1, 1)
        and (case.depthwise or case.groups == 1)
        and not (case.depthwise and case.strides[0] != case.strides[1])
        and not case.is_empty
    )
