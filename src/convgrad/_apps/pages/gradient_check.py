"""Two blocks that are not ops: `GradientCheck` compares a gradient with differences, `Loop` follows a loss.

The weighted sum of `y` has a symbolic gradient with respect to `x`; the same sum is computed again for every element of
`x`, moved a little to both sides. That is done in float64, on a copy of the nodes between `x` and `y`, so that what is
compared is the gradient and not rounding; where an op refuses float64, in the graph's own type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, ConvgradError, shown
from ..graph import dtypes
from ..graph.gradients import add_symbolic_gradients
from ..graph.operation import Operation, Output
from ..graph.scope import Scope
from ..graph.session import ClientSession
from ..graph.spec import Spec

MOST_ELEMENTS = 4096
"""Of `x`; each takes two runs."""
MOST_STEPS = 1_000_000
_DOUBLE = dtypes.BY_NAME["DT_DOUBLE"]
_SEED = 20


@dataclass(frozen=True)
class Loop:
    """A Loop block: what it follows, and how often it steps the page."""

    loss: Output
    steps: int


def epsilon_of(text: str) -> float:
    """Read how far elements are moved.

    >>> epsilon_of("1e-3")
    0.001
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ArgumentError(f"`epsilon` must be a number above 0 such as 1e-3, got {shown(text)}")
    return found


def count_of(text: str) -> int:
    """Read a number of steps.

    >>> count_of(" 100 ")
    100
    """
    bare = text.strip()
    if not (bare.isascii() and bare.isdigit() and len(bare) < 9 and 1 <= int(bare) <= MOST_STEPS):
        raise ArgumentError(
            f"`steps` must be a whole number from 1 to {MOST_STEPS}, got {shown(text)}"
        )
    return int(bare)


def weighted(scope: Scope, y: Output, x: Output) -> tuple[Output, Output]:
    """Return fixed random weights for `y`, and the symbolic gradient of sum(y * weights)."""
    for name, tensor in (("y", y), ("x", x)):
        if tensor.dtype not in dtypes.FLOATS:
            raise ArgumentError(f"`{name}` must have a floating dtype, got {tensor.dtype.name}")
    size = _size(x.spec)
    if size is not None and size > MOST_ELEMENTS:
        raise ArgumentError(f"`x` must have at most {MOST_ELEMENTS} elements, got {size}")
    shape = scope.op("Shape", y)
    weights = scope.op("RandomNormal", shape, dtype=y.dtype, seed=_SEED, seed2=_SEED)
    (analytic,) = add_symbolic_gradients(scope, [y], [x], [weights])
    return weights, analytic


def _size(spec: Spec) -> int | None:
    nbytes = spec.nbytes
    return None if nbytes is None else nbytes // spec.dtype.itemsize


