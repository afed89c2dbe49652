"""Which tensors have memory that our passes may touch, and when nobody else has a say in a call."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._device import DeviceContext

from . import sums

_KINDS = (torch.Tensor, torch.nn.Parameter)
_is_batched = torch._C._functorch.is_legacy_batchedtensor
_top_mode = torch.overrides._get_current_function_mode


def plain(tensor: Any) -> bool:
    """Tell whether a tensor is an ordinary one on the CPU, whose memory holds its numbers."""
    return bool(
        type(tensor) in _KINDS
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and not (tensor.is_nested or tensor.is_neg() or tensor._is_zerotensor())
    )


def there(tensor: Any) -> bool:
    """Tell whether a tensor has its memory: those who shard or offload models take it away for a while."""
    return bool(tensor.data_ptr()) or not tensor.numel()


def applied(function: Any) -> Any:
    """Return `function.apply` of an autograd function without what it does for `torch.func`: only where that is not
    at work. It takes half as long."""
    return super(torch.autograd.Function, function).apply


def undisturbed() -> bool:
    """Tell whether a call may compute by itself: nothing traces, transforms, watches or casts what PyTorch does."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or sums.transformed()
        or torch._C._len_torch_dispatch_stack()
        or torch.is_autocast_enabled("cpu")
        or _watched()
    )


def _watched() -> bool:
    """Tell whether a mode looks at functions; the one that only sets the default device makes no difference."""
    count = torch._C._len_torch_function_stack()
    return bool(count and (count > 1 or type(_top_mode()) is not DeviceContext))


def arrives_plain(grad: Any) -> bool:
    """Tell whether the gradient a backward pass is given can be read where it lies, and derivatives of the pass are
    not asked for."""
    return not (
        torch.is_grad_enabled()
        or torch._C._get_tracing_state() is not None
        or not plain(grad)
        or sums.transformed()
        or _is_batched(grad)
        or torch._C._len_torch_dispatch_stack()
    )
