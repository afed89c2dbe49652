"""`accelerate(model, fuse=True)`: which batch norms are taken, with which activations, and why others are not."""

from __future__ import annotations

from typing import Any

import keras

from ..report import Layer
from . import calls, graphs, norms, refusals

Named = tuple[str, Any, bool]
"""A layer's name, the layer, and whether a model around it is compiled with `jit_compile`."""


def fuse(layers: list[Named], computer: Any) -> tuple[list[Layer], bool]:
    """Take the batch norms among layers; returns rows for a report, and whether anything has changed."""
    rows: list[Layer] = []
    changed = False
    pairs: dict[int, graphs.Pair] = {}
    alone: dict[int, str] = {}
    for _, model, _ in layers:
        if graphs.has_graph(model):
            found = graphs.find_pairs(model)
            pairs |= found.pairs
            alone |= found.reasons
    names = {id(layer): name for name, layer, _ in layers}
    for name, layer, jitted in layers:
        if not graphs.is_norm(layer):
            continue
        reason = _why_not(layer, computer, jitted)
        if reason is not None and reason != refusals.ALREADY:
            rows.append(Layer(name, type(layer).__name__, False, reason, "batch norm"))
            continue
        if reason is None:
            calls.take(layer, norms.normalization)
            changed = True
        pair = pairs.get(id(layer))
        why = alone.get(id(layer), "it is in no graph of a functional or sequential model")
        if pair is not None and not calls.is_taken(pair.activation):
            why = _why_not_activation(pair.activation)
            if why:
                pair = None
            else:
                calls.take(pair.activation, norms.activation)
                changed = True
        if pair is None:
            rows.append(
                Layer(name, type(layer).__name__, True, f"without activation: {why}", "batch norm")
            )
            continue
        behind = names[id(pair.activation)]
        rows.append(
            Layer(
                name,
                type(layer).__name__,
                True,
                f"with {behind}",
                f"batch norm, {pair.computes.name}",
            )
        )
        rows.append(
            Layer(behind, type(pair.activation).__name__, True, f"in {name}", pair.computes.name)
        )
    for _, model, _ in layers:
        if graphs.has_graph(model) and "call" not in model.__dict__:
            found = graphs.find_pairs(model)
            if any(map(calls.is_taken, (pair.activation for pair in found.pairs.values()))):
                norms.take_model(model, found)
                changed = True
    return rows, changed


def _why_not(layer: Any, computer: Any, jitted: bool) -> str | None:
    if calls.is_taken(layer):
        return refusals.ALREADY
    kind = type(layer)
    if kind is not keras.layers.BatchNormalization:
        return f"{kind.__module__}.{kind.__qualname__} is a class of its own"
    if "call" in layer.__dict__:
        return "its `call` was replaced"
    if layer.synchronized:
        return "it is synchronized between devices"
    if getattr(layer, "renorm", False):
        return "it renormalizes (`renorm=True`)"
    if layer._remat_mode is not None:
        return "it is computed again for its gradient"
    if norms.data_format(layer.axis) is None:
        return f"its axis {layer.axis} is not that of channels"
    if layer.built and layer.input_spec.ndim != 4:
        return f"its images have {layer.input_spec.ndim} dimensions"
    if jitted and not computer.FUSES_COMPILED:
        return "its model is compiled with jit_compile=True, which is not for fused layers"
    return refusals.refusal_of(layer, computer, jitted)


def _why_not_activation(layer: Any) -> str:
    """Return why an activation computes itself, or an empty text."""
    return f"the `call` of {layer.name} behind it was replaced" if "call" in layer.__dict__ else ""
