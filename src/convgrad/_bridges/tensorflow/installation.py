"""`install`: our kernels in TensorFlow's own ops, for every program that uses them.

A kernel with a priority takes the place of another for the same op and dtype. TensorFlow has no way back: neither a
kernel of ours that hands a call on, nor one that takes the registration back. So ours computes everything the op says
for a dtype, and the installation lasts as long as the process.

With oneDNN (the default on most CPUs) TensorFlow renames ops before it looks for a kernel, in graphs and eagerly; ours
are registered under both names.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from tensorflow.python.eager import context as _eager_context
from tensorflow.python.framework import kernels as _registered

from ..._base.dtypes import FLOATING, INT32, DType
from ..._problem.convolution import OPS, Call, Kind
from . import guards, kernels, ops
from .nodes import NUMBERS

_PRIORITY = 10
"""TensorFlow's own kernels have 0."""
_RENAMED, _RENAMED_LABEL = "_MklNative", "MklNameChangeOp"
SIX = tuple(
    replace(call, function=ops.NATIVE[call.kind, call.depthwise], filter=call.filter.rstrip("s"))
    if call.kind is Kind.FORWARD
    else replace(call, function=ops.NATIVE[call.kind, call.depthwise])
    for call in OPS
)
"""The six operations under the names TensorFlow's ops and their inputs have."""
_MERGED = {
    "Conv2DWithBias": (SIX[0], "forward_bias"),
    "PadWithConv2D": (SIX[0], "forward_padded"),
    "Conv2DBackpropFilterWithBias": (SIX[2], "filter_gradient_bias"),
}
"""What oneDNN makes of two ops, one of which is a convolution."""
_FUSED = {
    "_FusedConv2D": (SIX[0], "fused"),
    "_FusedDepthwiseConv2dNative": (SIX[3], "fused"),
}
"""What grappler's remapper makes of a convolution and what follows it."""
_FUSED_RENAMED = {
    "FusedConv2D": (SIX[0], "fused"),
    "PadWithFusedConv2D": (SIX[0], "fused_padded"),
    "FusedDepthwiseConv2dNative": (SIX[3], "fused"),
}
"""The same under the names oneDNN gives them, and with a Pad op in front."""


@dataclass(frozen=True)
class Installed:
    """What `install` did: `print` it."""

    ops: tuple[str, ...]
    """TensorFlow's ops that are computed by our kernels."""
    renamed: tuple[str, ...]
    """Those ops under the names oneDNN gives them; empty where TensorFlow was built without it."""
    fused: tuple[str, ...]
    """Ops that grappler makes of a convolution and its neighbours, such as a bias and an activation."""
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        also = ", also under the names oneDNN gives them" if self.renamed else ""
        return "\n".join(
            (
                f"convgrad computes {', '.join(self.ops)}",
                f"for {', '.join(self.dtypes)}{also}, until this process ends.",
                f"It also computes what grappler makes of them and their neighbours: {', '.join(self.fused)}.",
            )
        )


_lock = threading.Lock()
_installed: Installed | None = None


def install() -> Installed:
    """Compute TensorFlow's own 2-D convolutions with convgrad from now on, in the whole process.

    The ops Conv2D, DepthwiseConv2dNative and the gradients of both get our kernels on CPUs, for half, bfloat16, float32
    and float64: in eager calls, graphs, Keras models and graphs loaded from files. Programs need no change. Gradients
    of dilated depthwise convolutions become right, NCHW, groups and unequal strides work, and wrong shapes raise
    `tf.errors.InvalidArgumentError`.

    It cannot be undone: TensorFlow has no way to take a kernel back. Calling it again changes nothing.

    Examples
    --------
    >>> import convgrad.tensorflow
    >>> report = convgrad.tensorflow.install()  # doctest: +SKIP
    """
    global _installed
    with _lock:
        if _installed is None:
            ops.require("convgrad.tensorflow.install")
            _installed = _install()
        return _installed


def installed() -> bool:
    """Tell whether `install` has been called in this process."""
    return _installed is not None


def _install() -> Installed:
    found = kernels.kernels()
    assert found is not None
    renamed = []
    for call in SIX:
        for dtype in _dtypes(call):
            types = {"T": NUMBERS[dtype]}
            found.register(call.function, call, types=types, priority=_PRIORITY)
        renamed += _install_renamed(found, _RENAMED + call.function, call)
    for name, (call, form) in _MERGED.items():
        renamed += _install_renamed(found, _RENAMED + name, call, form)
    fused = []
    for name, (call, form) in _FUSED.items():
        fused += _install_beside(found, name, call, form, "")
    for name, (call, form) in _FUSED_RENAMED.items():
        fused += _install_renamed(found, _RENAMED + name, call, form)
    guards.stand({call.function: 2 if call.kind is Kind.FORWARD else 3 for call in SIX})
    _eager_context.context().clear_kernel_cache()  # eager calls keep kernels they have used
    names = tuple(call.function for call in SIX)
    return Installed(names, tuple(renamed), tuple(fused), tuple(row.name for row in FLOATING))


def _install_renamed(found: kernels.Kernels, name: str, call: Call, form: str = "") -> list[str]:
    """Give an op our kernels under a name that oneDNN has for it, for those dtypes it has it for."""
    return _install_beside(found, name, call, form, _RENAMED_LABEL)


def _install_beside(
    found: kernels.Kernels, name: str, call: Call, form: str, label: str
) -> list[str]:
    """Give an op our kernels for those dtypes that TensorFlow has kernels of a label for; returns its name if any."""
    rows = []
    for each in _registered.get_registered_kernels_for_op(name).kernel:
        if each.label == label and each.device_type == "CPU" and not each.priority:
            types = {row.name: row.allowed_values.list.type[0] for row in each.constraint}
            if types.get("T") in NUMBERS.values():
                rows.append(types)
    for types in rows:
        found.register(
            *(name, call),
            form=form,
            types=types,
            label=label,
            priority=_PRIORITY,
        )
    return [name] if rows else []


def _dtypes(call: Call) -> tuple[DType, ...]:
    integers = not call.depthwise and call.kind is not Kind.FILTER_GRADIENT
    return (*FLOATING, INT32) if integers else FLOATING
