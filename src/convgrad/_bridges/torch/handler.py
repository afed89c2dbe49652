"""What PyTorch's dispatcher calls for a convolution on a CPU: compiled functions, and the words they work on.

A tiny layer written as an `autograd.Function` took 178 us forwards and backwards in a trial, and takes 70 to 100 so; on
the 52 convolutions of MobileNetV2 that is some 5 of 140 ms. So our kernels are compiled. They speak PyTorch's stable C
interface: a handler is given a stack of 64-bit values, tensors and lists by handles it owns, and leaves its results
there.

A handler collects what decides how a call is computed, dtypes, sizes, strides and settings, as `KEY` words, and looks
for the record of a call with the same words (see `records`). The first time there is none, and it asks Python (`MISS`).
Then it allocates the results, runs the record's programs through the entry, and needs no interpreter. What has no
record (a layout that must be copied, a dtype we do not know, a lack of memory) is left to an operator written in
Python, by the name in `DECLINED`.

No exception passes through this code, because it has no tables to unwind by: functions of the C interface return a
status, and an error is raised by `aoti_torch_check`, which is called last, in the place of the handler's own frame.

The text of the functions is in `handler_text`.
"""

from __future__ import annotations

from ..._runtime.program import MOST_PLACES
from ..._runtime.records import LOOK_UP, written
from .handler_text import HANDLER, PARTS, SERVE

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
`AT_WORK` how many handlers are. The last two are for those of `fused_handler`."""
BLOCK_SYMBOL = "cg_torch_block"

FORWARD, BACKWARD, ATEN_BACKWARD, LAYER = 0, 1, 2, 3
"""Which operator is called. The third is `aten::convolution_backward`, which has one argument more. The fourth is our
own `convgrad::numbered_layer`, a forward pass whose settings are the number of a row: Python hands over an int
some 3 us sooner than four lists."""
SYMBOLS = ("cg_torch_forward", "cg_torch_backward", "cg_torch_aten_backward", "cg_torch_layer")

TENSOR_WORDS = 9
"""dtype, four sizes, four strides."""
KEY = {
    "OPERATION": 0,  # FORWARD or BACKWARD
    "SETTINGS": 1,  # changes with the switches that decide which programs run
    "INPUT": 2,
    "WEIGHT": 2 + TENSOR_WORDS,
    "THIRD": 2 + 2 * TENSOR_WORDS,  # the gradient, or the bias: dtype, size, 0, 0, 0, stride
    "STRIDE": 2 + 3 * TENSOR_WORDS,
    "PADDING": 4 + 3 * TENSOR_WORDS,
    "DILATION": 6 + 3 * TENSOR_WORDS,
    "TRANSPOSED": 8 + 3 * TENSOR_WORDS,
    "OUTPUT_PADDING": 9 + 3 * TENSOR_WORDS,
    "GROUPS": 11 + 3 * TENSOR_WORDS,
    "MASK": 12 + 3 * TENSOR_WORDS,
}
KEY_WORDS = 15 + 3 * TENSOR_WORDS
LAYER_WORDS = KEY["MASK"] - KEY["STRIDE"]
"""A row of settings: what a key has from the stride to the groups."""
ABSENT = -1
"""The dtype of a third tensor that is not there."""

RECORD = {
    "NEXT": 0,
    "KEY": 1,
    "RUNS": 1 + KEY_WORDS,  # how many; 0: declined
    "OUTPUTS": 2 + KEY_WORDS,
    "MADE": 3 + KEY_WORDS,  # outputs and temporaries
    "ALIGNMENT": 4 + KEY_WORDS,  # an element's bytes less one
    "BODY": 5 + KEY_WORDS,
}
"""A record: the next one in its bucket, the key, then `MADE_WORDS` per tensor to make, then the runs:
a program, how many places it has, and where they are: numbers of places here, or -1."""
MADE_WORDS = 2 + 2 * 4
"""Dimensions, of which -1 is a tensor that is not made; dtype; sizes; strides."""
GIVEN = 3
"""Places begin with the tensors a handler is given."""
MOST_MADE = 8
"""Tensors that are made for a call: three results and some temporaries."""


def text() -> str:
    """Return the handlers."""
    fields = {
        **{f"BLOCK_{name}": at for at, name in enumerate(BLOCK)},
        **{f"KEY_{name}": at for name, at in KEY.items()},
        **{f"RECORD_{name}": at for name, at in RECORD.items()},
        "KEY_WORDS": KEY_WORDS,
        "TENSOR_WORDS": TENSOR_WORDS,
        "ABSENT": ABSENT,
        "MADE_WORDS": MADE_WORDS,
        "MOST_PLACES": MOST_PLACES,
        "GIVEN": GIVEN,
        "PLACES": GIVEN + MOST_MADE,
        "BLOCK": f"@{BLOCK_SYMBOL}",
        "MOST_MADE": MOST_MADE,
        "LAYER_WORDS": LAYER_WORDS,
        "IS_LAYER": LAYER,
    }
    whole = LOOK_UP + PARTS + SERVE
    whole += "".join(
        HANDLER.replace("$NAME", name).replace("$OPERATION", str(number))
        for number, name in enumerate(SYMBOLS)
    )
    return written(whole, fields)
