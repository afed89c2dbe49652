"""The functions that TensorFlow calls to compute: a call described, its record found and carried out.

All forms of calls go one way (`_write_answer`). The shapes of their inputs, in order, become a key. One input may be
values instead: a size vector, or pads. The record that is found says which results and temporaries are allocated, and
which programs run on which places; the first `MOST_INPUTS` places are the inputs. How a record is made is in `recipe`.
"""

from __future__ import annotations

from functools import cache

from ..look_up import LookUp, body_at, look_up
from ..records import MADE, MADE_WORDS, RECORD
from ..serve import (
    ADDRESS,
    I32,
    INT,
    NOTHING,
    Function,
    FunctionBuilder,
    Int,
    Module,
    Signature,
    Words,
    carry_out,
)
from . import shape_functions
from .foreign import (
    ALLOCATE,
    ALLOCATE_TEMP,
    BLOCK_SYMBOL,
    COUNT,
    DATA,
    DELETE_STATUS,
    DELETE_TENSOR,
    DIM,
    FAILURE,
    GET_CODE,
    GET_INPUT,
    NEW_STATUS,
    NUM_DIMS,
    NUM_INPUTS,
    SET_STATUS,
    TYPE,
    block_of,
    call,
)
from .kernel import (
    ABSENT,
    COMPUTES,
    DELETE,
    DIMS,
    FORMS,
    KEY,
    KEY_WORDS,
    MOST_CONSTANTS,
    MOST_INPUTS,
    MOST_MADE,
    MOST_VALUES,
    PASSES,
    TENSOR_WORDS,
)

_INT64, _RESOURCE_EXHAUSTED = 9, 8
"""Numbers of a dtype and of an error."""
_ALLOCATOR = ("SIZE", "ON_HOST")
"""TF_AllocatorAttributes: how many bytes of it there are, and a truth value."""
_ALLOCATOR_BYTES = 9

_KERNEL = Signature(NOTHING, (ADDRESS, ADDRESS))
"""What TensorFlow calls: the number of a node (`nodes`), and the context of a call."""
_ON_TENSOR = Signature(NOTHING, (ADDRESS, ADDRESS))
_DESCRIBE = Function("describe", _ON_TENSOR)
_MEASURE = Function("measure", _ON_TENSOR)
_ANSWER = Function("answer", Signature(NOTHING, (ADDRESS, ADDRESS, INT, INT, ADDRESS, ADDRESS)))
_SERVE = Function("serve", Signature(NOTHING, (ADDRESS, ADDRESS, INT, INT)))
_MISS = Signature(NOTHING, (ADDRESS, INT, ADDRESS, ADDRESS))


@cache
def text() -> str:
    """Return the kernels and shape functions."""
    module = Module()
    module.imports(BLOCK_SYMBOL)
    found = look_up(module, KEY_WORDS)
    _write_describe(module)
    _write_measure(module)
    _write_answer(module, found)
    _write_serve(module)
    for name, form in FORMS.items():
        _write_kernel(module, COMPUTES[name], form.inputs, form.values)
    _write_kernel(module, COMPUTES["fused"])
    _write_kernel(module, COMPUTES["fused_padded"], last_are_values=True)
    _write_kernel(module, PASSES)
    with module.function(DELETE, Signature(NOTHING, (ADDRESS,)), internal=False):
        pass  # a node's row stays
    shape_functions.write(module)
    return module.text()


def _write_describe(module: Module) -> None:
    """Write a tensor's rank and its first four sizes to words."""
    with module.function(_DESCRIBE.name, _DESCRIBE.signature) as f:
        tensor, words = f.words(0), f.words(1)
        rank = call(f, NUM_DIMS, tensor)
        words[0] = rank
        with f.loop(0, rank.minimum(DIMS)) as axis:
            words.offset(1)[axis] = call(f, DIM, tensor, axis)


def _write_measure(module: Module) -> None:
    """Write the rank of a small tensor of integers, how many there are and their values, if they are up to eight."""
    with module.function(_MEASURE.name, _MEASURE.signature) as f:
        tensor, words = f.words(0), f.words(1)
        words[0] = call(f, NUM_DIMS, tensor)
        count = call(f, COUNT, tensor)
        words[1] = count
        with f.when(count <= MOST_VALUES):
            data, values = call(f, DATA, tensor), words.offset(2)
            with f.branch(call(f, TYPE, tensor).equals(_INT64)) as either:
                with either.then(), f.loop(0, count) as at:
                    values[at] = data[at]
                with either.otherwise(), f.loop(0, count) as at:
                    values[at] = data.as_element(I32).offset(at).load_int()


