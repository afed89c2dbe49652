"""Activations as models of PyTorch have them: layers and functions, and what we call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .steps import Activation

_GELU = {"none": ("gelu", 0.0), "tanh": ("gelu_tanh", 0.0)}
LAYERS: dict[type[nn.Module], Callable[[Any], tuple[str, float] | None]] = {
    nn.ReLU: lambda layer: ("relu", 0.0),
    nn.ReLU6: lambda layer: ("relu6", 0.0) if (layer.min_val, layer.max_val) == (0, 6) else None,
    nn.LeakyReLU: lambda layer: ("leaky_relu", float(layer.negative_slope)),
    nn.SiLU: lambda layer: ("silu", 0.0),
    nn.Hardswish: lambda layer: ("hardswish", 0.0),
    nn.GELU: lambda layer: _GELU.get(layer.approximate),
}
"""Activations that are layers: what each is, as its settings are when it is called."""
_FUNCTIONS: dict[Any, str] = {
    F.relu: "relu",
    torch.relu: "relu",
    torch.relu_: "relu",
    F.relu_: "relu",
    "relu": "relu",
    "relu_": "relu",
    F.relu6: "relu6",
    F.leaky_relu: "leaky_relu",
    F.silu: "silu",
    F.hardswish: "hardswish",
    F.gelu: "gelu",
}


def named(function: Any, rest: tuple[Any, ...], keywords: Mapping[str, Any]) -> Activation | None:
    """Return which activation a function is, or a method by its name, with arguments behind its tensor; None if it is
    none of ours."""
    name = _FUNCTIONS.get(function)
    settings = dict(keywords)
    left = list(rest)
    slope = 0.0
    if name == "leaky_relu":
        slope = left.pop(0) if left else settings.pop("negative_slope", 0.01)
        if type(slope) not in (float, int):
            return None
    if name == "gelu":
        found = _GELU.get(settings.pop("approximate", "none"))
        name = None if found is None else found[0]
    # What is left can be one flag, `inplace`: nobody else sees what is written to.
    flags = [*left, *([settings.pop("inplace")] if "inplace" in settings else [])]
    if name is None or settings or len(flags) > 1 or any(type(each) is not bool for each in flags):
        return None
    return Activation(None, name, float(slope))
