"""What TensorFlow calls for a convolution or a batch norm on a CPU: compiled kernels, and the words they work on.

A kernel is created once per node of a graph, or per kind of eager call (`nodes`), and computed any number of times, by
any of TensorFlow's threads. Computing collects what decides the call as `KEY` words, finds the record of a call with
the same words (`_runtime/records.py`), allocates the result, runs the record's program through the entry, and needs no
interpreter. The first time there is no record. Then Python computes the call (`MISS`), with all checks, and adds one.
What has no program, such as an empty problem, is computed by Python every time.

The text of the functions is in `kernel_text` and `passes_text`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._problem.convolution import Kind
from ..._problem.norm import PLACES as NORM_PLACES
from ..._runtime.records import LOOK_UP, written
from .fused_text import FUSED_COMPUTE, FUSED_TEXT
from .kernel_text import COMPUTE, SHAPE, TEXT
from .passes_text import PASSES_TEXT

FUNCTIONS = {
    "NEW_STATUS": "TF_NewStatus",
    "DELETE_STATUS": "TF_DeleteStatus",
    "SET_STATUS": "TF_SetStatus",
    "GET_CODE": "TF_GetCode",
    "FAILURE": "TF_OpKernelContext_Failure",
    "NUM_INPUTS": "TF_NumInputs",
    "GET_INPUT": "TF_GetInput",
    "ALLOCATE": "TF_AllocateOutput",
    "ALLOCATE_TEMP": "TF_AllocateTemp",
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
    "SHAPE_UNKNOWN": "TF_ShapeInferenceContextSetUnknownShape",
}
"""Functions of TensorFlow's C interface, by the words of the block they are in."""
BLOCK = ("BUCKETS", "SWITCHES", "MISS", "RUN", "AT_WORK", *FUNCTIONS)
"""Words of the block in which kernels find everything; `AT_WORK` is how many of them are."""
BLOCK_SYMBOL = "cg_tensorflow_block"

DIMS = 4
MOST_VALUES = 8
"""Of a vector of sizes, or of the pads of four dimensions."""
TENSOR_WORDS = 1 + DIMS
"""Rank, and as many sizes as fit."""
KEY = {
    "NODE": 0,  # the row of a node's settings: operation, dtype, strides and so on
    "SWITCHES": 1,  # changes with the switches that decide which programs run
    "FIRST": 2,
    "SECOND": 2 + TENSOR_WORDS,
    "BIAS": 2 + 2 * TENSOR_WORDS,
    "VALUES": 2 + 3 * TENSOR_WORDS,  # rank, how many there are, and the values of up to eight
}
MOST_INPUTS, MOST_OUTPUTS = 6, 4
"""Of passes of batch norm, whose keys hold the shapes of all inputs behind `SWITCHES`."""
KEY_WORDS = max(4 + 3 * TENSOR_WORDS + MOST_VALUES, 2 + MOST_INPUTS * TENSOR_WORDS)
RECORD = {
    "PROGRAM": 1 + KEY_WORDS,
    "DTYPE": 2 + KEY_WORDS,
    "BYTES": 3 + KEY_WORDS,
    "DIMS": 4 + KEY_WORDS,
    "BIAS_BYTES": 4 + KEY_WORDS + DIMS,
    "BIAS_DIMS": 5 + KEY_WORDS + DIMS,
}
"""Behind the key: the program, the result's dtype as TensorFlow numbers it, bytes and sizes; those of a second result,
the gradient of a bias."""
MOST_PLACES = 12
PASS = {
    "PROGRAM": 1 + KEY_WORDS,
    "OUTPUTS": 2 + KEY_WORDS,
    "PLACES": 3 + KEY_WORDS,
    "INPUTS": 3 + KEY_WORDS + MOST_PLACES,
    "ROWS": 3 + KEY_WORDS + MOST_PLACES + MOST_INPUTS,
}
"""The record of passes: the program, how many results there are, the block of addresses it is given, where in it those
of inputs go, and a row for each result."""
OUTPUT = ("DTYPE", "BYTES", "RANK", *(f"DIM_{at}" for at in range(DIMS)), "PLACE")
"""A row for a result: what is allocated, and where its address goes."""

