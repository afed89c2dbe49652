"""`ClientSession`: runs a graph. It keeps the values of Variables and the prepared ways through the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._base.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    ConvgradError,
    InternalError,
    said,
    shown,
)
from ..._base.fp_mode import default_mode
from . import dtypes
from .explain import Explanation, explained
from .gradients import as_single
from .operation import Graph, Operation, Output
from .row import Attr, NodeCall, canonical
from .scope import Scope, as_output
from .spec import Spec, fits, shape_spelled
from .steps import Step, Steps, prepare

AnyArray = np.ndarray[Any, np.dtype[Any]]
Progress = Callable[[int, int, Operation], None]
"""Called behind every node: how many have run, how many there are, and which it was."""

_RUN = "ClientSession.run"
_MOST_WAYS = 256
"""Ways through the graph that are remembered; a program with more of them starts over."""


class Cancelled(ConvgradError):
    """A run was cancelled; nothing was changed by it."""


class ClientSession:
    """Runs nodes of a scope's graph.

    A run computes what is fetched and nothing else. All of it sees Variables as they were before; new values are kept
    when everything has been computed, so a run that fails or is cancelled changes nothing. The memory of a tensor ends
    behind its last use. Several threads may run one session.
    """

    def __init__(self, scope: Scope | Graph) -> None:
        if not isinstance(scope, Scope | Graph):
            raise ArgumentTypeError(f"ClientSession: `scope` must be a Scope, got {shown(scope)}.")
        self.graph = scope.graph if isinstance(scope, Scope) else scope
        self._variables: dict[Operation, AnyArray] = {}
        self._ways: dict[Any, Steps] = {}
        self._lock = threading.Lock()
        self._cancelled = 0

    def run(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any] | None = None,
        run_outputs: Any = (),
        *,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> list[AnyArray]:
        """Compute tensors and return them as a list of arrays, in the order of `fetches`.

        Parameters
        ----------
        fetches : list of Output, or ops with one output
        feeds : dict
            Arrays by the placeholder (or any other tensor) they stand for.
        run_outputs : list of Operation
            Nodes to run without returning anything, such as updates of Variables.
        progress : callable, optional
            Called with the number of nodes that have run, of those there are, and the node.
        cancel : threading.Event, optional
            Ends the run with `Cancelled` between two nodes once it is set; `session.cancel` does it for all runs.
        """
        wanted = self._fetched(fetches)
        fed = self._fed(feeds or {})
        if progress is not None and not callable(progress):
            raise ArgumentTypeError(f"{_RUN}: `progress` must be callable, got {shown(progress)}.")
        if cancel is not None and not callable(getattr(cancel, "is_set", None)):
            raise ArgumentTypeError(
                f"{_RUN}: `cancel` must be a threading.Event, got {shown(cancel)}."
            )
        steps = self._way(wanted, fed, self._targets(run_outputs))
        return self._execute(steps, fed, progress, cancel)

    def cancel(self) -> None:
        """End all runs of this session that are under way, each with `Cancelled`."""
        self._cancelled += 1

    def explain(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Explanation:
        """Say what a run would do and how much memory it would take, without running it.

        Sizes the graph does not know are taken from `feeds`, whose values may be arrays or shapes.
        """
        shapes: dict[Output, Spec] = {}
        for key, value in (feeds or {}).items():
            tensor = self._own("feeds", key)
            where = f"ClientSession.explain: feed {tensor.operation.name!r}"
            if isinstance(value, tuple):
                sizes = canonical(where, Attr("value", "shape"), value)
            else:
                sizes = dtypes.array(where, "value", value, tensor.dtype).shape
            if not fits(tensor.shape, sizes):
                raise ArgumentError(
                    f"{where}: `value` must have shape {shape_spelled(tensor.shape)}, got {shape_spelled(sizes)}."
                )
            shapes[tensor] = Spec(tensor.dtype, sizes)
        return explained(prepare(self._fetched(fetches), shapes, ()), shapes)

    @property
    def variables(self) -> dict[str, AnyArray]:
        """Copies of the values of Variables that have one, by name."""
        with self._lock:
            return {node.name: value.copy() for node, value in self._variables.items()}

    def set_variables(self, values: Mapping[str, Any]) -> None:
        """Give Variables values, by name; all of them or, if one does not fit, none."""
        found = {}
        for name, value in values.items():
            node = self.graph.by_name.get(name)
            if node is None or node.type != "Variable":
                raise ArgumentError(
                    f"ClientSession.set_variables: there is no Variable {shown(name)}."
                )
            array = dtypes.array("ClientSession.set_variables", name, value, node.specs[0].dtype)
            if not fits(node.specs[0].shape, array.shape):
                raise ArgumentError(
                    f"ClientSession.set_variables: `{name}` must have shape {shape_spelled(node.specs[0].shape)}, "
                    f"got {list(array.shape)}."
                )
            found[node] = np.array(array, copy=True)
        with self._lock:
            self._variables.update(found)

    def _own(self, argument: str, value: Any) -> Output:
        tensor = as_output(value)
        if tensor is None or tensor.operation.graph is not self.graph:
            raise ArgumentTypeError(
                f"{_RUN}: `{argument}` must name tensors of the session's graph, got {shown(value)}."
            )
        return tensor

    def _fetched(self, fetches: Any) -> tuple[Output, ...]:
        if as_single(fetches):
            fetches = (fetches,)
        if isinstance(fetches, str | bytes | dict) or not isinstance(fetches, Iterable):
            raise ArgumentTypeError(
                f"{_RUN}: `fetches` must be a list of tensors, got {shown(fetches)}."
            )
        return tuple(self._own("fetches", each) for each in fetches)

    def _targets(self, given: Any) -> tuple[Operation, ...]:
        found = []
        if as_single(given) or not isinstance(given, Iterable):
            given = (given,)
        for each in given:
            node = each.operation if hasattr(each, "operation") else each
            if not isinstance(node, Operation) or node.graph is not self.graph:
                raise ArgumentTypeError(
                    f"{_RUN}: `run_outputs` must be operations of the session's graph, got {shown(each)}."
                )
            found.append(node)
        return tuple(found)

    def _fed(self, feeds: Mapping[Any, Any]) -> dict[Output, AnyArray]:
        if not isinstance(feeds, Mapping):
            raise ArgumentTypeError(f"{_RUN}: `feeds` must be a dict, got {shown(feeds)}.")
        found = {}
        for key, value in feeds.items():
            tensor = self._own("feeds", key)
            spec = tensor.spec
            where = f"{_RUN}: feed {tensor.operation.name!r}"
            array = dtypes.array(where, "value", value, spec.dtype)
            if not fits(spec.shape, array.shape):
                raise ArgumentError(
                    f"{where}: `value` must have shape {shape_spelled(spec.shape)}, got {list(array.shape)}."
                )
            found[tensor] = array
        return found

    def _way(
        self,
        fetches: tuple[Output, ...],
        fed: Mapping[Output, AnyArray],
        targets: tuple[Operation, ...],
    ) -> Steps:
        key = (fetches, tuple(fed), targets)
        found = self._ways.get(key)
        if found is None:
            found = prepare(fetches, fed.keys(), targets)
            if len(self._ways) >= _MOST_WAYS:
                self._ways.clear()
            self._ways[key] = found
        if found.placeholders:
            names = ", ".join(repr(each.operation.name) for each in found.placeholders)
            raise ArgumentError(f"{_RUN}: `feeds` must give a value for placeholder {names}.")
        return found

    def _execute(
        self,
        way: Steps,
        fed: Mapping[Output, AnyArray],
        progress: Progress | None,
        cancel: threading.Event | None,
    ) -> list[AnyArray]:
        values: list[Any] = [None] * way.places
        for at, constant in way.constants.items():
            values[at] = constant
        for tensor, at in way.feeds.items():
            values[at] = fed[tensor]
        if way.variables:
            with self._lock:
                for node, at in way.variables:
                    values[at] = self._variables.get(node)
                    if values[at] is None and way.reads(at):
                        raise _unset(way.tensors[at])
        pending: dict[Operation, Step] = {}
        generation, array = self._cancelled, np.ndarray
        with default_mode(), np.errstate(all="ignore"):
            for number, step in enumerate(way.steps, 1):
                if generation != self._cancelled or (cancel is not None and cancel.is_set()):
                    raise Cancelled(f"{_RUN}: cancelled before node {step.node.name!r}.")
                try:
                    arguments = [values[at] for at in step.inputs]
                    if step.reuse >= 0:
                        result = step.kernel(*arguments, out=values[step.reuse])
                    else:
                        result = step.kernel(*arguments)
                except Exception as error:
                    raise _named(step, values, error) from None
                if step.updates is not None:
                    _note_update(pending, step)
                if len(step.outputs) == 1:
                    # A ufunc gives a scalar, not an array, for arrays without dimensions.
                    values[step.outputs[0]] = (
                        result if type(result) is array else np.asarray(result)
                    )
                else:
                    for at, each in zip(step.outputs, result, strict=True):
                        if at >= 0:
                            values[at] = each
                for at in step.frees:
                    values[at] = None
                if progress is not None:
                    arguments = []
                    progress(number, len(way.steps), step.node)
        fetched = []
        for at, copied in zip(way.fetches, way.copied, strict=True):
            fetched.append(np.array(values[at], copy=True) if copied else values[at])
        if pending:
            owners = {node: values[step.outputs[0]] for node, step in pending.items()}
            with self._lock:
                self._variables.update(
                    {node: np.array(value, copy=True) for node, value in owners.items()}
                )
        return fetched


def _note_update(pending: dict[Operation, Step], step: Step) -> None:
    """Remember an update; a second one of the same Variable must build on the first."""
    assert step.updates is not None
    before = pending.get(step.updates)
    if before is not None and step.node.inputs[0].operation is not before.node:
        raise ArgumentError(
            f"{_RUN}: Variable {step.updates.name!r} must not be changed twice in one run, "
            f"by {before.node.name!r} and {step.node.name!r}; give the second the first's output."
        )
    pending[step.updates] = step


def _unset(tensor: Output) -> ArgumentError:
    return ArgumentError(
        f"{_RUN}: Variable {tensor.operation.name!r} has no value yet; run an Assign of it first."
    )


def _named(step: Step, values: Sequence[Any], error: Exception) -> Exception:
    """Return an error that names the node; one of NumPy's becomes the one the shape rule has for these arrays."""
    node = step.node
    where = f"{_RUN}: node {node.name!r}"
    if isinstance(error, MemoryError):
        words = str(error).removeprefix(f"{node.type}: ")  # which eager functions say already
        return AllocationError(f"{where}: {node.type}: {words}")
    if isinstance(error, ConvgradError):
        return type(error)(f"{where}: {error}")
    specs = tuple(
        Spec(values[at].dtype, values[at].shape, _numbers(values[at])) for at in step.inputs
    )
    try:
        node.row.infer(NodeCall(node.row, node.attrs, specs))
    except ConvgradError as refused:
        return type(refused)(f"{where}: {refused}")
    if isinstance(error, ValueError | TypeError):
        return ArgumentError(f"{where}: {node.type}: {said(error)}.")
    return InternalError(f"{where}: {node.type}: {said(error)}.")


def _numbers(array: AnyArray) -> Any:
    if array.dtype not in dtypes.INDICES or array.ndim > 1 or array.size > 64:
        return None
    return array.item() if array.ndim == 0 else tuple(array.tolist())
