"""The algorithms, best first. A new one is a module with the functions of `Algorithm` and a row in `ALGORITHMS`.

`plan` is the schedule, a pure function that returns data; `emit` is the mechanism, which writes a kernel a plan named.
Kernels that several algorithms use (`reduce`) are found by the type of their identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from .._errors import InternalError
from .._kernel import KernelSource
from .._plan import Plan
from .._problem import Problem
from .._targets import Target
from . import (
    dense_direct,
    dense_direct_kernel,
    dense_direct_words,
    dense_filter,
    dense_filter_kernel,
    dense_filter_merge,
    dense_pack,
    depthwise_direct,
    depthwise_direct_kernel,
    depthwise_direct_tile,
    depthwise_flat,
    depthwise_packed,
    depthwise_packed_kernel,
    depthwise_plane,
    depthwise_plane_frame,
    depthwise_plane_kernel,
    reduce,
    reference,
    winograd,
    winograd_fast,
    winograd_filter,
    winograd_gradient,
    winograd_gradient_kernel,
    winograd_gradient_merge,
    winograd_kernel,
)


class Algorithm(Protocol):
    """What a module of this folder offers."""

    def why_not(self, problem: Problem, target: Target) -> str | None:
        """Return why this algorithm cannot compute the problem, or None if it can."""
        ...

    def plan(self, problem: Problem, target: Target) -> Plan:
        """Return how it would compute a problem it does not refuse."""
        ...


ALGORITHMS: dict[str, Algorithm] = {
    "depthwise_direct": depthwise_direct,
    "depthwise_plane": depthwise_plane,
    "depthwise_flat": depthwise_flat,
    "depthwise_packed": depthwise_packed,
    "winograd_fast": winograd_fast,
    "winograd": winograd,
    "dense_direct": dense_direct,
    "winograd_filter_gradient": winograd_gradient,
    "dense_filter": dense_filter,
    "reference": reference,
}

_EMITTERS: dict[type, Callable[[Any, Target], KernelSource]] = {
    depthwise_direct_tile.DirectKernel: depthwise_direct_kernel.emit,
    depthwise_plane_frame.PlaneKernel: depthwise_plane_kernel.emit,
    depthwise_packed_kernel.PackedKernel: depthwise_packed_kernel.emit,
    dense_direct_words.DirectDenseKernel: dense_direct_kernel.emit,
    dense_pack.PackKernel: dense_pack.emit,
    dense_filter_kernel.FilterKernel: dense_filter_kernel.emit,
    dense_filter_merge.MergeKernel: dense_filter_merge.emit,
    reduce.ReduceKernel: reduce.emit,
    winograd_filter.FilterKernel: winograd_filter.emit,
    winograd_kernel.WinogradKernel: winograd_kernel.emit,
    winograd_gradient_kernel.GradientKernel: winograd_gradient_kernel.emit,
    winograd_gradient_merge.TapsKernel: winograd_gradient_merge.emit,
}


def emit(kernel: Hashable, target: Target) -> KernelSource:
    """Write the kernel with this identity."""
    try:
        writer = _EMITTERS[type(kernel)]
    except KeyError:
        raise InternalError(f"no algorithm writes {kernel!r}; please report this") from None
    return writer(kernel, target)
