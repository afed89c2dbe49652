"""Pointers: typed addresses that load and store vectors.

Constant offsets are kept in Python and folded into one address per access, which becomes the
displacement of the machine instruction. A load returns the compute type and a store rounds into
the storage type (`convert`). Accesses need no more alignment than one element has, unless
`aligned` promises a whole vector. With `count` (the first lanes) or `mask`, lanes left out are
neither read nor written, even where the memory behind them does not exist; a load gives zero
there.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import convert
from .emitter import Emitter
from .ints import Int, IntLike, constant_of, text_of
from .types import BF16, I16, I32, I64, Element, suffix, type_text
from .vectors import Mask, Vector, lane_numbers, shuffle

MaskLike = Mask | Sequence[bool]


class Pointer:
    """An address of elements of one storage type."""

    __slots__ = ("_bytes", "_root", "element", "emitter")
    type_text = "ptr"

    def __init__(self, emitter: Emitter, root: str, element: Element, bytes_: int = 0) -> None:
        self.emitter = emitter
        self.element = element
        self._root = root
        self._bytes = bytes_

    def offset(self, elements: IntLike) -> Pointer:
        """Return the address `elements` further on (or back)."""
        size = self.element.size
        constant = constant_of(elements)
        if constant is not None:
            return Pointer(self.emitter, self._root, self.element, self._bytes + constant * size)
        root = self.emitter.value(
            f"getelementptr {self.element.llvm}, ptr {self._root}, i64 {text_of(elements)}"
        )
        return Pointer(self.emitter, root, self.element, self._bytes)

    __add__ = offset

    def as_element(self, element: Element) -> Pointer:
        """Return the same address seen as elements of another type."""
        return Pointer(self.emitter, self._root, element, self._bytes)

    @property
    def text(self) -> str:
        """The address as an operand; writes the constant offset if there is one."""
        if self._bytes == 0:
            return self._root
        return self.emitter.value(f"getelementptr i8, ptr {self._root}, i64 {self._bytes}")

    def renamed(self, text: str) -> Pointer:
        """Return a value of the same kind under another name (for phis)."""
        return Pointer(self.emitter, text, self.element)

    def load(
        self,
        lanes: int = 1,
        *,
        count: IntLike | None = None,
        mask: MaskLike | None = None,
        aligned: bool = False,
    ) -> Vector:
        """Read neighbouring elements into lanes of the compute type."""
        bits = self.load_bits(lanes, count=count, mask=mask, aligned=aligned)
        return convert.widen(bits, self.element)

    def load_bits(
        self,
        lanes: int = 1,
        *,
        count: IntLike | None = None,
        mask: MaskLike | None = None,
        aligned: bool = False,
    ) -> Vector:
        """Read without converting: 16-bit floats stay the integers they are stored as."""
        kind = type_text(self.element, lanes)
        emitter = self.emitter
        run = self._run(lanes, count, mask)
        if run is not None:
            return self._load_run(lanes, *run)
        wanted = self._mask(lanes, count, mask)
        if wanted is _NONE:
            return Vector.constant(emitter, _bits(self.element), lanes, 0)
        alignment = self.element.size * (lanes if aligned else 1)
        if wanted is None:
            text = emitter.value(f"load {kind}, ptr {self.text}, align {alignment}")
        else:
            assert lanes > 1, "one lane has no mask: use k.when"
            text = emitter.call(
                f"llvm.masked.load.{suffix(self.element, lanes)}.p0",
                kind,
                (
                    ("ptr", self.text),
                    ("i32", str(alignment)),
                    (f"<{lanes} x i1>", wanted.text),
                    (kind, "zeroinitializer"),
                ),
            )
        return Vector(emitter, text, _bits(self.element), lanes)

    def store(
        self,
        values: Vector,
        *,
        count: IntLike | None = None,
        mask: MaskLike | None = None,
        aligned: bool = False,
    ) -> None:
        """Round lanes of the compute type into neighbouring elements."""
        bits = convert.narrow(values, self.element)
        self.store_bits(bits, count=count, mask=mask, aligned=aligned)

    def store_bits(
        self,
        bits: Vector,
        *,
        count: IntLike | None = None,
        mask: MaskLike | None = None,
        aligned: bool = False,
    ) -> None:
        """Write without converting what `load_bits` read."""
        lanes, kind = bits.lanes, bits.type_text
        assert kind == type_text(self.element, lanes), (kind, self.element)
        wanted = self._mask(lanes, count, mask)
        if wanted is _NONE:
            return
        alignment = self.element.size * (lanes if aligned else 1)
        if wanted is None:
            self.emitter.line(f"store {kind} {bits.text}, ptr {self.text}, align {alignment}")
        else:
            assert lanes > 1, "one lane has no mask: use k.when"
            self.emitter.call_void(
                f"llvm.masked.store.{suffix(self.element, lanes)}.p0",
                (
                    (kind, bits.text),
                    ("ptr", self.text),
                    ("i32", str(alignment)),
                    (f"<{lanes} x i1>", wanted.text),
                ),
            )

    def _run(
        self, lanes: int, count: IntLike | None, mask: MaskLike | None
    ) -> tuple[int, int] | None:
        """Return which neighbouring lanes are wanted, if they are known and a masked load would be slow."""
        if self.element.size > 2 or "avx512bw" in self.emitter.target.needs:
            return None
        if count is not None:
            constant = constant_of(count)
            mask = None if constant is None else [lane < constant for lane in range(lanes)]
        if mask is None or isinstance(mask, Mask) or all(mask) or not any(mask):
            return None
        first = list(mask).index(True)
        behind = first + sum(mask)
        return (first, behind) if all(mask[first:behind]) else None

    def _load_run(self, lanes: int, first: int, behind: int) -> Vector:
        """Read some neighbouring lanes as two vectors that overlap; 7 lanes are lanes 0-3 and 3-6.

        Before AVX-512 there are no masked loads of 16 bits, and LLVM makes a load of each lane.
        """
        part = 1 << ((behind - first).bit_length() - 1)
        low, high = self.offset(first).load_bits(part), self.offset(behind - part).load_bits(part)
        place = [
            lane - first if lane < first + part else 2 * part - behind + lane
            for lane in range(lanes)
        ]
        inside = [first <= lane < behind for lane in range(lanes)]
        joined = shuffle(
            low, high, [at if here else 0 for at, here in zip(place, inside, strict=True)]
        )
        zeros = Vector.constant(self.emitter, joined.element, lanes, 0)
        return shuffle(
            joined, zeros, [lane + (0 if inside[lane] else lanes) for lane in range(lanes)]
        )

    def load_alternate(self, lanes: int, part: int, mask: MaskLike | None = None) -> Vector:
        """Read the even (part 0) or odd ones of `2 * lanes` neighbouring bfloat16; see `convert`.

        The mask is that of the neighbours.
        """
        assert self.element is BF16, self.element
        return convert.widen_alternate(self.load_bits(2 * lanes, mask=mask), part)

    def store_alternate(self, even: Vector, odd: Vector) -> None:
        """Round and write what two `load_alternate` of the same place are the lanes of."""
        assert self.element is BF16, self.element
        self.store_bits(convert.narrow_alternate(even, odd))

    def broadcast(self, lanes: int) -> Vector:
        """Read one element into every lane."""
        return self.load().broadcast(lanes)

    def load_int(self) -> Int:
        """Read a 32-bit (sign-extended) or 64-bit integer as an `Int`."""
        assert self.element in (I32, I64), self.element
        value = self.load_bits()
        if self.element is I32:
            value = value.cast("sext", I64)
        return Int(self.emitter, value.text)

    def load_pointer(self, element: Element) -> Pointer:
        """Read an address, of elements of some type."""
        assert self.element is I64, self.element
        text = self.emitter.value(f"load ptr, ptr {self.text}, align 8")
        return Pointer(self.emitter, text, element)

    def store_int(self, value: IntLike) -> None:
        """Write a 64-bit integer, or the low half of it."""
        assert self.element in (I32, I64), self.element
        text = text_of(value)
        if self.element is I32 and constant_of(value) is None:
            text = self.emitter.value(f"trunc i64 {text} to i32")
        kind, size = self.element.llvm, self.element.size
        self.emitter.line(f"store {kind} {text}, ptr {self.text}, align {size}")

    def prefetch(self, *, write: bool = False, locality: int = 3) -> None:
        """Ask for this line; 3 is into all caches, 0 is for one use. Any address is safe."""
        self.emitter.call_void(
            "llvm.prefetch.p0",
            (("ptr", self.text), ("i32", str(int(write))), ("i32", str(locality)), ("i32", "1")),
        )

    def _mask(self, lanes: int, count: IntLike | None, mask: MaskLike | None) -> Mask | None:
        """Return the lanes wanted: None for all of them, `_NONE` for none."""
        assert count is None or mask is None
        if count is not None:
            return count_mask(self.emitter, lanes, count)
        if mask is None or isinstance(mask, Mask):
            return mask
        assert len(mask) == lanes, (mask, lanes)
        return _constant_mask(self.emitter, mask)


def count_mask(emitter: Emitter, lanes: int, count: IntLike) -> Mask | None:
    """Return the mask of the first `count` lanes; a count past the lanes means all of them."""
    constant = constant_of(count)
    if constant is not None:
        return _constant_mask(emitter, [lane < constant for lane in range(lanes)])
    assert isinstance(count, Int)
    return lane_numbers(emitter, lanes).less(_clamped(emitter, lanes, count))


def _clamped(emitter: Emitter, lanes: int, number: Int) -> Vector:
    """Return a lane number in every lane.

    32 bits make a mask one comparison per vector; the clamp keeps what lies far outside right.
    """
    inside = number.minimum(lanes).maximum(0)
    scalar = Vector(emitter, emitter.value(f"trunc i64 {inside.text} to i32"), I32, 1)
    return scalar.broadcast(lanes)


def _constant_mask(emitter: Emitter, mask: Sequence[bool]) -> Mask | None:
    if all(mask):
        return None
    if not any(mask):
        return _NONE
    return Mask.constant(emitter, mask)


def _bits(element: Element) -> Element:
    return I16 if element.llvm == "i16" else element


_NONE = Mask.__new__(Mask)
