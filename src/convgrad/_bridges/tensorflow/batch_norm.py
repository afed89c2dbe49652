"""`batch_norm_act` on tensors of TensorFlow: arguments, and derivatives.

First derivatives are an op of our own. Derivatives of derivatives, of which TensorFlow also makes those of its
forward mode, are TensorFlow's, of the `formulas`.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops as _framework_ops
from tensorflow.python.ops import control_flow_util

from ..._base.dtypes import DType
from ..._problem.norm import graph_call as asked
from ..._problem.norm import normalisation
from ..._problem.norm.call import FORWARD, ONE, Settings
from . import formulas, passes
from .problems import shape_of

_ARRAYS = asked.Arrays(tf.convert_to_tensor, shape_of, tf.cast)


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
    x : tensor of 4 dimensions
        float32, float64, bfloat16 or half; sums and statistics are kept in float32, for float64 in float64.
    scale, offset : tensor [channels], optional
        Ones and zeros if left out.
    mean, variance : tensor [channels], optional
        Statistics to normalise with, both or none: inference, or a frozen layer. None takes those of the batch.
    epsilon : float
    activation : str
        none, relu, relu6, leaky_relu, silu, hardswish, gelu or gelu_tanh.
    negative_slope : float
        Of leaky_relu, at least 0.
    residual : tensor like x, optional
    residual_position : str
        "before" the activation or "after" it.
    data_format : str
        NHWC or NCHW.

    Returns
    -------
    y, mean, variance
        The result, of x's shape and dtype, and the statistics it was normalised with, in float32 or float64: what
        running averages are made of. The variance is that of the batch, divided by M. No gradient flows from the
        batch's statistics that are returned (`tf.stop_gradient`).

    Notes
    -----
    Gradients flow to all tensors that are given; derivatives of derivatives are TensorFlow's, and so is forward mode
    (`tf.autodiff.ForwardAccumulator`). In a `tf.function(jit_compile=True)`, where XLA has no kernels of ours, all of
    it is TensorFlow's own operations.

    Examples
    --------
    >>> import tensorflow as tf, convgrad.tensorflow
    >>> x = tf.reshape(tf.constant([1.0, 2.0, 3.0, 6.0]), (2, 1, 2, 1))
    >>> y, mean, variance = convgrad.tensorflow.batch_norm_act(x, epsilon=0.0, activation="relu")
    >>> float(mean[0]), float(variance[0]), [round(float(each), 3) for each in tf.reshape(y, -1)]
    (3.0, 3.5, [0.0, 0.0, 0.0, 1.604])
    """
    how = asked.settings(
        *(epsilon, activation, negative_slope, residual_position, data_format, mean, variance)
    )
    rows = (scale, offset, mean, variance)
    return normalise(how, *asked.operands(how, _ARRAYS, x, rows, residual))


