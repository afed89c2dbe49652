"""A problem of the corridor, computed on tensors: TensorFlow's order of dimensions, seen as PyTorch's."""

from __future__ import annotations

from typing import Any

from torch import Tensor as AnyTensor

from ..._problem.convolution import Kind, Problem
from . import sums


def compute(problem: Problem, first: AnyTensor, second: AnyTensor) -> AnyTensor:
    """Return the result of a problem; all that is done to the operands before and after is a change of strides."""
    rows, cols = problem.rows, problem.cols
    how = (
        *((rows.stride, cols.stride), (rows.before, rows.after, cols.before, cols.after)),
        *((rows.dilation, cols.dilation), problem.groups),
    )
    result: AnyTensor
    if problem.kind is Kind.FORWARD:
        image = first.reshape(problem.input_shape)
        result = sums.forward(_image(problem, image), _filter(problem, second), *how)
    elif problem.kind is Kind.INPUT_GRADIENT:
        size = (rows.size, cols.size)
        grad = _image(problem, second)
        result = sums.input_gradient(_filter(problem, first), grad, size, *how)
    else:
        window = (rows.window, cols.window)
        image, grad = _image(problem, first), _image(problem, second)
        result = sums.filter_gradient(image, grad, window, *how)
        return result.permute(2, 3, 1, 0).reshape(problem.filter_shape)
    return result.permute(0, 2, 3, 1) if problem.data_format == "NHWC" else result


def _image(problem: Problem, tensor: AnyTensor) -> AnyTensor:
    return tensor.permute(0, 3, 1, 2) if problem.data_format == "NHWC" else tensor


def _filter(problem: Problem, tensor: AnyTensor) -> AnyTensor:
    grouped: Any = (problem.rows.window, problem.cols.window, problem.group_in, problem.out_c)
    return tensor.reshape(grouped).permute(3, 2, 0, 1)
