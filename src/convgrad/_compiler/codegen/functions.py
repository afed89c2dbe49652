"""Functions that are not kernels: signatures of their own, calls, words by name, memory on the stack, atomics.

A `Module` is a text of several functions, written one after the other with a `FunctionBuilder`, conventionally `f`.
They work on 64-bit words: a `Words` is an address whose words may have names.

>>> PAIR = ("FIRST", "SECOND")
>>> module = Module()
>>> with module.function("larger", Signature(INT, (ADDRESS,))) as f:
...     pair = f.words(0, PAIR)
...     with f.when(pair["FIRST"] > pair["SECOND"]):
...         f.returns(pair["FIRST"])
...     f.returns(pair["SECOND"])
>>> print(module.text().splitlines()[0])
define internal i64 @larger(ptr %a0) nounwind {

Nothing is inlined or moved: what is written is what the code generator gets, as for kernels. Functions use integers
and addresses only, so their text is the same on every CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from convgrad._compiler.targets import TARGETS

from . import flow
from .builder import Writer
from .emitter import Emitter
from .flow import Variable
from .ints import Bool, Int, IntLike, text_of
from .memory import Pointer
from .types import I64

Layout = Iterable[str] | Mapping[str, int]
"""Names of words: in their order, or with their numbers."""
Result = TypeVar("Result")


class Words(Pointer):
    """An address of 64-bit words, some of which have names."""

    __slots__ = ("names",)

    def __init__(
        self, emitter: Emitter, root: str, names: Mapping[str, int], bytes_: int = 0
    ) -> None:
        super().__init__(emitter, root, I64, bytes_)
        self.names = names

    def offset(self, elements: IntLike) -> Words:
        """Return the address so many words further on; names stand where they stood, behind the new address."""
        moved = super().offset(elements)
        return Words(self.emitter, moved._root, self.names, moved._bytes)

    def renamed(self, text: str) -> Words:
        return Words(self.emitter, text, self.names)

    def seen_as(self, layout: Layout) -> Words:
        """Return the same address with other names."""
        return Words(self.emitter, self._root, numbered(layout), self._bytes)

    def _at(self, word: str | IntLike) -> Words:
        return self.offset(self.names[word] if isinstance(word, str) else word)

    def __getitem__(self, word: str | IntLike) -> Int:
        return self._at(word).load_int()

    def __setitem__(self, word: str | IntLike, value: IntLike | Pointer) -> None:
        place = self._at(word)
        if isinstance(value, Pointer):
            text = value.text
            self.emitter.line(f"store ptr {text}, ptr {place.text}, align 8")
        else:
            place.store_int(value)

    def follow(self, word: str | IntLike, layout: Layout = (), *, acquire: bool = False) -> Words:
        """Return the address in a word. `acquire`: and see all that was written before it was."""
        place = self._at(word).text
        how = f"load atomic ptr, ptr {place} acquire" if acquire else f"load ptr, ptr {place}"
        return Words(self.emitter, self.emitter.value(f"{how}, align 8"), numbered(layout))

    def count(self, word: str | IntLike, amount: int) -> Int:
        """Add to a word that other threads add to at the same time; returns what it was before."""
        change = f"atomicrmw add ptr {self._at(word).text}, i64 {amount} seq_cst, align 8"
        return Int(self.emitter, self.emitter.value(change))

    def is_null(self) -> Bool:
        return Bool(self.emitter, self.emitter.value(f"icmp eq ptr {self.text}, null"))

    def bits(self) -> Int:
        """Return the address as a number."""
        return Int(self.emitter, self.emitter.value(f"ptrtoint ptr {self.text} to i64"))


def numbered(layout: Layout) -> Mapping[str, int]:
    """Return the numbers of words by their names."""
    if isinstance(layout, Mapping):
        return layout
    return {name: at for at, name in enumerate(layout)}


@dataclass(frozen=True)
class Kind(Generic[Result]):
    """What a function takes or returns, as LLVM spells it; a type of its own says what it is in Python."""

    llvm: str


INT: Kind[Int] = Kind("i64")
INT32: Kind[Int] = Kind("i32")
"""Of C; an `Int` is cut to it, and it is extended with its sign to an `Int`."""
TRUTH: Kind[Bool] = Kind("i1")
ADDRESS: Kind[Words] = Kind("ptr")
NOTHING: Kind[None] = Kind("void")


@dataclass(frozen=True)
class Signature(Generic[Result]):
    result: Kind[Result]
    arguments: tuple[Kind[Any], ...]


@dataclass(frozen=True)
class Function(Generic[Result]):
    """A function of a module."""

    name: str
    signature: Signature[Result]


class FunctionBuilder(Writer):
    """Writes one function."""

    def __init__(self, signature: Signature[Any]) -> None:
        super().__init__(TARGETS[0])  # any row will do: functions have no vectors
        self._signature = signature

    # The frame

    def integer(self, number: int) -> Int:
        """Return an argument that is an integer."""
        assert self._signature.arguments[number] is INT, number
        return Int(self.emitter, f"%a{number}")

    def words(self, number: int, layout: Layout = ()) -> Words:
        """Return an argument that is an address."""
        assert self._signature.arguments[number] is ADDRESS, number
        return Words(self.emitter, f"%a{number}", numbered(layout))

    def stack(self, count: int, layout: Layout = ()) -> Words:
        """Return words that live as long as the call, with whatever was there before."""
        text = self.emitter.once(f"alloca [{count} x i64], align 16")
        return Words(self.emitter, text, numbered(layout))

    def null(self) -> Words:
        return Words(self.emitter, "null", {})

    def truth(self, value: bool) -> Bool:
        return Bool.constant(self.emitter, value)

    def imported(self, symbol: str, layout: Layout = ()) -> Words:
        """Return the address of what is imported by a name (`Module.imports`)."""
        text = self.emitter.value(f"load ptr, ptr @{symbol}.at, align 8")
        return Words(self.emitter, text, numbered(layout))

    def returns(self, value: IntLike | Bool | Words | None = None) -> None:
        """Return; nothing may follow in this block."""
        kind = self._signature.result
        if value is None:
            assert kind is NOTHING, kind
            self.emitter.line("ret void")
        else:
            self.emitter.line(f"ret {kind.llvm} {self._spelled(kind, value)}")
        self.emitter.ended = True

    # Calls

    def call(self, function: Function[Result], *arguments: IntLike | Bool | Pointer) -> Result:
        """Call a function of this module."""
        return self._call(f"@{function.name}", function.signature, arguments)

    def through(
        self, address: Words, signature: Signature[Result], *arguments: IntLike | Bool | Pointer
    ) -> Result:
        """Call what is at an address."""
        return self._call(address.text, signature, arguments)

    def leave_to(
        self, address: Words, signature: Signature[None], *arguments: IntLike | Bool | Pointer
    ) -> None:
        """Return by a call of what is at an address: it takes the place of this function's frame.

        So it may raise an exception of C++, although no table says how to unwind our frames. A function that does this
        has no words on the stack, and its module must know (`Module.function`).
        """
        assert signature.result is self._signature.result is NOTHING, signature
        assert not self.emitter.prologue, "what is on the stack cannot be left behind"
        self.emitter.line(f"tail call void {address.text}({self._given(signature, arguments)})")
        self.returns()

    def _given(
        self, signature: Signature[Any], arguments: tuple[IntLike | Bool | Pointer, ...]
    ) -> str:
        return ", ".join(
            f"{kind.llvm} {self._spelled(kind, value)}"
            for kind, value in zip(signature.arguments, arguments, strict=True)
        )

    def _call(
        self,
        callee: str,
        signature: Signature[Result],
        arguments: tuple[IntLike | Bool | Pointer, ...],
    ) -> Result:
        kind: Kind[Any] = signature.result
        line = f"call {kind.llvm} {callee}({self._given(signature, arguments)})"
        if kind is NOTHING:
            self.emitter.line(line)
            return cast(Result, None)
        text = self.emitter.value(line)
        if kind is ADDRESS:
            return cast(Result, Words(self.emitter, text, {}))
        if kind is TRUTH:
            return cast(Result, Bool(self.emitter, text))
        if kind is INT32:
            text = self.emitter.value(f"sext i32 {text} to i64")
        return cast(Result, Int(self.emitter, text))

    def _spelled(self, kind: Kind[Any], value: IntLike | Bool | Pointer) -> str:
        if isinstance(value, Pointer):
            assert kind is ADDRESS, kind
            return value.text
        if isinstance(value, Bool):
            assert kind is TRUTH, kind
            return value.text
        assert kind in (INT, INT32), kind
        if kind is INT32 and isinstance(value, Int) and value.value is None:
            return self.emitter.value(f"trunc i64 {value.text} to i32")
        return text_of(value)

    # Flow

    def forever(self, *, carry: Iterable[Variable[Any]] = ()) -> AbstractContextManager[None]:
        """Repeat a block until it returns; `carry` lists the variables it changes."""
        return flow.forever(self.emitter, carry)


class Module:
    """A text of several functions."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._functions: list[str] = []

    def imports(self, symbol: str) -> None:
        """Let functions find something whose address is known when they are loaded."""
        self._head += [
            f"@{symbol} = external global i8",
            f"@{symbol}.at = internal constant ptr @{symbol}, align 8",
        ]

    @contextmanager
    def function(
        self, name: str, signature: Signature[Any], *, internal: bool = True, raises: bool = False
    ) -> Iterator[FunctionBuilder]:
        """Write a function; one that is not `internal` is found by its name.

        `raises`: what it is left to may raise (`FunctionBuilder.leave_to`).
        """
        f = FunctionBuilder(signature)
        yield f
        emitter = f.emitter
        assert not emitter.scopes, "a loop or a branch is still open"
        if not emitter.ended:
            assert signature.result is NOTHING, f"{name} ends without a result"
            f.returns()
        linkage = "internal" if internal else "dso_local"
        given = ", ".join(f"{kind.llvm} %a{at}" for at, kind in enumerate(signature.arguments))
        ending = "" if raises else "nounwind "
        begin = f"define {linkage} {signature.result.llvm} @{name}({given}) {ending}{{"
        self._functions.append(
            "\n".join([begin, "entry:", *emitter.prologue, *emitter.body, "}\n"])
        )

    def text(self) -> str:
        """Return all functions."""
        return "\n".join([*self._head, *self._functions])
