"""Layers of PyTorch that compute with convgrad, and the swap of a model's layers for them.

A layer is swapped by changing its class: parameters, buffers, hooks, names and references to it stay what they are, and
so do checkpoints and optimizers. The class goes back the same way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor as AnyTensor
from torch import nn

from . import functional, graphs, sums, weights
from .kernels import describe
from .tensors import prefers_channels_last

_NOWHERE = (0, 0)


class Conv2d(nn.Conv2d):
    """`torch.nn.Conv2d`, computed by convgrad."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        _adopt(self)

    def _conv_forward(
        self, input: AnyTensor, weight: AnyTensor, bias: AnyTensor | None
    ) -> AnyTensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            mode, sides = self.padding_mode, self._reversed_padding_repeated_twice
            input = nn.functional.pad(input, sides, mode=mode)
            padding = _NOWHERE
        if self.__dict__.get("_channels_last"):
            input = as_filter(input)
        try:
            return functional.conv2d(
                input, weight, bias, self.stride, padding, self.dilation, self.groups
            )
        except Exception as error:
            raise with_layer_name(self, error) from None


class ConvTranspose2d(nn.ConvTranspose2d):
    """`torch.nn.ConvTranspose2d`, computed by convgrad."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        _adopt(self)

    def forward(self, input: AnyTensor, output_size: Any = None) -> AnyTensor:
        output_padding = self._output_padding(
            *(input, output_size, self.stride, self.padding, self.kernel_size),
            *(2, self.dilation),
        )
        if self.__dict__.get("_channels_last"):
            input = as_filter(input)
        padding: Any = self.padding
        try:
            return functional.conv_transpose2d(
                *(input, self.weight, self.bias, self.stride, padding),
                *(output_padding, self.groups, self.dilation),
            )
        except Exception as error:
            raise with_layer_name(self, error) from None


class Linear(nn.Linear):
    """`torch.nn.Linear`; on images [n, h, w, c], where it is a 1x1 convolution, computed by convgrad."""

    def forward(self, input: AnyTensor) -> AnyTensor:
        try:
            return functional.linear(input, self.weight, self.bias)
        except Exception as error:
            raise with_layer_name(self, error) from None


SWAPS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Conv2d: Conv2d,
    nn.ConvTranspose2d: ConvTranspose2d,
    nn.Linear: Linear,
}
ORIGINALS = {ours: theirs for theirs, ours in SWAPS.items()}


def as_filter(image: AnyTensor) -> AnyTensor:
    """Return an image in channels_last, as a layer whose filter was stored so works: PyTorch does the same."""
    if image.dim() != 4:
        return image
    try:
        if image.is_contiguous(memory_format=torch.channels_last):
            return _said_to_be_last(image) if image.is_contiguous() else image
        return image.contiguous(memory_format=torch.channels_last)
    except RuntimeError:
        if sums.mapped():  # an image is several, and has no format
            return image
        raise


def _said_to_be_last(image: AnyTensor) -> AnyTensor:
    """Return an image of one channel or one pixel, which lies in both formats, with strides that mean channels_last."""
    if graphs.traced() or prefers_channels_last(describe(image)):
        return image
    rows = image.permute(0, 2, 3, 1)
    return rows.reshape(-1).view(rows.shape).permute(0, 3, 1, 2)


def _adopt(layer: nn.Module) -> None:
    """Treat the filter of a copied or unpickled layer as that of the original."""
    weights.adopt(layer._parameters.get("weight"), bool(layer.__dict__.get("_channels_last")))


def with_layer_name(layer: nn.Module, error: Exception) -> Exception:
    """Return an error with a note that says which layer it is of: words and type stay PyTorch's."""
    name = layer.__dict__.get("_convgrad_name")
    if name and hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(f"in the layer {name!r}, computed by convgrad")
    return error


def swap(layer: nn.Module, name: str, restride: bool) -> None:
    """Make a layer one of ours."""
    kind = type(layer)
    layer.__class__ = SWAPS[kind]
    layer.__dict__["_convgrad_name"] = name
    if kind is nn.Linear:
        return
    weight: Any = layer._parameters.get("weight")
    layer.__dict__["_channels_last"] = weight is not None and prefers_channels_last(
        describe(weight)
    )
    if restride and weight is not None and not _reads_as_it_is(layer, weight):
        weights.restride(weight)


def _reads_as_it_is(layer: Any, weight: AnyTensor) -> bool:
    """Tell whether kernels can exchange the roles of the images instead: 1x1, stride 1, no padding, one group."""
    return (
        weight.shape[2:] == (1, 1)
        and layer.stride == (1, 1)
        and layer.groups == 1
        and layer.padding in ((0, 0), "valid", "same")
        and weight.stride(1) <= weight.stride(0)
    )


def unswap(layer: nn.Module) -> None:
    """Make a layer PyTorch's own again, with the memory its filter had."""
    layer.__class__ = ORIGINALS[type(layer)]
    for name in ("_convgrad_name", "_channels_last"):
        layer.__dict__.pop(name, None)
    weight: Any = layer._parameters.get("weight")
    if weight is not None:
        weights.put_back(weight)
