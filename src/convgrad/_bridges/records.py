"""What the record of a call holds: recipes as words, which compiled code carries out (`serve`).

A record names the tensors that are given, constants (addresses that are the same in every call, such as those of
scalars), and runs: a program and the numbers of its places. Places are numbered through: what is given
first, then constants.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._runtime.bound import Bound

RUN = ("PROGRAM", "COUNT")
"""A run: the program and how many places it has, with their numbers behind."""
NOWHERE = -1
"""The number of a place that a call leaves out; the program is given a null address there."""

GIVEN = ("DTYPE", "ALIGNMENT", "ELEMENTS")
"""The row of a tensor that is given: its dtype as the framework counts them, an element's bytes less one, and how many
elements it has."""


def run_words(program: Bound, places: Iterable[int]) -> list[int]:
    """Return the words of a run."""
    numbers = list(places)
    return [program.address, len(numbers), *numbers]
