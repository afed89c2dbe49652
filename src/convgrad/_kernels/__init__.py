"""The algorithms, best first: the rows of the packages of this folder, one package per family of kernels.

In each, `schedule` plans: a pure function of problem and target that returns data. `kernel` writes what a plan named;
`words` holds what the two agree on. What several families use is in `shared`; its kernels too are found by the type of
their identity.
"""

from __future__ import annotations

from collections.abc import Hashable

from .._base.errors import InternalError
from .._compiler.kernel import KernelSource
from .._compiler.targets import Target
from . import (
    dense_direct,
    dense_filter,
    dense_grouped,
    dense_planes,
    depthwise_direct,
    depthwise_packed,
    depthwise_plane,
    reference,
    winograd,
    winograd_gradient,
)
from .shared import filter_order, pixel_sum, reduce
from .shared.table import Algorithms, Emitters

ALGORITHMS: Algorithms = {
    **depthwise_direct.ALGORITHMS,
    **depthwise_plane.ALGORITHMS,
    **depthwise_packed.ALGORITHMS,
    **winograd.ALGORITHMS,
    **dense_grouped.ALGORITHMS,
    **dense_direct.ALGORITHMS,
    **dense_planes.ALGORITHMS,
    **winograd_gradient.ALGORITHMS,
    **dense_filter.ALGORITHMS,
    reference.NAME: reference,
}

_EMITTERS: Emitters = {
    **depthwise_direct.EMITTERS,
    **depthwise_plane.EMITTERS,
    **depthwise_packed.EMITTERS,
    **winograd.EMITTERS,
    **dense_grouped.EMITTERS,
    **dense_direct.EMITTERS,
    **dense_planes.EMITTERS,
    **winograd_gradient.EMITTERS,
    **dense_filter.EMITTERS,
    pixel_sum.PixelSumKernel: pixel_sum.emit,
    reduce.ReduceKernel: reduce.emit,
    reduce.TreeKernel: reduce.emit_tree,
    filter_order.FilterOrderKernel: filter_order.emit,
}


def emit(kernel: Hashable, target: Target) -> KernelSource:
    """Write the kernel with this identity."""
    try:
        writer = _EMITTERS[type(kernel)]
    except KeyError:
        raise InternalError(f"no algorithm writes {kernel!r}; please report this") from None
    return writer(kernel, target)
