"""What XLA calls for one of our sums or passes: compiled functions, and the words they work on.

XLA's interface for foreign functions hands a handler one frame: buffers of operands and results, attributes, and a
table of functions for errors. Nothing in it tells which program to run, except the name a handler was registered by.
So every program has a handler of its own: `SLOTS` little functions at a time, each with the number of a slot, which
all go to the same code. A slot is a row of words in a block that Python fills before it registers the handler.

No pointer and no number of a slot is written into what XLA compiles, so that its executables can be kept on disk and
run by another process, whose slots are others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from ..._runtime.entry import NO_MEMORY
from ..._runtime.program import MOST_PLACES
from ..records import GIVEN, RECORD
from ..serve import (
    ADDRESS,
    I32,
    INT,
    Bool,
    Function,
    FunctionBuilder,
    Int,
    Module,
    Signature,
    Words,
    carry_out,
)

SLOTS = 64
"""Handlers that are loaded at a time: a network of 50 convolutions has some 100 programs, and the code of 64 takes
30 ms to compile, once per machine."""

BLOCK = ("RUN", "MAJOR", "MINOR", "EMPTY", "BROKEN")
"""The head of a block: the entry; the version of the interface; messages for a slot without a program, and for a
program that the entry does not know."""
SLOT = ("RECORD", "OPERANDS", "RESULTS", "NO_MEMORY", "MISFIT")
"""A slot: the record of the only call that its handler serves, or 0, and how many operands and results are given: XLA
makes the results, so the record makes none. Then messages for a lack of memory, and for arrays of other sizes."""
MOST = 2 * MOST_PLACES
"""Places of a call: more than any program has, so that constants fit beside them."""
BLOCK_SYMBOL = "cg_jax_block"

INTERNAL, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 13, 3, 8, 9
"""Codes of errors."""


@dataclass(frozen=True)
class HandlerSource:
    """The text of a slab of handlers; all slabs are one object on disk, loaded with blocks of their own."""

    number: int = field(repr=False)
    name: str
    symbols: tuple[str, ...]
    text: str


def source(number: int) -> HandlerSource:
    """Return the handlers of a slab."""
    symbols = tuple(f"cg_jax_{slot}" for slot in range(SLOTS))
    return HandlerSource(number, "cg_jax", symbols, text())


# Structs are those of xla/ffi/api/c_api.h on machines with 64-bit pointers (`abi` compares the header), in words of
# 64 bits.
_FRAME = {
    "EXTENSION": 1,
    "API": 2,
    "OPERANDS": 7,
    "OPERAND_LIST": 9,
    "RESULTS": 12,
    "RESULT_LIST": 14,
}
_BUFFER = {"DTYPE": 2, "ADDRESS": 3, "RANK": 4, "SIZES": 5}
_API = {"CREATE_ERROR": 6}
_ERROR = ("SIZE", "EXTENSION", "MESSAGE", "CODE")
_EXTENSION = {"TYPE": 1, "METADATA": 3}
_METADATA = {"MAJOR": 6, "MINOR": 7, "TRAITS": 8}
"""In 32-bit words."""
_ERROR_BYTES = 28
_ASKS_METADATA = 1

_FAILURE = Function("failure", Signature(INT, (ADDRESS, ADDRESS, INT)))
_ANSWER = Function("answer", Signature(INT, (ADDRESS, INT)))
_HANDLER = Signature(INT, (ADDRESS,))


@cache
def text() -> str:
    """Return a slab of handlers."""
    module = Module()
    module.imports(BLOCK_SYMBOL)
    _write_failure(module)
    _write_answer(module)
    for slot in range(SLOTS):
        with module.function(f"cg_jax_{slot}", _HANDLER, internal=False) as f:
            f.returns(f.call(_ANSWER, f.words(0), slot))
    return module.text()


def _write_failure(module: Module) -> None:
    """Return an error of XLA's: of a frame, what is wrong, and its kind."""
    with module.function(_FAILURE.name, _FAILURE.signature) as f:
        frame, message, code = f.words(0, _FRAME), f.words(1), f.integer(2)
        error = f.stack(len(_ERROR), _ERROR)
        error["SIZE"] = _ERROR_BYTES
        error["EXTENSION"] = 0
        error["MESSAGE"] = message
        error["CODE"] = code
        create = frame.follow("API", _API).follow("CREATE_ERROR")
        f.returns(f.through(create, _HANDLER, error))


