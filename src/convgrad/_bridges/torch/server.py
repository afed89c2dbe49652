"""What PyTorch's handlers are made of: tensors described, the record of a call found and carried out.

A handler is what PyTorch's dispatcher calls for one of its operators or ours. They speak PyTorch's stable C interface:
a handler is given a stack of 64-bit values, tensors and lists by handles it owns, and leaves its results there.

All of them do the same. They describe the call as the words of a key: dtypes, sizes, strides and settings. They look
for the record of a call with the same words (`_bridges/records.py`), and ask Python for one the first time. Then they
allocate the results and run the record's programs, without an interpreter. How arguments lie on the stack is theirs
(`handler`, `fused_handler`), and so is what becomes of a call that has no record.

No exception passes through this code, because it has no tables to unwind by: functions of the C interface return a
status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..look_up import body_at, look_up
from ..records import GIVEN, MADE, MADE_WORDS, RECORD
from ..serve import (
    ADDRESS,
    I32,
    INT,
    INT32,
    NOTHING,
    TRUTH,
    Bool,
    Function,
    FunctionBuilder,
    Int,
    IntLike,
    Module,
    Signature,
    Words,
    carry_out,
)

BLOCK = (
    *("BUCKETS", "SETTINGS", "MISS", "RUN"),
    *("IS_DEFINED", "GET_DIM", "GET_SIZES", "GET_STRIDES", "GET_DTYPE", "READ_AT", "WRITE_AT"),
    *("EMPTY", "UNDEFINED", "DELETE_TENSOR"),
    *("LIST_SIZE", "LIST_ITEM", "DELETE_LIST", "DELETE_VALUE"),
    *("DISPATCH", "WHAT", "CHECK", "VERSION"),
    *("DECLINED_FORWARD", "DECLINED_BACKWARD", "DECLINED_ATEN_BACKWARD", "DECLINED_LAYER"),
    *("NOTHING", "LAYERS", "LAYER_COUNT", "AT_WORK", "FUSED_BUCKETS", "FUSED_MISS"),
)
"""Words of the block that handlers find everything in; `NOTHING` is an empty text, `LAYERS` rows of settings, and
`AT_WORK` how many handlers are."""
BLOCK_SYMBOL = "cg_torch_block"

TENSOR = {"KIND": 0, "SIZES": 1, "STRIDES": 5}
"""A tensor in a key: its dtype and `DIMENSION` times how many dimensions it has, which are one or four, or `ABSENT`;
sizes and strides."""
TENSOR_WORDS = 9
DIMENSION = 256
ABSENT = -1


class Served(NamedTuple):
    """A kind of call that has a table of its own."""

    key: Mapping[str, int]
    """The words of a key by their names; the tensors are the last, from `TENSORS` on."""
    given: int
    """How many tensors a call is given."""
    written: int
    """Those from this one on are written to."""
    most_made: int
    """Tensors that may be made: results and temporaries."""
    buckets: str
    miss: str
    """Words of the block: the table, and what is called for a call that is not in it."""
    numbers: int = 0
    """How many numbers are behind the only constant of a record; a handler copies them to the stack."""
    own: int = 0
    """Which of them comes with the call."""

    @property
    def key_words(self) -> int:
        return self.key["TENSORS"] + self.given * TENSOR_WORDS


_ASK = Signature(INT32, (ADDRESS, ADDRESS))
"""Most functions of the C interface: what is asked about, and where the answer is written; returns a status."""
_NEW = Signature(INT32, (INT, ADDRESS, ADDRESS, INT32, INT32, INT32, ADDRESS))
"""Dimensions, sizes, strides, dtype, kind and number of the device; where the handle is written."""
_DELETE = Signature(INT32, (ADDRESS,))
_MISS = Signature(ADDRESS, (ADDRESS, INT))
_CPU = (0, -1)

HANDLER = Signature(NOTHING, (ADDRESS, INT, INT))
"""What the dispatcher calls: the stack, how many arguments it holds, and how many results are wanted."""


def block_of(f: FunctionBuilder) -> Words:
    return f.imported(BLOCK_SYMBOL, BLOCK)


def delete(f: FunctionBuilder, what: str, handle: Words) -> None:
    """Write what deletes a handle; `what` is the function's name in the block."""
    f.through(block_of(f).follow(what), _DELETE, handle)


