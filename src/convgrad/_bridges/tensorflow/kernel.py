"""Kernels that TensorFlow calls for a convolution or a batch norm on a CPU: their names, their inputs, and their keys.

A kernel is created once per node of a graph, or per kind of eager call (`nodes`), and computed any number of times, by
any of TensorFlow's threads. Computing collects what decides the call as `KEY` words, finds the record of a call with
the same words, allocates the results, runs the record's programs through the entry, and needs no interpreter.

The first time there is no record. Then Python computes the call (`MISS`), with all checks, and adds one. What has no
program, such as an empty problem, is computed by Python every time.

The functions are written in `server` and `shape_functions`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._problem.convolution import Kind

DIMS = 4
MOST_VALUES = 8
"""Of a vector of sizes, or of the pads of four dimensions."""
TENSOR_WORDS = 1 + DIMS
"""Rank, and as many sizes as fit."""
MOST_INPUTS, MOST_MADE, MOST_CONSTANTS = 6, 4, 2
"""Inputs that are read, of a batch norm and of a fused convolution; results and temporaries of a call, and addresses
that are the same in every call."""
KEY = {
    "NODE": 0,  # the row of a node's settings: operation, dtype, strides and so on
    "SWITCHES": 1,  # changes with the switches that decide which programs run
    "INPUTS": 2,  # shapes, one behind the other
    "VALUES": 2 + 3 * TENSOR_WORDS,  # rank, how many there are, and the values of up to eight
}
"""Ops with values have at most three other inputs."""
KEY_WORDS = max(KEY["VALUES"] + 2 + MOST_VALUES, KEY["INPUTS"] + MOST_INPUTS * TENSOR_WORDS)

ABSENT = -1


class Form(NamedTuple):
    """Which inputs of an op are what; `ABSENT` where there is none."""

    first: int
    second: int
    values: int = ABSENT
    """A size vector, or pads: small integers that decide the call."""
    bias: int = ABSENT
    batch_of: int = ABSENT
    """An input whose first dimension the result has too: images of a batch, in both layouts."""

    @property
    def inputs(self) -> int:
        """How many the op has."""
        return 1 + max(self.first, self.second, self.values, self.bias)


FORMS = {
    "forward": Form(0, 1, batch_of=0),
    "forward_bias": Form(0, 1, bias=2, batch_of=0),
    "forward_padded": Form(0, 1, values=2),
    "input_gradient": Form(1, 2, values=0, batch_of=2),
    "filter_gradient": Form(0, 2, values=1),
    "filter_gradient_bias": Form(0, 2, values=1),
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
