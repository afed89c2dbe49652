"""The process of one run: gets a page, steps it, tells how far it is, and keeps the numbers to answer questions about.

It ends when its parent closes the pipe, also while it computes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import Any

from ..._base import messages
from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, ConvgradError, said
from ..graph import dtypes
from ..graph.operation import Operation, Output
from ..graph.session import ClientSession
from ..pages import document
from ..pages.build import build, node_name
from ..pages.built import Built
from ..pages.loading import json_of
from ..pages.page import split_index
from ..pages.run import PageRun, Results, why_not
from .summaries import number, summary
from .trace import Source, trace

MOST_TENSOR_BYTES = 64 << 20
_TELL = 0.05
"""Seconds between two words on how far it is."""
_SHOW = 0.4
"""Seconds between two summaries of all tensors while the page is stepped."""


class Teller:
    """Writes messages to the parent; two threads do."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def tell(self, **message: Any) -> None:
        with self._lock:
            messages.write(self._stream, message)


class PageWork:
    """One run."""

    def __init__(self, teller: Teller) -> None:
        self.teller = teller
        self.results: Results = {}
        self.built: Built | None = None
        self._places: dict[Output, tuple[str, str]] = {}
        self._ms: dict[str, float] = {}
        self._curves: dict[str, list[float | int | None]] = {}
        self._told = self._shown = self._last = 0.0
        self._step = self._steps = 0

    def run(self, order: dict[str, Any]) -> None:
        """Step the page and report; every ending is a message."""
        try:
            problem = self._stepped(order)
            self._show()
            self.teller.tell(kind="end", state="done", problem=problem)
        except MemoryError as error:
            self.results = {}
            words = " ".join(str(error).split()) or "more than the run may have was asked for"
            self.teller.tell(kind="end", state="failed", problem=f"out of memory: {words}")
        except ConvgradError as error:
            words = " ".join(str(error).split())
            self.teller.tell(kind="end", state="failed", problem=words)
        except Exception as error:
            self.teller.tell(kind="end", state="failed", problem=f"internal error: {said(error)}")

    def _stepped(self, order: dict[str, Any]) -> str | None:
        page = document.from_json(json_of(order["page"], "page"), "page")
        built = self.built = build(page)
        until = order["until"]
        if until is not None and until in built.problems:
            raise ArgumentError(f"block {until!r}: {built.problems[until]}")
        if not built.outputs:
            raise ArgumentError(why_not(built) or "the page has no blocks to compute")
        self._owners(built)
        running = PageRun(built)
        self._steps = max([order["steps"], *(loop.steps for loop in built.loops.values())])
        losses = {id: running.place(loop.loss) for id, loop in built.loops.items()}
        self._curves = {id: [] for id in losses}
        for step in range(1, self._steps + 1):
            self._step = step
            self._ms, self._last = {}, time.perf_counter()
            self.results = running.step(self._progress)
            for id, (block, pin) in losses.items():
                if pin not in self.results.get(block, {}):
                    raise ArgumentError(
                        f"block {id!r}: no ClientSession computes its loss, {block}.{pin}"
                    )
                self._curves[id].append(number(self.results[block][pin].mean()))
            self._tell(None, 0, 0)
            if self._steps > 1 and time.perf_counter() >= self._shown:
                self._show()
        self._tell(None, 0, 0, now=True)
        return f"not computed: {why_not(built)}" if built.problems else None

    def _owners(self, built: Built) -> None:
        """Find out which block a tensor, and a node, belongs to."""
        self._blocks: dict[Operation, str] = {}
        self._names = {node_name(id): id for id in built.outputs}
        passing = ("InputList", "Operation", "ClientSession", "Loop")
        symbols = {block.id: block.symbol for block in built.page.blocks}
        for id, pins in built.outputs.items():
            if symbols[id] in passing:
                continue
            for pin, tensor in pins.items():
                listed = [tensor] if isinstance(tensor, Output) else tensor
                for at, each in enumerate(listed):
                    name = pin if isinstance(tensor, Output) else f"{pin}[{at}]"
                    self._places.setdefault(each, (id, name))
                    self._blocks.setdefault(each.operation, id)

    def _owner(self, node: Operation) -> str | None:
        found = self._blocks.get(node)
        name = node.name
        while found is None and name:
            found = self._names.get(name)
            name = name.rpartition("/")[0]
        return found

    def _progress(self, done: int, total: int, node: Operation) -> None:
        now = time.perf_counter()
        id = self._owner(node)
        if id is not None:
            self._ms[id] = self._ms.get(id, 0.0) + (now - self._last) * 1e3
        self._tell(id, done, total)
        self._last = time.perf_counter()

    def _tell(self, block: str | None, done: int, total: int, now: bool = False) -> None:
        if not now and time.perf_counter() < self._told:
            return
        new = {id: list(values) for id, values in self._curves.items() if values}
        for values in self._curves.values():
            values.clear()
        self.teller.tell(
            kind="progress",
            step=self._step,
            steps=self._steps,
            block=block,
            done=done,
            total=total,
            curves=new,
        )
        self._told = time.perf_counter() + _TELL

    def _show(self) -> None:
        start = time.perf_counter()
        shown = {
            id: {pin: summary(array) for pin, array in pins.items()}
            for id, pins in self.results.items()
        }
        self.teller.tell(kind="results", results=shown, ms=self._ms)
        took = time.perf_counter() - start
        self._shown = start + max(_SHOW, 5 * took)

    # Questions about the numbers of the last whole step.

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        array = self._found(question["block"], question["pin"])
        if question["kind"] == "tensor":
            if array.size * 4 > MOST_TENSOR_BYTES:
                raise ArgumentError(f"the tensor has {array.size} elements, too many to show")
            return {"dtype": dtypes.name(array.dtype), "array": array.astype("<f4")}
        return self._traced(question, array)

    def _found(self, block: str, pin: str) -> AnyArray:
        pins = self.results.get(block)
        if pins is None:
            raise ArgumentError(f"block {block!r} has no results in this run")
        if pin not in pins:
            raise ArgumentError(
                f"block {block!r} has no result {pin!r} (there are: {', '.join(pins)})"
            )
        return pins[pin]

    def _traced(self, question: dict[str, Any], array: AnyArray) -> dict[str, Any]:
        assert self.built is not None
        name, index = split_index(question["pin"])
        tensor = self.built.outputs[question["block"]].get(name)
        if isinstance(tensor, list):
            tensor = tensor[index or 0]
        if tensor is None:  # a number of a GradientCheck
            block = self.built.page.block(question["block"])
            return {
                "terms": [],
                "sum": None,
                "value": number(array[_within(array, question["index"])]),
                "formula": f"{block.symbol if block else ''} computes it from whole tensors.",
                "shown": 0,
                "total": 0,
            }
        node = tensor.operation
        inputs = self._inputs(node)
        sources: list[Source] = [self._places.get(each, (None, None)) for each in node.inputs]
        cell = tuple(question["index"])
        return trace(node, tensor.index, inputs, sources, array, cell)

    def _inputs(self, node: Operation) -> list[AnyArray]:
        """Return the inputs of a node in the last step; those no block shows are computed from what blocks show."""
        results, shown = self.results, {}
        for output, (id, pin) in self._places.items():
            if pin in results.get(id, {}):
                shown[output] = results[id][pin]
        missing = [each for each in node.inputs if each not in shown]
        again = ClientSession(node.graph).run(missing, shown) if missing else []
        shown.update(zip(missing, again, strict=True))
        return [shown[each] for each in node.inputs]


