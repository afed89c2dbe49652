"""Functions that tell TensorFlow what is known of a result's shape while a graph is built.

They cannot read attributes, so they know the rank, and the batch where there is one.
"""

from __future__ import annotations

from ..serve import (
    ADDRESS,
    INT,
    NOTHING,
    Function,
    FunctionBuilder,
    IntLike,
    Module,
    Signature,
    Words,
)
from .foreign import (
    DELETE_SHAPE,
    GET_CODE,
    NEW_SHAPE,
    SHAPE_INPUT,
    SHAPE_JOIN,
    SHAPE_OUTPUT,
    SHAPE_PART,
    SHAPE_RANK,
    SHAPE_UNKNOWN,
    SHAPE_VECTOR,
    call,
)
from .kernel import DIMS, FORMS, PASSES_SHAPE, PLAIN, SHAPES

_SHAPE = Signature(NOTHING, (ADDRESS, ADDRESS))
"""What TensorFlow calls: a context, and a status."""
_GIVEN, _RANKED, _BATCH, _JOINED, _ANY = 0, 1, 2, 3, 6
"""Handles of a call: an input's shape, the same with four dimensions, its first, shapes of two dimensions and more, and
four shapes of one dimension that is not known."""
_HANDLES = _ANY + DIMS
_JOIN = Function("join", Signature(NOTHING, (ADDRESS, ADDRESS, ADDRESS, INT, INT, INT)))
_INFER = Function("infer", Signature(NOTHING, (ADDRESS, ADDRESS, INT, INT, INT)))


def write(module: Module) -> None:
    """Write the shape functions of all ops."""
    _write_join(module)
    _write_infer(module)
    for kind, name in PLAIN.items():
        form = FORMS[name]
        with module.function(SHAPES[kind], _SHAPE, internal=False) as f:
            f.call(_INFER, f.words(0), f.words(1), form.first, form.second, form.batch_of)
    _write_passes_shape(module)


def _ranked(f: FunctionBuilder, context: Words, at: IntLike, handles: Words, status: Words) -> None:
    """Write an input's shape to a handle, with four dimensions, or an error to the status."""
    given, ranked = handles.follow(_GIVEN), handles.follow(_RANKED)
    call(f, SHAPE_INPUT, context, at, given, status)
    call(f, SHAPE_RANK, context, given, DIMS, ranked, status)


def _write_join(module: Module) -> None:
    """Say that two inputs have four dimensions, and the result too; its first is that of an input, or not known."""
    with module.function(_JOIN.name, _JOIN.signature) as f:
        context, status, handles, batch_of = f.words(0), f.words(1), f.words(2), f.integer(5)
        for at in (f.integer(3), f.integer(4)):
            _ranked(f, context, at, handles, status)
            with f.when(call(f, GET_CODE, status).differs(0)):
                f.returns()
        leading = f.variable(handles.follow(_ANY))
        with f.when(batch_of >= 0):
            _ranked(f, context, batch_of, handles, status)
            batch = handles.follow(_BATCH)
            call(f, SHAPE_PART, context, handles.follow(_RANKED), 0, 1, batch, status)
            leading.value = batch
        whole = leading.value
        for axis in range(1, DIMS):
            joined = handles.follow(_JOINED + axis - 1)
            call(f, SHAPE_JOIN, context, whole, handles.follow(_ANY + axis), joined, status)
            whole = joined
        call(f, SHAPE_OUTPUT, context, 0, whole, status)


def _write_infer(module: Module) -> None:
    """Make the handles that `join` needs, and give them back."""
    with module.function(_INFER.name, _INFER.signature) as f:
        context, status, handles = f.words(0), f.words(1), f.stack(_HANDLES)
        for at in range(_ANY):
            handles[at] = call(f, NEW_SHAPE)
        for at in range(_ANY, _HANDLES):
            # A size that is not known is -1, and each is one of its own: the same handle would say that they are equal.
            handles[at] = call(f, SHAPE_VECTOR, context, -1)
        f.call(_JOIN, context, status, handles, f.integer(2), f.integer(3), f.integer(4))
        for at in range(_HANDLES):
            call(f, DELETE_SHAPE, handles.follow(at))


def _write_passes_shape(module: Module) -> None:
    """Say that the first result has the shape of the first input, which has four dimensions; of the others nothing."""
    with module.function(PASSES_SHAPE, _SHAPE, internal=False) as f:
        context, status, handles = f.words(0), f.words(1), f.stack(2)
        call(f, SHAPE_UNKNOWN, context, status)
        for at in (_GIVEN, _RANKED):
            handles[at] = call(f, NEW_SHAPE)
        _ranked(f, context, 0, handles, status)
        with f.when(call(f, GET_CODE, status).equals(0)):
            call(f, SHAPE_OUTPUT, context, 0, handles.follow(_RANKED), status)
        for at in (_GIVEN, _RANKED):
            call(f, DELETE_SHAPE, handles.follow(at))
