"""`batch_norm_act` on arrays of JAX: arguments, and derivatives.

First derivatives are a call of our own, with those gradients that are wanted. Derivatives of derivatives are those of
the primitive, which are JAX's, of the `formulas`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ..._base.dtypes import DType
from ..._problem.norm import graph_call as asked
from ..._problem.norm.call import ONE, Settings
from ..._problem.norm.normalisation import Normalisation
from . import formulas, meshes, passes

_ARRAYS = asked.Arrays(jnp.asarray, jnp.shape, jnp.astype)


def batch_norm_act(
    x: Any,
    scale: Any = None,
    offset: Any = None,
    *,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 1e-3,
    activation: str = "none",
    negative_slope: float = 0.2,
    residual: Any = None,
    residual_position: str = "before",
    data_format: str = "NHWC",
) -> tuple[Any, Any, Any]:
    """Normalise images by batch norm, apply an activation and add a residual, in two passes over memory.

    For each channel, with the M values of `x` in it::

        mean = sum(x) / M,  variance = sum((x - mean)^2) / M          unless they are given
        u = (x - mean) / sqrt(variance + epsilon) * scale + offset    (+ residual, "before")
        y = activation(u)                                             (+ residual, "after")

    Parameters
    ----------
    x : array of 4 dimensions
        float32, float64, bfloat16 or half; sums and statistics are kept in float32, for float64 in float64.
    scale, offset : array [channels], optional
        Ones and zeros if left out.
    mean, variance : array [channels], optional
        Statistics to normalise with, both or none: inference, or a frozen layer. None takes those of the batch.
    epsilon : float
    activation : str
        none, relu, relu6, leaky_relu, silu, hardswish, gelu or gelu_tanh.
    negative_slope : float
        Of leaky_relu, at least 0.
    residual : array like x, optional
    residual_position : str
        "before" the activation or "after" it.
    data_format : str
        NHWC or NCHW.

    Returns
    -------
    y, mean, variance
        The result, of x's shape and dtype, and the statistics it was normalised with, in float32 or float64: what
        running averages are made of. The variance is that of the batch, divided by M.

    Notes
    -----
    Gradients flow to all arrays, also from the returned mean and variance; derivatives of derivatives are JAX's.
    Forward-mode differentiation (`jax.jvp`) is refused by JAX, as for every function with `jax.custom_vjp`.

    Examples
    --------
    >>> import jax.numpy as jnp, convgrad.jax
    >>> x = jnp.array([1.0, 2.0, 3.0, 6.0]).reshape(2, 1, 2, 1)
    >>> y, mean, variance = convgrad.jax.batch_norm_act(x, epsilon=0.0, activation="relu")
    >>> mean.tolist(), variance.tolist(), [round(float(each), 3) for each in y.ravel()]
    ([3.0], [3.5], [0.0, 0.0, 0.0, 1.604])
    """
    how = asked.settings(
        *(epsilon, activation, negative_slope, residual_position, data_format, mean, variance)
    )
    rows = (scale, offset, mean, variance)
    return normalise(how, *asked.operands(how, _ARRAYS, x, rows, residual))


def normalise(how: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return y, mean and variance, of arrays that were checked, by their places."""
    operands = {place: jnp.asarray(each) for place, each in given.items()}
    call = _call(how, row, operands)
    if not operands["x"].size or not call.is_told:
        made = formulas.compute(call, operands)
        return made["y"], made["saved"][0], made["saved"][1]
    # Marks come before what is differentiated, so that their transposes, which are sums over devices, come behind it.
    marked = meshes.vary_alike(*(operands[place] for place in call.operands))
    return _fused(call, dict(zip(call.operands, marked, strict=True)))


