"""Why a layer of Keras stays Keras's: what is the same for convolutions and batch norms."""

from __future__ import annotations

from typing import Any

from ..._base.dtypes import FLOATING

ALREADY = "already"
_DTYPES = tuple(row.numpy.name for row in FLOATING)


def refusal_of(layer: Any, computer: Any, jitted: bool) -> str | None:
    """Return why a layer is left alone, or None; `jitted` tells whether a model around it has `jit_compile`."""
    if layer.compute_dtype not in _DTYPES:
        return f"it computes in {layer.compute_dtype}"
    places = sorted({computer.device(variable.value) for variable in layer.weights} - {"cpu"})
    if places:
        return f"its weights are on {', '.join(places)}"
    if jitted and not computer.COMPILES_WITH_XLA:
        return (
            "its model is compiled with jit_compile=True, and XLA has no kernels of ours: "
            "compile it with jit_compile=False"
        )
    return None
