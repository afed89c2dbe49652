"""`accelerate` and `restore`: a whole model at once, and a report of what was done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..._base import memory as _memory
from ..._base.dtypes import FLOATING
from ..._base.errors import ArgumentError
from ..._base.warnings import warn
from ..report import Layer, Report
from . import fusing, install, modules
from .advice import remedies

_DTYPES = tuple(getattr(torch, row.numpy.name) for row in FLOATING)
_GAINS = {
    "depthwise": "2 to 4",
    "grouped": "about 2",
    "3x3": "about 1.5",
    "pointwise": "1 to 1.3",
    "dense": "1 to 1.4",
    "linear": "1 to 1.3 on images",
}
"""Times as fast as PyTorch on two AVX2 cores, channels last, forwards and backwards: means of the benchmark's layers
(README.md); of pointwise and linear layers what those of MobileNetV2, ResNet-50 and ConvNeXt-T range over."""


def accelerate(
    model: nn.Module,
    *,
    memory: bool = False,
    restride: bool = True,
    linear: bool = True,
    fuse: bool = False,
    recompute: bool = False,
    progress: bool = True,
) -> Report:
    """Compute a model's convolutions with convgrad, in place; returns a report.

    Every `torch.nn.Conv2d` and `torch.nn.ConvTranspose2d` becomes a layer of ours by a change of its class, and every
    `torch.nn.Linear`, which on images [n, h, w, c] is a 1x1 convolution. Parameters, hooks, names, checkpoints and
    optimizers stay what they are. `restore` undoes it.

    Parameters
    ----------
    model : torch.nn.Module
    memory : bool
        Also call `tune_memory`, for the whole process.
    restride : bool
        Store filters in the order kernels want them. Their values and shapes do not change, only `stride()`, as with
        `model.to(memory_format=torch.channels_last)`. False leaves them, and each call reorders its filter.
    linear : bool
        Take `torch.nn.Linear` too.
    fuse : bool
        Also compute convolution, batch norm, activation and residual of a block as one, and batch norm with what
        follows it where there is no convolution in front; pooling and scaling of squeeze-and-excitation by passes of
        our own. Modules whose forward does that get one of ours, as an attribute; the report says which.
    recompute : bool
        With `fuse`: do not keep the results of blocks that go straight into the next block, but compute them anew in
        the backward pass, which needs less memory and a little more time. Second derivatives are refused then.
    progress : bool
        With `fuse`: say on stderr how far it is, where that takes longer than a second.

    Examples
    --------
    >>> import torch, convgrad.torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, groups=8))
    >>> report = convgrad.torch.accelerate(model.to(memory_format=torch.channels_last))
    >>> report.taken
    ('0', '2')
    >>> model(torch.randn(1, 3, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """
    if recompute and not fuse:
        raise ArgumentError("accelerate: `recompute` is about fused blocks and needs fuse=True.")
    install.install()
    layers = []
    plain: list[str] = []
    for name, layer in _layers(model):
        kind = type(layer).__name__
        if type(layer) is nn.Linear and not linear:
            continue
        if type(layer) in modules.ORIGINALS:
            layers.append(_row(name, kind, layer, "already", taken=True))
            continue
        reason = _why_not(layer)
        if reason is None:
            modules.swap(layer, name, restride)
            if not layer.__dict__.get("_channels_last", True):
                plain.append(name)
        layers.append(_row(name, kind, layer, reason or "", taken=reason is None))
    setting = _tuned() if memory else None
    advice = _advice(layers, plain)
    blocks = fusing.fuse(model, recompute, progress) if fuse else None
    report = Report(tuple(layers), setting, (*advice, *remedies(blocks or ())), blocks)
    if not report.taken and not report.fused:
        warn(
            "convgrad.torch.accelerate: no layer of this model was taken, so nothing will be faster; "
            "print the report to see why"
        )
    return report


def restore(model: nn.Module) -> int:
    """Undo `accelerate`: PyTorch computes the model's layers again; returns how many were changed back.

    Filters get the memory format they had, and fused blocks are layers again. The memory setting is a matter of the
    process and stays; its own `undo` takes it back.
    """
    fusing.separate(model)
    count = 0
    for _, layer in _layers(model):
        if type(layer) in modules.ORIGINALS:
            modules.unswap(layer)
            count += 1
    return count


def _tuned() -> _memory.MemorySetting:
    return _memory.tune_memory()


def _layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    kinds = tuple(modules.SWAPS)
    for name, layer in model.named_modules():
        if isinstance(layer, kinds):
            yield name, layer


def _why_not(layer: Any) -> str | None:
    """Return why a layer is left alone, or None."""
    kind = type(layer)
    if kind not in modules.SWAPS:
        if hasattr(layer, "parametrizations"):
            return "its weight is computed by a parametrization, in a class made for it"
        return f"{kind.__module__}.{kind.__qualname__} is a class of its own"
    weight = layer.__dict__.get("weight", layer._parameters.get("weight"))
    if isinstance(weight, nn.parameter.UninitializedParameter):
        return "it has not seen an image yet, so its weight has no shape"
    if weight is None:
        return "it has no weight"
    if weight.device.type != "cpu":
        return f"its weight is on {weight.device}"
    if weight.dtype not in _DTYPES:
        return f"its weight is {str(weight.dtype).removeprefix('torch.')}"
    return None


def _row(name: str, kind: str, layer: nn.Module, reason: str, *, taken: bool) -> Layer:
    what = _what(layer)
    return Layer(name, kind, taken, reason, what, _GAINS[what] if taken else "")


def _what(layer: Any) -> str:
    if isinstance(layer, nn.Linear):
        return "linear"
    near = layer.in_channels // layer.groups
    if layer.groups > 1:
        return "depthwise" if near == 1 else "grouped"
    if layer.kernel_size == (1, 1):
        return "pointwise"
    return "3x3" if layer.kernel_size == (3, 3) and layer.stride == (1, 1) else "dense"


def _advice(layers: list[Layer], plain: list[str]) -> tuple[str, ...]:
    convolutions = [layer for layer in layers if layer.taken and layer.what != "linear"]
    if convolutions and len(plain) == len(convolutions):
        return (
            "This model is contiguous. Images in channels_last memory are faster: "
            "model.to(memory_format=torch.channels_last), before accelerate.",
        )
    return ()
