"""The way through a graph: which nodes run, in which order, whose memory ends where, as data.

A tensor's memory ends behind its last use. Where it ends at an op that works element by element, the op writes into it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .operation import Operation, Output
from .row import Kernel
from .spec import Spec, fits


@dataclass(frozen=True)
class Step:
    """One node to run, on numbered places for tensors."""

    node: Operation
    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    reuse: int
    """The place whose memory the output takes, or -1."""
    frees: tuple[int, ...]
    """Places nobody needs behind this step."""
    updates: Operation | None
    """The Variable whose new value this is."""


@dataclass(frozen=True)
class Steps:
    """A run of a session, prepared."""

    steps: tuple[Step, ...]
    places: int
    constants: dict[int, Any]
    feeds: dict[Output, int]
    variables: tuple[tuple[Operation, int], ...]
    placeholders: tuple[Output, ...]
    """Those that are needed and were not fed."""
    fetches: tuple[int, ...]
    copied: tuple[bool, ...]
    """Whether what is fetched is somebody else's memory: a constant, a Variable, what was fed, another fetch."""
    tensors: tuple[Output, ...]
    """Whose places they are."""
    roots: tuple[int, ...] = field(repr=False, default=())
    """The place whose memory a place may be."""

    def reads(self, at: int) -> bool:
        """Return whether a place's array is needed: an Assign does not look at the old value of its Variable."""
        return at in self.fetches or any(
            at in (step.inputs[1:] if step.node.type == "Assign" else step.inputs)
            for step in self.steps
        )


def prepare(
    fetches: Sequence[Output], fed: Collection[Output], targets: Iterable[Operation] = ()
) -> Steps:
    """Find the way to some outputs from what is fed."""
    doubtful = _doubtful(fed)
    nodes = _needed(fetches, fed, targets, doubtful)
    places: dict[Output, int] = {}
    constants: dict[int, Any] = {}
    variables, placeholders = [], []
    roots: list[int] = []
    owned: set[int] = set()

    def place(output: Output, root: int | None = None) -> int:
        at = places[output] = len(places)
        roots.append(at if root is None else root)
        return at

    feeds = {output: place(output) for output in fed}
    run: list[Operation] = []
    for node in nodes:
        if all(output in fed for output in node.outputs):
            continue
        known = [None if node in doubtful else _known(output.spec) for output in node.outputs]
        if node.type == "Const":
            constants[place(node.outputs[0])] = node.attrs["value"]
        elif all(value is not None for value in known):
            for output, value in zip(node.outputs, known, strict=True):
                constants[place(output)] = value
        elif node.type == "Variable":
            variables.append((node, place(node.outputs[0])))
        elif node.row.compute is None:
            placeholders.append(node.outputs[0])
            place(node.outputs[0])
        else:
            run.append(node)
            shares = _shares(node, node in doubtful) or node.type == "Assign"
            source = node.inputs[1 if node.type == "Assign" else 0] if shares else None
            for output in node.outputs:
                if output not in fed:
                    at = place(output, None if source is None else roots[places[source]])
                    if source is None:
                        owned.add(at)
    return _with_ends(
        run,
        fetches,
        places,
        constants,
        feeds,
        tuple(variables),
        tuple(placeholders),
        roots,
        owned,
        doubtful,
    )


def _doubtful(fed: Collection[Output]) -> set[Operation]:
    """Return the nodes behind a fed tensor whose numbers the graph was built on: what is known of them may not hold."""
    changed = {output for output in fed if output.spec.value is not None}
    found: set[Operation] = set()
    if changed:
        for node in next(iter(changed)).operation.graph.nodes:
            if any(each in changed or each.operation in found for each in node.inputs):
                found.add(node)
    return found


def _shares(node: Operation, doubtful: bool) -> bool:
    """Return whether an output may be the memory of the first input; what is fed may make it so."""
    if not node.row.alias or node.specs[0].dtype != node.inputs[0].dtype:
        return False
    return doubtful or node.type == "Reshape" or fits(node.specs[0].shape, node.inputs[0].shape)


