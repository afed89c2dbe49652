"""`KernelBuilder`: the language kernels are written in. See the package docstring for a worked
example.

It gathers the parts of this package behind one name, `k`, and adds the kernel's own frame: its
arguments, its items, its workspace. It knows no convolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, overload

from convgrad._compiler.kernel import KernelSource
from convgrad._compiler.targets import Target

from . import flow
from .emitter import Emitter
from .flow import Branch, Value, Variable
from .ints import Bool, Int, IntLike
from .memory import Pointer, count_mask
from .types import Element
from .vectors import Mask, Vector, fma, select, shuffle, square_root

_LINE = 64
"""Workspace blocks start on cache lines."""


class Writer:
    """What kernels and other functions are written with: integers, variables, loops and branches."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.emitter = Emitter(target)

    # Values

    def i64(self, value: IntLike) -> Int:
        """Return a constant as an `Int`; an `Int` stays what it is."""
        return value if isinstance(value, Int) else Int.constant(self.emitter, value)

    def variable(self, value: Value) -> Variable[Value]:
        """Return a variable that starts as `value`."""
        return Variable(value)

    def min(self, a: IntLike, b: IntLike) -> Int:
        return self.i64(a).minimum(b)

    def max(self, a: IntLike, b: IntLike) -> Int:
        return self.i64(a).maximum(b)

    @overload
    def select(self, condition: Mask, yes: Vector, no: Vector) -> Vector: ...
    @overload
    def select(self, condition: Bool, yes: Value, no: Value) -> Value: ...
    def select(self, condition, yes, no):  # type: ignore[no-untyped-def]  # typed by the overloads
        """Choose without a branch: lane by lane with a mask, as a whole with a `Bool`."""
        if isinstance(condition, Mask):
            return select(condition, yes, no)
        if condition.value is not None:
            return yes if condition.value else no
        kind = yes.type_text
        return yes.renamed(
            self.emitter.value(f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}")
        )

    # Flow

    def loop(
        self,
        start: IntLike,
        stop: IntLike,
        step: int = 1,
        *,
        carry: Iterable[Variable[Any]] = (),
        nonempty: bool = False,
    ) -> AbstractContextManager[Int]:
        """Count from `start` to below `stop`: ``with k.loop(0, n) as i``.

        `carry` lists the variables the body changes. `nonempty` promises start < stop and saves the
        guard.
        """
        return flow.loop(self.emitter, start, stop, step, carry, nonempty)

    def when(self, condition: Bool) -> AbstractContextManager[None]:
        """Run a block where `condition` holds: ``with k.when(i < n)``."""
        return flow.when(self.emitter, condition)

    def branch(self, condition: Bool) -> AbstractContextManager[Branch]:
        """Run one of two blocks: in ``with k.branch(c) as b`` stand ``with b.then()`` and
        ``with b.otherwise()``."""
        return flow.branch(self.emitter, condition)

    def cases(self, value: Int, values: Iterable[int]) -> Iterator[int]:
        """Write one block per constant: ``for n in k.cases(value, range(1, 8))``."""
        return flow.cases(self.emitter, value, values)


class KernelBuilder(Writer):
    """Writes one kernel."""

    def __init__(self, symbol: str, target: Target) -> None:
        super().__init__(target)
        self.symbol = symbol
        self.begin = Int(self.emitter, "%begin")
        """First work item of this call."""
        self.end = Int(self.emitter, "%end")
        """One past the last."""
        self._words: dict[tuple[int, str], str] = {}
        self._scratch_bytes = 0

    def lanes(self, element: Element) -> int:
        """Return how many lanes of a compute type fill one vector of the target."""
        return self.target.lanes(element.size)

    # The frame

    def arg_pointer(self, word: int, element: Element) -> Pointer:
        """Return word `word` of the argument block as a pointer to `element`s."""
        return Pointer(self.emitter, self._word(word, "ptr"), element)

    def arg_i64(self, word: int) -> Int:
        """Return word `word` of the argument block as an integer."""
        return Int(self.emitter, self._word(word, "i64"))

    def _word(self, word: int, kind: str) -> str:
        if (word, kind) not in self._words:
            place = self.emitter.once(f"getelementptr i64, ptr %args, i64 {word}")
            self._words[word, kind] = self.emitter.once(
                f"load {kind}, ptr {place}, align 8, !invariant.load !0"
            )
        return self._words[word, kind]

    def scratch(self, element: Element, count: int) -> Pointer:
        """Reserve `count` elements of this thread's workspace, 64-byte aligned, not cleared."""
        start = self._scratch_bytes
        self._scratch_bytes += -(-count * element.size // _LINE) * _LINE
        return Pointer(self.emitter, "%scratch", element, start)

    def finish(self) -> KernelSource:
        """Return the kernel; nothing may be written after this."""
        assert not self.emitter.scopes, "a loop or a branch is still open"
        return KernelSource(self.symbol, self.emitter.text(self.symbol), self._scratch_bytes)

    # Values

    def forget_loads(self) -> None:
        """Keep LLVM from reusing a load from before this point after it. It emits no instruction."""
        self.emitter.line('fence syncscope("singlethread") seq_cst')

    def zeros(self, element: Element, lanes: int) -> Vector:
        return Vector.constant(self.emitter, element, lanes, 0)

    def constant(self, element: Element, lanes: int, value: float) -> Vector:
        """Return a vector with `value`, rounded to `element`, in all lanes."""
        return Vector.constant(self.emitter, element, lanes, value)

    def mask(self, lanes: Sequence[bool]) -> Mask:
        """Return a constant mask."""
        return Mask.constant(self.emitter, lanes)

    def first_lanes(self, lanes: int, count: Int) -> Mask:
        """Return the mask of the first `count` of `lanes` lanes, to use for several accesses."""
        mask = count_mask(self.emitter, lanes, count)
        assert mask is not None
        return mask

    def fma(self, a: Vector, b: Vector, c: Vector) -> Vector:
        """Return a * b + c; see `vectors.fma`."""
        return fma(a, b, c)

    def sqrt(self, value: Vector) -> Vector:
        """Return the square root of each lane; see `vectors.square_root`."""
        return square_root(value)

    def number(self, value: Int, element: Element) -> Vector:
        """Return an integer as a scalar of a floating type."""
        text = self.emitter.value(f"sitofp i64 {value.text} to {element.llvm}")
        return Vector(self.emitter, text, element, 1)

    def shuffle(self, a: Vector, b: Vector | None, lanes: Sequence[int]) -> Vector:
        """Pick lanes by number; those of `b` count on from the end of `a`."""
        return shuffle(a, b, lanes)
