"""From a graph to a plan: which of its nodes become one, and proof that nothing else sees what is between them."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from . import modules
from .activations import LAYERS, known_activation
from .steps import (
    Activation,
    Children,
    Fork,
    ForwardPlan,
    FusedBlock,
    Path,
    Placeholder,
    PlainCall,
    Scale,
    Step,
    children,
)
from .tracing import hooked

_ADDS = (operator.add, torch.add, "add")
_ADDS_IN_PLACE = (operator.iadd, "add_")
_MULTIPLIES = (operator.mul, torch.mul, "mul", "multiply", torch.multiply)
_IN_PLACE_OPERATORS = tuple(
    getattr(operator, name)
    for name in dir(operator)
    if name.startswith("i") and name[1:] in dir(operator)
)
_FRESH = (nn.Conv2d, nn.BatchNorm2d, nn.Linear, nn.ConvTranspose2d)
"""Layers whose results are memory of their own."""
PLAIN = (bool, int, float, str, type(None), tuple)
_NOT_OWN = tuple(nn.Module().__dict__)
"""What every module has: there are plans for both values of `training`, and the others are looked at by themselves."""


class Matcher:
    """The graph of one module's forward and what was found in it."""

    def __init__(self, root: nn.Module, graph: fx.Graph, shared: set[int]) -> None:
        self._root = root
        self._nodes = list(graph.nodes)
        called = Counter(node.target for node in self._nodes if node.op == "call_module")
        twice = [str(target) for target, count in called.items() if count > 1]
        self._shared = shared | {id(root.get_submodule(target)) for target in twice}
        self._order = {node: place for place, node in enumerate(self._nodes)}
        self._taken: dict[fx.Node, Any] = {}
        """Nodes that are part of something, and the node in whose place it is done."""
        self._made: dict[fx.Node, Callable[[], Step]] = {}
        self.norms: set[int] = set()
        """Batch norms that are part of a block, by identity."""
        self.blocks: list[tuple[str, str]] = []
        """Names and descriptions."""
        self.left: dict[int, str] = {}
        """Why batch norms are not, by identity."""

    # What a node is. --------------------------------------------------------------------------------------------------

    def module(self, node: fx.Node) -> Any:
        """Return the layer a node calls on one value, or None."""
        if node.op != "call_module" or len(node.args) != 1 or node.kwargs:
            return None
        if not isinstance(node.args[0], fx.Node):
            return None
        return self._root.get_submodule(str(node.target))

    def _fit(self, layer: Any) -> str | None:
        """Return why a layer is not to be touched, or None."""
        if id(layer) in self._shared:
            return "it is used in several places"
        if hooked(layer):
            return "it has hooks"
        return "its forward was replaced" if "forward" in layer.__dict__ else None

    def _activation(self, node: fx.Node, value: fx.Node) -> Activation | None:
        layer = self.module(node)
        if layer is not None:
            known = LAYERS.get(type(layer))
            if known is None or known(layer) is None or self._fit(layer):
                return None
            return Activation(_path(node))
        if node.op not in ("call_function", "call_method") or node.args[:1] != (value,):
            return None
        return known_activation(node.target, node.args[1:], node.kwargs)

    def _added(self, node: fx.Node, value: fx.Node) -> fx.Node | None:
        """Return what is added to a value, if that is all a node does and nobody else sees."""
        if node.op not in ("call_function", "call_method") or node.kwargs or len(node.args) != 2:
            return None
        first, second = node.args
        if not (isinstance(first, fx.Node) and isinstance(second, fx.Node)) or first is second:
            return None
        if node.target in _ADDS:
            return second if first is value else first
        # Into the residual it would change what others hold.
        return second if node.target in _ADDS_IN_PLACE and first is value else None

    def _pure(self, node: fx.Node) -> bool:
        """Tell whether a node writes to no memory that was there before."""
        if node.op in ("placeholder", "get_attr"):
            return True
        first = node.args[0] if node.args else None
        fresh = (
            isinstance(first, fx.Node)
            and isinstance(self.module(first), _FRESH)
            and len(first.users) == 1
        )
        if node.op == "call_module":
            layer: Any = self._root.get_submodule(str(node.target))
            kind = type(layer)
            known = kind.__module__.startswith("torch.nn.modules.") or kind in modules.ORIGINALS
            if not known or layer._modules or hooked(layer):
                return False
            return fresh or not getattr(layer, "inplace", False)
        if "out" in node.kwargs:
            return False
        flags = [*node.args, node.kwargs.get("inplace", False)]
        name = (
            node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "_")
        )
        in_place = (
            name.endswith("_")
            or node.target in _IN_PLACE_OPERATORS
            or any(each is True for each in flags)
        )
        if node.op == "call_function" and not _of_pytorch(node.target):
            return False
        return fresh or not in_place

    def _undisturbed(self, chain: list[fx.Node], last: fx.Node) -> bool:
        """Tell whether what a chain does can wait until its last node."""
        between = self._nodes[self._order[chain[0]] + 1 : self._order[last]]
        return all(node in chain or self._pure(node) for node in between)

    # What nodes are together. -----------------------------------------------------------------------------------------

    def match(self) -> bool:
        """Find everything; tells whether there is something."""
        for node in self._nodes:
            layer = self.module(node)
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                self._block(node, layer)
        for node in self._nodes:
            self._excitation(node)
        return bool(self._made)

    def _block(self, norm: fx.Node, layer: nn.Module) -> None:
        reason = self._fit(layer)
        if type(layer) is not nn.BatchNorm2d:
            reason = f"{type(layer).__name__} is left to PyTorch"
        if reason:
            self.left[id(layer)] = reason
            return
        chain = [norm]
        before = norm.args[0]
        assert isinstance(before, fx.Node)
        convolution = self.module(before)
        if (
            type(convolution) is modules.Conv2d
            and len(before.users) == 1
            and not self._fit(convolution)
            and self._undisturbed([before], norm)
        ):
            chain.insert(0, before)
        else:
            convolution = None
        activation: Activation | None = None
        residual: fx.Node | None = None
        position: Any = "after"
        identities: list[Path] = []
        while len(chain[-1].users) == 1:
            value = chain[-1]
            (node,) = value.users
            if node in self._taken or not self._undisturbed(chain, node):
                break
            found = self._activation(node, value)
            added = self._added(node, value)
            if type(self.module(node)) is nn.Identity and not self._fit(self.module(node)):
                identities.append(_path(node))
            elif (
                found is not None
                and activation is None
                and (residual is None or position == "before")
            ):
                activation = found
            elif added is not None and residual is None:
                residual, position = added, "before" if activation is None else "after"
            else:
                break
            chain.append(node)
        if activation is None:
            position = "after"
        self.norms.add(id(layer))
        image = chain[0].args[0]
        assert isinstance(image, fx.Node)

        def made() -> FusedBlock:
            return FusedBlock(
                None if convolution is None else _path(chain[0]),
                _path(norm),
                activation or Activation(None),
                tuple(identities),
                self._number(image),
                None if residual is None else self._number(residual),
                position,
                self._number(chain[-1]),
                tuple(self._call(node) for node in chain),
            )

        self._made[chain[-1]] = made
        for node in chain:
            self._taken[node] = chain[-1]
        self.blocks.append(
            (str(chain[0].target), self._words(chain, activation, residual, position))
        )

    def _words(
        self, chain: list[fx.Node], activation: Activation | None, residual: Any, position: str
    ) -> str:
        words = ["convolution"] if len(chain) > 1 and self._is_convolution(chain[0]) else []
        words.append("batch norm")
        name = ""
        if activation is not None:
            name = activation.name
            if activation.path is not None:
                layer: Any = self._root.get_submodule(".".join(activation.path))
                name = (LAYERS[type(layer)](layer) or ("",))[0]
        parts = [name, "residual"] if position == "after" else ["residual", name]
        words += [part for part in parts if part and (part != "residual" or residual is not None)]
        return " + ".join(words)

    def _is_convolution(self, node: fx.Node) -> bool:
        return isinstance(self.module(node), nn.Conv2d)

    def _excitation(self, pool: fx.Node) -> None:
        image = self._pooled(pool)
        if image is None or len(image.users) != 2 or pool in self._taken:
            return
        (scale,) = (node for node in image.users if node is not pool)
        if scale.target not in _MULTIPLIES or scale.kwargs or len(scale.args) != 2:
            return
        if (
            scale.op not in ("call_function", "call_method")
            or self._order[scale] < self._order[pool]
        ):
            return
        factors = [each for each in scale.args if each is not image]
        if len(factors) != 1 or not isinstance(factors[0], fx.Node) or factors[0] is pool:
            return
        factor = factors[0]
        layer = _path(pool) if pool.op == "call_module" else None
        self._made[pool] = lambda: Fork(
            *(layer, self._number(image), self._number(pool), self._again(scale), self._call(pool))
        )
        self._made[scale] = lambda: Scale(
            self._again(scale), self._number(factor), self._number(scale)
        )
        self._taken[pool], self._taken[scale] = pool, scale
        self.blocks.append(
            (str(pool.target) if layer else "", "pooling, and scaling by what follows")
        )

    def _pooled(self, node: fx.Node) -> fx.Node | None:
        """Return the image whose means a node computes, as [n, c, 1, 1]."""
        layer = self.module(node)
        if layer is not None:
            if type(layer) is not nn.AdaptiveAvgPool2d or self._fit(layer):
                return None
            given: Any = node.args[0]
            return given if layer.output_size in (1, (1, 1)) else None
        if not node.args or not isinstance(node.args[0], fx.Node):
            return None
        rest = node.args[1:]
        if node.op == "call_function" and node.target is F.adaptive_avg_pool2d:
            return node.args[0] if rest in ((1,), ((1, 1),)) and not node.kwargs else None
        mean = node.op == "call_method" and node.target == "mean"
        if not mean and not (node.op == "call_function" and node.target is torch.mean):
            return None
        settings = {**dict(zip(("dim", "keepdim"), rest, strict=False)), **node.kwargs}
        if (
            len(rest) > 2
            or settings.keys() != {"dim", "keepdim"}
            or settings["keepdim"] is not True
        ):
            return None
        dims = settings["dim"]
        if not isinstance(dims, list | tuple) or len(dims) != 2:
            return None
        return (
            node.args[0] if {each % 4 for each in dims if isinstance(each, int)} == {2, 3} else None
        )

    # The plan. --------------------------------------------------------------------------------------------------------

    def plan(self) -> ForwardPlan:
        """Return all that was found, and everything around it as it was."""
        inputs = [node for node in self._nodes if node.op == "placeholder"]
        self._numbers = {node: number for number, node in enumerate(inputs)}
        self._copies: dict[fx.Node, int] = {}
        steps: list[Step] = []
        result: Any = None
        for node in self._nodes:
            if node.op == "output":
                result = self._template(node.args[0])
            elif node.op != "placeholder" and self._taken.get(node, node) is node:
                steps.append(self._made[node]() if node in self._made else self._call(node))
        size = len(self._numbers) + len(self._copies)
        wanted = set(_numbers(result))
        drops: list[tuple[int, ...]] = []
        for step in reversed(steps):
            read = set(_read(step))
            drops.append(tuple(sorted(read - wanted)))
            wanted |= read
        pairs = tuple(zip(steps, reversed(drops), strict=True))
        return ForwardPlan(
            len(inputs), size, pairs, result, self._structure(), plain_attributes(self._root)
        )

    def _number(self, node: fx.Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers) + len(self._copies))

    def _again(self, node: fx.Node) -> int:
        return self._copies.setdefault(node, len(self._numbers) + len(self._copies))

    def _call(self, node: fx.Node) -> PlainCall:
        kinds: Any = {
            "call_module": "module",
            "call_function": "function",
            "call_method": "method",
            "get_attr": "attribute",
        }
        by_path = node.op in ("call_module", "get_attr")
        return PlainCall(
            kinds[node.op],
            _path(node) if by_path else node.target,
            tuple(self._template(each) for each in node.args),
            tuple((name, self._template(each)) for name, each in node.kwargs.items()),
            self._number(node),
        )

    def _template(self, argument: Any) -> Any:
        """Return an argument with numbers in the place of nodes."""
        return fx.node.map_aggregate(
            argument,
            lambda each: Placeholder(self._number(each)) if isinstance(each, fx.Node) else each,
        )

    def _structure(self) -> tuple[tuple[Path, Children], ...]:
        """Return the modules whose children decided what is called: the root, and modules not called themselves."""
        called = {str(node.target) for node in self._nodes if node.op == "call_module"}
        passed: dict[str, None] = {"": None}
        for target in called:
            parts = target.split(".")
            passed.update({".".join(parts[:end]): None for end in range(1, len(parts))})
        return tuple(
            (
                tuple(name.split(".")) if name else (),
                children(self._root.get_submodule(name)),
            )
            for name in sorted(passed)
        )


