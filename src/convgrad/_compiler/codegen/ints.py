"""Run-time integers and truths: 64-bit arithmetic for addresses, bounds and branches.

An `Int` may be a constant: arithmetic on constants happens in Python and writes nothing, and so
do adding nothing and multiplying by one. That folding replaces LLVM's mid-level passes, which
kernels never run. Division is unsigned, since sizes and positions are never negative.
"""

from __future__ import annotations

from .emitter import Emitter


class Bool:
    """A truth known at run time (or a constant one)."""

    __slots__ = ("emitter", "text", "value")

    def __init__(self, emitter: Emitter, text: str, value: bool | None = None) -> None:
        self.emitter = emitter
        self.text = text
        self.value = value
        """The constant, or None."""

    @staticmethod
    def constant(emitter: Emitter, value: bool) -> Bool:
        return Bool(emitter, "true" if value else "false", value)

    def __and__(self, other: Bool) -> Bool:
        if self.value is not None:
            return other if self.value else self
        if other.value is not None:
            return self if other.value else other
        return Bool(self.emitter, self.emitter.value(f"and i1 {self.text}, {other.text}"))

    def __or__(self, other: Bool) -> Bool:
        if self.value is not None:
            return self if self.value else other
        if other.value is not None:
            return other if other.value else self
        return Bool(self.emitter, self.emitter.value(f"or i1 {self.text}, {other.text}"))

    def __invert__(self) -> Bool:
        if self.value is not None:
            return Bool.constant(self.emitter, not self.value)
        return Bool(self.emitter, self.emitter.value(f"xor i1 {self.text}, true"))

    def __bool__(self) -> bool:
        raise TypeError("a run-time truth cannot steer Python: use k.when, k.branch or k.select")


class Int:
    """A 64-bit integer known at run time (or a constant one)."""

    __slots__ = ("emitter", "text", "value")
    type_text = "i64"

    def __init__(self, emitter: Emitter, text: str, value: int | None = None) -> None:
        self.emitter = emitter
        self.text = text
        self.value = value
        """The constant, or None."""

    @staticmethod
    def constant(emitter: Emitter, value: int) -> Int:
        return Int(emitter, str(value), value)

    def renamed(self, text: str) -> Int:
        """Return a value of the same kind under another name (for phis)."""
        return Int(self.emitter, text)

    def _write(self, opcode: str, left: str, right: str) -> Int:
        return Int(self.emitter, self.emitter.value(f"{opcode} i64 {left}, {right}"))

    def __add__(self, other: IntLike) -> Int:
        value = constant_of(other)
        if value is not None:
            if self.value is not None:
                return Int.constant(self.emitter, self.value + value)
            if value == 0:
                return self
        elif self.value == 0:
            assert isinstance(other, Int)
            return other
        return self._write("add", self.text, text_of(other))

    __radd__ = __add__

    def __sub__(self, other: IntLike) -> Int:
        value = constant_of(other)
        if value is not None:
            return self + -value
        return self._write("sub", self.text, text_of(other))

    def __rsub__(self, other: int) -> Int:
        if self.value is not None:
            return Int.constant(self.emitter, other - self.value)
        return self._write("sub", str(other), self.text)

    def __neg__(self) -> Int:
        return 0 - self

    def __mul__(self, other: IntLike) -> Int:
        value = constant_of(other)
        if value is None and self.value is not None:
            assert isinstance(other, Int)
            return other * self.value
        if value is not None:
            if self.value is not None:
                return Int.constant(self.emitter, self.value * value)
            if value == 0:
                return Int.constant(self.emitter, 0)
            if value == 1:
                return self
        return self._write("mul", self.text, text_of(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: IntLike) -> Int:
        value = constant_of(other)
        if value is not None:
            if self.value is not None:
                assert self.value >= 0 and value > 0, "// is unsigned"
                return Int.constant(self.emitter, self.value // value)
            if value == 1:
                return self
        return self._write("udiv", self.text, text_of(other))

    def __rfloordiv__(self, other: int) -> Int:
        return Int.constant(self.emitter, other) // self

    def __mod__(self, other: IntLike) -> Int:
        value = constant_of(other)
        if value is not None:
            if self.value is not None:
                assert self.value >= 0 and value > 0, "% is unsigned"
                return Int.constant(self.emitter, self.value % value)
            if value == 1:
                return Int.constant(self.emitter, 0)
        return self._write("urem", self.text, text_of(other))

    def __rmod__(self, other: int) -> Int:
        return Int.constant(self.emitter, other) % self

    def __and__(self, other: IntLike) -> Int:
        return self._write("and", self.text, text_of(other))

    def __or__(self, other: IntLike) -> Int:
        return self._write("or", self.text, text_of(other))

    def __xor__(self, other: IntLike) -> Int:
        return self._write("xor", self.text, text_of(other))

    def high_bits(self, bits: int) -> Int:
        """Shift right, filling with zeros."""
        return self._write("lshr", self.text, str(bits))

    def __lshift__(self, bits: int) -> Int:
        return self * (1 << bits)

    def __rshift__(self, bits: int) -> Int:
        """Shift right, keeping the sign."""
        if self.value is not None:
            return Int.constant(self.emitter, self.value >> bits)
        return self if bits == 0 else self._write("ashr", self.text, str(bits))

    def _compare(self, predicate: str, other: IntLike) -> Bool:
        value = constant_of(other)
        if value is not None and self.value is not None:
            return Bool.constant(self.emitter, _PREDICATES[predicate](self.value, value))
        return Bool(
            self.emitter, self.emitter.value(f"icmp {predicate} i64 {self.text}, {text_of(other)}")
        )

    def __lt__(self, other: IntLike) -> Bool:
        return self._compare("slt", other)

    def __le__(self, other: IntLike) -> Bool:
        return self._compare("sle", other)

    def __gt__(self, other: IntLike) -> Bool:
        return self._compare("sgt", other)

    def __ge__(self, other: IntLike) -> Bool:
        return self._compare("sge", other)

    def equals(self, other: IntLike) -> Bool:
        return self._compare("eq", other)

    def differs(self, other: IntLike) -> Bool:
        return self._compare("ne", other)

    def inside(self, size: IntLike) -> Bool:
        """Tell whether 0 <= self < size, with one comparison."""
        return self._compare("ult", size)

    def minimum(self, other: IntLike) -> Int:
        return self._pick("slt", other)

    def maximum(self, other: IntLike) -> Int:
        return self._pick("sgt", other)

    def _pick(self, predicate: str, other: IntLike) -> Int:
        condition = self._compare(predicate, other)
        if condition.value is not None:
            value = constant_of(other)
            assert value is not None
            return self if condition.value else Int.constant(self.emitter, value)
        other_text = text_of(other)
        return Int(
            self.emitter,
            self.emitter.value(f"select i1 {condition.text}, i64 {self.text}, i64 {other_text}"),
        )


IntLike = Int | int

_BITS = 1 << 64
_PREDICATES = {
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ult": lambda a, b: a % _BITS < b % _BITS,
}


def constant_of(value: IntLike) -> int | None:
    """Return the constant a value is, or None."""
    return value if isinstance(value, int) else value.value


def text_of(value: IntLike) -> str:
    """Spell a value as an operand."""
    return str(value) if isinstance(value, int) else value.text