def normalise_back(how: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of x, scale, offset and a residual, from that of y and the statistics of a forward pass."""
    operands = {place: jnp.asarray(each) for place, each in given.items()}
    x, grad, residual = operands["x"], operands["grad"], operands.get("residual")
    forward = _call(how, row, operands)
    call = forward.backward(x=True, parameters=True, residual=residual is not None)
    saved = formulas.saved(call, operands, operands["running_mean"], operands["running_var"])
    # Where the derivative is told from the result, the argument itself tells it as well.
    beside = {"": None, "residual": residual}.get(call.task.beside)
    if call.task.beside == "y":
        beside = formulas.argument(call, x, saved, residual)
    places = {"x": x, "grad": grad, "beside": beside, "saved": saved}
    compute = passes.compute if x.size else formulas.compute
    made = compute(call, {place: places[place] for place in call.operands})
    inner = None if residual is None else made.get("dresidual", grad)
    return made["dx"], made["dweight"], made["dbias"], inner


def _call(how: Settings, row: DType, operands: dict[str, Any]) -> Normalisation:
    x = operands["x"]
    sizes = how.sizes(x.shape) if x.size else ONE
    return how.normalisation(row, sizes, operands, "residual" in operands)


# Batch norm, whose first derivatives are passes. ----------------------------------------------------------------------


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _fused(call: Normalisation, operands: dict[str, Any]) -> tuple[Any, Any, Any]:
    made = passes.compute(call, operands)
    return made["y"], made["saved"][0], made["saved"][1]


def _forward(call: Normalisation, operands: dict[str, Any]) -> Any:
    """Return the results, and what the gradients that are wanted need: `perturbed` tells which."""
    given = {place: each.value for place, each in operands.items()}
    # In what is kept, None and () are structure, which is known while gradients are traced.
    wanted = {place: () if each.perturbed else None for place, each in operands.items()}
    made = passes.compute(call, given)
    sources = {"": None, "y": made["y"], "residual": given.get("residual")}
    kept = (given["x"], made["saved"], sources[call.task.beside], wanted)
    return (made["y"], made["saved"][0], made["saved"][1]), kept


def _backward(call: Normalisation, kept: Any, moves: Any) -> tuple[dict[str, Any]]:
    x, saved, beside, flags = kept
    wanted = {place for place, flag in flags.items() if flag is not None}
    grad, dmean, dvariance = moves
    grad = _known(grad)
    rows = bool(wanted & {"weight", "bias", "running_mean", "running_var"})
    back = call.backward(x="x" in wanted, parameters=rows, residual="residual" in wanted)
    given = {"x": x, "grad": grad, "beside": beside, "saved": saved}
    made = (
        passes.compute(back, {place: given[place] for place in back.operands})
        if back.results
        else {}
    )
    found: dict[str, Any] = dict.fromkeys(flags)
    if "x" in wanted:
        found["x"] = _with_statistics(call, made["dx"], x, saved, dmean, dvariance)
    if "residual" in wanted:
        found["residual"] = made.get("dresidual", grad)
    if rows:
        _, _, inverse, scale, _ = saved
        of_rows = {
            "weight": made["dweight"],
            "bias": made["dbias"],
            "running_mean": _known(dmean) - scale * made["dbias"],
            "running_var": _known(dvariance) - scale * inverse * made["dweight"] / 2,
        }
        found |= {place: each for place, each in of_rows.items() if place in wanted}
    return (found,)


def _with_statistics(
    call: Normalisation, dx: Any, x: Any, saved: Any, dmean: Any, dvariance: Any
) -> Any:
    """Add what moves x through the batch's statistics that were returned; usually nothing does."""
    if call.task.name != "forward" or all(map(_is_zero, (dmean, dvariance))):
        return dx
    rows = (saved[0], _known(dmean), _known(dvariance))
    if call.task.data_format == "NCHW":
        rows = tuple(row[:, None, None] for row in rows)
    mean, dmean, dvariance = rows
    more = (dmean + 2 * (x.astype(mean.dtype) - mean) * dvariance) / call.task.values
    return (dx.astype(mean.dtype) + more).astype(dx.dtype)


def _is_zero(move: Any) -> bool:
    return isinstance(move, jax.custom_derivatives.SymbolicZero)


def _known(move: Any) -> Any:
    return jnp.zeros(move.shape, move.dtype) if _is_zero(move) else move


_fused.defvjp(_forward, _backward, symbolic_zeros=True)
