"""Vectors in registers: arithmetic, shuffles, masks, sums in a fixed order.

A `Vector` of one lane is a scalar. Arithmetic is exactly what is written: no contraction, no
reassociation, so a kernel gives the same bits every time. Integer arithmetic wraps.
"""

from __future__ import annotations

from collections.abc import Sequence

from .emitter import Emitter
from .types import F32, F64, I32, Element, constant_text, index_text, mask_text, suffix, type_text


class Mask:
    """One truth per lane."""

    __slots__ = ("emitter", "lanes", "text")

    def __init__(self, emitter: Emitter, text: str, lanes: int) -> None:
        self.emitter = emitter
        self.text = text
        self.lanes = lanes

    @staticmethod
    def constant(emitter: Emitter, lanes: Sequence[bool]) -> Mask:
        return Mask(emitter, mask_text(tuple(map(bool, lanes))), len(lanes))


class Vector:
    """Some lanes of one compute type."""

    __slots__ = ("element", "emitter", "lanes", "text", "type_text")

    def __init__(self, emitter: Emitter, text: str, element: Element, lanes: int) -> None:
        self.emitter = emitter
        self.text = text
        self.element = element
        self.lanes = lanes
        self.type_text = type_text(element, lanes)

    @staticmethod
    def constant(emitter: Emitter, element: Element, lanes: int, value: float) -> Vector:
        return Vector(emitter, constant_text(element, lanes, value), element, lanes)

    def renamed(self, text: str) -> Vector:
        """Return a value of the same kind under another name (for phis)."""
        return Vector(self.emitter, text, self.element, self.lanes)

    def __add__(self, other: VectorLike) -> Vector:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: VectorLike) -> Vector:
        return self._binary("fsub", "sub", other)

    def __mul__(self, other: VectorLike) -> Vector:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: VectorLike) -> Vector:
        assert self.element.is_float, "integers have no vector division"
        return self._binary("fdiv", "", other)

    def __neg__(self) -> Vector:
        if self.element.is_float:
            return self.renamed(self.emitter.value(f"fneg {self.type_text} {self.text}"))
        return Vector.constant(self.emitter, self.element, self.lanes, 0) - self

    def _binary(self, float_opcode: str, int_opcode: str, other: VectorLike) -> Vector:
        opcode = float_opcode if self.element.is_float else int_opcode
        return self.renamed(
            self.emitter.value(f"{opcode} {self.type_text} {self.text}, {self._operand(other)}")
        )

    def _operand(self, other: VectorLike) -> str:
        if isinstance(other, Vector):
            assert other.type_text == self.type_text, (other.type_text, self.type_text)
            return other.text
        return constant_text(self.element, self.lanes, other)

    def bitwise(self, opcode: str, other: int | Vector) -> Vector:
        """Integer lanes only: and, or, xor, shl, lshr, ashr."""
        assert not self.element.is_float
        return self._binary("", opcode, other)

    def less(self, other: VectorLike) -> Mask:
        """Signed or ordered comparison; false where either lane is a NaN."""
        return self.compare("olt", "slt", other)

    def compare(self, float_predicate: str, int_predicate: str, other: VectorLike) -> Mask:
        """Compare lane by lane with LLVM's predicate for the kind of lane."""
        opcode, predicate = (
            ("fcmp", float_predicate) if self.element.is_float else ("icmp", int_predicate)
        )
        text = self.emitter.value(
            f"{opcode} {predicate} {self.type_text} {self.text}, {self._operand(other)}"
        )
        return Mask(self.emitter, text, self.lanes)

    def bitcast(self, element: Element) -> Vector:
        """Reread the bits of all lanes as lanes of another type."""
        lanes = self.lanes * self.element.size // element.size
        kind = type_text(element, lanes)
        if kind == self.type_text:
            return Vector(self.emitter, self.text, element, lanes)
        return Vector(
            self.emitter,
            self.emitter.value(f"bitcast {self.type_text} {self.text} to {kind}"),
            element,
            lanes,
        )

    def cast(self, opcode: str, element: Element) -> Vector:
        """Convert lane by lane with LLVM's opcode (zext, trunc, fpext, sitofp, ...)."""
        kind = type_text(element, self.lanes)
        text = self.emitter.value(f"{opcode} {self.type_text} {self.text} to {kind}")
        return Vector(self.emitter, text, element, self.lanes)

    def lane(self, index: int) -> Vector:
        """Return one lane as a scalar."""
        assert 0 <= index < self.lanes
        if self.lanes == 1:
            return self
        text = self.emitter.value(f"extractelement {self.type_text} {self.text}, i32 {index}")
        return Vector(self.emitter, text, self.element, 1)

    def with_lane(self, index: int, scalar: Vector) -> Vector:
        """Return these lanes with one of them replaced."""
        assert 0 <= index < self.lanes and scalar.lanes == 1
        if self.lanes == 1:
            return scalar
        return self.renamed(
            self.emitter.value(
                f"insertelement {self.type_text} {self.text}, "
                f"{scalar.type_text} {scalar.text}, i32 {index}"
            )
        )

    def broadcast(self, lanes: int) -> Vector:
        """Repeat a scalar in every lane."""
        assert self.lanes == 1
        if lanes == 1:
            return self
        kind = type_text(self.element, lanes)
        first = self.emitter.value(
            f"insertelement {kind} poison, {self.type_text} {self.text}, i32 0"
        )
        return shuffle(Vector(self.emitter, first, self.element, lanes), None, (0,) * lanes)

    def part(self, first: int, lanes: int) -> Vector:
        """Return `lanes` neighbouring lanes, from `first` on."""
        if lanes == 1:
            return self.lane(first)
        return shuffle(self, None, range(first, first + lanes))

    def sum(self) -> Vector:
        """Add all lanes, halves onto halves: ((0+4)+(2+6))+((1+5)+(3+7)) for eight."""
        total = self
        while total.lanes > 1:
            half = total.lanes // 2
            assert half * 2 == total.lanes
            total = total.part(0, half) + total.part(half, half)
        return total