def _write_answer(module: Module, found: LookUp) -> None:
    """Compute a call: node, context, how many inputs are read and which are values, room for tensors, a status."""
    with module.function(_ANSWER.name, _ANSWER.signature) as f:
        node, context, count, values = f.words(0), f.words(1), f.integer(2), f.integer(3)
        tensors, status, block = f.words(4), f.words(5), block_of(f)

        def fail() -> None:
            call(f, FAILURE, context, status)
            f.returns()

        def check() -> None:
            with f.when(call(f, GET_CODE, status).differs(0)):
                fail()

        with f.loop(0, count) as at:
            call(f, GET_INPUT, context, at, tensors.offset(at), status)
        check()
        key = f.stack(KEY_WORDS, KEY)
        f.call(found.clear, key)
        key["NODE"], key["SWITCHES"] = node.bits(), block["SWITCHES"]
        with f.loop(0, count) as at, f.branch(at.equals(values)) as either:
            with either.then():
                f.call(_MEASURE, tensors.follow(at), key.offset(KEY["VALUES"]))
            with either.otherwise():
                words = key.offset(at * TENSOR_WORDS + KEY["INPUTS"])
                f.call(_DESCRIBE, tensors.follow(at), words)
        hash_ = f.call(found.hash, key)
        record = f.call(found.find, block.follow("BUCKETS"), key, hash_)
        with f.when(record.is_null()):
            f.through(block.follow("MISS"), _MISS, key, hash_, context, tensors)
            f.returns()
        record = record.offset(body_at(KEY_WORDS)).seen_as(RECORD)
        places = f.stack(MOST_INPUTS + MOST_MADE + MOST_CONSTANTS)
        with f.loop(0, count) as at:
            places[at] = call(f, DATA, tensors.follow(at))
        rows, here = record.offset(len(RECORD)).seen_as(MADE), places.offset(MOST_INPUTS)
        made, returned = record["MADE"], record["RETURNED"]
        row = f.variable(rows)
        with f.loop(0, made, carry=[row]) as at:
            handle = tensors.offset(at + MOST_INPUTS)
            with f.branch(at < returned) as either:
                with either.then():
                    handle[0] = _result(f, context, at, row.value, status)
                with either.otherwise():
                    handle[0] = _temporary(f, context, row.value, status)
            check()
            here[at] = call(f, DATA, handle.follow(0))
            row.value = row.value.offset(MADE_WORDS)
        constants = record["CONSTANTS"]
        with f.loop(0, constants) as at:
            here.offset(made)[at] = row.value[at]

        def failed(code: Int) -> None:
            call(f, SET_STATUS, status, _RESOURCE_EXHAUSTED, block.follow("NO_MEMORY"))
            fail()

        runs = row.value.offset(constants)
        carry_out(f, block.follow("RUN"), runs, record["RUNS"], places, failed)


def _result(f: FunctionBuilder, context: Words, number: Int, row: Words, status: Words) -> Words:
    sizes, rank = row.offset(MADE["SIZES"]), row["DIMENSIONS"]
    return call(f, ALLOCATE, context, number, row["DTYPE"], sizes, rank, row["BYTES"], status)


def _temporary(f: FunctionBuilder, context: Words, row: Words, status: Words) -> Words:
    attributes = f.stack(len(_ALLOCATOR), _ALLOCATOR)
    attributes["SIZE"], attributes["ON_HOST"] = _ALLOCATOR_BYTES, 0
    sizes, rank = row.offset(MADE["SIZES"]), row["DIMENSIONS"]
    return call(f, ALLOCATE_TEMP, context, row["DTYPE"], sizes, rank, attributes, status)


def _write_serve(module: Module) -> None:
    """Compute a call. Whatever happens, the handles of its tensors and its status are given back."""
    with module.function(_SERVE.name, _SERVE.signature) as f:
        tensors = f.stack(MOST_INPUTS + MOST_MADE)
        for number in range(MOST_INPUTS + MOST_MADE):
            tensors[number] = 0
        status = call(f, NEW_STATUS)
        given = (f.words(0), f.words(1), f.integer(2), f.integer(3))
        f.call(_ANSWER, *given, tensors, status)
        with f.loop(0, MOST_INPUTS + MOST_MADE) as at:
            tensor = tensors.follow(at)
            with f.when(~tensor.is_null()):
                call(f, DELETE_TENSOR, tensor)
        call(f, DELETE_STATUS, status)


def _write_kernel(
    module: Module,
    name: str,
    inputs: int = ABSENT,
    values: int = ABSENT,
    *,
    last_are_values: bool = False,
) -> None:
    """Write what computes ops of a form, with so many inputs, or as many as the op has and are read."""
    with module.function(name, _KERNEL, internal=False) as f:
        node, context, block = f.words(0), f.words(1), block_of(f)
        block.count("AT_WORK", 1)
        count = f.i64(inputs)
        if inputs == ABSENT:
            count = call(f, NUM_INPUTS, context).minimum(MOST_INPUTS)
        f.call(_SERVE, node, context, count, count - 1 if last_are_values else values)
        block.count("AT_WORK", -1)
