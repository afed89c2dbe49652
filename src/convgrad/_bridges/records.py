"""What the record of a call holds: recipes as words, which compiled code carries out (`serve`).

A record names the tensors that are given, those to make, constants (addresses that are the same in every call, such as
those of scalars), and runs: a program and the numbers of its places. Places are numbered through: what is given
first, then what is made, then constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._runtime.bound import Bound

RECORD = ("MADE", "RETURNED", "CONSTANTS", "RUNS")
"""The head of a record that was found by a key: how many tensors are made, how many of these are returned, and how many
constants and runs there are; without runs, the call is not computed here. Behind it are rows of tensors that are given,
if compiled code compares them (it knows how many), a row for each to make, the constants, and the runs."""
RUN = ("PROGRAM", "COUNT")
"""A run: the program and how many places it has, with their numbers behind."""
NOWHERE = -1
"""The number of a place that a call leaves out; the program is given a null address there."""

GIVEN = ("DTYPE", "ALIGNMENT", "ELEMENTS")
"""The row of a tensor that is given: its dtype as the framework counts them, an element's bytes less one, and how many
elements it has."""
MADE = {"DIMENSIONS": 0, "DTYPE": 1, "SIZES": 2, "STRIDES": 6, "BYTES": 10}
"""The row of a tensor to make; one of `NOTHING` dimensions stays undefined. Frameworks need strides or bytes, not
both."""
MADE_WORDS = 11
NOTHING = -1
UNSERVED = [0] * len(RECORD)
"""The record of a call that is not computed here."""


class Made(NamedTuple):
    """A tensor to allocate."""

    dtype: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...] = ()
    nbytes: int = 0


def record(
    given: Iterable[tuple[int, int, int]],
    made: Sequence[Made | None],
    returned: int,
    constants: Sequence[int],
    runs: Sequence[tuple[Bound, Sequence[int]]],
) -> list[int]:
    """Return the words of a record; `given` are rows of `GIVEN`."""
    words = [len(made), returned, len(constants), len(runs)]
    for row in given:
        words += row
    for tensor in made:
        words += _made_words(tensor)
    words += constants
    for program, places in runs:
        words += run_words(program, places)
    return words


def _made_words(made: Made | None) -> list[int]:
    if made is None:
        return [NOTHING, *[0] * (MADE_WORDS - 1)]
    return [len(made.sizes), made.dtype, *_four(made.sizes), *_four(made.strides), made.nbytes]


def _four(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, *[0] * (4 - len(numbers)))


def run_words(program: Bound, places: Iterable[int]) -> list[int]:
    """Return the words of a run."""
    numbers = list(places)
    return [program.address, len(numbers), *numbers]