class Server:
    """The functions that handlers of one kind of call share, written into their module."""

    def __init__(self, module: Module, served: Served) -> None:
        self.served = served
        module.imports(BLOCK_SYMBOL)
        self._look_up = look_up(module, served.key_words)
        self._there = Function("there", Signature(ADDRESS, (ADDRESS,)))
        self._describe = Function("describe", Signature(TRUTH, (ADDRESS, ADDRESS)))
        self._drop = Function("drop", Signature(NOTHING, (ADDRESS, INT, INT)))
        self._compute = Function("compute", Signature(TRUTH, (ADDRESS, ADDRESS, ADDRESS, INT)))
        self._write_there(module)
        self._write_describe(module)
        self._write_drop(module)
        self._write_compute(module)

    # What handlers call

    def new_key(self, f: FunctionBuilder) -> Words:
        """Return words for a key, all zero."""
        key = f.stack(self.served.key_words, self.served.key)
        f.call(self._look_up.clear, key)
        return key

    def there(self, f: FunctionBuilder, value: Words) -> Words:
        """Return the handle of a tensor that may be left out, or null."""
        return f.call(self._there, value)

    def describe(self, f: FunctionBuilder, tensor: Words, key: Words, number: IntLike) -> Bool:
        """Describe a tensor of a call, or that it is absent where it is null; false if it is not for us."""
        tensors = key.offset(self.served.key["TENSORS"])
        return f.call(self._describe, tensor, tensors.offset(number * TENSOR_WORDS))

    def drop(self, f: FunctionBuilder, tensors: Words, first: IntLike, behind: IntLike) -> None:
        """Delete tensors from one number up to another."""
        f.call(self._drop, tensors, first, behind)

    def drop_optional(self, f: FunctionBuilder, value: Words) -> None:
        """Delete a tensor that may be left out: nothing, or an address of its handle."""
        with f.when(~value.is_null()):
            self.drop(f, value, 0, 1)
            delete(f, "DELETE_VALUE", value)

    def compute(
        self, f: FunctionBuilder, key: Words, given: Words, made: Words, own: IntLike = 0
    ) -> Bool:
        """Find the record of a key, carry it out on the given tensors, and write its results to `made`.

        False where there is none, or no memory; nothing is left behind then. `own` is the number that comes with the
        call.
        """
        return f.call(self._compute, key, given, made, own)

    # The functions

    def _write_there(self, module: Module) -> None:
        with module.function(self._there.name, self._there.signature) as f:
            value = f.words(0)
            with f.when(value.is_null()):
                f.returns(f.null())
            # The value is there, and its tensor may be undefined all the same.
            handle, flag = value.follow(0), f.stack(1)
            flag[0] = 0
            f.through(block_of(f).follow("IS_DEFINED"), _ASK, handle, flag)
            f.returns(f.select(flag[0].equals(0), f.null(), handle))

    def _write_describe(self, module: Module) -> None:
        with module.function(self._describe.name, self._describe.signature) as f:
            tensor, words, block, answer = f.words(0), f.words(1, TENSOR), block_of(f), f.stack(1)
            with f.when(tensor.is_null()):
                words["KIND"] = ABSENT
                f.returns(f.truth(True))

            def ask(name: str) -> Int:
                return f.through(block.follow(name), _ASK, tensor, answer)

            status = ask("GET_DIM")
            dimensions = answer[0]
            ours = dimensions.equals(1) | dimensions.equals(4)
            with f.when(status.differs(0) | ~ours):
                f.returns(f.truth(False))
            status = ask("GET_DTYPE")
            words["KIND"] = answer.as_element(I32).load_int() + dimensions * DIMENSION
            status = status | ask("GET_SIZES")
            sizes = answer.follow(0)
            status = status | ask("GET_STRIDES")
            strides = answer.follow(0)
            with f.when(status.differs(0)):
                f.returns(f.truth(False))
            with f.loop(0, dimensions, nonempty=True) as axis:
                words.offset(TENSOR["SIZES"])[axis] = sizes[axis]
                words.offset(TENSOR["STRIDES"])[axis] = strides[axis]
            f.returns(f.truth(True))

    def _write_drop(self, module: Module) -> None:
        with module.function(self._drop.name, self._drop.signature) as f:
            tensors = f.words(0)
            with f.loop(f.integer(1), f.integer(2)) as at:
                delete(f, "DELETE_TENSOR", tensors.follow(at))

    def _write_compute(self, module: Module) -> None:
        with module.function(self._compute.name, self._compute.signature) as f:
            key, given, made = f.words(0), f.words(1), f.words(2)
            served = self.served
            record = self._record(f, key)
            runs = record["RUNS"]
            with f.when(runs.equals(0)):
                f.returns(f.truth(False))
            places = f.stack(served.given + served.most_made + 1)
            rows = record.offset(len(RECORD))
            self._address(f, rows.seen_as(GIVEN), given, places)
            here = places.offset(served.given)
            rows = rows.offset(served.given * len(GIVEN))
            count = record["MADE"]
            rows = self._make(f, rows.seen_as(MADE), count, made, here)
            here = here.offset(count)
            constants = record["CONSTANTS"]
            with f.loop(0, constants) as at:
                here[at] = rows[at]
            if served.numbers:
                theirs, own = here.follow(0), f.stack(served.numbers)
                for number in range(served.numbers):
                    own[number] = theirs[number]
                own[served.own] = f.integer(3)
                here[0] = own

            def failed(status: Int) -> None:
                self.drop(f, made, 0, count)
                f.returns(f.truth(False))

            entry = block_of(f).follow("RUN")
            carry_out(f, entry, rows.offset(constants), runs, places, failed)
            self.drop(f, made, record["RETURNED"], count)
            f.returns(f.truth(True))

    def _record(self, f: FunctionBuilder, key: Words) -> Words:
        """Return the record of a key: of the table, or what Python says; returns from `f` where there is none."""
        block, served = block_of(f), self.served
        hash_ = f.call(self._look_up.hash, key)
        found = f.variable(
            f.call(self._look_up.find, block.follow(served.buckets), key, hash_).seen_as(())
        )
        with f.when(found.value.is_null()):
            found.value = f.through(block.follow(served.miss), _MISS, key, hash_)
            with f.when(found.value.is_null()):
                f.returns(f.truth(False))
        return found.value.offset(body_at(served.key_words)).seen_as(RECORD)

    def _address(self, f: FunctionBuilder, rows: Words, given: Words, places: Words) -> None:
        """Write where the tensors are that a call was given; returns from `f` where kernels cannot use one."""
        block, served = block_of(f), self.served
        # A tensor that is written to may share its memory until then.
        parts = ((0, served.written, "READ_AT"), (served.written, served.given, "WRITE_AT"))
        for first, behind, ask in parts:
            if first == behind:
                continue
            with f.loop(first, behind) as at:
                tensor, place = given.follow(at), places.offset(at)
                place[0] = 0
                with f.when(~tensor.is_null()):
                    status = f.through(block.follow(ask), _ASK, tensor, place)
                    address = place[0]
                    crooked = address & rows.offset(at * len(GIVEN))["ALIGNMENT"]
                    # Records are of tensors with elements: one without an address has lost its memory.
                    with f.when(status.differs(0) | address.equals(0) | crooked.differs(0)):
                        f.returns(f.truth(False))

    def _make(
        self, f: FunctionBuilder, rows: Words, count: Int, made: Words, places: Words
    ) -> Words:
        """Allocate what a record wants; returns what lies behind its rows, or from `f` where that was not possible."""
        block, row = block_of(f), f.variable(rows)
        with f.loop(0, count, carry=[row]) as at:
            this, handle, place = row.value, made.offset(at), places.offset(at)
            dimensions = this["DIMENSIONS"]
            with f.branch(dimensions < 0) as either:
                with either.then():
                    f.through(block.follow("UNDEFINED"), _DELETE, handle)
                    place[0] = 0
                with either.otherwise():
                    sizes, strides = (this.offset(MADE[name]) for name in ("SIZES", "STRIDES"))
                    empty, dtype = block.follow("EMPTY"), this["DTYPE"]
                    status = f.through(
                        empty, _NEW, dimensions, sizes, strides, dtype, *_CPU, handle
                    )
                    with f.when(status.differs(0)):
                        self.drop(f, made, 0, at)
                        f.returns(f.truth(False))
                    f.through(block.follow("WRITE_AT"), _ASK, handle.follow(0), place)
            row.value = this.offset(MADE_WORDS)
        return row.value
