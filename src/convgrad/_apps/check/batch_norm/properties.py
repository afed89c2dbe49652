"""The properties a batch norm can have, each with problems of its own in which everything else is plain."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...._problem.norm import ACTIVATIONS
from ..draws import ONE, Family, Mix, Pair, Value, fields, over
from ..problems import LAYOUTS, generator, numbers
from .case import BACKWARD, DTYPES, Arrays, NormCase, draw


@dataclass(frozen=True)
class Property:
    """One row of the report."""

    name: str
    meaning: str
    change: Family | tuple[Family, ...]
    """How fields of a case are drawn that are not plain; of several tables one is taken."""
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


_PLAIN: Family = {
    "images": range(1, 4),
    "size": Pair(range(2, 7), range(1, 7)),
    "channels": range(1, 7),
}
_MOSTLY = Mix((0.8, True), (0.2, False))
_MIXED: Family = {
    "activation": tuple(ACTIVATIONS),
    "residual": ("", "before", "after"),
    "is_training": Mix((0.7, True), (0.3, False)),
    "scale": _MOSTLY,
    "offset": _MOSTLY,
    "epsilon": (1e-3, 1e-5, 0.1),
    "channels": range(1, 20),
}
_LONG: Family = {"images": 3, "size": Pair(range(30, 50), 40), "channels": 2}
_SUMMED: Family = {"size": Pair(range(5, 12), 10), "activation": "silu"}
_SOME = ("relu", "silu", "none")


PROPERTIES: tuple[Property, ...] = (
    Property("basic", "statistics of the batch, no activation", {}),
    Property("given", "statistics that are given", {"is_training": False}),
    Property("epsilon", "epsilon 0.5 and 2", {"epsilon": (0.5, 2.0)}),
    *(
        Property(name, f"activation {name}", {"activation": name})
        for name in ACTIVATIONS
        if name != "none"
    ),
    Property(
        "residual-before",
        "a residual before the activation",
        {"residual": "before", "activation": _SOME},
    ),
    Property(
        "residual-after",
        "a residual after the activation",
        {"residual": "after", "activation": _SOME},
    ),
    Property(
        "no-scale",
        "no scale, no offset, or neither",
        ({"scale": False}, {"offset": False}, {"scale": False, "offset": False}),
    ),
    Property(
        "odd-channels", "1, 3, 7, 9, 17, 33, 65 channels", {"channels": (1, 3, 7, 9, 17, 33, 65)}
    ),
    Property("one-pixel", "one value per channel", {"images": 1, "size": ONE}),
    Property("constant", "channels of one value: variance 0", {"data": "constant"}),
    Property("far-mean", "mean 1000, deviation 1", {"data": "far"}),
    Property("long-sums", "3600 to 6000 values per channel", _LONG),
    Property(
        "empty",
        "a size of 0: statistics NaN, sums 0",
        ({"images": 0}, {"size": Value((0, 3))}, {"channels": 0}),
    ),
    Property(
        "nan", "NaN and infinity stay in their channel", {"data": ("nan", "inf"), "channels": 4}
    ),
    *(Property(name, f"layout {name}", {"data_format": name}) for name in LAYOUTS),
    *(Property(name, f"dtype {name}", {"dtype": name}) for name in DTYPES),
    Property(
        "linear",
        "twice out_backprop gives exactly twice the gradients",
        {"activation": ("relu", "silu")},
        doubled=True,
        backward=True,
    ),
    Property(
        "adds-up",
        "dx adds up to 0 in each channel",
        _SUMMED,
        adds_up=True,
        backward=True,
    ),
    Property("determinism", "the same bits twice", {"size": Value((9, 9))}, twice=True),
    Property("mixed", "everything at once", _MIXED),
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
    case = replace(plain, **fields(random, over(_PLAIN, row.change)))
    return NormTrial(row, case, tuple(numbers(*words, "data")))
