"""Keras on PyTorch: images [n, h, w, c] and filters [kh, kw, c, o] are PyTorch's with other strides. Nothing is copied.

Keras's own way copies every image twice in channels_last, from its order of dimensions to PyTorch's and into PyTorch's
channels_last, and a third time where "same" pads one side more than the other.
"""

from __future__ import annotations

from typing import Any

from ..torch.functional import conv2d_between, conv_transpose2d_between
from ..torch.norm import batch_norm_act
from ..torch.passes import PARAMETERS
from . import padding
from .activations import AppliedActivation
from .settings import LayerSettings

COMPILES_WITH_XLA = True
"""Whether a model may be compiled with `jit_compile=True`, which is `torch.compile` here."""

FUSES_COMPILED = False
"""Whether batch norms of such a model may be fused: `torch.compile` cannot follow which model runs."""


def is_computable(image: Any) -> bool:
    """Tell whether convgrad takes an image: those of other devices it leaves to PyTorch by itself."""
    return True


def convolve(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
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


def depthwise(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
    """Convolve every channel by itself, with a kernel [kh, kw, c, multiplier]."""
    rows, columns, channels, multiplier = kernel.shape
    return convolve(image, kernel.reshape(rows, columns, 1, channels * multiplier), bias, how)


def transpose(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
    """Apply a transposed convolution with a kernel [kh, kw, o, c]."""
    sides = padding.crops(
        how.padding, tuple(kernel.shape[:2]), how.strides, how.dilation, how.output_padding
    )
    filter = kernel.permute(3, 2, 0, 1)
    return _back(
        conv_transpose2d_between(_seen(image, how), filter, bias, how.strides, sides, how.dilation),
        how,
    )


def batch_norm(
    image: Any,
    scale: Any,
    offset: Any,
    statistics: Any,
    epsilon: float,
    activation: AppliedActivation,
    data_format: str,
) -> tuple[Any, Any, Any] | None:
    """Normalise an image by its own or by given statistics, which it returns too, and apply an activation.

    PyTorch refuses to take statistics of one value per channel or none, and Keras does not: the answer is None then.
    """
    seen = image.permute(0, 3, 1, 2) if data_format == "NHWC" else image
    channels = seen.shape[1]
    values = seen.numel() // max(channels, 1)
    if statistics is None and values < 2:
        return None
    # Running statistics that forget everything are the batch's; PyTorch's variance is divided by one value less.
    given = statistics or [image.new_zeros(channels, dtype=_statistics(image)) for _ in range(2)]
    result = batch_norm_act(
        *(seen, scale, offset, *given),
        training=statistics is None,
        momentum=1.0,
        eps=epsilon,
        activation=activation.name,
        negative_slope=activation.slope,
    )
    mean, variance = given
    if statistics is None:
        variance = variance * ((values - 1) / values)
    return (result.permute(0, 2, 3, 1) if data_format == "NHWC" else result), mean, variance


def _statistics(image: Any) -> Any:
    """Return the dtype that statistics of an image are computed in."""
    return PARAMETERS.get(image.dtype, image.dtype)


def forget_compiled() -> None:
    """Do nothing: what is compiled belongs to the functions that a model drops."""


def device(value: Any) -> str:
    """Return where a variable's numbers are."""
    return str(value.device.type)


def _seen(image: Any, how: LayerSettings) -> Any:
    return image.permute(0, 3, 1, 2) if how.channels_last else image


def _back(result: Any, how: LayerSettings) -> Any:
    return result.permute(0, 2, 3, 1) if how.channels_last else result
