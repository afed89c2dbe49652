"""A failing problem as a Python program a person can run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._base.dtypes import AnyArray
from ..._bridges.peers import FRAMEWORKS, tensorflow
from ..._problem.convolution import Kind
from .implementation import LIBRARIES
from .problems import Case, Data, Operands

_SMALL = 64
"""Arrays of so many numbers are written out."""


def program(
    kernel: str, case: Case, data: Data, seed: Sequence[int], first: AnyArray, second: AnyArray
) -> str:
    """Return the program: it builds the operands, calls the kernel and compares with the oracle."""
    names = {
        Kind.FORWARD: ("x", "f"),
        Kind.INPUT_GRADIENT: ("f", "g"),
        Kind.FILTER_GRADIENT: ("x", "g"),
    }[case.call.kind]
    whole = data in ("whole", "ones")
    exact = ", exact=True" if whole else ""
    arguments = ", ".join(_argument(each) for each in case.arguments(*names))
    settings = ", ".join(f"{key}={value!r}" for key, value in case.settings.items())
    call = f"kernel({arguments}, **settings)"
    if kernel == "tensorflow":
        wanted = case.wanted
        written = tensorflow.documented_settings(wanted).items()
        theirs = ", ".join(f"{key}={value!r}" for key, value in written)
        call = f"{tensorflow.documented_name(wanted)}({arguments}, {theirs})"
    lines = [
        "import numpy as np",
        *(["from ml_dtypes import bfloat16"] if case.dtype == "bfloat16" else []),
        "from convgrad import reference",
        *imported(kernel, case.op),
        "",
        *_arrays(names, case, data, seed, (first, second)),
        f"settings = dict({settings})",
        f"got = {call}",
        f"want = reference.{case.op}({arguments}, **settings{exact})",
        "print(np.asarray(got).tolist(), want.tolist(), sep='\\n')"
        if want_small(case)
        else "print(np.abs(np.asarray(got, np.float64) - want).max())",
    ]
    return "\n".join(lines) + "\n"


def want_small(case: Case) -> bool:
    """Whether the result is small enough to be shown."""
    return int(np.prod(case.problem.result_shape)) <= _SMALL


def numbers(array: AnyArray, other: AnyArray) -> str:
    """Show a small array as nested lists, and of a large one the number farthest from another array's."""
    wide = np.asarray(array).astype(np.float64)
    if wide.size <= _SMALL:
        return str(wide.tolist())
    if wide.shape != other.shape:
        return f"{wide.size} numbers of shape {list(wide.shape)}"
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(np.abs(wide - other.astype(np.float64)), nan=np.inf)
    place = tuple(int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
    return f"{wide[place]:.9g} at {list(place)}"


def _argument(value: object) -> str:
    return value if isinstance(value, str) else str(list(value)) if isinstance(value, tuple) else ""


def imported(kernel: str, op: str) -> list[str]:
    """Return the lines that make a kernel known."""
    if kernel == "tensorflow":
        return ["import tensorflow as tf"]
    where, _, name = kernel.rpartition(":")
    if where.endswith(LIBRARIES) or kernel in FRAMEWORKS:
        return [
            "from convgrad.testing import implementation",
            "",
            f"kernel = implementation({kernel!r}, {op!r})",
        ]
    module, _, name = kernel.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or "<" in name:
        return ["", "kernel = ...  # your function"]
    name = name or op
    if "." in name:
        return [f"import {module}", "", f"kernel = {module}.{name}"]
    return [f"from {module} import {name} as kernel"]


def _arrays(
    names: tuple[str, str], case: Case, data: Data, seed: Sequence[int], operands: Operands
) -> list[str]:
    """Write both operands down; normal numbers by the generator they came from."""
    if data != "normal":
        return [*spelled(names[0], operands[0]), *spelled(names[1], operands[1])]
    return [
        f"random = np.random.default_rng({list(seed)})",
        *(
            f"{name} = random.standard_normal({list(each.shape)}).astype({_dtype(each)})"
            for name, each in zip(names, operands, strict=True)
        ),
    ]


def _dtype(array: AnyArray) -> str:
    return "bfloat16" if array.dtype.name == "bfloat16" else f"np.{array.dtype.name}"


def spelled(name: str, array: AnyArray) -> list[str]:
    """Write an array down, as briefly as it can be."""
    kind = _dtype(array)
    shape = list(array.shape)
    flat = array.reshape(-1)
    wide = flat.astype(np.float64)
    if not flat.size or not wide.any():
        return [f"{name} = np.zeros({shape}, {kind})"]
    if (wide == wide[0]).all():
        full = (
            f"np.ones({shape}, {kind})"
            if wide[0] == 1
            else f"np.full({shape}, {wide[0]:g}, {kind})"
        )
        return [f"{name} = {full}"]
    filled = np.flatnonzero(wide)
    if flat.size > 8 and filled.size <= 8:
        places = (tuple(int(i) for i in np.unravel_index(at, array.shape)) for at in filled)
        values = (_number(wide[at]) for at in filled)
        return [
            f"{name} = np.zeros({shape}, {kind})",
            *(
                f"{name}[{', '.join(map(str, place))}] = {value}"
                for place, value in zip(places, values, strict=True)
            ),
        ]
    if flat.size <= 512:
        values = (_number(each) for each in wide)
        return [f"{name} = np.array([{', '.join(values)}], {kind}).reshape({shape})"]
    return [
        f"{name} = np.random.default_rng(0).integers(-4, 5, {shape}).astype({kind})  # or alike"
    ]


def _number(value: float) -> str:
    if np.isnan(value):
        return "np.nan"
    if np.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return str(int(value)) if value == int(value) else repr(float(value))
