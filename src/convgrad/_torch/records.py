"""The table compiled handlers look calls up in: recipes written down as words (see `handler` for the layout).

Handlers read the table without a lock while Python adds to it, so a record is complete before it is linked, and is
never changed after that. When there are too many, as for a network that sees images of every size, all are unlinked.
Another thread may still be running one, so they are kept until a handler that asks for a record is alone at work.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence

import numpy as np

from .. import _config
from .._errors import ConvgradError
from .._runtime.bound import Bound
from . import handler, recipes
from .handler import ABSENT, BUCKETS, GIVEN, KEY, KEY_WORDS, MOST_MADE, TENSOR_WORDS
from .recipes import Recipe, Settings
from .tensors import DTYPES, Tensor

_MOST = 8192
_MOST_BYTES = 32 << 20
"""Records linked, and bytes of programs they may hold together."""


class Table:
    """Records by the words of their calls."""

    def __init__(self, at_work: Callable[[], int] = lambda: 0) -> None:
        """`at_work` tells how many handlers are, the one that asks for a record included."""
        self.buckets = (ctypes.c_int64 * BUCKETS)()
        self._at_work = at_work
        self._records: list[tuple[object, object]] = []
        self._unlinked: list[tuple[object, object]] = []
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, words: Sequence[int], hash_: int, recipe: Recipe | None) -> int:
        """Link the record of a call; returns its address."""
        body = _body(recipe)
        record = np.array([0, *words, *body], np.int64)
        programs = [] if recipe is None else [run.program for run in recipe.runs]
        with self._lock:
            # Of earlier calls, so that who has come to work since cannot have found them.
            if self._unlinked and self._at_work() == 1:
                self._unlinked = []
            self._bytes += record.nbytes + sum(
                program.nbytes for program in programs if isinstance(program, Bound)
            )
            if len(self._records) >= _MOST or self._bytes > _MOST_BYTES:
                self._unlink()
            number = hash_ % BUCKETS
            record[0] = self.buckets[number]
            record.flags.writeable = False
            address: int = record.ctypes.data
            self._records.append((record, recipe))
            self.buckets[number] = address
        return address

    def clear(self) -> None:
        """Forget all records: what made them has changed."""
        with self._lock:
            self._unlink()

    def _unlink(self) -> None:
        ctypes.memset(self.buckets, 0, ctypes.sizeof(self.buckets))
        self._unlinked += self._records
        self._records, self._bytes = [], 0


def _body(recipe: Recipe | None) -> list[int]:
    """Return the words behind a record's key; a call that Python computes has no runs."""
    if recipe is None or not all(isinstance(run.program, Bound) for run in recipe.runs):
        return [0, 0, 0, 0]
    made = [*recipe.outputs, *recipe.temporaries]
    assert len(made) <= MOST_MADE, recipe
    rows: list[int] = []
    for each in made:
        if each is None:
            rows += [-1, *[0] * (handler.MADE_WORDS - 1)]
            continue
        missing = [0] * (4 - len(each.sizes))
        rows += [len(each.sizes), each.dtype, *each.sizes, *missing, *each.strides, *missing]
    # Temporaries lie behind the outputs there are.
    shift = GIVEN + len(recipe.outputs) - recipes.TEMPORARIES
    for run in recipe.runs:
        assert isinstance(run.program, Bound)
        places = (run.first, run.second, run.result, run.bias)
        rows += [
            run.program.address,
            *(at + shift if at >= recipes.TEMPORARIES else at for at in places),
        ]
    item = DTYPES[next(each.dtype for each in made if each is not None)].itemsize
    return [len(recipe.runs), len(recipe.outputs), len(made), item - 1, *rows]


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


def miss(table: Table) -> Callable[..., int]:
    """Return the function that answers handlers, to be kept as long as they may ask."""

    def answer(key: object, hash_: int) -> int:
        # Nothing may be raised through compiled code: without a record the call is left to Python, which raises.
        try:
            words = key[:KEY_WORDS]  # type: ignore[index]
            # Another thread's block has other switches: a recipe made here would be found there.
            if words[KEY["SETTINGS"]] != hash(_config.deciding()):
                return 0
            try:
                recipe = read(words)
            except ConvgradError:
                recipe = None
            return table.add(words, hash_, recipe)
        except BaseException:
            return 0

    return MISS(answer)
