"""`FusedForward`: what stands in the place of a module's `forward`, and carries out a plan.

It is an attribute of the module, so class, children, parameters and hooks stay what they are, and copies and pickles of
the module have their own. Every step makes sure, at each call, that all is as it was when the plan was made, and does
what it always did where it is not.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

import torch
from torch import nn

from . import excitation
from .layers import as_it_comes, find_module, run_block
from .plain import plain, undisturbed
from .steps import Fork, ForwardPlan, FusedBlock, Placeholder, PlainCall, Scale, children
from .tracing import Replacement, inlined

_KINDS = (torch.Tensor, nn.Parameter)
_any_global_hook = nn.modules.module._has_any_global_hook
_MISSING = object()


class FusedForward(Replacement):
    """A module's forward with some of its layers as one node of autograd each; see `accelerate`."""

    __name__ = "forward"

    def __init__(
        self,
        module: nn.Module,
        training: ForwardPlan | None,
        evaluation: ForwardPlan | None,
        recompute: bool = False,
    ) -> None:
        self.module, self.recompute = module, recompute
        self.training, self.evaluation = training, evaluation

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(type(self.module).forward.__get__(self.module))

    @property
    def __code__(self) -> CodeType:
        """The original's: `torch.export` names a program after it."""
        code: CodeType = type(self.module).forward.__code__
        return code

    def __repr__(self) -> str:
        return f"<fused forward of {type(self.module).__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self.module
        if not torch.compiler.is_compiling():
            plan = self.training if module.training else self.evaluation
            if plan is not None and not kwargs and _as_planned(module, plan, args):
                return _carry_out(module, plan, args, self.recompute)
        return type(module).forward(module, *args, **kwargs)


def _as_planned(module: Any, plan: ForwardPlan, args: tuple[Any, ...]) -> bool:
    """Tell whether a call is one the plan was made for."""
    if len(args) != plan.inputs or not undisturbed() or _any_global_hook():
        return False
    for each in args:
        if type(each) not in _KINDS:
            return False
    there = module.__dict__
    for name, value in plan.attributes:
        found = there.get(name, _MISSING)
        if found is not value and (type(found) is not type(value) or found != value):
            return False
    for path, names in plan.structure:
        child = find_module(module, path)
        if child is None or children(child) != names:
            return False
        if path and isinstance(child, nn.Sequential) and not inlined(child):
            return False
    return True


def _carry_out(module: Any, plan: ForwardPlan, args: tuple[Any, ...], recompute: bool) -> Any:
    values: list[Any] = [*args, *[None] * (plan.size - len(args))]
    for step, drops in plan.steps:
        if type(step) is FusedBlock:
            done = run_block(module, step, values, recompute)
            if done < len(step.calls):
                for call in step.calls[done:]:
                    values[call.made] = _call(module, call, values)
                for call in step.calls[:-1]:
                    values[call.made] = None
        elif type(step) is PlainCall:
            values[step.made] = _call(module, step, values)
        elif type(step) is Fork:
            _fork(module, step, values)
        elif type(step) is Scale:
            values[step.made] = excitation.scale(values[step.image], values[step.factor])
        for number in drops:
            values[number] = None
    return _filled(plan.result, values)


def _call(module: Any, call: PlainCall, values: list[Any]) -> Any:
    args = [_filled(each, values) for each in call.args]
    kwargs = {name: _filled(each, values) for name, each in call.kwargs}
    target: Any = call.target
    if call.kind == "module":
        return find_module(module, target)(*args, **kwargs)
    if call.kind == "function":
        return target(*args, **kwargs)
    if call.kind == "method":
        return getattr(args[0], target)(*args[1:], **kwargs)
    for name in target:
        module = getattr(module, name)
    return module


def _filled(template: Any, values: list[Any]) -> Any:
    """Return a template with its values in their places, in lists and dicts that may be changed."""
    if type(template) is Placeholder:
        return values[template.number]
    if isinstance(template, list):
        return [_filled(each, values) for each in template]
    if isinstance(template, tuple):
        found = [_filled(each, values) for each in template]
        return type(template)(*found) if hasattr(template, "_fields") else tuple(found)
    if isinstance(template, dict):
        return {key: _filled(each, values) for key, each in template.items()}
    if isinstance(template, slice):
        return slice(
            *(_filled(each, values) for each in (template.start, template.stop, template.step))
        )
    return template


def _fork(module: Any, step: Fork, values: list[Any]) -> None:
    image = values[step.image]
    layer: Any = None if step.layer is None else find_module(module, step.layer)
    if step.layer is not None and not (
        type(layer) is nn.AdaptiveAvgPool2d
        and as_it_comes(layer)
        and layer.output_size in (1, (1, 1))
    ):
        values[step.again], values[step.pooled] = image, _call(module, step.call, values)
    elif plain(image) and image.dim() == 4:
        values[step.again], values[step.pooled] = excitation.fork(image)
    else:
        values[step.again], values[step.pooled] = image, _call(module, step.call, values)
