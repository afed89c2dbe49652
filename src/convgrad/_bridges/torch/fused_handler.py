"""Compiled functions for a fused block: convolution, batch norm, activation and residual, forwards and backwards.

A block is a node of autograd written in Python. What the node calls is one operator each way, `convgrad::fused` and
`convgrad::fused_backward`, whose kernels are these: they allocate, run the convolution's programs and those of batch
norm's passes, and need no interpreter between them. Written in Python the same took 96 us forwards and 95 backwards on
a tiny block, of which PyTorch's own cost for a node is about a fourth.

Both operators have the same arguments: `GIVEN` tensors that may be absent, the number of a row of settings, what is
wanted as bits, the hash of the calling thread's switches, and the momentum. They work as the handlers of `handler` do,
with a key and a table of their own. What has no record is not computed: all results are undefined then, and the node
goes the longer way (`blocks`), where tensors are copied and errors are raised.
"""

from __future__ import annotations

from ..._problem.norm import SCALARS
from ..._runtime.program import MOST_PLACES
from ..._runtime.records import LOOK_UP, written
from .fused_handler_text import HANDLER, SERVE
from .handler import ABSENT, BLOCK, BLOCK_SYMBOL, MADE_WORDS, TENSOR_WORDS
from .handler_text import PARTS

FORWARD, BACKWARD = 0, 1
SYMBOLS = ("cg_torch_fused", "cg_torch_fused_backward")

GIVEN = 8
"""Forwards: image, filter, the filter's bias, residual, weight, bias, running mean, running variance.
Backwards: image, filter, the convolution's result, saved, the gradient, what stands beside."""
WRITTEN = 6
"""The tensors from here on are written to."""
MOST_MADE = 12
"""Six gradients, that of the convolution's result, two numbers per channel nobody wants, and some filters."""
SCALARS_PLACE = GIVEN + MOST_MADE
"""Behind what is given and made: the numbers of passes."""

DIMENSION = 256
"""A tensor's first word is its dtype and this many times its dimensions, which are one or four."""
KEY = {
    "OPERATION": 0,
    "SETTINGS": 1,  # the hash of the switches that decide which programs run
    "ROW": 2,
    "WANTED": 3,
    "TENSORS": 4,
}
KEY_WORDS = KEY["TENSORS"] + GIVEN * TENSOR_WORDS
RECORD = {
    "NEXT": 0,
    "KEY": 1,
    "RUNS": 1 + KEY_WORDS,  # how many; 0: not computed here
    "OUTPUTS": 2 + KEY_WORDS,
    "MADE": 3 + KEY_WORDS,
    "ALIGNMENT": 4 + KEY_WORDS,  # the largest element's bytes less one
    "SCALARS": 5 + KEY_WORDS,
    "BODY": 5 + KEY_WORDS + len(SCALARS),
}
_TENSORS = ", ".join(f"Tensor? {'abcdefgh'[at]}" for at in range(GIVEN))
SCHEMAS = (
    f"fused({_TENSORS}, int row, int wanted, int settings, float momentum) -> (Tensor, Tensor, Tensor)",
    f"fused_backward({_TENSORS}, int row, int wanted, int settings, float momentum)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def text() -> str:
    """Return the handlers."""
    fields = {
        **{f"BLOCK_{name}": at for at, name in enumerate(BLOCK)},
        **{f"KEY_{name}": at for name, at in KEY.items()},
        **{f"RECORD_{name}": at for name, at in RECORD.items()},
        "KEY_WORDS": KEY_WORDS,
        "TENSOR_WORDS": TENSOR_WORDS,
        "ABSENT": ABSENT,
        "DIMENSION": DIMENSION,
        "MADE_WORDS": MADE_WORDS,
        "GIVEN": GIVEN,
        "WRITTEN": WRITTEN,
        "PLACES": SCALARS_PLACE + 1,
        "MOST_MADE": MOST_MADE,
        "SCALARS_PLACE": SCALARS_PLACE,
        "MOST_PLACES": MOST_PLACES,
        "SCALARS": len(SCALARS),
        "MOMENTUM": SCALARS.index("momentum"),
        "BLOCK": f"@{BLOCK_SYMBOL}",
        "ARGUMENT_ROW": GIVEN,
        "ARGUMENT_WANTED": GIVEN + 1,
        "ARGUMENT_SETTINGS": GIVEN + 2,
        "ARGUMENT_MOMENTUM": GIVEN + 3,
    }
    whole = LOOK_UP + PARTS + SERVE
    whole += "".join(
        HANDLER.replace("$NAME", name).replace("$OPERATION", str(number))
        for number, name in enumerate(SYMBOLS)
    )
    return written(whole, fields)
