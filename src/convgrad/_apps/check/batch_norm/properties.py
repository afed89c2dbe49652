"""The properties a batch norm can have, each with problems of its own in which everything else is plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...._problem.norm import ACTIVATIONS
from ..problems import LAYOUTS, generator, numbers
from .case import BACKWARD, DTYPES, Arrays, NormCase, draw


@dataclass(frozen=True)
class Property:
    """One row of the report."""

    name: str
    meaning: str
    change: Callable[[np.random.Generator], dict[str, Any]]
    """What is drawn, as fields of a case."""
    twice: bool = False
    """Whether the kernel is called twice, for the same bits."""
    doubled: bool = False
    """Whether the kernel is called again with twice the gradient, for exactly twice the results."""
    adds_up: bool = False
    """Whether the sum of dx over each channel must be 0."""
    backward: bool = False
    """Whether the property is one of gradients alone."""


@dataclass(frozen=True)
class NormTrial:
    """A case, the property it is to show, and the seed of its data."""

    property: Property
    case: NormCase
    seed: tuple[int, ...]

    def arrays(self) -> Arrays:
        return draw(self.case, self.seed)


def _fixed(**fields: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda random: fields


def _odd(random: np.random.Generator) -> dict[str, Any]:
    return {"channels": int(random.choice([1, 3, 7, 9, 17, 33, 65]))}


def _empty(random: np.random.Generator) -> dict[str, Any]:
    which = int(random.integers(3))
    return ({"images": 0}, {"size": (0, 3)}, {"channels": 0})[which]


def _long(random: np.random.Generator) -> dict[str, Any]:
    return {"images": 3, "size": (int(random.integers(30, 50)), 40), "channels": 2}


def _poisoned(random: np.random.Generator) -> dict[str, Any]:
    return {"data": "nan" if random.random() < 0.5 else "inf", "channels": 4}


def _lacking(random: np.random.Generator) -> dict[str, Any]:
    return ({"scale": False}, {"offset": False}, {"scale": False, "offset": False})[
        int(random.integers(3))
    ]


def _mixed(random: np.random.Generator) -> dict[str, Any]:
    return {
        "activation": str(random.choice(ACTIVATIONS)),
        "residual": str(random.choice(["", "before", "after"])),
        "is_training": bool(random.random() < 0.7),
        "scale": bool(random.random() < 0.8),
        "offset": bool(random.random() < 0.8),
        "epsilon": float(random.choice([1e-3, 1e-5, 0.1])),
        "channels": int(random.integers(1, 20)),
    }


PROPERTIES: tuple[Property, ...] = (
    Property("basic", "statistics of the batch, no activation", _fixed()),
    Property("given", "statistics that are given", _fixed(is_training=False)),
    Property("epsilon", "epsilon 0.5 and 2", lambda r: {"epsilon": float(r.choice([0.5, 2.0]))}),
    *(
        Property(name, f"activation {name}", _fixed(activation=name))
        for name in ACTIVATIONS
        if name != "none"
    ),
    Property(
        "residual-before",
        "a residual before the activation",
        lambda r: {"residual": "before", "activation": str(r.choice(["relu", "silu", "none"]))},
    ),
    Property(
        "residual-after",
        "a residual after the activation",
        lambda r: {"residual": "after", "activation": str(r.choice(["relu", "silu", "none"]))},
    ),
    Property("no-scale", "no scale, no offset, or neither", _lacking),
    Property("odd-channels", "1, 3, 7, 9, 17, 33, 65 channels", _odd),
    Property("one-pixel", "one value per channel", _fixed(images=1, size=(1, 1))),
    Property("constant", "channels of one value: variance 0", _fixed(data="constant")),
    Property("far-mean", "mean 1000, deviation 1", _fixed(data="far")),
    Property("long-sums", "3600 to 6000 values per channel", _long),
    Property("empty", "a size of 0: statistics NaN, sums 0", _empty),
    Property("nan", "NaN and infinity stay in their channel", _poisoned),
    *(Property(name, f"layout {name}", _fixed(data_format=name)) for name in LAYOUTS),
    *(Property(name, f"dtype {name}", _fixed(dtype=name)) for name in DTYPES),
    Property(
        "linear",
        "twice out_backprop gives exactly twice the gradients",
        lambda r: {"activation": str(r.choice(["relu", "silu"]))},
        doubled=True,
        backward=True,
    ),
    Property(
        "adds-up",
        "dx adds up to 0 in each channel",
        lambda r: {"size": (int(r.integers(5, 12)), 10), "activation": "silu"},
        adds_up=True,
        backward=True,
    ),
    Property("determinism", "the same bits twice", _fixed(size=(9, 9)), twice=True),
    Property("mixed", "everything at once", _mixed),
)
NAMES = tuple(row.name for row in PROPERTIES)


def applicable(
    plain: NormCase, chosen: tuple[str, ...], dtypes: tuple[str, ...], layouts: tuple[str, ...]
) -> list[Property]:
    """Return the properties that are asked for and can be shown."""
    known = [row for row in PROPERTIES if row.name in chosen]
    if plain.op != BACKWARD:
        known = [row for row in known if not row.backward]
    left_out = {*DTYPES, *LAYOUTS} - {*dtypes, *layouts}
    return [row for row in known if row.name not in left_out]


def trial(row: Property, plain: NormCase, seed: int, number: int) -> NormTrial:
    """Draw one problem; it depends on the seed, the property and its number alone."""
    words = (seed, plain.op, row.name, number)
    random = generator(*words)
    sizes = {
        "images": int(random.integers(1, 4)),
        "size": (int(random.integers(2, 7)), int(random.integers(1, 7))),
        "channels": int(random.integers(1, 7)),
    }
    case = replace(plain, **{**sizes, **row.change(random)})
    return NormTrial(row, case, tuple(numbers(*words, "data")))