def _fits(f: FunctionBuilder, buffer: Words, row: Words) -> Bool:
    """Tell whether a buffer has as many elements of a dtype as its row says, at an address that suits them."""
    dtype = buffer.offset(_BUFFER["DTYPE"]).as_element(I32).load_int()
    sizes, elements = buffer.follow("SIZES"), f.variable(f.i64(1))
    with f.loop(0, buffer["RANK"], carry=[elements]) as axis:
        elements.value = elements.value * sizes[axis]
    full = dtype.equals(row["DTYPE"]) & elements.value.equals(row["ELEMENTS"])
    return full & (buffer["ADDRESS"] & row["ALIGNMENT"]).equals(0)


def _gather(
    f: FunctionBuilder, frame: Words, slot: Words, record: Words, misfit: Callable[[], None]
) -> tuple[Words, Words]:
    """Return the places of a call and a record's runs; `misfit` returns where an array is not what the record says."""
    places = f.stack(MOST)
    operands, results = slot["OPERANDS"], slot["RESULTS"]
    with f.when(frame["OPERANDS"].differs(operands) | frame["RESULTS"].differs(results)):
        misfit()
    here = f.variable(places)
    row = f.variable(record.offset(len(RECORD)).seen_as(GIVEN))
    for count, name in ((operands, "OPERAND_LIST"), (results, "RESULT_LIST")):
        buffers = frame.follow(name)
        with f.loop(0, count, carry=[here, row]) as at:
            buffer = buffers.follow(at, _BUFFER)
            with f.when(~_fits(f, buffer, row.value)):
                misfit()
            here.value[0] = buffer["ADDRESS"]
            here.value, row.value = here.value.offset(1), row.value.offset(len(GIVEN))
    constants = record["CONSTANTS"]
    with f.loop(0, constants) as at:
        here.value[at] = row.value[at]
    return places, row.value.offset(constants)


def _write_answer(module: Module) -> None:
    """Serve a call of XLA's: its frame, and the number of the slot."""
    with module.function(_ANSWER.name, _ANSWER.signature) as f:
        frame, number = f.words(0, _FRAME), f.integer(1)
        block = f.imported(BLOCK_SYMBOL, BLOCK)
        extension = frame.follow("EXTENSION", _EXTENSION)
        with f.when(~extension.is_null()):
            kind = extension.offset(_EXTENSION["TYPE"]).as_element(I32).load_int()
            with f.when(kind.equals(_ASKS_METADATA)):
                # XLA asks what we were written for; we have no traits.
                about = extension.follow("METADATA").as_element(I32)
                for name in ("MAJOR", "MINOR"):
                    about.offset(_METADATA[name]).store_int(block[name])
                about.offset(_METADATA["TRAITS"]).store_int(0)
                f.returns(0)
        slot = block.offset(number * len(SLOT) + len(BLOCK)).seen_as(SLOT)
        record = slot.follow("RECORD", RECORD)

        def fail(message: Words, code: int) -> None:
            f.returns(f.call(_FAILURE, frame, message, code))

        with f.when(record.is_null()):
            fail(block.follow("EMPTY"), FAILED_PRECONDITION)

        def failed(status: Int) -> None:
            with f.when(status.equals(NO_MEMORY)):
                fail(slot.follow("NO_MEMORY"), RESOURCE_EXHAUSTED)
            fail(block.follow("BROKEN"), INTERNAL)

        places, runs = _gather(
            f, frame, slot, record, lambda: fail(slot.follow("MISFIT"), INVALID_ARGUMENT)
        )
        carry_out(f, block.follow("RUN"), runs, record["RUNS"], places, failed)
        f.returns(0)