def _with_ends(
    run: Sequence[Operation],
    fetches: Sequence[Output],
    places: dict[Output, int],
    constants: dict[int, Any],
    feeds: dict[Output, int],
    variables: tuple[tuple[Operation, int], ...],
    placeholders: tuple[Output, ...],
    roots: list[int],
    owned: set[int],
    doubtful: set[Operation],
) -> Steps:
    """Find where every memory ends, and who may take it over."""
    last: dict[int, int] = {}
    for number, node in enumerate(run):
        for each in node.inputs:
            last[roots[places[each]]] = number
    wanted = tuple(places[each] for each in fetches)
    for at in wanted:
        last[roots[at]] = len(run)
    for node in run:
        if node.row.updates:  # the Variable has it from now on
            last[roots[places[node.outputs[0]]]] = len(run)
    members: dict[int, list[int]] = {}
    for at, root in enumerate(roots):
        members.setdefault(root, []).append(at)
    steps = []
    for number, node in enumerate(run):
        inputs = tuple(places[each] for each in node.inputs)
        outputs = tuple(places.get(each, -1) for each in node.outputs)
        ending = {roots[at] for at in inputs if last[roots[at]] == number and roots[at] in owned}
        ending |= {at for at in outputs if at >= 0 and roots[at] not in last}  # nobody reads it
        reuse = _taken_over(node, inputs, ending, roots, doubtful)
        frees = tuple(at for root in ending for at in members[root])
        assert node.row.compute is not None
        steps.append(
            Step(
                node,
                node.row.compute(node),
                inputs,
                outputs,
                reuse,
                frees,
                node.variable() if node.row.updates else None,
            )
        )
    seen: set[int] = set()
    # A Variable keeps the memory of its new value.
    kept = {roots[places[node.outputs[0]]] for node in run if node.row.updates}
    copied = []
    for at in wanted:
        copied.append(roots[at] not in owned or roots[at] in seen or roots[at] in kept)
        seen.add(roots[at])
    return Steps(
        tuple(steps),
        len(places),
        constants,
        feeds,
        variables,
        placeholders,
        wanted,
        tuple(copied),
        tuple(places),
        tuple(roots),
    )


def _taken_over(
    node: Operation,
    inputs: tuple[int, ...],
    ending: set[int],
    roots: list[int],
    doubtful: set[Operation],
) -> int:
    """Return the place of an input whose memory the output can be written into, or -1."""
    if not node.row.elementwise or (len(inputs) > 1 and node in doubtful):
        return -1
    spec = node.specs[0]
    for at, tensor in zip(inputs, node.inputs, strict=True):
        fits = tensor.dtype == spec.dtype and (
            len(inputs) == 1 or (tensor.spec.is_known and tensor.shape == spec.shape)
        )
        # An input behind a reshape shares its memory, but has another array.
        if fits and roots[at] in ending and roots[at] == at and inputs.count(at) == 1:
            return at
    return -1


def _known(spec: Spec) -> Any:
    """Return the array of a tensor whose numbers are all known, or None."""
    value = spec.value
    if value is None or (isinstance(value, tuple) and None in value):
        return None
    found = np.array(value, spec.dtype)
    found.flags.writeable = False
    return found


def _needed(
    fetches: Sequence[Output],
    fed: Collection[Output],
    targets: Iterable[Operation],
    doubtful: set[Operation],
) -> list[Operation]:
    """Return the nodes that must run, in order; those that need a shape alone run as soon as they can."""
    wanted: set[Operation] = set()
    open_ = [each.operation for each in fetches if each not in fed] + list(targets)
    while open_:
        node = open_.pop()
        if node in wanted:
            continue
        wanted.add(node)
        if node in doubtful or any(_known(output.spec) is None for output in node.outputs):
            open_ += [each.operation for each in node.inputs if each not in fed]
    ordered = sorted(wanted, key=lambda node: node.number)
    early: dict[Operation, list[Operation]] = {}
    for node in ordered:
        if node.row.eager and node.inputs[0].operation in wanted:
            early.setdefault(node.inputs[0].operation, []).append(node)
    found: list[Operation] = []
    moved = {node for nodes in early.values() for node in nodes}
    for node in ordered:
        following = [] if node in moved else [node]
        while following:  # a shape may be asked of a shape
            one = following.pop(0)
            found.append(one)
            following += early.get(one, ())
    return found
