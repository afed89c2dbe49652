"""Element types and how LLVM spells them, their vectors and their constants.

A *storage* type is what memory holds, a *compute* type what arithmetic runs in: the accumulator of
the dtype's row. They differ for the two 16-bit floats only, which live in memory as bits (i16) and
are float32 everywhere else.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache, lru_cache

from ..._base.dtypes import BFLOAT16, DOUBLE, DTYPES, FLOAT, HALF, INT32


@dataclass(frozen=True, eq=False)
class Element:
    """One element type; the constants below are the only instances."""

    short: str
    """The name in kernel symbols, the same as `DType.short` of `_base/dtypes.py`."""
    size: int
    """Bytes in memory."""
    llvm: str
    """What LLVM calls it in memory."""
    is_float: bool


I16 = Element("i16", 2, "i16", False)
I64 = Element("i64", 8, "i64", False)

ELEMENTS = {row.short: row for row in (I16, I64)} | {
    row.short: Element(row.short, row.itemsize, row.llvm, not row.is_integer) for row in DTYPES
}
F32, F64, F16, BF16, I32 = (ELEMENTS[row.short] for row in (FLOAT, DOUBLE, HALF, BFLOAT16, INT32))
_COMPUTE = {ELEMENTS[row.short]: ELEMENTS[row.accumulator] for row in DTYPES}
"""By storage type. The others are bits and indices, which arithmetic takes as they are."""


def element(short: str) -> Element:
    """Return the element type called `short`."""
    return ELEMENTS[short]


def arithmetic(storage: Element) -> Element:
    """Return the type arithmetic on `storage` runs in."""
    return _COMPUTE.get(storage, storage)


@cache
def type_text(of: Element, lanes: int) -> str:
    """Spell a vector type; one lane is a scalar."""
    return of.llvm if lanes == 1 else f"<{lanes} x {of.llvm}>"


@cache
def suffix(of: Element, lanes: int) -> str:
    """Spell a type inside the name of an intrinsic."""
    scalar = {"float": "f32", "double": "f64"}.get(of.llvm, of.llvm)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


@lru_cache(maxsize=4096)
def constant_text(of: Element, lanes: int, value: float) -> str:
    """Spell a constant with the same value in all lanes.

    Written out lane by lane: `splat (...)` is newer than the oldest LLVM we support.
    """
    if of.is_float:
        if of is F32:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        number = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        if number == "0x0000000000000000":
            return "zeroinitializer" if lanes > 1 else "0.0"
    else:
        number = str(int(value))
        if number == "0":
            return "zeroinitializer" if lanes > 1 else "0"
    return _vector(of.llvm, [number] * lanes) if lanes > 1 else number


@lru_cache(maxsize=1024)
def mask_text(mask: tuple[bool, ...]) -> str:
    """Spell a constant mask."""
    return _vector("i1", ["true" if lane else "false" for lane in mask])


@lru_cache(maxsize=1024)
def index_text(indices: tuple[int, ...]) -> str:
    """Spell the lane numbers of a shuffle, with their type."""
    return f"<{len(indices)} x i32> {_vector('i32', [str(i) for i in indices])}"


def _vector(llvm: str, numbers: list[str]) -> str:
    return "<" + ", ".join(f"{llvm} {number}" for number in numbers) + ">"