FUSED = {
    "BIAS": 4 + KEY_WORDS + DIMS,
    "PASS": 5 + KEY_WORDS + DIMS,
    "RESIDUAL": 6 + KEY_WORDS + DIMS,
    "ROWS": 7 + KEY_WORDS + DIMS,
    "DTYPE": 8 + KEY_WORDS + DIMS,
    "SAVED": 9 + KEY_WORDS + DIMS,
    "PLACES": 11 + KEY_WORDS + DIMS,
}
"""The record of a fused convolution, behind the result's sizes: which input is the bias, the program of the pass over
the result or 0, which input is added and which is the first row of a batch norm, dtype and sizes of what the pass saves
for nobody, and the block of addresses it is given. An input that is not there is -1."""
_PLACES = ("x", "y", "residual", "weight", "bias", "running_mean", "running_var", "saved")
assert NORM_PLACES["forward_frozen"][: len(_PLACES)] == _PLACES
assert NORM_PLACES["apply"][:3] == _PLACES[:3]

ABSENT = -1


class Form(NamedTuple):
    """Which inputs of an op are what; `ABSENT` where there is none."""

    first: int
    second: int
    values: int = ABSENT
    """A size vector, or pads: small integers that decide the call."""
    bias: int = ABSENT
    outputs: int = 1
    batch_of: int = ABSENT
    """An input whose first dimension the result has too: images of a batch, in both layouts."""


FORMS = {
    "forward": Form(0, 1, batch_of=0),
    "forward_bias": Form(0, 1, bias=2, batch_of=0),
    "forward_padded": Form(0, 1, values=2),
    "input_gradient": Form(1, 2, values=0, batch_of=2),
    "filter_gradient": Form(0, 2, values=1),
    "filter_gradient_bias": Form(0, 2, values=1, outputs=2),
}
FUSED_FORMS = ("fused", "fused_padded")
"""What grappler makes of a convolution and what follows: image, filter, arguments, and the pads of a Pad op if there
was one. Shapes of all of them stand in the key one behind the other; the pads are `VALUES`."""
PLAIN = {
    Kind.FORWARD: "forward",
    Kind.INPUT_GRADIENT: "input_gradient",
    Kind.FILTER_GRADIENT: "filter_gradient",
}
"""The forms of the three sums; the others are what oneDNN makes of two ops."""
COMPUTES = {form: f"cg_tf_{form}" for form in (*FORMS, *FUSED_FORMS)}
SHAPES = {kind: f"cg_tf_shape_{form}" for kind, form in PLAIN.items()}
DELETE = "cg_tf_delete"
PASSES, PASSES_SHAPE = "cg_tf_passes", "cg_tf_shape_passes"
SYMBOLS = (*COMPUTES.values(), *SHAPES.values(), DELETE, PASSES, PASSES_SHAPE)


def text() -> str:
    """Return the kernels and shape functions."""
    whole = LOOK_UP + TEXT + PASSES_TEXT + FUSED_TEXT
    for name in FUSED_FORMS:
        padded = "true" if name == "fused_padded" else "false"
        part = FUSED_COMPUTE.replace("$COMPUTE", COMPUTES[name])
        whole += part.replace("$PADDED", padded)
    for name, form in FORMS.items():
        whole += _placed(COMPUTE.replace("$COMPUTE", COMPUTES[name]), form)
    for kind, name in PLAIN.items():
        whole += _placed(SHAPE.replace("$SHAPE", SHAPES[kind]), FORMS[name])
    numbers = {
        **{f"BLOCK_{name}": at for at, name in enumerate(BLOCK)},
        **{f"KEY_{name}": at for name, at in KEY.items()},
        **{f"RECORD_{name}": at for name, at in RECORD.items()},
        **{f"PASS_{name}": at for name, at in PASS.items()},
        **{f"FUSED_{name}": at for name, at in FUSED.items()},
        **{f"PLACE_{name.upper()}": at for at, name in enumerate(_PLACES)},
        "TEMPORARY": MOST_INPUTS + 1,
        **{f"OUTPUT_{name}": at for at, name in enumerate(OUTPUT) if not name.startswith("DIM_")},
        "OUTPUT_DIMS": OUTPUT.index("DIM_0"),
        "OUTPUT_WORDS": len(OUTPUT),
        "MOST_INPUTS": MOST_INPUTS,
        "MOST_TENSORS": MOST_INPUTS + MOST_OUTPUTS,
        "MOST_PLACES": MOST_PLACES,
        "TENSOR_WORDS": TENSOR_WORDS,
        "PASSES_SHAPE": PASSES_SHAPE,
        "PASSES": PASSES,
        "KEY_WORDS": KEY_WORDS,
        "DIMS": DIMS,
        "MOST_VALUES": MOST_VALUES,
        "BLOCK": f"@{BLOCK_SYMBOL}",
        "DELETE": DELETE,
    }
    return written(whole, numbers)


def _placed(part: str, form: Form) -> str:
    for name, place in form._asdict().items():
        part = part.replace(f"$AT_{name.upper()}", str(place))
    return part
