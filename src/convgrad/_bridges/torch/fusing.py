"""Fusing a model: which modules get a forward of ours, and a report about every batch norm."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import nn

from ..report import Fused
from .forwards import FusedForward
from .interruptions import Patches
from .matching import Matcher
from .progress import Progress
from .steps import ForwardPlan
from .traces import Traces
from .watching import Untraceable

_CONTAINERS = (nn.ModuleList, nn.ModuleDict)


def fuse(model: nn.Module, recompute: bool = False, progress: bool = True) -> tuple[Fused, ...]:
    """Give modules of a model fused forwards; returns what became of its batch norms and squeezes."""
    patches = Patches(model)
    shown = Progress(progress)
    try:
        return _fuse(model, recompute, shown)
    finally:
        # Twice, because an interrupt may end the first.
        try:
            patches.undo()
        finally:
            patches.undo()
            shown.end()


def _fuse(model: nn.Module, recompute: bool, progress: Progress) -> tuple[Fused, ...]:
    shared = _shared(model)
    traces = Traces()
    named = list(model.named_modules())
    found: dict[str, Fused] = {}
    reasons: dict[int, str] = {}
    seen: set[int] = set()
    for number, (name, module) in enumerate(named):
        progress.at(number, len(named))
        if not module._modules or isinstance(module, _CONTAINERS):
            continue
        present: Any = module.__dict__.get("forward")
        if present is not None and type(present) is not FusedForward:
            reason = "the forward of its module was replaced"
            reasons.update({id(norm): reason for norm in _norms(module)})
            continue
        try:
            plans, matchers = _plans(module, traces, shared)
        except Untraceable as error:
            reason = f"in {type(module).__name__}: {error}"
            for norm in _norms(module):
                reasons.setdefault(id(norm), reason)
            continue
        for matcher in matchers:
            reasons.update(matcher.left)
            seen |= matcher.norms
            for first, words in matcher.blocks:
                path = ".".join(part for part in (name, first) if part)
                found.setdefault(path, Fused(path, words, True, ""))
        if any(plans):
            module.__dict__["forward"] = FusedForward(module, *plans, recompute)
        else:
            module.__dict__.pop("forward", None)
    rows = list(found.values())
    names = {id(module): name for name, module in named}
    for norm in _norms(model, inside=True):
        if id(norm) not in seen:
            reason = reasons.get(id(norm), "no forward that was traced calls it on one value")
            rows.append(Fused(names[id(norm)], type(norm).__name__, False, reason))
    return tuple(rows)


def separate(model: nn.Module) -> int:
    """Undo `fuse`; returns how many modules had a fused forward."""
    count = 0
    for module in model.modules():
        if type(module.__dict__.get("forward")) is FusedForward:
            del module.__dict__["forward"]
            count += 1
    return count


def _plans(
    module: nn.Module, traces: Traces, shared: set[int]
) -> tuple[tuple[ForwardPlan | None, ForwardPlan | None], list[Matcher]]:
    """Return what a module does in training and in evaluation, where there is something to fuse."""
    matchers = []
    plans: list[ForwardPlan | None] = []
    for graph in traces.graphs(module):
        matcher = Matcher(module, graph, shared)
        plan = matcher.plan() if matcher.match() else None
        plans.append(plan if plan is None or _travels(plan) else None)
        matchers.append(matcher)
    if len(plans) == 1 or plans[0] == plans[1]:
        return (plans[0], plans[0]), matchers[:1]
    return (plans[0], plans[1]), matchers


def _travels(plan: ForwardPlan) -> bool:
    """Tell whether a plan can be pickled with its model: it may call functions that cannot."""
    try:
        pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _shared(model: nn.Module) -> set[int]:
    """Return the modules that have more than one place in a model, by identity, and all that is inside them."""
    counted = Counter(id(module) for _, module in model.named_modules(remove_duplicate=False))
    return {number for number, count in counted.items() if count > 1}


def _norms(module: nn.Module, inside: bool = False) -> Iterator[nn.Module]:
    """Return the batch norms among a module's children, and those behind containers and sequences; or all."""
    for child in module._modules.values():
        if child is None:
            continue
        if isinstance(child, nn.modules.batchnorm._BatchNorm):
            yield child
        elif inside or isinstance(child, (*_CONTAINERS, nn.Sequential)):
            yield from _norms(child, inside)
