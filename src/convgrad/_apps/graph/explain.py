"""What a run of a session would do, and how much memory it would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..._base.errors import ConvgradError
from ..._base.text import aligned
from .operation import Output
from .row import NodeCall
from .spec import Spec
from .steps import Step, Steps


@dataclass(frozen=True)
class ExplainedStep:
    """One node of a run."""

    node: str
    type: str
    outputs: tuple[Spec, ...]
    new_bytes: int | None
    """Memory asked for; 0 where an input's is written into."""
    live_bytes: int | None
    """Memory of intermediate tensors while it runs; None from where sizes are unknown."""
    in_place: bool


@dataclass(frozen=True)
class Explanation:
    """A run: its nodes, and its memory beside what is fed, constant or a Variable's."""

    steps: tuple[ExplainedStep, ...]
    peak_bytes: int | None
    """The most that is in use at a time; None if sizes are unknown."""
    kept_bytes: int | None
    """What it would be if nothing was freed and nothing written in place."""
    unknown: tuple[str, ...]
    """Nodes whose sizes are unknown: feeds would tell."""

    def __str__(self) -> str:
        rows = [["node", "op", "output", "new", "in use"]]
        for step in self.steps:
            new = "in place" if step.in_place else _size(step.new_bytes)
            outputs = ", ".join(map(str, step.outputs))
            rows.append([step.node, step.type, outputs, new, _size(step.live_bytes)])
        last = (
            f"{len(self.steps)} nodes; at most {_size(self.peak_bytes)} of intermediate tensors at a time, "
            f"{_size(self.kept_bytes)} if none was freed"
        )
        if self.unknown:
            last += f"; sizes of {len(self.unknown)} nodes are unknown until they are fed"
        return f"{aligned(rows, range(3))}\n{last}"


def _size(nbytes: int | None) -> str:
    if nbytes is None:
        return "?"
    for unit in ("B", "KB", "MB"):
        if nbytes < 10_000:
            return f"{nbytes:,} {unit}"
        nbytes //= 1000
    return f"{nbytes:,} GB"


def explained(way: Steps, fed: Mapping[Output, Spec]) -> Explanation:
    """Follow sizes and memory through a run."""
    specs: dict[int, Spec] = {}
    for at, tensor in enumerate(way.tensors):
        specs[at] = tensor.spec
    for tensor, spec in fed.items():
        specs[way.feeds[tensor]] = spec
    held: dict[int, int | None] = {}
    found, unknown = [], []
    kept: int | None = 0
    for step in way.steps:
        outputs = _outputs(step, specs)
        new: int | None = 0
        for at, spec in zip(step.outputs, outputs, strict=True):
            if at < 0:
                continue
            specs[at] = spec
            if spec.nbytes is None:
                unknown.append(step.node.name)
            if way.roots[at] == at:  # no other's memory
                held[at] = spec.nbytes
                kept = _plus(kept, spec.nbytes)
                new = _plus(new, spec.nbytes)
        if step.reuse >= 0:
            held.pop(step.reuse, None)
            new = 0
        live: int | None = 0
        for each in held.values():
            live = _plus(live, each)
        found.append(
            ExplainedStep(step.node.name, step.node.type, outputs, new, live, step.reuse >= 0)
        )
        for at in step.frees:
            held.pop(at, None)
    lives = [step.live_bytes for step in found]
    peak = None if None in lives else max((live for live in lives if live is not None), default=0)
    return Explanation(tuple(found), peak, kept, tuple(unknown))


def _outputs(step: Step, specs: Mapping[int, Spec]) -> tuple[Spec, ...]:
    node = step.node
    given = tuple(specs[at] for at in step.inputs)
    try:
        return tuple(node.row.infer(NodeCall(node.row, node.attrs, given)))
    except ConvgradError as error:
        raise type(error)(f"ClientSession.explain: node {node.name!r}: {error}") from None


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
