"""Who follows a batch norm in a model's graph, and what is being run: when a pass may compute both layers.

A graph of Keras can be entered at many doors. A layer can be called by itself, and a second model can be made of a part
of the first one, which ends between a batch norm and its activation. So a batch norm computes its activation only while
the model in whose graph the two were found runs: that model's `call` opens a `RunningModel`, and both layers look at
the one that is open in their thread. Outside of it they are two layers as before.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras

from . import activations
from .activations import AppliedActivation


class Pair(NamedTuple):
    """A batch norm and the activation that alone uses its result."""

    norm: Any
    activation: Any
    computes: AppliedActivation


class Found(NamedTuple):
    """Of a model's own layers: pairs by their batch norm's id, and why others have no activation."""

    pairs: dict[int, Pair]
    reasons: dict[int, str]


def has_graph(model: Any) -> bool:
    """Tell whether a model runs its layers by a graph, and not by code of somebody's."""
    return _is_sequential(model) or _is_functional(model)


def _is_sequential(model: Any) -> bool:
    return isinstance(model, keras.Sequential) and type(model).call is keras.Sequential.call


def _is_functional(model: Any) -> bool:
    # The class has no public name; one that users derive from it may have a `call` of its own.
    return (
        isinstance(model, keras.Model)
        and hasattr(model, "_nodes_by_depth")
        and type(model).call.__qualname__ == "Functional.call"
    )


def find_pairs(model: Any) -> Found:
    """Return which batch norms of a graph are followed by an activation and nothing else."""
    found = Found({}, {})
    for norm, followers, reason in (_in_order if _is_sequential(model) else _in_graph)(model):
        pair = reason or _pair(norm, followers)
        if isinstance(pair, Pair):
            found.pairs[id(norm)] = pair
        else:
            found.reasons[id(norm)] = pair
    return found


_Candidates = Iterator[tuple[Any, list[Any], str]]


def _in_order(model: Any) -> _Candidates:
    """Yield batch norms of a list of layers, and what follows each; the list may change between two runs."""
    layers = model.layers
    for layer, after in zip(layers, [*layers[1:], None], strict=True):
        if is_norm(layer):
            last = "its result is that of the model" if after is None else ""
            yield layer, [after], last or _repeated(layer, after, Counter(map(id, layers)))


def _in_graph(model: Any) -> _Candidates:
    nodes = [node for nodes in model._nodes_by_depth.values() for node in nodes]
    times = Counter(id(node.operation) for node in nodes)
    users: dict[int, list[Any]] = {}
    for node in nodes:
        for tensor in node.input_tensors:
            users.setdefault(id(tensor), []).append(node.operation)
    outputs = {id(tensor) for tensor in model.outputs}
    for node in nodes:
        if not is_norm(node.operation):
            continue
        made = id(node.outputs[0])
        followers = users.get(made, [])
        reason = "its result is one of the model's" if made in outputs else ""
        if not reason and len(followers) != 1:
            reason = f"{len(followers)} layers use its result"
        yield (
            node.operation,
            followers,
            reason or _repeated(node.operation, followers[0], times),
        )


def _repeated(norm: Any, after: Any, times: Counter[int]) -> str:
    """Say which of two layers occurs more than once, if one does."""
    return next(
        (
            f"{each.name} is used {times[id(each)]} times"
            for each in (norm, after)
            if times[id(each)] > 1
        ),
        "",
    )


def is_norm(layer: Any) -> bool:
    return isinstance(layer, keras.layers.BatchNormalization)


def _pair(norm: Any, followers: list[Any]) -> Pair | str:
    (after,) = followers
    computes = activations.activation_of(after)
    if computes is None:
        return f"{after.name} behind it is not an activation that convgrad computes"
    if norm.activity_regularizer is not None:
        return "its result is regularized"
    if after.compute_dtype != norm.compute_dtype:
        return f"{after.name} behind it computes in {after.compute_dtype}"
    if after._remat_mode is not None:
        return f"{after.name} behind it is computed again for its gradient"
    return Pair(norm, after, computes)


class RunningModel:
    """A model that runs: its pairs, and activations that are computed already."""

    def __init__(self, pairs: dict[int, Pair]) -> None:
        self.pairs = pairs
        self.done: set[int] = set()


class _Running(threading.local):
    def __init__(self) -> None:
        self.frames: list[RunningModel] = []


_running = _Running()


@contextmanager
def running(pairs: dict[int, Pair]) -> Iterator[None]:
    """Let layers know that their model runs, in the calling thread."""
    _running.frames.append(RunningModel(pairs))
    try:
        yield
    finally:
        _running.frames.pop()


def pair_of(norm: Any) -> Pair | None:
    """Return the pair of a batch norm if the model it was found in is the one that runs."""
    frames = _running.frames
    return frames[-1].pairs.get(id(norm)) if frames else None


def note_computed(activation: Any) -> None:
    """Note that an activation of the model that runs need not be computed any more."""
    _running.frames[-1].done.add(id(activation))


def is_computed(activation: Any) -> bool:
    """Tell whether a batch norm has computed an activation, once."""
    frames = _running.frames
    if not frames or id(activation) not in frames[-1].done:
        return False
    frames[-1].done.discard(id(activation))
    return True
