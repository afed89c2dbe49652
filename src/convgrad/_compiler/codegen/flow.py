"""Loops, branches and the variables whose values flow through them.

A `Variable` holds the current value of something that changes: a sum, a running pointer. Setting
one inside a branch is enough: where the paths meet, the phi is written for it. A loop names the
variables it carries around, because the first line of its body must already know them; changing
any other one inside is an error here, not in LLVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

from .emitter import Emitter
from .ints import Bool, Int, IntLike, constant_of, text_of
from .memory import Pointer
from .vectors import Vector

Value = TypeVar("Value", bound=Vector | Int | Pointer)


class Variable(Generic[Value]):
    """A value that changes as the kernel runs."""

    __slots__ = ("_current", "_depth")

    def __init__(self, value: Value) -> None:
        self._current: Value = _settled(value)
        self._depth = len(value.emitter.scopes)

    @property
    def value(self) -> Value:
        return self._current

    @value.setter
    def value(self, value: Value) -> None:
        scopes = value.emitter.scopes
        if self._depth < len(scopes):
            scopes[-1].setdefault(self, self._current)
        self._current = _settled(value)


def _settled(value: Any) -> Any:
    """Write a pointer's constant offset now: a phi cannot add it where the paths meet."""
    return value.renamed(value.text) if isinstance(value, Pointer) else value


def _phi(name: str, kind: str, sources: Iterable[tuple[str, str]]) -> str:
    pairs = ", ".join(f"[ {text}, %{block} ]" for text, block in sources)
    return f"{name} = phi {kind} {pairs}"


