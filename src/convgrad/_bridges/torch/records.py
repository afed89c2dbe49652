"""The tables compiled handlers look calls up in: recipes written down as words (`_bridges/records.py`)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..._base import config
from ..._base.errors import ConvgradError
from ..._runtime.bound import Bound
from ..._runtime.records import Table
from ..records import UNSERVED, record
from . import fused_handler, fused_recipes, handler, recipes
from .fused_recipes import Row
from .recipes import Recipe, Settings
from .server import ABSENT, DIMENSION, TENSOR, TENSOR_WORDS, Served
from .tensors import DTYPES, Given, Tensor

ROWS: list[Row] = []
"""What blocks do, by the number their calls have."""

Tensors = Sequence[Given | None]


def read(words: Sequence[int], given: Tensors) -> Recipe | None:
    """Return the recipe of a convolution from the words of its key."""
    key = handler.KEY
    settings = Settings(
        (words[key["STRIDE"]], words[key["STRIDE"] + 1]),
        tuple((words[key["PADDING"] + axis],) * 2 for axis in (0, 1)),  # type: ignore[arg-type]
        (words[key["DILATION"]], words[key["DILATION"] + 1]),
        bool(words[key["TRANSPOSED"]]),
        (words[key["OUTPUT_PADDING"]], words[key["OUTPUT_PADDING"] + 1]),
        words[key["GROUPS"]],
    )
    image, weight, third = given
    if image is None or weight is None or not image.dimensions == weight.dimensions == 4:
        return None
    if words[key["OPERATION"]] == handler.FORWARD:
        if third is not None and third.dimensions != 1:
            return None
        bias = None if third is None else third.tensor
        return recipes.forward(image.tensor, weight.tensor, bias, settings)
    if third is None or third.dimensions != 4:
        return None
    mask = words[key["MASK"] : key["MASK"] + 3]
    wanted = (bool(mask[0]), bool(mask[1]), bool(mask[2]))
    return recipes.backward(third.tensor, image.tensor, weight.tensor, settings, wanted)


def read_fused(words: Sequence[int], given: Tensors) -> Recipe | None:
    """Return the recipe of a fused block from the words of its key."""
    key = fused_handler.KEY
    row = ROWS[words[key["ROW"]]]
    wanted = [bool(words[key["WANTED"]] >> bit & 1) for bit in range(6)]
    if words[key["OPERATION"]] == fused_handler.BACKWARD:
        return fused_recipes.backward(given, row, wanted)
    return fused_recipes.forward(given, row, keeps=wanted[0])


def tensors(words: Sequence[int], served: Served) -> list[Given | None]:
    """Return the tensors of a call from the words of its key."""
    first = served.key["TENSORS"]
    return [_given(words[at:]) for at in range(first, served.key_words, TENSOR_WORDS)]


def _given(words: Sequence[int]) -> Given | None:
    if words[TENSOR["KIND"]] == ABSENT:
        return None
    dimensions, dtype = divmod(words[TENSOR["KIND"]], DIMENSION)
    sizes, strides = (words[TENSOR[name] : TENSOR[name] + 4] for name in ("SIZES", "STRIDES"))
    return Given(dimensions, Tensor(dtype, tuple(sizes), tuple(strides)))  # type: ignore[arg-type]


class Body(NamedTuple):
    """What a record has behind its key."""

    words: list[int]
    kept: object = None
    """What these have addresses of."""
    nbytes: int = 0
    """Of programs."""


def body(recipe: Recipe | None, given: Tensors, most_made: int) -> Body:
    """Write a recipe down; a call that Python computes has no runs."""
    if recipe is None:
        return Body(UNSERVED)
    runs = [(run.program, run.places) for run in recipe.runs if isinstance(run.program, Bound)]
    if len(runs) < len(recipe.runs):
        return Body(UNSERVED)
    assert len(recipe.made) <= most_made, recipe
    scalars = np.array(recipe.scalars)
    constants = [scalars.ctypes.data] if recipe.scalars else []
    rows = [_row(each) for each in given]
    words = record(rows, recipe.made, len(recipe.outputs), constants, runs)
    return Body(words, (recipe, scalars), sum(program.nbytes for program, _ in runs))


def _row(given: Given | None) -> tuple[int, int, int]:
    if given is None:
        return (ABSENT, 0, 0)
    dtype, sizes, _ = given.tensor
    return (dtype, DTYPES[dtype].itemsize - 1, math.prod(sizes[: given.dimensions]))


MISS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
"""What a handler calls for a call without a record: its words and their hash; the record's address or 0."""


def miss(
    table: Table, served: Served, read: Callable[[Sequence[int], Tensors], Recipe | None]
) -> Callable[..., int]:
    """Return the function that answers handlers, to be kept as long as they may ask."""

    def answer(key: object, hash_: int) -> int:
        # Nothing may be raised through compiled code: without a record the call is left to Python, which raises.
        try:
            words = key[: served.key_words]  # type: ignore[index]
            # Another thread's block has other switches: a recipe made here would be found there.
            if words[served.key["SETTINGS"]] != hash(config.deciding()):
                return 0
            given = tensors(words, served)
            try:
                recipe = read(words, given)
            except ConvgradError:
                recipe = None
            made = body(recipe, given, served.most_made)
            return table.link(words, hash_, made.words, made.kept, made.nbytes)
        except BaseException:
            return 0

    return MISS(answer)
