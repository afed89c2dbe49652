"""What a sum is compiled to: a call of our handler, a call of Python where there is none, JAX's own elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.interpreters import mlir

from ... import _engine
from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind, Problem
from ..._runtime.bound import Bound
from ..._runtime.pointers import data_pointer
from ..._runtime.results import new_result
from ..._runtime.run import run
from . import hook, targets


def on_cpu(ctx: Any, first: Any, second: Any, *, problem: Problem) -> Any:
    """Lower a sum for CPUs. All arrays are row-major; XLA keeps to that around us without copies of its own."""
    if problem.is_empty:
        return _lowered(_zeros(problem), ctx, first, second)
    execute = _engine.program(problem)
    if isinstance(execute, Bound):
        target = targets.target_for(problem, execute)
        if target is not None:
            rule = jax.ffi.ffi_lowering(target.name)
            attributes = {"problem": target.problem, "switches": target.switches}
            return rule(ctx, first, second, **attributes)
    return _lowered(_through_python(problem, execute), ctx, first, second)


def elsewhere(ctx: Any, first: Any, second: Any, *, problem: Problem) -> Any:
    """Lower a sum for a GPU or TPU, where we have no kernels: as JAX's own convolution."""
    return _lowered(native(problem), ctx, first, second)


def _lowered(function: Callable[[Any, Any], Any], ctx: Any, first: Any, second: Any) -> Any:
    return mlir.lower_fun(function, multiple_results=False)(ctx, first, second)


def _zeros(problem: Problem) -> Callable[[Any, Any], Any]:
    return lambda first, second: jnp.zeros(problem.result_shape, problem.dtype.numpy)


def _through_python(problem: Problem, execute: Any) -> Callable[[Any, Any], Any]:
    """Return a function that calls back into Python when it runs."""

    def call(first: Any, second: Any) -> AnyArray:
        dtype = problem.dtype.numpy
        operands = [
            np.require(np.asarray(each), dtype=dtype, requirements=("C", "A"))
            for each in (first, second)
        ]
        assert tuple(each.nbytes for each in operands) == problem.operand_bytes
        result = new_result(problem.result_shape, dtype)
        first_at, second_at = map(data_pointer, operands)
        if isinstance(execute, Bound):
            run(execute, first_at, second_at, data_pointer(result))
        else:
            execute(first_at, second_at, data_pointer(result), 0)
        return result

    shape = jax.ShapeDtypeStruct(problem.result_shape, problem.dtype.numpy)
    return lambda first, second: jax.pure_callback(call, shape, first, second)


def native(problem: Problem) -> Callable[[Any, Any], Any]:
    """Return a problem as JAX computes it."""
    image = problem.data_format

    def forward(x: Any, f: Any) -> Any:
        grouped = (problem.rows.window, problem.cols.window, problem.group_in, problem.out_c)
        return jax.lax.conv_general_dilated(
            x,
            f.reshape(grouped),
            window_strides=(problem.rows.stride, problem.cols.stride),
            padding=[(axis.before, axis.after) for axis in (problem.rows, problem.cols)],
            rhs_dilation=(problem.rows.dilation, problem.cols.dilation),
            dimension_numbers=(image, "HWIO", image),
            feature_group_count=problem.groups,
        )

    shapes = {"x": problem.input_shape, "f": problem.filter_shape}
    like = {
        role: jax.ShapeDtypeStruct(shape, problem.dtype.numpy) for role, shape in shapes.items()
    }
    if problem.kind is Kind.INPUT_GRADIENT:
        return _natively(
            lambda f, g: jax.linear_transpose(lambda x: forward(x, f), like["x"])(g)[0]
        )
    if problem.kind is Kind.FILTER_GRADIENT:
        return _natively(
            lambda x, g: jax.linear_transpose(lambda f: forward(x, f), like["f"])(g)[0]
        )
    return _natively(forward)


def _natively(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function whose convolutions and their transposes are JAX's, whatever is around a call of it."""

    def call(first: Any, second: Any) -> Any:
        with hook.calling(ours=False):
            return function(first, second)

    return call