VectorLike = Vector | float


def shuffle(first: Vector, second: Vector | None, lanes: Sequence[int]) -> Vector:
    """Pick lanes by number; those of `second` count on from the end of `first`."""
    if first.lanes == 1:  # LLVM shuffles no scalars
        result = Vector(first.emitter, "poison", first.element, len(lanes))
        for place, lane in enumerate(lanes):
            source = first if lane == 0 else second
            assert source is not None
            result = result.with_lane(place, source)
        return result
    other = "poison" if second is None else second.text
    text = first.emitter.value(
        f"shufflevector {first.type_text} {first.text}, {first.type_text} {other}, "
        f"{index_text(tuple(lanes))}"
    )
    return Vector(first.emitter, text, first.element, len(lanes))


def select(mask: Mask, yes: Vector, no: Vector) -> Vector:
    """Choose lane by lane."""
    kind = "i1" if mask.lanes == 1 else f"<{mask.lanes} x i1>"
    return yes.renamed(
        yes.emitter.value(
            f"select {kind} {mask.text}, {yes.type_text} {yes.text}, {no.type_text} {no.text}"
        )
    )


def fma(a: Vector, b: Vector, c: Vector) -> Vector:
    """Return a * b + c: rounded once where the target can, else after each step."""
    if a.element in (F32, F64) and a.emitter.target.fuses(a.element.size):
        assert a.type_text == b.type_text == c.type_text
        kind = a.type_text
        function = f"llvm.fma.{suffix(a.element, a.lanes)}"
        a.emitter.declare(function, kind, (kind, kind, kind))
        return a.renamed(
            a.emitter.value(
                f"call {kind} @{function}({kind} {a.text}, {kind} {b.text}, {kind} {c.text})"
            )
        )
    return a * b + c


def square_root(value: Vector) -> Vector:
    """Return the square root of each lane, rounded once: an instruction everywhere."""
    function = f"llvm.sqrt.{suffix(value.element, value.lanes)}"
    kind = value.type_text
    return value.renamed(value.emitter.call(function, kind, ((kind, value.text),)))


def lane_numbers(emitter: Emitter, lanes: int) -> Vector:
    """Return <0, 1, 2, ...> as 32-bit integers."""
    assert lanes > 1
    numbers = index_text(tuple(range(lanes))).partition(" i32> ")[2]
    return Vector(emitter, numbers, I32, lanes)
