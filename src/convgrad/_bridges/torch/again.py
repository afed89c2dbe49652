"""Results of fused blocks that are computed anew instead of kept.

The result y of a block is what the next convolution keeps for its filter's gradient. But the block keeps z, from which
y follows by one pass. So y carries where it came from, the next block keeps that instead, and y's memory is free after
the forward pass. It costs one pass over z and y backwards.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor as AnyTensor

from .norm_node import alike
from .passes import How

_NAME = "_convgrad_origin"


class Origin(NamedTuple):
    """What a block's result was made of."""

    z: AnyTensor
    saved: AnyTensor
    how: How
    version: int
    """Of the result when it was made: one that was written to since is another."""


def mark(y: AnyTensor, z: AnyTensor, saved: AnyTensor, how: How) -> None:
    """Tell a result where it came from; one with a residual needs more than z and is kept."""
    if not how.residual:
        setattr(y, _NAME, Origin(z, saved, how, y._version))


def origin(image: AnyTensor) -> Origin | None:
    """Return where an image came from, if it is still that."""
    found: Origin | None = image.__dict__.get(_NAME)
    return found if found is not None and found.version == image._version else None


def computed(how: How, z: AnyTensor, saved: AnyTensor) -> AnyTensor:
    """Return the image that was made of z."""
    z, saved, _, _, passes, _ = alike(z, saved, z, None, how)
    return passes.again(z, saved, how)
