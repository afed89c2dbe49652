"""The table compiled handlers look calls up in: recipes written down as words (see `handler` for the layout)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..._base import config
from ..._base.errors import ConvgradError
from ..._runtime import records
from ..._runtime.bound import Bound
from . import handler, recipes
from .handler import ABSENT, GIVEN, KEY, MOST_MADE, TENSOR_WORDS
from .recipes import Made, Recipe, Run, Settings
from .tensors import DTYPES, Tensor


def body(recipe: Recipe | None) -> list[int]:
    """Return the words behind a record's key; a call that Python computes has no runs."""
    if recipe is None or not all(isinstance(run.program, Bound) for run in recipe.runs):
        return [0, 0, 0, 0]
    made = [*recipe.outputs, *recipe.temporaries]
    assert len(made) <= MOST_MADE, recipe
    rows = rows_of(made)
    # Temporaries lie behind the outputs there are.
    shift = GIVEN + len(recipe.outputs) - recipes.TEMPORARIES
    for run in recipe.runs:
        assert isinstance(run.program, Bound)
        rows += run_words(
            run, (at + shift if at >= recipes.TEMPORARIES else at for at in run.places)
        )
    item = DTYPES[next(each.dtype for each in made if each is not None)].itemsize
    return [len(recipe.runs), len(recipe.outputs), len(made), item - 1, *rows]


def run_words(run: Run, places: Iterable[int]) -> list[int]:
    """Return the words of a run: program, how many places, and where they are."""
    assert isinstance(run.program, Bound)
    return [run.program.address, len(run.places), *places]


def rows_of(made: Sequence[Made | None]) -> list[int]:
    """Return the words of tensors to make."""
    rows: list[int] = []
    for each in made:
        if each is None:
            rows += [-1, *[0] * (handler.MADE_WORDS - 1)]
            continue
        missing = [0] * (4 - len(each.sizes))
        rows += [len(each.sizes), each.dtype, *each.sizes, *missing, *each.strides, *missing]
    return rows


def read(words: Sequence[int]) -> Recipe | None:
    """Return the recipe of a call from its words."""
    settings = Settings(
        (words[KEY["STRIDE"]], words[KEY["STRIDE"] + 1]),
        tuple((words[KEY["PADDING"] + axis],) * 2 for axis in (0, 1)),  # type: ignore[arg-type]
        (words[KEY["DILATION"]], words[KEY["DILATION"] + 1]),
        bool(words[KEY["TRANSPOSED"]]),
        (words[KEY["OUTPUT_PADDING"]], words[KEY["OUTPUT_PADDING"] + 1]),
        words[KEY["GROUPS"]],
    )
    image, weight, third = (_tensor(words, KEY[name]) for name in ("INPUT", "WEIGHT", "THIRD"))
    if words[KEY["OPERATION"]] == handler.FORWARD:
        bias = None if third.dtype == ABSENT else third
        return recipes.forward(image, weight, bias, settings)
    mask = words[KEY["MASK"] : KEY["MASK"] + 3]
    return recipes.backward(
        third, image, weight, settings, (bool(mask[0]), bool(mask[1]), bool(mask[2]))
    )


def _tensor(words: Sequence[int], at: int) -> Tensor:
    dtype, *rest = words[at : at + TENSOR_WORDS]
    return Tensor(dtype, tuple(rest[:4]), tuple(rest[4:]))  # type: ignore[arg-type]


MISS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
"""What a handler calls for a call without a record: its words and their hash; the record's address or 0."""


def miss(
    table: records.Table,
    key_words: int,
    settings_at: int,
    read: Callable[[Sequence[int]], Any],
    body: Callable[[Any], list[int]],
) -> Callable[..., int]:
    """Return the function that answers handlers, to be kept as long as they may ask.

    `read` returns the recipe of a key, or None, and `body` what a record has behind its key.
    """

    def answer(key: object, hash_: int) -> int:
        # Nothing may be raised through compiled code: without a record the call is left to Python, which raises.
        try:
            words = key[:key_words]  # type: ignore[index]
            # Another thread's block has other switches: a recipe made here would be found there.
            if words[settings_at] != hash(config.deciding()):
                return 0
            try:
                recipe = read(words)
            except ConvgradError:
                recipe = None
            programs = [] if recipe is None else [run.program for run in recipe.runs]
            nbytes = sum(program.nbytes for program in programs if isinstance(program, Bound))
            return table.link(words, hash_, body(recipe), recipe, nbytes)
        except BaseException:
            return 0

    return MISS(answer)
