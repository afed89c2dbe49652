"""Filters in the order kernels want them, inside the parameters of a model, and optimizers that mind.

A filter [o, i, kh, kw] is given other strides, once, so that its memory is [kh, kw, i, o]: kernels then read it where
it lies, and its gradient comes back with the same strides, which autograd takes over without a copy. A 1x1 filter of
stride 1 needs none of that.

Most optimizers work element by element and follow the strides. Some do not. PyTorch's fused ones take 5 times as long
on such parameters (3.8 and 21 ms for ten filters of 256x256x3x3), and where the strides of a gradient or a momentum
differ from the parameter's they are silently wrong; LBFGS refuses. So before the first step of an optimizer a hook
looks at it: state from earlier steps is given the strides of its parameter, and for an optimizer we do not know to
follow strides the parameters are put back into their old order, in which their filters cost a reorder per call.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor as AnyTensor
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

FOLLOW_STRIDES = (
    *("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta"),
    *("RMSprop", "Rprop", "ASGD"),
)
"""Optimizers of `torch.optim` that work element by element, unless they are fused."""

_orders: Any = WeakIdKeyDictionary()
"""The strides each parameter had before we changed them, as long as they are changed."""
_touched: Any = WeakIdKeyDictionary()
"""Parameters whose strides we have changed at some time, so that those of an optimizer's state may differ."""
_seen: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
"""Optimizers that were looked at, and how many parameters we had changed by then."""
_changes = 0
_hook: Any = None
_lock = threading.Lock()


def in_kernel_order(weight: AnyTensor) -> bool:
    """Tell whether a filter's memory is [kh, kw, i, o]."""
    return weight.permute(2, 3, 1, 0).is_contiguous()


def restride(parameter: torch.nn.Parameter) -> None:
    """Give a filter the order kernels want, in place; its gradient, if it has one, too."""
    data = parameter.data
    if in_kernel_order(data):
        return
    _note(parameter, data.stride())
    parameter.data = _reordered(data)
    if parameter.grad is not None:
        parameter.grad.data = _reordered(parameter.grad.data)


def adopt(parameter: Any, last: bool) -> None:
    """Know a filter again that was copied, or came out of a file, with the strides we gave the original."""
    if not isinstance(parameter, torch.nn.Parameter) or parameter.dim() != 4 or changed(parameter):
        return
    order = torch.channels_last if last else torch.contiguous_format
    if in_kernel_order(parameter) and not parameter.is_contiguous(memory_format=order):
        _note(parameter, torch.empty_like(parameter, memory_format=order, device="meta").stride())


def _note(parameter: torch.nn.Parameter, strides: tuple[int, ...]) -> None:
    """Remember the strides a parameter had, and look at optimizers before their next step."""
    global _changes, _hook
    with _lock:
        _orders[parameter] = strides
        _touched[parameter] = True
        _changes += 1
        if _hook is None:
            _hook = register_optimizer_step_pre_hook(_before_step)


def put_back(parameter: torch.nn.Parameter) -> None:
    """Undo `restride`."""
    global _changes
    with _lock:
        strides = _orders.pop(parameter, None)
        if strides is None:
            return
        _changes += 1
    parameter.data = _strided(parameter.data, strides)
    if parameter.grad is not None:
        parameter.grad.data = _strided(parameter.grad.data, strides)


def changed(parameter: AnyTensor) -> bool:
    """Tell whether we gave a parameter its strides."""
    return parameter in _orders


def _reordered(data: AnyTensor) -> AnyTensor:
    return data.permute(2, 3, 1, 0).contiguous().permute(3, 2, 0, 1)


def _strided(data: AnyTensor, strides: tuple[int, ...]) -> AnyTensor:
    return torch.empty_strided(data.shape, strides, dtype=data.dtype, device=data.device).copy_(
        data
    )


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    if _seen.get(optimizer) == _changes:
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter in _touched:
                if not _follows_strides(optimizer, group):
                    put_back(parameter)
                _align(optimizer, parameter)
    _seen[optimizer] = _changes


def _follows_strides(optimizer: Optimizer, group: dict[str, Any]) -> bool:
    kind = type(optimizer)
    known = kind.__module__.startswith("torch.optim") and kind.__name__ in FOLLOW_STRIDES
    return known and not group.get("fused")


def _align(optimizer: Optimizer, parameter: AnyTensor) -> None:
    """Give what an optimizer remembers of a parameter, and its gradient, the parameter's strides."""
    if parameter.grad is not None and parameter.grad.stride() != parameter.stride():
        parameter.grad = _like(parameter.grad, parameter)
    state = optimizer.state.get(parameter, {})
    for name, value in list(state.items()):
        if (
            isinstance(value, torch.Tensor)
            and value.shape == parameter.shape
            and value.stride() != parameter.stride()
        ):
            state[name] = _like(value, parameter)


def _like(value: AnyTensor, parameter: AnyTensor) -> AnyTensor:
    return torch.empty_like(parameter, dtype=value.dtype).copy_(value)
