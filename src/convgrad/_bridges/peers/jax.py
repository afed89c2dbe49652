"""JAX: `jax.lax.conv_general_dilated` under `jax.jit`, and for the gradients its linear transposes.

The convolution is linear in either operand, so its gradient is its transpose, and no forward pass is computed.
Depthwise is `feature_group_count=channels`. All dtypes are used as they come: 64-bit types are enabled.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind
from .wanted import Prepared, Wanted


def limit_threads(threads: int) -> None:
    import_module("jax")
    # XLA sizes its pool by NPROC, but is not bound to keep it in every version.
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if threads < len(cpus):
        os.sched_setaffinity(0, cpus[:threads])


def prepare(wanted: Wanted, first: AnyArray, second: AnyArray) -> Prepared:
    """Put the operands on the device and compile."""
    jax = _jax()
    run = _compiled(wanted)
    one, two = jax.device_put(first), jax.device_put(second)
    return Prepared(lambda: run(one, two).block_until_ready(), np.asarray)


@lru_cache(maxsize=64)
def _compiled(wanted: Wanted) -> Any:
    """Return the operation as JAX compiles it, on the first call of each dtype."""
    jax = _jax()

    def convolve(x: Any, f: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            f.reshape(wanted.grouped_filter),
            wanted.strides,
            wanted.pads,
            rhs_dilation=wanted.dilations,
            dimension_numbers=(wanted.layout, "HWIO", wanted.layout),
            feature_group_count=wanted.groups,
        )

    def input_gradient(f: Any, g: Any) -> Any:
        like = jax.ShapeDtypeStruct(wanted.input_shape, f.dtype)
        return jax.linear_transpose(lambda x: convolve(x, f), like)(g)[0]

    def filter_gradient(x: Any, g: Any) -> Any:
        like = jax.ShapeDtypeStruct(wanted.filter_shape, x.dtype)
        return jax.linear_transpose(lambda f: convolve(x, f), like)(g)[0]

    functions = {
        Kind.FORWARD: convolve,
        Kind.INPUT_GRADIENT: input_gradient,
        Kind.FILTER_GRADIENT: filter_gradient,
    }
    return jax.jit(functions[wanted.kind])


def _jax() -> Any:
    jax: Any = import_module("jax")

    jax.config.update("jax_enable_x64", True)
    return jax
