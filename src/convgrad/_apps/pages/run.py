"""Run a page, step by step, and keep what its blocks show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from ..graph.operation import Operation, Output
from ..graph.session import ClientSession, Progress
from .built import Built, Fetches

Results = dict[str, dict[str, AnyArray]]
"""Arrays by block and pin; elements of a list as `pin[0]`."""


@dataclass
class _Part:
    """What one run computes: a session's share of a step."""

    names: list[tuple[str, str]]
    tensors: list[Output]
    targets: list[Operation] = field(default_factory=list)


class PageRun:
    """A page with its Variables, ready to step.

    A step runs every ClientSession of the page once, in the order of their ids: what is wired to it and all before that
    is computed, with the Variables as they were, and then they change. A page of ours without a session runs all of its
    blocks. With `fetch`, a step does the same, and only what is named is kept.
    """

    def __init__(
        self, built: Built, feeds: Mapping[str, Any] | None = None, fetch: Iterable[str] = ()
    ) -> None:
        self.built = built
        self._checked = {check.block for check in built.checks}
        self.session = ClientSession(built.scope)
        self.session.set_variables(built.variables)
        self.steps = 0
        self._feeds = self._fed(feeds or {})
        wanted = {name: built.find(_without_result(built, name)) for name in fetch}
        self._parts = self._divided(wanted)
        own = {self.place(tensor)[0] for tensor in wanted.values()}
        self._checks = [check for check in built.checks if not wanted or check.block in own]

    def step(self, progress: Progress | None = None, cancel: Event | None = None) -> Results:
        """Advance by one step and return its results."""
        results: Results = {}
        for number, check in enumerate(self._checks, 1):  # before Variables change
            results[check.block] = check.compared(self.session, self._feeds, cancel)
            if progress is not None:
                progress(number, len(self._checks), check.analytic.operation)
        for part in self._parts:
            arrays = self.session.run(
                part.tensors, self._feeds, part.targets, progress=progress, cancel=cancel
            )
            for (id, pin), array in zip(part.names, arrays, strict=True):
                results.setdefault(id, {})[pin] = array
        self.steps += 1
        return results

    def _fed(self, given: Mapping[str, Any]) -> dict[Output, Any]:
        found: dict[Output, Any] = {}
        for id, value in {**self.built.fed, **given}.items():
            found[self.built.find(id)] = value
        return found

    def _divided(self, wanted: dict[str, Output]) -> list[_Part]:
        built = self.built
        parts = [self._of_session(each) for each in sorted(built.sessions, key=lambda s: s.block)]
        broken = [
            block.id
            for block in built.page.blocks
            if block.symbol == "ClientSession" and block.id in built.problems
        ]
        if broken and not wanted:
            raise ArgumentError(f"the page cannot run: {why_not(built)}")
        if not parts and not wanted:
            if built.page.dialect != "convgrad":
                raise ArgumentError(
                    "the page has no ClientSession, so it has nothing to run; name what to fetch"
                )
            parts = [self._of_blocks(built.outputs)]
            if built.problems and not parts[0].tensors:
                raise ArgumentError(f"the page cannot run: {why_not(built)}")
        if not wanted:
            return parts
        # What sessions compute still happens, for the sake of Variables; what was asked for is kept.
        names = [self.place(tensor) for tensor in wanted.values()]
        targets = [each.operation for part in parts for each in part.tensors]
        targets += [each for part in parts for each in part.targets]
        fed = set(self._feeds)
        targets = [node for node in dict.fromkeys(targets) if not fed.issuperset(node.outputs)]
        return [_Part(names, list(wanted.values()), targets)]

    def _of_session(self, session: Fetches) -> _Part:
        known = [id for id in session.blocks if id in self.built.outputs]
        part = self._of_blocks(known)
        if not part.tensors:
            return part  # without anything fetched, nothing else is run either
        part.targets = session.targets
        return part

    def _of_blocks(self, ids: Iterable[str]) -> _Part:
        part = _Part([], [])
        for id in ids:
            if self._passes_on(id):
                continue
            for pin, tensor in self.built.outputs[id].items():
                pairs = (
                    [(pin, tensor)]
                    if isinstance(tensor, Output)
                    else [(f"{pin}[{at}]", each) for at, each in enumerate(tensor)]
                )
                for name, each in pairs:
                    if id in self._checked:  # its numbers are made by the check
                        continue
                    part.names.append((id, name))
                    part.tensors.append(each)
        return part

    def _passes_on(self, id: str) -> bool:
        """Return whether a block has no numbers of its own: it hands on those of others."""
        block = self.built.page.block(id)
        return block is not None and block.symbol in (
            "InputList",
            "Operation",
            "ClientSession",
            "Loop",
        )

    def place(self, tensor: Output) -> tuple[str, str]:
        """Return block and pin of a tensor."""
        for id, pins in self.built.outputs.items():
            if self._passes_on(id):
                continue
            for pin, each in pins.items():
                if each is tensor:
                    return id, pin
                if isinstance(each, list) and tensor in each:
                    return id, f"{pin}[{each.index(tensor)}]"
        raise AssertionError(tensor)


def _without_result(built: Built, name: str) -> str:
    """Return `block.pin` for enuSpace's `block.result_pin`."""
    id, dot, pin = name.rpartition(".")
    if dot and name not in built.outputs and pin.startswith("result_"):
        return f"{id}.{pin.removeprefix('result_')}"
    return name


def why_not(built: Built) -> str:
    """Say in one line which blocks keep a page from running: those with a problem of their own first."""
    own = [
        f"{id}: {problem}"
        for id, problem in built.problems.items()
        if " waits for block " not in problem
    ]
    shown = "; ".join(own[:5])
    return shown + (f"; and {len(own) - 5} more" if len(own) > 5 else "")
