"""Our ops of batch norm in TensorFlow: one for passes forwards, one for those backwards.

Their only attribute beside dtypes is a `Normalisation` as text, with sizes of 1: those of a graph are known when it
runs. Behind the operands of the second stand the rows of parameters and statistics that the first was given
(`Normalisation.rows`). Its kernel does not read them, but they belong to what second derivatives are taken of.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context as _eager_context
from tensorflow.python.eager import execute as _execute
from tensorflow.python.framework import op_def_library, op_def_registry

from ..._base.dtypes import FLOATING
from ..._problem.norm import normalisation
from ..._problem.norm.normalisation import Normalisation
from . import kernel, kernels, ops

FORWARD, BACKWARD = "ConvgradBatchNorm", "ConvgradBatchNormGrad"


@functools.cache
def _registered() -> bool:
    found = kernels.kernels()
    if found is None:
        return False
    for name in (FORWARD, BACKWARD):
        if op_def_registry.get(name) is None:  # else by a first import of convgrad in this process
            _define(found, name)
            found.register_passes(name)
    return True


def _define(found: kernels.Kernels, name: str) -> None:
    library = found.library
    builder = library.NewOpDefinitionBuilder(name.encode())
    library.OpDefinitionBuilderAddInput(builder, b"operands: Tin")
    library.OpDefinitionBuilderAddOutput(builder, b"results: Tout")
    types = f"{{{', '.join(row.tensorflow_name for row in FLOATING)}}}"
    for spec in (f"Tin: list({types}) >= 1", f"Tout: list({types}) >= 1", "call: string"):
        library.OpDefinitionBuilderAddAttr(builder, spec.encode())
    shape = found.functions[kernel.PASSES_SHAPE]
    library.OpDefinitionBuilderSetShapeInferenceFunction(builder, shape)
    with library.status() as status:
        library.RegisterOpDefinition(builder, status)
        library.check(status, f"the op {name}")


def available() -> bool:
    """Tell whether our ops are there, after they were registered if they can be."""
    return ops.available() and _registered()


def inputs(call: Normalisation) -> tuple[str, ...]:
    """Return what the inputs of an op are, in order."""
    if call.given is None or call.task.name.startswith("forward"):
        return call.operands
    return (*call.operands, *call.rows)


@functools.lru_cache(maxsize=1024)
def _attributes(call: Normalisation) -> tuple[str, tuple[Any, ...], tuple[Any, ...], str]:
    """Return an op's name, and what its attributes are."""
    name = FORWARD if call.task.name.startswith("forward") else BACKWARD
    types = [
        tuple(tf.dtypes.as_dtype(call.dtype(place).numpy.name) for place in places)
        for places in (inputs(call), call.results)
    ]
    return name, types[0], types[1], normalisation.write(call.sized(1, 1, 1))


def execute(call: Normalisation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Call an op, eagerly or as a node of the graph that is being built; returns results by their places."""
    name, tin, tout, text = _attributes(call)
    operands = [given[place] for place in inputs(call)]
    context = _eager_context._context or _eager_context.context()
    if context.executing_eagerly():
        found = kernels.ready()
        assert found is not None
        found.heed()
        enums = [tuple(each.as_datatype_enum for each in types) for types in (tin, tout)]
        attrs = ("Tin", enums[0], "Tout", enums[1], "call", text)
        made = _execute.execute(name.encode(), len(tout), operands, attrs, context)
    else:
        _, _, op, made = op_def_library._apply_op_helper(
            name, operands=operands, Tout=list(tout), call=text
        )
        attrs = ("Tin", op.get_attr("Tin"), "Tout", op.get_attr("Tout"), "call", text)
        operands = op.inputs
    if _execute.must_record_gradient():
        _execute.record_gradient(name, list(operands), attrs, made)
    return dict(zip(call.results, made, strict=True))