def _path(node: fx.Node) -> Path:
    return tuple(str(node.target).split("."))


def _of_pytorch(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return function is getattr or module.split(".")[0] in ("torch", "_operator", "operator", "math")


def plain_attributes(module: nn.Module) -> tuple[tuple[str, Any], ...]:
    """Return what a module's own attributes say in plain values."""
    return tuple(
        (name, copy.copy(value))
        for name, value in module.__dict__.items()
        if name not in _NOT_OWN and _says_all(value)
    )


def _says_all(value: Any) -> bool:
    """Tell whether a value is plain, or a container of plain ones: equal ones are alike then."""
    if type(value) in (list, set):
        return all(type(each) in PLAIN for each in value)
    if type(value) is dict:
        return all(type(each) in PLAIN for pair in value.items() for each in pair)
    return type(value) in PLAIN


def _numbers(template: Any) -> Iterable[int]:
    found: list[int] = []

    def note(each: Any) -> Any:
        if isinstance(each, Placeholder):
            found.append(each.number)
        return each

    fx.node.map_aggregate(template, note)
    return found


def _read(step: Step) -> Iterable[int]:
    """Return the values a step reads or makes."""
    if isinstance(step, PlainCall):
        return [step.made, *_numbers(step.args), *_numbers(dict(step.kwargs))]
    if isinstance(step, FusedBlock):
        given = [] if step.residual is None else [step.residual]
        return [step.image, step.made, *given]
    if isinstance(step, Fork):
        return [step.image, step.pooled, step.again]
    return [step.image, step.factor, step.made]
