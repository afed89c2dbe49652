"""What grappler fuses with a convolution: the list of ops in a node's attribute, read as a bias and a pass.

Its remapper makes one op of a convolution and what follows: a bias or a batch norm with given statistics, an image that
is added, an activation. Programs compute the first with the convolution, and the rest in a pass of `_kernels.norm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._base.errors import ArgumentError, shown
from ..._problem import activations

HELP = "tf.config.optimizer.set_experimental_options({'remapping': False}) keeps them apart"
"""What to do about a form that nobody has seen yet: TensorFlow's own kernel is no longer there."""
NONE = -1
"""No input."""
_FIRST = 2
"""The input behind image and filter."""
_ACTIVATIONS = {row.tensorflow: row.name for row in activations.ROWS if row.tensorflow}


@dataclass(frozen=True)
class FusedOps:
    """Which inputs are what, and what is done with a convolution's result."""

    bias: int = NONE
    rows: int = NONE
    """The first of scale, offset, mean and variance of a batch norm."""
    residual: int = NONE
    """An image that is added before the activation."""
    activation: str = "none"
    epsilon: float = 0.0
    slope: float = 0.0
    inputs: int = _FIRST
    """How many there are, pads not counted."""

    @property
    def has_pass(self) -> bool:
        """Whether the convolution's result is not the op's."""
        return self.rows != NONE or self.residual != NONE or self.activation != "none"


def read(function: str, names: Sequence[str], epsilon: float, slope: float) -> FusedOps:
    """Return what the ops of a node's attribute `fused_ops` are, in the order they are applied.

    >>> read("Conv2D", ["BiasAdd", "Add", "Relu"], 0.0, 0.0)
    FusedOps(bias=2, rows=-1, residual=3, activation='relu', epsilon=0.0, slope=0.0, inputs=4)
    """
    bias = rows = residual = NONE
    left, at = list(names), _FIRST
    if left[:1] == ["BiasAdd"]:
        bias, at, left = at, at + 1, left[1:]
    elif left[:1] == ["FusedBatchNorm"]:
        rows, at, left = at, at + 4, left[1:]
    if left[:1] == ["Add"]:
        residual, at, left = at, at + 1, left[1:]
    activation = "none"
    if left and left[0] in _ACTIVATIONS:
        activation, left = _ACTIVATIONS[left[0]], left[1:]
    if left:
        raise ArgumentError(
            f"{function}: `fused_ops` must be BiasAdd or FusedBatchNorm, Add, and one of {', '.join(_ACTIVATIONS)}, "
            f"each or none of them, got {shown(list(names))}; "
            f"{HELP}."
        )
    return FusedOps(
        *(bias, rows, residual, activation, epsilon if rows != NONE else 0.0),
        *(slope if activations.find(activation).has_slope else 0.0, at),
    )
