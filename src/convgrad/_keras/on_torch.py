"""Keras on PyTorch: images [n, h, w, c] and filters [kh, kw, c, o] are PyTorch's with other strides. Nothing is copied.

Keras's own way copies every image twice in channels_last, from its order of dimensions to PyTorch's and into PyTorch's
channels_last, and a third time where "same" pads one side more than the other.
"""

from __future__ import annotations

from typing import Any

from .._torch.functional import conv2d_between, conv_transpose2d_between
from . import padding
from .settings import Settings

COMPILES_WITH_XLA = True
"""Whether a model may be compiled with `jit_compile=True`, which is `torch.compile` here."""


def is_computable(image: Any) -> bool:
    """Tell whether convgrad takes an image: those of other devices it leaves to PyTorch by itself."""
    return True


def convolve(image: Any, kernel: Any, bias: Any, how: Settings) -> Any:
    """Convolve with a kernel [kh, kw, c / groups, o]."""
    groups = how.channels(image.shape) // kernel.shape[2]
    sides = padding.pads(
        how.padding,
        how.rows_and_columns(image.shape),
        tuple(kernel.shape[:2]),
        how.strides,
        how.dilation,
    )
    return _back(
        conv2d_between(
            _seen(image, how),
            kernel.permute(3, 2, 0, 1),
            bias,
            how.strides,
            sides,
            how.dilation,
            groups,
        ),
        how,
    )


def depthwise(image: Any, kernel: Any, bias: Any, how: Settings) -> Any:
    """Convolve every channel by itself, with a kernel [kh, kw, c, multiplier]."""
    rows, columns, channels, multiplier = kernel.shape
    return convolve(image, kernel.reshape(rows, columns, 1, channels * multiplier), bias, how)


def transpose(image: Any, kernel: Any, bias: Any, how: Settings) -> Any:
    """Apply a transposed convolution with a kernel [kh, kw, o, c]."""
    sides = padding.crops(
        how.padding, tuple(kernel.shape[:2]), how.strides, how.dilation, how.output_padding
    )
    filter = kernel.permute(3, 2, 0, 1)
    return _back(
        conv_transpose2d_between(_seen(image, how), filter, bias, how.strides, sides, how.dilation),
        how,
    )


def forget_compiled() -> None:
    """Do nothing: what is compiled belongs to the functions that a model drops."""


def device(value: Any) -> str:
    """Return where a variable's numbers are."""
    return str(value.device.type)


def _seen(image: Any, how: Settings) -> Any:
    return image.permute(0, 3, 1, 2) if how.channels_last else image


def _back(result: Any, how: Settings) -> Any:
    return result.permute(0, 2, 3, 1) if how.channels_last else result