def _within(array: AnyArray, index: list[int]) -> tuple[int, ...]:
    sizes = array.shape
    if len(index) != len(sizes) or any(
        not 0 <= at < size for at, size in zip(index, sizes, strict=True)
    ):
        raise ArgumentError(f"`index` must lie in a tensor of shape {list(sizes)}, got {index}.")
    return tuple(index)


def _limit_memory(nbytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
    # macOS refuses a limit below what is mapped already, which is hundreds of GB: a run without one beats none.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _serve_questions(calls: Any, work: PageWork) -> None:
    """Answer until the parent closes the pipe; then end, whatever is being computed."""
    while True:
        try:
            question = messages.read(calls)
        except EOFError:
            os._exit(0)
        try:
            answer = work.answer(question)
        except MemoryError:
            answer = {"error": "there is not enough memory in the run's process"}
        except ConvgradError as error:
            answer = {"error": " ".join(str(error).split())}
        except Exception as error:
            answer = {"error": f"internal error: {said(error)}"}
        work.teller.tell(kind="answer", number=question["number"], answer=answer)


def main() -> None:
    """Be the child."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed does not disturb the messages
    warnings.simplefilter("ignore")
    calls = sys.stdin.buffer
    # A process waits for its run, so what the first convolution would import is imported before: it takes 0.2 s.
    from ..._engine import prepare  # noqa: F401

    try:
        order = messages.read(calls)
    except EOFError:
        return
    _limit_memory(order["memory"])
    work = PageWork(Teller(answers))
    questions = threading.Thread(target=_serve_questions, args=(calls, work))
    questions.start()
    work.run(order)
    questions.join()
