"""The table in which compiled functions look fused blocks up: recipes written down as words (see `fused_handler`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from . import fused_recipes
from .fused_handler import BACKWARD, DIMENSION, GIVEN, KEY
from .fused_recipes import Fused, Given, Row
from .handler import ABSENT, TENSOR_WORDS
from .records import rows_of, run_words
from .tensors import Tensor

ROWS: list[Row] = []
"""What blocks do, by the number their calls have."""


def read(words: Sequence[int]) -> Fused | None:
    """Return the recipe of a call from its words."""
    row = ROWS[words[KEY["ROW"]]]
    given = [_given(words, KEY["TENSORS"] + number * TENSOR_WORDS) for number in range(GIVEN)]
    wanted = [bool(words[KEY["WANTED"]] >> bit & 1) for bit in range(6)]
    if words[KEY["OPERATION"]] == BACKWARD:
        return fused_recipes.backward(given, row, wanted)
    return fused_recipes.forward(given, row, keeps=wanted[0])


def _given(words: Sequence[int], at: int) -> Given | None:
    kind, *rest = words[at : at + TENSOR_WORDS]
    if kind == ABSENT:
        return None
    dimensions, dtype = divmod(kind, DIMENSION)
    return Given(dimensions, Tensor(dtype, tuple(rest[:4]), tuple(rest[4:])))  # type: ignore[arg-type]


def body(recipe: Fused | None) -> list[int]:
    """Return the words behind a record's key; a call that is not computed here has no runs."""
    if recipe is None:
        return [0]
    made = [*recipe.outputs, *recipe.temporaries]
    scalars = struct.unpack("4q", struct.pack("4d", *recipe.scalars))
    words = [len(recipe.runs), len(recipe.outputs), len(made), recipe.parameter_bytes - 1]
    words += [*scalars, *rows_of(made)]
    for run in recipe.runs:
        words += run_words(run, run.places)
    return words
