"""What graphs are made of that may leave the process: operators with all their settings among their arguments.

`torch.jit.trace` and `torch.export` write down the operators a model calls, and others load that from a file. So the
calls they see are `convgrad::conv2d`, `convgrad::conv_transpose2d` and `convgrad::linear`, with PyTorch's own
arguments; their kernels are our functions, which then compute as they always do, with gradients. Loading such a file
needs `import convgrad.torch`, and PyTorch names the operator it misses where that was forgotten. ONNX has no operators
of ours: while it exports, the calls are PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor as AnyTensor

_TENSORS = "Tensor input, Tensor weight, Tensor? bias"
SCHEMAS = {
    "conv2d": f"({_TENSORS}, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation, SymInt groups) -> Tensor",
    "conv2d.padding": f"({_TENSORS}, SymInt[2] stride, str padding, SymInt[2] dilation, SymInt groups) -> Tensor",
    "conv_transpose2d": (
        f"({_TENSORS}, SymInt[2] stride, SymInt[2] padding, SymInt[2] output_padding, SymInt groups, "
        "SymInt[2] dilation) -> Tensor"
    ),
    "linear": f"({_TENSORS}) -> Tensor",
}
_library = torch.library.Library("convgrad", "FRAGMENT")


def define(**kernels: Callable[..., AnyTensor]) -> None:
    """Define the operators; each is made of what its kernel calls, derivatives included."""
    for name, schema in SCHEMAS.items():
        _library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, kernels[name.partition(".")[0]], "CompositeImplicitAutograd")


def traced() -> bool:
    """Tell whether `torch.jit.trace` looks on. Sizes of tensors are tensors meanwhile."""
    return torch._C._get_tracing_state() is not None


def is_recorded() -> bool:
    """Tell whether the calls made here and now are written down for somebody else."""
    return traced() or torch.compiler.is_exporting()


def call(name: str, *arguments: Any) -> AnyTensor:
    """Make a call of `torch.nn.functional` that can be read anywhere."""
    if torch.onnx.is_in_onnx_export():
        return getattr(F, name)(*arguments)
    made: AnyTensor = getattr(torch.ops.convgrad, name)(*arguments)
    return made
