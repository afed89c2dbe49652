"""What is known of a tensor before it is computed: dtype, sizes, and the numbers of a small vector of sizes.

A shape is a tuple of sizes, or None if even the rank is unknown; an unknown size is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from ..._base.errors import ArgumentError
from .dtypes import Dtype

Sizes: TypeAlias = "tuple[int | None, ...]"
Shape: TypeAlias = "Sizes | None"
Value: TypeAlias = "int | Sizes | None"

MOST_VALUES = 64
"""Elements of a vector whose numbers are followed: shapes, axes and permutations have fewer."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor as far as it is known."""

    dtype: Dtype
    shape: Shape
    value: Value = None
    """The number of an integer scalar, or those of a vector, as far as known."""

    @property
    def is_known(self) -> bool:
        """Whether all sizes are."""
        return self.shape is not None and None not in self.shape

    @property
    def nbytes(self) -> int | None:
        """Bytes, if all sizes are known."""
        if self.shape is None or None in self.shape:
            return None
        return prod(size for size in self.shape if size is not None) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}{shape_spelled(self.shape)}"


def shape_spelled(shape: Shape) -> str:
    """Spell a shape.

    >>> shape_spelled((8, None, 3)), shape_spelled(None), shape_spelled(())
    ('[8, ?, 3]', '[...]', '[]')
    """
    if shape is None:
        return "[...]"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def fits(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes may be the same.

    >>> fits((8, None), (None, 3)), fits((8, 2), (8,)), fits(None, (1,))
    (True, False, True)
    """
    if shape is None or other is None:
        return True
    if len(shape) != len(other):
        return False
    return all(a is None or b is None or a == b for a, b in zip(shape, other, strict=True))


def merged(shape: Shape, other: Shape) -> Shape:
    """Return what two descriptions of one shape know together; they must fit.

    >>> merged((8, None), (None, 3))
    (8, 3)
    """
    if shape is None or other is None:
        return shape if other is None else other
    return tuple(b if a is None else a for a, b in zip(shape, other, strict=True))


def broadcast(function: str, names: Sequence[str], shapes: Sequence[Shape]) -> Shape:
    """Return the shape of an elementwise result.

    >>> broadcast("Add", ("x", "y"), ((8, 1, None), (4, 3)))
    (8, 4, 3)
    """
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known))
    result: list[int | None] = []
    for at in range(-rank, 0):
        sizes = [shape[at] for shape in known if len(shape) >= -at]
        fixed = {size for size in sizes if size is not None and size != 1}
        if len(fixed) > 1:
            written = " and ".join(shape_spelled(shape) for shape in known)
            arguments = " and ".join(f"`{name}`" for name in names)
            raise ArgumentError(
                f"{function}: {arguments} must have shapes that broadcast together, got {written}."
            )
        if fixed:
            result.append(fixed.pop())
        else:  # ones, and unknown sizes, any of which may be larger
            result.append(None if None in sizes else 1)
    return tuple(result)


def total(shape: Sizes) -> int | None:
    """Return the number of elements, or None; a size 0 is enough to know it.

    >>> total((2, 3)), total((2, None)), total((0, None))
    (6, None, 0)
    """
    if 0 in shape:
        return 0
    if None in shape:
        return None
    return prod(size for size in shape if size is not None)
