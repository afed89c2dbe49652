"""Calls PyTorch refuses, and odd ones it takes: both libraries must give the same answer, in the same words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

Call = Callable[[Any], Any]
"""A call of `conv2d`, `conv_transpose2d` or `linear` of what it is given."""


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Any:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


class Operands(NamedTuple):
    """A call that is right, of which each case spoils something."""

    input: Any
    weight: Any
    bias: Any = None


def right() -> Operands:
    return Operands(randn(2, 4, 6, 7), randn(6, 4, 3, 3), randn(6))


def right_transposed() -> Operands:
    return Operands(randn(2, 4, 6, 7), randn(4, 6, 3, 3), randn(6))


DEFAULTS: dict[str, dict[str, Any]] = {
    "conv2d": {"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
    "conv_transpose2d": {
        "stride": 1,
        "padding": 0,
        "output_padding": 0,
        "groups": 1,
        "dilation": 1,
    },
    "linear": {},
}
"""In their order: errors tell arguments given by name from others."""
OTHER_DTYPES = (
    *(torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
    *(torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool),
)


def _spoiled(given: Operands) -> Iterator[tuple[str, Operands]]:
    """Return operands that do not fit each other, and some that do but are unusual."""
    whole = given._asdict()
    for dtype in OTHER_DTYPES:
        for name in whole:
            yield f"{name} of {dtype}", Operands(**whole | {name: whole[name].to(dtype)})
        yield f"all of {dtype}", Operands(*(each.to(dtype) for each in given))
        yield f"all but the bias of {dtype}", Operands(*(each.to(dtype) for each in given[:2]))
    for size in (0, 1, 3, 7):
        yield f"bias of {size}", given._replace(bias=torch.ones(size))
    for shape in ((), (6, 1), (1, 6, 1, 1)):
        yield f"bias of shape {shape}", given._replace(bias=torch.ones(shape))
    for shape in ((), (4,), (6, 7), (4, 6, 7), (5, 6, 7), (1, 2, 4, 6, 7), (2, 5, 6, 7)):
        yield f"input of shape {shape}", given._replace(input=torch.ones(shape))
    for shape in ((2, 4, 1, 1), (2, 4, 0, 7), (0, 4, 6, 7), (2, 0, 6, 7), (2, 4, 6, 1)):
        yield f"input of shape {shape}", given._replace(input=torch.ones(shape))
    for shape in ((), (6,), (6, 4), (4, 3, 3), (6, 4, 3, 3, 3), (6, 5, 3, 3), (0, 4, 3, 3)):
        yield f"weight of shape {shape}", given._replace(weight=torch.ones(shape))
    for shape in ((6, 0, 3, 3), (6, 4, 0, 3), (6, 4, 3, 0), (6, 4, 9, 9)):
        yield f"weight of shape {shape}", given._replace(weight=torch.ones(shape))
    for name in whole:
        yield f"no {name}", Operands(**whole | {name: None})
        yield f"{name} a list", Operands(**whole | {name: whole[name].tolist()})
        yield f"{name} an array", Operands(**whole | {name: whole[name].numpy()})
        yield f"{name} sparse", Operands(**whole | {name: whole[name].to_sparse()})
    # A weight or a bias alone PyTorch takes, and returns memory nobody has written to.
    yield "input on meta", given._replace(input=given.input.to("meta"))
    yield "all on meta", Operands(*(each.to("meta") for each in given))
    yield "input of mkldnn", given._replace(input=given.input.to_mkldnn())
    yield "all of mkldnn", Operands(*(each.to_mkldnn() for each in given))
    yield "all conjugated", Operands(*(each.to(torch.complex64).conj() for each in given))
    yield "unbatched", given._replace(input=given.input[0])


INT = np.int64(1)
SETTINGS: tuple[dict[str, Any], ...] = (
    *(
        {"stride": value}
        for value in (0, -1, (1, 0), (1, 2, 3), (), [2], "2", 1.5, None, True, INT)
    ),
    *(
        {"padding": value}
        for value in (-1, (0, -1), (1, 2, 3), (), [1], 0.5, None, 9, "full", "", (INT, 1))
    ),
    *({"dilation": value} for value in (0, -1, (2, 0), (1, 2, 3), (), [2], "1", 1.5, 99)),
    *({"groups": value} for value in (0, -1, 2, 3, 4, 1.0, "1", None, (1, 1), INT)),
)
SAME: tuple[dict[str, Any], ...] = (
    *({"padding": "same"}, {"padding": "valid"}, {"padding": "same", "stride": 2}),
    *({"padding": "same", "stride": (1, 2)}, {"padding": "same", "dilation": 0}),
    *({"padding": "same", "groups": 2}, {"padding": "same", "stride": (1, 1, 1)}),
)
TRANSPOSED: tuple[dict[str, Any], ...] = (
    *({"output_padding": value} for value in (1, -1, 5, (0, 1), (1, 1, 1), "1", None)),
    *({"stride": 2, "output_padding": value} for value in (1, 2, (0, 3))),
    *({"padding": "same"}, {"padding": "valid"}, {"padding": 8}),
)


def calls() -> dict[str, Call]:
    """Return the calls by name."""
    made: dict[str, Call] = {}

    def add(name: str, function: str, operands: Operands, **settings: Any) -> None:
        assert name not in made, name
        arguments = (*operands, *(DEFAULTS[function] | settings).values())
        made[name] = lambda of: getattr(of, function)(*arguments)

    for name, operands in _spoiled(right()):
        add(f"conv2d: {name}", "conv2d", operands, padding=1)
        add(f"conv2d: {name}, same", "conv2d", operands, padding="same")
    even = right()._replace(weight=randn(6, 4, 2, 4))
    for name, operands in _spoiled(even):
        add(f"conv2d: {name}, same and even", "conv2d", operands, padding="same")
    for name, operands in _spoiled(right_transposed()):
        add(f"conv_transpose2d: {name}", "conv_transpose2d", operands)
    for settings in (*SETTINGS, *SAME):
        add(f"conv2d: {settings}", "conv2d", right(), **settings)
        if settings in SAME:
            add(f"conv2d: {settings}, even", "conv2d", even, **settings)
    for settings in (*SETTINGS, *TRANSPOSED):
        if settings not in ({"padding": "full"}, {"padding": ""}):
            add(f"conv_transpose2d: {settings}", "conv_transpose2d", right_transposed(), **settings)
    return made


def outcome(call: Call, of: Any) -> tuple[str, Any]:
    """Return what a call gives: its result, or an error's type and words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = call(of)
        except Exception as error:
            return type(error).__name__, str(error)
    return "result", made


def same(mine: tuple[str, Any], theirs: tuple[str, Any]) -> bool:
    """Tell whether two outcomes are the same: errors word by word, results to rounding."""
    if mine[0] != "result" or theirs[0] != "result":
        return mine == theirs
    made, wanted = mine[1], theirs[1]
    if (made.shape, made.dtype, made.layout, made.device) != (
        *(wanted.shape, wanted.dtype, wanted.layout, wanted.device),
    ):
        return False
    if made.device.type == "meta":
        return True
    if made.layout is not torch.strided:
        made, wanted = made.to_dense(), wanted.to_dense()
    torch.testing.assert_close(made, wanted, rtol=2e-2, atol=5e-2)
    return True
