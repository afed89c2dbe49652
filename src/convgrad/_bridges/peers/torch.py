"""PyTorch: `torch.nn.functional.conv2d`, and for the gradients `aten::convolution_backward`, which `backward()` calls.

Asked directly, a gradient costs no forward pass. Depthwise is `groups=channels`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..._base.dtypes import BFLOAT16, AnyArray
from ..._problem.convolution import Kind
from .wanted import Prepared, Wanted

_PADDED = "input padded beforehand (its two sides differ)"


def limit_threads(threads: int) -> None:
    torch: Any = import_module("torch")

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def prepare(
    wanted: Wanted, first: AnyArray, second: AnyArray, *, channels_last: bool | None = None
) -> Prepared:
    """Convert to tensors in channels_last or contiguous memory: by default in what the layout is."""
    torch: Any = import_module("torch")
    nhwc = wanted.layout == "NHWC"
    last = nhwc if channels_last is None else channels_last
    order = torch.channels_last if last else torch.contiguous_format
    # PyTorch pads both sides alike. Where the two differ, the input is padded beforehand and the padding is 0.
    before = [pair if pair[0] != pair[1] else (0, 0) for pair in wanted.pads]
    padding = [pair[0] if pair[0] == pair[1] else 0 for pair in wanted.pads]
    (top, bottom), (left, right) = before
    padded = any((top, bottom, left, right))
    strides, dilations, groups = list(wanted.strides), list(wanted.dilations), wanted.groups

    def image(array: AnyArray, pad: bool = False) -> Any:
        array = array.transpose(0, 3, 1, 2) if nhwc else array
        if pad and padded:
            array = np.pad(array, ((0, 0), (0, 0), *before))
        return _tensor(array).clone(memory_format=order)

    def taps(array: AnyArray) -> Any:
        """From [kh, kw, c, k] to [k, c, kh, kw]."""
        array = array.reshape(wanted.grouped_filter).transpose(3, 2, 0, 1)
        return _tensor(array).clone(memory_format=order)

    def read_image(result: Any) -> AnyArray:
        if wanted.kind is Kind.INPUT_GRADIENT:
            height, width = wanted.image_size
            result = result[:, :, top : top + height, left : left + width]
        array = _array(result)
        return array.transpose(0, 2, 3, 1) if nhwc else array

    def read_taps(result: Any) -> AnyArray:
        array: AnyArray = _array(result).transpose(2, 3, 1, 0)
        return array.reshape(wanted.filter_shape)

    def backward(g: Any, x: Any, f: Any, which: int) -> Any:
        mask = [which == 0, which == 1, False]
        return torch.ops.aten.convolution_backward(
            g, x, f, None, strides, padding, dilations, False, [0, 0], groups, mask
        )[which]

    note = _PADDED if padded else ""
    if wanted.kind is Kind.FORWARD:
        conv2d = torch.nn.functional.conv2d
        x, f = image(first, pad=True), taps(second)
        return Prepared(
            lambda: conv2d(x, f, None, strides, padding, dilations, groups), read_image, note
        )
    # The third tensor gives its shape and memory format only.
    g = image(second)
    if wanted.kind is Kind.INPUT_GRADIENT:
        f, x = taps(first), image(np.zeros(wanted.input_shape, first.dtype), pad=True)
        return Prepared(lambda: backward(g, x, f, 0), read_image, note)
    x, f = image(first, pad=True), taps(np.zeros(wanted.filter_shape, first.dtype))
    return Prepared(lambda: backward(g, x, f, 1), read_taps, note)


def _tensor(array: AnyArray) -> Any:
    torch: Any = import_module("torch")

    array = np.ascontiguousarray(array)
    if array.dtype == BFLOAT16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: Any) -> AnyArray:
    torch: Any = import_module("torch")

    tensor = tensor.contiguous()
    if tensor.dtype is torch.bfloat16:
        bits: AnyArray = tensor.view(torch.int16).numpy()
        return bits.view(BFLOAT16.numpy)
    array: AnyArray = tensor.numpy()
    return array
