"""A page as a graph: what `build` makes of it, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from ..graph.operation import Operation, Output
from ..graph.scope import Scope
from ..graph.spec import Spec
from .gradient_check import Check, Loop
from .page import Note, Page
from .setting_texts import nearest

Tensors = dict[str, "Output | list[Output]"]
"""Outputs of a block by pin."""


@dataclass
class Fetches:
    """What a ClientSession block asks for."""

    block: str
    fetches: list[Output] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    """The blocks whose results a step refreshes: those fetched, and all before them."""
    targets: list[Operation] = field(default_factory=list)


@dataclass
class Built:
    """A page as a graph."""

    page: Page
    scope: Scope
    outputs: dict[str, Tensors] = field(default_factory=dict)
    """By the block's id."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why a block is not there, by its id."""
    notes: list[Note] = field(default_factory=list)
    variables: dict[str, AnyArray] = field(default_factory=dict)
    """Initial values by the node's name."""
    fed: dict[str, AnyArray] = field(default_factory=dict)
    """Values on the pin of a placeholder itself, by its id."""
    sessions: list[Fetches] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    loops: dict[str, Loop] = field(default_factory=dict)
    """By the block's id."""

    def specs(self) -> dict[str, dict[str, Spec]]:
        """Return what is known of every tensor, by block and pin; of a list, its elements as `pin[0]`."""
        found: dict[str, dict[str, Spec]] = {}
        for id, pins in self.outputs.items():
            mine = found.setdefault(id, {})
            for pin, tensor in pins.items():
                if isinstance(tensor, Output):
                    mine[pin] = tensor.spec
                else:
                    mine |= {f"{pin}[{at}]": each.spec for at, each in enumerate(tensor)}
        for check in self.checks:
            found[check.block] = check.specs()
        return found

    def find(self, name: str) -> Output:
        """Return a tensor by `block`, `block.pin` or `block.pin[3]`."""
        id, pin = name, ""
        if id not in self.outputs:
            id, _, pin = name.rpartition(".")
        if id not in self.outputs:
            if problem := self.problems.get(name) or self.problems.get(id):
                raise ArgumentError(f"block {shown(id or name)}: {problem}")
            raise ArgumentError(
                f"there is no block {shown(name)} on the page{nearest(name, self.outputs)}"
            )
        return _chosen(id, self.outputs[id], pin)


def _chosen(id: str, pins: Tensors, pin: str) -> Output:
    match = re.fullmatch(r"(.*?)(?:\[(\d{1,6})\])?", pin)
    assert match is not None
    wanted = match[1] or (next(iter(pins)) if len(pins) == 1 else "")
    tensor = pins.get(wanted)
    if tensor is None:
        names = ", ".join(pins) or "none"
        raise ArgumentError(f"block {id!r} has no output {shown(pin)} (there are: {names})")
    if isinstance(tensor, Output):
        return tensor
    at = int(match[2]) if match[2] else (0 if len(tensor) == 1 else -1)
    if not 0 <= at < len(tensor):
        raise ArgumentError(
            f"block {id!r}: `{wanted}` is a list of {len(tensor)}: write {wanted}[0]"
        )
    return tensor[at]