@dataclass(eq=False)
class Check:
    """A GradientCheck block."""

    block: str
    y: Output
    x: Output
    epsilon: float
    weights: Output
    analytic: Output
    _copy: _Copy | None = None

    def specs(self) -> dict[str, Spec]:
        """Return what is known of its outputs."""
        return {
            "largest_difference": Spec(_DOUBLE, ()),
            "analytic": self.analytic.spec,
            "numeric": Spec(_DOUBLE, self.x.shape),
        }

    def compared(
        self, session: ClientSession, feeds: Mapping[Output, Any], cancel: Event | None = None
    ) -> dict[str, AnyArray]:
        """Return both gradients and their largest difference."""
        if self._copy is None:
            self._copy = _copied(self.y, self.x, session)
        copy = self._copy
        starts = [self.analytic, self.weights, self.x, *(source for source, _ in copy.others)]
        analytic, weights, at, *rest = session.run(starts, feeds, cancel=cancel)
        if at.size > MOST_ELEMENTS:
            raise ArgumentError(
                f"block {self.block!r}: `x` must have at most {MOST_ELEMENTS} elements, got {at.size}."
            )
        fed: dict[Output, Any] = dict(feeds) if copy.session is session else {}
        for (_, twin), array in zip(copy.others, rest, strict=True):
            fed[twin] = array.astype(twin.dtype)
        x = copy.x
        wide = weights.astype(np.float64)
        numeric = np.empty(at.shape, np.float64)
        place = at.astype(x.dtype)
        for element in np.ndindex(at.shape):
            sums, steps = [], []
            for way in (self.epsilon, -self.epsilon):
                moved = place.copy()
                moved[element] += x.dtype.type(way)
                (result,) = copy.session.run([copy.y], {**fed, x: moved}, cancel=cancel)
                sums.append(float((result.astype(np.float64) * wide).sum()))
                steps.append(float(moved[element]))  # what a narrow type has made of it
            if steps[0] == steps[1]:
                raise ArgumentError(
                    f"block {self.block!r}: `epsilon` {self.epsilon:g} is too small to move {steps[0]:g},"
                    f" element {list(element)} of `x`, in {x.dtype.name}."
                )
            numeric[element] = (sums[0] - sums[1]) / (steps[0] - steps[1])
        apart = np.abs(analytic.astype(np.float64) - numeric)
        largest = apart.max() if apart.size else 0.0
        return {
            "largest_difference": np.asarray(largest, np.float64),
            "analytic": analytic,
            "numeric": numeric,
        }


@dataclass(frozen=True)
class _Copy:
    """The nodes between `x` and `y` once more."""

    session: ClientSession
    y: Output
    x: Output
    others: list[tuple[Output, Output]]
    """What does not depend on `x` and is fed to the copy, beside its placeholder there."""


def _copied(y: Output, x: Output, session: ClientSession) -> _Copy:
    """Return a copy in float64; the graph itself where an op refuses that."""
    try:
        return _in_doubles(y, x)
    except ConvgradError:
        return _Copy(session, y, x, [])


def _in_doubles(y: Output, x: Output) -> _Copy:
    scope = Scope.new_root_scope()
    twins: dict[Output, Output] = {x: _stand_in(scope, x)}
    others: list[tuple[Output, Output]] = []
    for node in _between(y, x):
        inputs = []
        for source in node.inputs:
            if source not in twins:
                if source.operation.type == "Const":
                    value = source.operation.attrs["value"]
                    twins[source] = scope.op("Const", value=value.astype(_wider(value.dtype)))
                else:
                    twins[source] = _stand_in(scope, source)
                    others.append((source, twins[source]))
            inputs.append(twins[source])
        kinds = {attr.name: attr.kind for attr in node.row.attrs}
        attrs = {
            name: _wider(value) if kinds[name] == "type" else value
            for name, value in node.attrs.items()
        }
        given: list[Any] = list(inputs)
        if node.row.inputs and node.row.inputs[-1].many:
            last = len(node.row.inputs) - 1
            given = [*inputs[:last], inputs[last:]]
        copy = scope.add(node.row, given, attrs)
        twins |= dict(zip(node.outputs, copy.outputs, strict=True))
    if y not in twins:  # it does not depend on x: all differences are 0
        twins[y] = _stand_in(scope, y)
        others.append((y, twins[y]))
    return _Copy(ClientSession(scope), twins[y], twins[x], others)


def _stand_in(scope: Scope, tensor: Output) -> Output:
    return scope.op("Placeholder", dtype=_wider(tensor.dtype), shape=tensor.shape)


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return _DOUBLE if dtype in dtypes.FLOATS else dtype


def _between(y: Output, x: Output) -> list[Operation]:
    """Return the nodes that depend on `x` and that `y` depends on, in order."""
    before: set[Operation] = set()
    waiting = [y.operation]
    while waiting:
        node = waiting.pop()
        if node not in before:
            before.add(node)
            waiting += [each.operation for each in node.inputs]
    reached = {x}
    found = []
    for node in sorted(before, key=lambda node: node.number):
        if node is not x.operation and reached.intersection(node.inputs):
            reached.update(node.outputs)
            found.append(node)
    return found