class _Arms:
    """Paths that part at one block and meet at another."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.done = emitter.label()
        self._before: dict[Variable[Any], Any] = {}
        self._ends: list[tuple[str, dict[Variable[Any], str]]] = []

    @contextmanager
    def arm(self, label: str) -> Iterator[None]:
        emitter = self.emitter
        emitter.start(label)
        emitter.scopes.append({})
        yield
        before = emitter.scopes.pop()
        if emitter.ended:  # it returned: this path does not meet the others
            emitter.ended = False
            for variable, value in before.items():
                variable._current = value
            return
        after = {variable: variable.value.text for variable in before}
        self._ends.append((emitter.block, after))
        for variable, value in before.items():
            variable._current = value
            self._before.setdefault(variable, value)
        emitter.jump(self.done)

    def fall_through(self, block: str) -> None:
        """Add a path that leads from `block` straight to the end."""
        self._ends.append((block, {}))

    def meet(self) -> None:
        emitter = self.emitter
        if not self._ends:
            emitter.ended = True
            return
        emitter.start(self.done)
        for variable, before in self._before.items():
            sources = []
            for block, after in self._ends:
                sources.append((after.get(variable, before.text), block))
            name = emitter.name()
            emitter.line(_phi(name, before.type_text, sources))
            variable.value = before.renamed(name)


@contextmanager
def when(emitter: Emitter, condition: Bool) -> Iterator[None]:
    """Run the block where `condition` holds."""
    if condition.value:
        yield
        return
    arms = _Arms(emitter)
    label = emitter.label()
    emitter.fork(condition.text, label, arms.done)
    arms.fall_through(emitter.block)
    with arms.arm(label):
        yield
    arms.meet()


class Branch:
    """The two arms of `branch`: each is used once, in `with`, the first one first."""

    def __init__(self, arms: _Arms, yes: str, no: str) -> None:
        self._arms = arms
        self._labels = {"then": yes, "otherwise": no}

    def then(self) -> AbstractContextManager[None]:
        return self._arms.arm(self._labels.pop("then"))

    def otherwise(self) -> AbstractContextManager[None]:
        return self._arms.arm(self._labels.pop("otherwise"))


@contextmanager
def branch(emitter: Emitter, condition: Bool) -> Iterator[Branch]:
    """Run one of two blocks."""
    arms = _Arms(emitter)
    yes, no = emitter.label(), emitter.label()
    emitter.fork(condition.text, yes, no)
    both = Branch(arms, yes, no)
    yield both
    assert not both._labels, f"unused arm: {sorted(both._labels)}"
    arms.meet()


def cases(emitter: Emitter, value: Int, values: Iterable[int]) -> Iterator[int]:
    """Yield each of `values`; what is written then runs where `value` equals it, and nothing
    elsewhere.

    The Python loop must run to its end.
    """
    wanted = list(values)
    arms = _Arms(emitter)
    labels = {case: emitter.label() for case in wanted}
    table = " ".join(f"i64 {case}, label %{label}" for case, label in labels.items())
    arms.fall_through(emitter.block)
    emitter.line(f"switch i64 {value.text}, label %{arms.done} [ {table} ]")
    for case, label in labels.items():
        with arms.arm(label):
            yield case
    arms.meet()


def _opaque(emitter: Emitter, index: str) -> str:
    """Hide from LLVM's loop strength reduction that a loop's index is one.

    That pass weighs every address of an unrolled tile against every other. It took 11 of the 31 ms
    for a 3x3 depthwise kernel and 15 of 52 for a 5x5 one (Zen 3, LLVM 22), and the code ran no
    faster. Its off switch gives objects of exactly the same sizes as this, but is global to the
    process and would reach other users of LLVM. LLVM looks through a freeze of the bare index, but
    not of a sum.
    """
    same = emitter.value(f"add i64 {index}, 0")
    return emitter.value(f"freeze i64 {same}")


@contextmanager
def loop(
    emitter: Emitter,
    start: IntLike,
    stop: IntLike,
    step: int,
    carry: Iterable[Variable[Any]],
    nonempty: bool,
) -> Iterator[Int]:
    """Count from `start` to below `stop`; `nonempty` promises that start < stop.

    The test stands at the end, with one guard before the loop unless it is known to run.
    """
    assert step > 0
    carried = list(carry)
    first, last = constant_of(start), constant_of(stop)
    if first is not None and last is not None:
        if first < last <= first + step:
            yield Int.constant(emitter, first)
            return
        nonempty = first < last
    before, head, done = emitter.block, emitter.label(), emitter.label()
    entering = [variable.value for variable in carried]
    entering_texts = [value.text for value in entering]
    if nonempty:
        emitter.jump(head)
    else:
        guard = emitter.value(f"icmp slt i64 {text_of(start)}, {text_of(stop)}")
        emitter.fork(guard, head, done)
    emitter.start(head)
    index, index_hole = emitter.name(), emitter.hole()
    names, holes = [emitter.name() for _ in carried], [emitter.hole() for _ in carried]
    for variable, value, name in zip(carried, entering, names, strict=True):
        variable.value = value.renamed(name)
    emitter.scopes.append({})
    yield Int(emitter, _opaque(emitter, index))
    assert not emitter.ended, "a loop whose body always returns runs once: write no loop"
    changed = emitter.scopes.pop()
    forgotten = changed.keys() - set(carried)
    assert not forgotten, f"{len(forgotten)} variables change in a loop that does not carry them"
    leaving_texts = [variable.value.text for variable in carried]
    following = emitter.value(f"add nsw i64 {index}, {step}")
    again = emitter.value(f"icmp slt i64 {following}, {text_of(stop)}")
    latch = emitter.block
    emitter.fork(again, head, done)
    sources = ((text_of(start), before), (following, latch))
    emitter.fill(index_hole, _phi(index, "i64", sources))
    for value, name, hole, enter, leave in zip(
        entering, names, holes, entering_texts, leaving_texts, strict=True
    ):
        pairs = ((enter, before), (leave, latch))
        emitter.fill(hole, _phi(name, value.type_text, pairs))
    emitter.start(done)
    for variable, value, enter, leave in zip(
        carried, entering, entering_texts, leaving_texts, strict=True
    ):
        text = leave
        if not nonempty:
            text = emitter.name()
            emitter.line(_phi(text, value.type_text, ((enter, before), (leave, latch))))
        variable.value = value.renamed(text)


@contextmanager
def forever(emitter: Emitter, carry: Iterable[Variable[Any]]) -> Iterator[None]:
    """Repeat until the function returns."""
    carried = list(carry)
    before, head = emitter.block, emitter.label()
    entering = [variable.value for variable in carried]
    entering_texts = [value.text for value in entering]
    emitter.jump(head)
    emitter.start(head)
    names, holes = [emitter.name() for _ in carried], [emitter.hole() for _ in carried]
    for variable, value, name in zip(carried, entering, names, strict=True):
        variable.value = value.renamed(name)
    emitter.scopes.append({})
    yield
    assert not emitter.ended, "a loop whose body always returns runs once: write no loop"
    changed = emitter.scopes.pop()
    forgotten = changed.keys() - set(carried)
    assert not forgotten, f"{len(forgotten)} variables change in a loop that does not carry them"
    leaving_texts = [variable.value.text for variable in carried]
    latch = emitter.block
    emitter.jump(head)
    for value, name, hole, enter, leave in zip(
        entering, names, holes, entering_texts, leaving_texts, strict=True
    ):
        pairs = ((enter, before), (leave, latch))
        emitter.fill(hole, _phi(name, value.type_text, pairs))
    emitter.ended = True
