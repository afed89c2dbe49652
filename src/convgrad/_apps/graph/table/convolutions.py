"""The six operations. Their shape rule is the eager functions' own check, as far as sizes are known.

An unknown size is replaced by one that breaks no rule, the problem is built and checked, and what depended on the
replacement is unknown in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...._api import calls, raw
from ...._base import dtypes as _dtypes
from ...._problem import arguments, convolution
from ...._problem.arguments import FRIENDLY, RAW, Given
from ...._problem.convolution import Kind, Problem, Settings
from .. import dtypes
from ..row import Attr, Kernel, NodeCall, OpRow, Pin
from ..spec import Shape, Sizes, Spec, shape_spelled
from .rules import Grads, only, rank, shape_of_vector, vector

if TYPE_CHECKING:
    from ..operation import Operation, Output
    from ..scope import Scope

_REQUIRED = (Attr("strides", "ints"), Attr("padding", "string"))
_CUDNN = Attr("use_cudnn_on_gpu", "bool", True)
_EXPLICIT = Attr("explicit_paddings", "ints", ())
_REST = (Attr("data_format", "string", "NHWC"), Attr("dilations", "ints", (1, 1, 1, 1)))
_DENSE = (_CUDNN, _EXPLICIT, *_REST)
_DEPTHWISE = (_EXPLICIT, *_REST)


def _given(node: Operation) -> Given:
    """Return checked settings as an eager function is given them, in the form it looks up soonest."""
    found = _settings(NodeCall(node.row, node.attrs, ()))
    pairs = [pair[0] if pair[0] == pair[1] else pair for pair in (found.strides, found.dilations)]
    return FRIENDLY, pairs[0], found.padding, found.data_format, pairs[1]


def problem_of(node: Operation, inputs: Sequence[Spec] | None = None) -> Problem | None:
    """Return the convolution a node computes, if all its sizes are known; `inputs` may know more than the graph."""
    specs = tuple(each.spec for each in node.inputs) if inputs is None else tuple(inputs)
    made = NodeCall(node.row, node.attrs, specs)
    shapes = _shapes(made, _CALLS[node.type])
    if any(size is None for shape in shapes if shape is not None for size in shape):
        return None
    row = _dtypes.find(node.specs[0].dtype)
    assert row is not None
    x, f, g = (None if shape is None else _ints(shape) for shape in shapes)
    assert x is not None and f is not None
    return convolution.build(_CALLS[node.type], _settings(made), row, x, f, g)


def _ints(shape: Sizes) -> tuple[int, ...]:
    return tuple(size for size in shape if size is not None)


def _settings(call: NodeCall) -> Settings:
    attrs = call.attrs
    return arguments.settings(
        call.row.name,
        RAW,
        list(attrs["strides"]),
        attrs["padding"],
        attrs["data_format"],
        list(attrs["dilations"]),
        list(attrs["explicit_paddings"]),
    )


def _shapes(call: NodeCall, op: convolution.Call) -> tuple[Sizes, Sizes, Sizes | None]:
    """Return input, filter and gradient as far as they are known; refuse wrong ranks and lengths."""
    if op.kind is Kind.FORWARD:
        return _four(call, "input"), _four(call, "filter"), None
    g = _four(call, "out_backprop")
    if op.kind is Kind.FILTER_GRADIENT:
        return _four(call, "input"), _sizes(call, "filter_sizes", (4,)), g
    x = _sizes(call, "input_sizes", (4,) if op.depthwise else (4, 2))
    f = _four(call, "filter")
    if len(x) == 2:
        nchw = call.attrs["data_format"] == "NCHW"
        x = (g[0], f[2], *x) if nchw else (g[0], *x, f[2])
    return x, f, g


def _four(call: NodeCall, name: str) -> Sizes:
    shape = call[name].shape
    if shape is not None:
        convolution.check_rank(call.row.name, name, tuple(size or 0 for size in shape))
    return rank(call, name, 4)


def _sizes(call: NodeCall, name: str, lengths: tuple[int, ...]) -> Sizes:
    found: Shape = vector(call, name)
    if found is None:
        return (None,) * 4
    if None not in found:  # the words of the eager functions
        return arguments.sizes(call.row.name, name, _ints(found), lengths)
    shape_of_vector(call, name)
    if len(found) not in lengths:
        wanted = " or ".join(map(str, lengths))
        raise call.refuse(
            f"`{name}` must hold {wanted} values", f"{len(found)}: {shape_spelled(found)}"
        )
    return found


def _infer(call: NodeCall) -> Sequence[Spec]:
    op = _CALLS[call.row.name]
    settings = _settings(call)
    x, f, g = _shapes(call, op)
    row = _dtypes.find(call.inputs[-1].dtype)
    assert row is not None
    if all(None not in shape for shape in (x, f, g or ())):
        problem = convolution.build(
            op, settings, row, _ints(x), _ints(f), None if g is None else _ints(g)
        )
        return [Spec(call.inputs[-1].dtype, _result(op, problem))]
    channel = 3 if settings.data_format == "NHWC" else 1
    rows = 1 if channel == 3 else 2
    full_x, full_f = list(x), list(f)
    batch = x[0] if x[0] is not None or g is None else g[0]
    full_x[0] = batch or 0 if batch is not None else 1
    depth = f[2] if f[2] is not None else x[channel]
    full_f[2] = 1 if depth is None else depth
    full_x[channel] = full_f[2] if x[channel] is None else x[channel]
    if op.depthwise and f[2] is None and x[channel] is not None:
        full_f[2] = x[channel]
    groups = 1 if not full_f[2] else max(1, (full_x[channel] or 0) // full_f[2])
    full_f[3] = (1 if op.depthwise else groups) if f[3] is None else f[3]
    determined = {0: batch is not None, channel: f[3] is not None}
    if op.depthwise:
        determined[channel] = f[3] is not None and depth is not None
    for axis in (0, 1):
        at = rows + axis
        determined[at] = x[at] is not None and f[axis] is not None
        window = 1 if f[axis] is None else f[axis]
        full_f[axis] = window
        reach = (max(1, window or 0) - 1) * settings.dilations[axis] + 1
        full_x[at] = reach if x[at] is None else x[at]
        if f[axis] is None and x[at] == 0:  # a window of one cell is too large already
            full_x[at] = 1
    shape_x, shape_f = _ints(tuple(full_x)), _ints(tuple(full_f))
    probe = convolution.Call(op.function, Kind.FORWARD, op.depthwise, op.input, op.filter, op.grad)
    if op.kind is not Kind.FORWARD:  # gradients of an empty window are zeros, which forward refuses
        probe = op
    forward = convolution.build(probe, settings, row, shape_x, shape_f, None).output_shape
    if g is not None:
        full_g = tuple(
            size if size is not None and determined[at] else forward[at]
            for at, size in enumerate(g)
        )
        convolution.build(op, settings, row, shape_x, shape_f, full_g)
    if op.kind is Kind.FORWARD:
        result: Sizes = tuple(size if determined[at] else None for at, size in enumerate(forward))
    elif op.kind is Kind.INPUT_GRADIENT:
        result = tuple(batch if at == 0 else size for at, size in enumerate(x))
    else:
        result = f
    return [Spec(call.inputs[-1].dtype, result)]


def _result(op: convolution.Call, problem: Problem) -> Sizes:
    if op.kind is Kind.FORWARD:
        return problem.output_shape
    return problem.input_shape if op.kind is Kind.INPUT_GRADIENT else problem.filter_shape


def _forward(node: Operation) -> Kernel:
    call, how = _CALLS[node.type], _given(node)

    def run(x: Any, f: Any) -> Any:
        return calls.compute(call, how, None, x, f)

    return run


def _input_gradient(node: Operation) -> Kernel:
    call, how = _CALLS[node.type], _given(node)

    def run(wanted: Any, f: Any, g: Any) -> Any:
        return calls.compute(call, how, wanted.tolist(), f, g)

    return run


def _filter_gradient(node: Operation) -> Kernel:
    call, how = _CALLS[node.type], _given(node)

    def run(x: Any, wanted: Any, g: Any) -> Any:
        return calls.compute(call, how, wanted.tolist(), x, g)

    return run


def _names(node: Operation) -> tuple[str, str, str]:
    dense = node.type.startswith("Conv2D")
    base = "Conv2D" if dense else "DepthwiseConv2dNative"
    return base, f"{base}BackpropInput", f"{base}BackpropFilter"


# y = conv(x, f) is linear in x and in f, and so are both gradients in what they are made of: the three sums are each
# other's gradients, to any order.


def _forward_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    _, to_input, to_filter = _names(node)
    (x, f), g = node.inputs, only(grads)
    return [
        _back_to_input(scope, to_input, node, x, f, g),
        _back_to_filter(scope, to_filter, node, x, f, g),
    ]


def _input_gradient_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    forward, _, to_filter = _names(node)
    (_, f, g), dx = node.inputs, only(grads)
    return [
        None,
        _back_to_filter(scope, to_filter, node, dx, f, g),
        scope.op(forward, dx, f, **node.attrs),
    ]


def _filter_gradient_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    forward, to_input, _ = _names(node)
    (x, _, g), df = node.inputs, only(grads)
    return [
        _back_to_input(scope, to_input, node, x, df, g),
        None,
        scope.op(forward, x, df, **node.attrs),
    ]


def _back_to_input(
    scope: Scope, name: str, node: Operation, x: Output, f: Output, g: Output
) -> Output | None:
    return scope.op(name, scope.op("Shape", x), f, g, **node.attrs)


def _back_to_filter(
    scope: Scope, name: str, node: Operation, x: Output, f: Output, g: Output
) -> Output | None:
    if x.dtype not in dtypes.FLOATS:
        return None
    return scope.op(name, x, scope.op("Shape", f), g, **node.attrs)


def _pins(dense: bool, kind: Kind) -> tuple[Pin, ...]:
    allowed = dtypes.CONVOLVED if dense and kind is not Kind.FILTER_GRADIENT else dtypes.FLOATS
    image = Pin("input", allowed, "T")
    taps = Pin("filter", allowed, "T")
    grad = Pin("out_backprop", allowed, "T")
    if kind is Kind.FORWARD:
        return image, taps
    if kind is Kind.INPUT_GRADIENT:
        return Pin("input_sizes", dtypes.INDICES), taps, grad
    return image, Pin("filter_sizes", dtypes.INDICES), grad


_KINDS = {
    Kind.FORWARD: ("", "a 2-D convolution", _forward, _forward_gradient),
    Kind.INPUT_GRADIENT: (
        "BackpropInput",
        "the gradient of a 2-D convolution with respect to its input",
        _input_gradient,
        _input_gradient_gradient,
    ),
    Kind.FILTER_GRADIENT: (
        "BackpropFilter",
        "the gradient of a 2-D convolution with respect to its filter",
        _filter_gradient,
        _filter_gradient_gradient,
    ),
}


def _row(base: str, kind: Kind) -> OpRow:
    suffix, what, compute, gradient = _KINDS[kind]
    dense = base == "Conv2D"
    return OpRow(
        base + suffix,
        f"Compute {what if dense else what.replace('2-D', 'depthwise 2-D')}.",
        _pins(dense, kind),
        ("output",),
        _infer,
        compute,
        gradient,
        required=_REQUIRED,
        optional=_DENSE if dense else _DEPTHWISE,
    )


_CALLS = {call.function: call for call in raw.SIX}
ROWS = tuple(_row(base, kind) for base in ("Conv2D", "DepthwiseConv2dNative") for kind in _KINDS)
