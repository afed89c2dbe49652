"""Functions of TensorFlow's C interface that compiled kernels call, and the block of words they find them in."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from ..serve import (
    ADDRESS,
    INT,
    INT32,
    NOTHING,
    Bool,
    FunctionBuilder,
    IntLike,
    Kind,
    Signature,
    Words,
)

Result = TypeVar("Result")


class Foreign(NamedTuple, Generic[Result]):
    """A function by its name, which is that of its word in the block too."""

    name: str
    signature: Signature[Result]


FOREIGN: list[Foreign[Any]] = []
"""All of them."""


def _foreign(name: str, result: Kind[Result], *arguments: Kind[Any]) -> Foreign[Result]:
    found = Foreign(name, Signature(result, arguments))
    FOREIGN.append(found)
    return found


NEW_STATUS = _foreign("TF_NewStatus", ADDRESS)
DELETE_STATUS = _foreign("TF_DeleteStatus", NOTHING, ADDRESS)
SET_STATUS = _foreign("TF_SetStatus", NOTHING, ADDRESS, INT32, ADDRESS)
GET_CODE = _foreign("TF_GetCode", INT32, ADDRESS)
FAILURE = _foreign("TF_OpKernelContext_Failure", NOTHING, ADDRESS, ADDRESS)
NUM_INPUTS = _foreign("TF_NumInputs", INT32, ADDRESS)
GET_INPUT = _foreign("TF_GetInput", NOTHING, ADDRESS, INT32, ADDRESS, ADDRESS)
ALLOCATE = _foreign(
    "TF_AllocateOutput", ADDRESS, ADDRESS, INT32, INT32, ADDRESS, INT32, INT, ADDRESS
)
ALLOCATE_TEMP = _foreign(
    "TF_AllocateTemp", ADDRESS, ADDRESS, INT32, ADDRESS, INT32, ADDRESS, ADDRESS
)
TYPE = _foreign("TF_TensorType", INT32, ADDRESS)
NUM_DIMS = _foreign("TF_NumDims", INT32, ADDRESS)
DIM = _foreign("TF_Dim", INT, ADDRESS, INT32)
COUNT = _foreign("TF_TensorElementCount", INT, ADDRESS)
DATA = _foreign("TF_TensorData", ADDRESS, ADDRESS)
DELETE_TENSOR = _foreign("TF_DeleteTensor", NOTHING, ADDRESS)

NEW_SHAPE = _foreign("TF_NewShapeHandle", ADDRESS)
DELETE_SHAPE = _foreign("TF_DeleteShapeHandle", NOTHING, ADDRESS)
SHAPE_INPUT = _foreign(
    "TF_ShapeInferenceContextGetInput", NOTHING, ADDRESS, INT32, ADDRESS, ADDRESS
)
SHAPE_RANK = _foreign(
    "TF_ShapeInferenceContextWithRank", NOTHING, ADDRESS, ADDRESS, INT, ADDRESS, ADDRESS
)
SHAPE_PART = _foreign(
    "TF_ShapeInferenceContextSubshape", NOTHING, ADDRESS, ADDRESS, INT, INT, ADDRESS, ADDRESS
)
SHAPE_VECTOR = _foreign("TF_ShapeInferenceContextVectorFromSize", ADDRESS, ADDRESS, INT)
SHAPE_JOIN = _foreign(
    "TF_ShapeInferenceContextConcatenateShapes",
    *(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
)
SHAPE_OUTPUT = _foreign(
    "TF_ShapeInferenceContextSetOutput", NOTHING, ADDRESS, INT32, ADDRESS, ADDRESS
)
SHAPE_UNKNOWN = _foreign("TF_ShapeInferenceContextSetUnknownShape", NOTHING, ADDRESS, ADDRESS)

BLOCK = (
    *("BUCKETS", "SWITCHES", "MISS", "RUN", "NO_MEMORY", "AT_WORK"),
    *(each.name for each in FOREIGN),
)
"""Words of the block in which kernels find everything; `NO_MEMORY` is a message, `AT_WORK` how many kernels are."""
BLOCK_SYMBOL = "cg_tensorflow_block"


def block_of(f: FunctionBuilder) -> Words:
    return f.imported(BLOCK_SYMBOL, BLOCK)


def call(
    f: FunctionBuilder, function: Foreign[Result], *arguments: IntLike | Bool | Words
) -> Result:
    """Write a call of one of TensorFlow's functions."""
    return f.through(block_of(f).follow(function.name), function.signature, *arguments)