def normalise(how: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return y, mean and variance, of tensors that were checked as far as their shapes are known, by their places."""
    shape = shape_of(given["x"])
    call = how.normalisation(row, ONE, given, "residual" in given)
    ours = call.is_told and _is_ours()
    made = passes.execute(call, given) if ours else formulas.compute(call, given)
    y, saved = made["y"], made["saved"]
    if shape is not None:
        y.set_shape(shape)
        saved.set_shape((5, shape[how.channel_axis]))
    if not how.is_training:
        return y, given["running_mean"], given["running_var"]
    statistics = tf.stop_gradient(saved)
    return y, statistics[0], statistics[1]


def normalise_back(how: Settings, row: DType, given: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of x, scale, offset and a residual, from that of y and the statistics of a forward pass."""
    x, grad, residual = given["x"], given["grad"], given.get("residual")
    call = how.normalisation(row, ONE, given, residual is not None)
    back = call.backward(x=True, parameters=True, residual=residual is not None)
    back = replace(back, given=call.given)
    # Where the derivative is told from the result, the argument itself tells it as well.
    beside = formulas.argument(call, given) if back.task.beside == "y" else residual
    operands = given | {"beside": beside, "saved": formulas.saved(call, given)}
    operands = {place: operands[place] for place in passes.inputs(back)}
    made = passes.execute(back, operands) if _is_ours() else formulas.compute(back, operands)
    inner = None if residual is None else made.get("dresidual", grad)
    rows = [_shaped(made[place], given["running_mean"]) for place in ("dweight", "dbias")]
    return _shaped(made["dx"], x), *rows, inner


def _is_ours() -> bool:
    """Tell whether our op can be called here: XLA has no kernel of it."""
    if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(
        _framework_ops.get_default_graph()
    ):
        return False
    register()
    return passes.available()


# Derivatives. ---------------------------------------------------------------------------------------------------------


def _gradient(op: Any, *grads: Any) -> list[Any]:
    """Return gradients by all operands of passes forwards, from that of the result."""
    call = _call(op)
    given = dict(zip(call.operands, op.inputs, strict=True))
    y, saved = op.outputs
    # A tape knows which of them nobody asks for; in a graph, what is not used is not computed.
    skipped = set(getattr(op, "skip_input_indices", None) or ())
    wanted = {place for at, place in enumerate(call.operands) if at not in skipped}
    rows = bool(wanted - {"x", "residual"})
    back = call.backward(x="x" in wanted, parameters=rows, residual="residual" in wanted)
    sources = {"": None, "y": y, "residual": given.get("residual")}
    operands = given | {"grad": grads[0], "beside": sources[call.task.beside], "saved": saved}
    back = replace(back, given=call.given)
    made = passes.execute(back, operands) if back.results else {}
    found: dict[str, Any] = {"x": made.get("dx"), "residual": made.get("dresidual", grads[0])}
    if rows:
        found |= {"weight": made["dweight"], "bias": made["dbias"]}
    if wanted & {"running_mean", "running_var"}:
        # Not from what was saved: second derivatives come here by the rows themselves.
        inverse = tf.math.rsqrt(given["running_var"] + call.epsilon)
        factor = inverse * given["weight"] if "weight" in given else inverse
        found["running_mean"] = -factor * made["dbias"]
        found["running_var"] = -factor * inverse * made["dweight"] / 2
    return [
        _shaped(found[place], given[place]) if place in wanted else None for place in call.operands
    ]


def _second_gradient(op: Any, *grads: Any) -> list[Any]:
    """Return gradients by all inputs of passes backwards, from those of their results."""
    call = _call(op)
    if call.given is None:
        raise LookupError(
            f"{FORWARD}: a graph that was saved by an older convgrad has no second derivatives."
        )
    given = dict(zip(passes.inputs(call), op.inputs, strict=True))
    # What saves and y consist of is among the others, and an activation whose derivative is told from y has no second.
    derived = ("saved", "beside") if call.task.beside == "y" else ("saved",)
    sources = {place: each for place, each in given.items() if place not in derived}
    with tf.GradientTape() as tape:
        tape.watch(sources)
        made = formulas.compute(call, given)
    found = tape.gradient(made, sources, dict(zip(call.results, grads, strict=True)))
    return [found.get(place) for place in given]


def _call(op: Any) -> normalisation.Normalisation:
    text = op.get_attr("call")
    return normalisation.read(text.decode() if isinstance(text, bytes) else text)


def _shaped(gradient: Any, like: Any) -> Any:
    if not tf.executing_eagerly():
        gradient.set_shape(like.shape)
    return gradient


@functools.cache
def register() -> None:
    """Tell TensorFlow, once per process."""
    if passes.available():
        try:
            tf.RegisterGradient(passes.FORWARD)(_gradient)
            tf.RegisterGradient(passes.BACKWARD)(_second_gradient)
        except KeyError:  # by a first import of convgrad in this process
            return
