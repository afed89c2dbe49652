"""What TensorFlow calls for a convolution on a CPU: compiled kernels, and the words they work on.

A kernel is created once per node of a graph, or per kind of eager call (`nodes`), and computed any number of times, by
any of TensorFlow's threads. Computing collects what decides the call as `KEY` words, finds the record of a call with
the same words (`_runtime/records.py`), allocates the result, runs the record's program through the entry, and needs no
interpreter. The first time there is no record. Then Python computes the call (`MISS`), with all checks, and adds one.
What has no program, such as an empty problem, is computed by Python every time.

The text of the functions is in `kernel_text`.
"""

from __future__ import annotations

from .._problem import Kind
from .._runtime.records import LOOK_UP, written
from .kernel_text import COMPUTE, TEXT

_CALLED = {
    "NEW_STATUS": "TF_NewStatus",
    "DELETE_STATUS": "TF_DeleteStatus",
    "SET_STATUS": "TF_SetStatus",
    "GET_CODE": "TF_GetCode",
    "FAILURE": "TF_OpKernelContext_Failure",
    "GET_INPUT": "TF_GetInput",
    "ALLOCATE": "TF_AllocateOutput",
    "TYPE": "TF_TensorType",
    "NUM_DIMS": "TF_NumDims",
    "DIM": "TF_Dim",
    "COUNT": "TF_TensorElementCount",
    "DATA": "TF_TensorData",
    "DELETE_TENSOR": "TF_DeleteTensor",
    "NEW_SHAPE": "TF_NewShapeHandle",
    "DELETE_SHAPE": "TF_DeleteShapeHandle",
    "SHAPE_INPUT": "TF_ShapeInferenceContextGetInput",
    "SHAPE_RANK": "TF_ShapeInferenceContextWithRank",
    "SHAPE_PART": "TF_ShapeInferenceContextSubshape",
    "SHAPE_VECTOR": "TF_ShapeInferenceContextVectorFromSize",
    "SHAPE_JOIN": "TF_ShapeInferenceContextConcatenateShapes",
    "SHAPE_OUTPUT": "TF_ShapeInferenceContextSetOutput",
}
FUNCTIONS = dict(_CALLED)
"""Functions of TensorFlow's C interface, by the words of the block they are in."""
BLOCK = ("BUCKETS", "SWITCHES", "MISS", "RUN", "AT_WORK", *FUNCTIONS)
"""Words of the block in which kernels find everything; `AT_WORK` is how many of them are."""
BLOCK_SYMBOL = "cg_tensorflow_block"

DIMS = 4
TENSOR_WORDS = 1 + DIMS
"""Rank, and as many sizes as fit."""
KEY = {
    "NODE": 0,  # the row of a node's settings: operation, dtype, strides and so on
    "SWITCHES": 1,  # changes with the switches that decide which programs run
    "FIRST": 2,
    "SECOND": 2 + TENSOR_WORDS,
    "SIZES": 2 + 2 * TENSOR_WORDS,  # rank, how many there are, and the values of up to four
}
KEY_WORDS = 4 + 2 * TENSOR_WORDS + DIMS
RECORD = {
    "PROGRAM": 1 + KEY_WORDS,
    "DTYPE": 2 + KEY_WORDS,
    "BYTES": 3 + KEY_WORDS,
    "DIMS": 4 + KEY_WORDS,
}
"""Behind the key: the program, and the result's dtype as TensorFlow numbers it, bytes and sizes."""

ABSENT = -1
PLACES: dict[Kind, tuple[int, int, int]] = {
    Kind.FORWARD: (0, 1, ABSENT),
    Kind.INPUT_GRADIENT: (1, 2, 0),
    Kind.FILTER_GRADIENT: (0, 2, 1),
}
"""Which inputs of an op are the operands, and which one the sizes."""
COMPUTES = {
    Kind.FORWARD: "cg_tf_forward",
    Kind.INPUT_GRADIENT: "cg_tf_input_gradient",
    Kind.FILTER_GRADIENT: "cg_tf_filter_gradient",
}
SHAPES = {
    Kind.FORWARD: "cg_tf_shape_forward",
    Kind.INPUT_GRADIENT: "cg_tf_shape_input_gradient",
    Kind.FILTER_GRADIENT: "cg_tf_shape_filter_gradient",
}
DELETE = "cg_tf_delete"
SYMBOLS = (*COMPUTES.values(), *SHAPES.values(), DELETE)


def text() -> str:
    """Return the kernels and shape functions."""
    whole = LOOK_UP + TEXT
    for kind, (first, second, sizes) in PLACES.items():
        part = COMPUTE.replace("$COMPUTE", COMPUTES[kind]).replace("$SHAPE", SHAPES[kind])
        for name, place in (("FIRST", first), ("SECOND", second), ("SIZES", sizes)):
            part = part.replace(f"$AT_{name}", str(place))
        # Images of a batch lie in the first dimension in both layouts.
        batch_of = {Kind.FORWARD: first, Kind.INPUT_GRADIENT: second}.get(kind, ABSENT)
        whole += part.replace("$BATCH_OF", str(batch_of))
    numbers = {
        **{f"BLOCK_{name}": at for at, name in enumerate(BLOCK)},
        **{f"KEY_{name}": at for name, at in KEY.items()},
        **{f"RECORD_{name}": at for name, at in RECORD.items()},
        "KEY_WORDS": KEY_WORDS, "DIMS": DIMS, "ABSENT": ABSENT,
        "BLOCK": f"@{BLOCK_SYMBOL}", "DELETE": DELETE,
    }
    return written(whole, numbers)
