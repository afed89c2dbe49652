"""TensorFlow, PyTorch and JAX under the signature of our top-level functions; called as their documents say.

One of the two files of the package that import a framework: by name, as it may be absent, and only when it is given
as IMPL. A framework that cannot express a problem raises, which counts as refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .._dtypes import BFLOAT16
from .._errors import BackendMissingError
from .._problem import Kind
from .implementation import Kernel, case_of
from .problems import OPS, Case

Run = Callable[[Case, Any, Any], Any]


def load(name: str, op: str) -> Kernel:
    """Return the framework's form of an operation."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        run = {"tensorflow": _tensorflow, "torch": _torch, "jax": _jax}[name]()
    except ImportError as error:
        raise BackendMissingError(f"IMPL: {name} is not installed: {error}") from None

    def kernel(*arguments: Any, **settings: Any) -> Any:
        first, second = (each for each in arguments if isinstance(each, np.ndarray))
        return run(case_of(op, arguments, settings), first, second)

    assert op in OPS
    return kernel


def _four(pair: tuple[int, int], data_format: str) -> list[int]:
    return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]


def tensorflow_arguments(case: Case) -> dict[str, Any]:
    """Return TensorFlow's form of the settings: four numbers, four pairs."""
    layout = case.data_format
    padding: Any = case.padding
    if not isinstance(padding, str):
        pairs = [list(pair) for pair in padding]
        still = [0, 0]
        padding = [still, *pairs, still] if layout == "NHWC" else [still, still, *pairs]
    dilations = _four(case.dilations, layout)
    if case.op == "depthwise_conv2d":
        dilations = list(case.dilations)  # documented as two numbers there
    return {
        "strides": _four(case.strides, layout),
        "padding": padding,
        "data_format": layout,
        "dilations": dilations,
    }


def tensorflow_name(op: str) -> str:
    """Return where TensorFlow documents an operation: the dense gradients are in the v1 names only."""
    dense_gradient = not OPS[op].depthwise and OPS[op].kind is not Kind.FORWARD
    return f"tf.compat.v1.nn.{op}" if dense_gradient else f"tf.nn.{op}"


def _tensorflow() -> Run:
    tf: Any = import_module("tensorflow")

    def run(case: Case, first: Any, second: Any) -> Any:
        function: Any = tf
        for part in tensorflow_name(case.op).split(".")[1:]:
            function = getattr(function, part)
        arguments = case.arguments(tf.constant(first), tf.constant(second))
        given = [list(each) if isinstance(each, tuple) else each for each in arguments]
        with warnings.catch_warnings():
            # "called with both strides and dilations": documented as not allowed, so it counts as refused
            warnings.simplefilter("error", UserWarning)
            return function(*given, **tensorflow_arguments(case)).numpy()

    return run


def _torch() -> Run:
    torch: Any = import_module("torch")

    def tensor(array: Any) -> Any:
        if array.dtype == BFLOAT16.numpy:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    def image(case: Case, array: Any) -> Any:
        """NHWC becomes what PyTorch calls channels_last: the same memory under NCHW's order of dimensions."""
        return tensor(array).permute(0, 3, 1, 2) if case.data_format == "NHWC" else tensor(array)

    def taps(case: Case, array: Any) -> Any:
        shape = (*case.window, case.group_in, case.groups * case.group_out)
        return tensor(array).reshape(shape).permute(3, 2, 0, 1).contiguous()

    def back(value: Any) -> Any:
        value = value.detach().contiguous()
        if value.dtype is torch.bfloat16:
            return value.view(torch.int16).numpy().view(BFLOAT16.numpy)
        return value.numpy()

    def run(case: Case, first: Any, second: Any) -> Any:
        problem = case.problem
        rows, cols = problem.rows, problem.cols
        kind = problem.kind
        dtype = first.dtype
        x = np.zeros(problem.input_shape, dtype) if kind is Kind.INPUT_GRADIENT else first
        f = {Kind.FORWARD: second, Kind.INPUT_GRADIENT: first}.get(kind)
        f = np.zeros(problem.filter_shape, dtype) if f is None else f
        inputs, weights = image(case, x), taps(case, f)
        inputs.requires_grad_(kind is Kind.INPUT_GRADIENT)
        weights.requires_grad_(kind is Kind.FILTER_GRADIENT)
        padded, pads = inputs, (rows.before, cols.before)
        if (rows.before, cols.before) != (rows.after, cols.after):
            sides = (cols.before, cols.after, rows.before, rows.after)
            padded, pads = torch.nn.functional.pad(inputs, sides), (0, 0)
        y = torch.nn.functional.conv2d(
            padded, weights, None, case.strides, pads, case.dilations, case.groups
        )
        if kind is Kind.FORWARD:
            return back(y.permute(0, 2, 3, 1) if case.data_format == "NHWC" else y)
        wanted = inputs if kind is Kind.INPUT_GRADIENT else weights
        (gradient,) = torch.autograd.grad(y, wanted, image(case, second))
        if kind is Kind.INPUT_GRADIENT:
            return back(gradient.permute(0, 2, 3, 1) if case.data_format == "NHWC" else gradient)
        return back(gradient.permute(2, 3, 1, 0)).reshape(problem.filter_shape)

    return run


def _jax() -> Run:
    jax: Any = import_module("jax")

    jax.config.update("jax_enable_x64", True)

    def run(case: Case, first: Any, second: Any) -> Any:
        problem = case.problem
        rows, cols = problem.rows, problem.cols
        depth = (*case.window, case.group_in, case.groups * case.group_out)

        def convolve(x: Any, f: Any) -> Any:
            return jax.lax.conv_general_dilated(
                x,
                f.reshape(depth),
                case.strides,
                ((rows.before, rows.after), (cols.before, cols.after)),
                rhs_dilation=case.dilations,
                dimension_numbers=(case.data_format, "HWIO", case.data_format),
                feature_group_count=case.groups,
            )

        if problem.kind is Kind.FORWARD:
            return np.asarray(convolve(first, second))
        nothing = np.zeros(
            problem.input_shape if problem.kind is Kind.INPUT_GRADIENT else problem.filter_shape,
            first.dtype,
        )
        if problem.kind is Kind.INPUT_GRADIENT:
            _, pull_back = jax.vjp(lambda x: convolve(x, first), nothing)
        else:
            _, pull_back = jax.vjp(lambda f: convolve(first, f), nothing)
        return np.asarray(pull_back(jax.numpy.asarray(second))[0])

    return run
