"""Activations as models of PyTorch have them: layers and functions, and what we call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..._problem import activations
from ..._problem.activations import Activation as Row
from .steps import Activation

Found = tuple[str, float]
"""A name and a slope."""


def _read(rows: tuple[Row, ...]) -> Callable[[Any], Found | None]:
    """Return what tells which of some rows a layer is, as its settings are when it is called."""

    def read(layer: Any) -> Found | None:
        for row in rows:
            if all(getattr(layer, key) == word for key, word in row.torch_settings):
                return row.name, float(layer.negative_slope) if row.has_slope else 0.0
        return None

    return read


def _relu6(layer: Any) -> Found | None:
    return ("relu6", 0.0) if (layer.min_val, layer.max_val) == (0, 6) else None


def _layers() -> dict[type[nn.Module], Callable[[Any], Found | None]]:
    named: dict[str, tuple[Row, ...]] = {}
    for row in activations.ROWS:
        if row.torch_layer:
            named[row.torch_layer] = (*named.get(row.torch_layer, ()), row)
    return {getattr(nn, name): _read(rows) for name, rows in named.items()} | {nn.ReLU6: _relu6}


LAYERS = _layers()
"""Activations that are layers: what each is, as its settings are when it is called."""
_FUNCTIONS: dict[Any, tuple[Row, ...]] = {}
for _row in activations.ROWS:
    if _row.torch:
        _key = getattr(F, _row.torch)
        _FUNCTIONS[_key] = (*_FUNCTIONS.get(_key, ()), _row)
_FUNCTIONS |= dict.fromkeys((torch.relu, torch.relu_, F.relu_, "relu", "relu_"), _FUNCTIONS[F.relu])


def known_activation(
    function: Any, rest: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Activation | None:
    """Return which activation a function is, or a method by its name, with arguments behind its tensor; None if it is
    none of ours."""
    rows = _FUNCTIONS.get(function, ())
    settings = dict(keywords)
    left = list(rest)
    slope = 0.0
    if any(row.has_slope for row in rows):
        slope = left.pop(0) if left else settings.pop("negative_slope", 0.01)
        if type(slope) not in (float, int):
            return None
    # PyTorch's defaults are those of the first row that a function has.
    defaults = dict(rows[0].torch_settings) if rows else {}
    asked = {key: settings.pop(key, word) for key, word in defaults.items()}
    name = next((row.name for row in rows if dict(row.torch_settings) == asked), None)
    # What is left can be one flag, `inplace`: nobody else sees what is written to.
    flags = [*left, *([settings.pop("inplace")] if "inplace" in settings else [])]
    if name is None or settings or len(flags) > 1 or any(type(each) is not bool for each in flags):
        return None
    return Activation(None, name, float(slope))
