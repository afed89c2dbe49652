"""Small graphs as data: run by `convgrad.graph` here, and written as lines for `ops_cases.cc`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convgrad._apps.graph import dtypes
from convgrad._apps.graph.table import TABLE
from convgrad._base.errors import ConvgradError
from convgrad.graph import ClientSession, Scope, add_symbolic_gradients

NUMBERS = {
    "DT_FLOAT": 1, "DT_DOUBLE": 2, "DT_INT32": 3, "DT_UINT8": 4, "DT_INT16": 5, "DT_INT8": 6, "DT_INT64": 9,
    "DT_BOOL": 10, "DT_BFLOAT16": 14, "DT_UINT16": 17, "DT_HALF": 19, "DT_UINT32": 22, "DT_UINT64": 23,
}  # fmt: skip
"""TensorFlow's numbers of element types."""
BY_NUMBER = {number: dtypes.BY_NAME[name] for name, number in NUMBERS.items()}


def number_of(dtype: Any) -> int:
    return NUMBERS[dtypes.name(np.dtype(dtype))]


def words_of(array: Any) -> str:
    whole = np.ascontiguousarray(array)
    sizes = "".join(f" {size}" for size in np.shape(array))
    return f"{number_of(whole.dtype)} {np.ndim(array)}{sizes} {whole.tobytes().hex()}"


def read_tensor(words: list[str]) -> Any:
    rank = int(words[1])
    shape = tuple(int(word) for word in words[2 : 2 + rank])
    data = bytes.fromhex(words[2 + rank]) if len(words) > 2 + rank else b""
    return np.frombuffer(data, BY_NUMBER[int(words[0])]).reshape(shape)


@dataclass
class Refused:
    """What came out where nothing did."""

    message: str


@dataclass
class Case:
    """Steps of building and running one graph; tensors are named by strings."""

    name: str
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0

    def op(self, op: str, *inputs: str, **attrs: Any) -> str:
        self.count += 1
        name = f"t{self.count}"
        self.steps.append(("op", name, op, inputs, attrs))
        return name

    def const(self, value: Any) -> str:
        return self.op("Const", value=np.asarray(value))

    def placeholder(self, dtype: Any, shape: Any = None) -> str:
        return self.op("Placeholder", dtype=np.dtype(dtype), shape=shape)

    def grad(self, ys: list[str], xs: list[str], seeds: list[str] | None = None) -> list[str]:
        names = []
        for _ in xs:
            self.count += 1
            names.append(f"t{self.count}")
        self.steps.append(("grad", ys, xs, seeds, names))
        return names

    def run(self, *fetches: str, feeds: dict[str, Any] | None = None) -> Case:
        self.steps.append(
            ("run", fetches, {key: np.asarray(value) for key, value in (feeds or {}).items()})
        )
        return self

    def lines(self) -> list[str]:
        """Return the case as `ops_cases.cc` reads it."""
        found = [f"case {self.name}"]
        for kind, *rest in self.steps:
            if kind == "op":
                name, op, inputs, attrs = rest
                words = [f"op {name} {op} {len(inputs)}", *inputs]
                kinds = {attr.name: attr.kind for attr in TABLE[op].attrs}
                words += [f"{key} {_attribute(kinds[key], value)}" for key, value in attrs.items()]
                found.append(" ".join(words))
            elif kind == "grad":
                ys, xs, seeds, names = rest
                lists = [f"{len(each)} {' '.join(each)}" for each in (ys, xs, seeds or [])]
                found.append(" ".join(["grad", *lists, *names]))
            else:
                fetches, feeds = rest
                found += [f"feed {key} {words_of(value)}" for key, value in feeds.items()]
                found.append(" ".join(["run", str(len(fetches)), *fetches]))
        return found

    def results(self) -> list[Any]:
        """Return what Python makes of it: a list of arrays, or Refused, for every run."""
        scope = Scope.new_root_scope()
        tensors: dict[str, Any] = {}
        found: list[Any] = []
        session: ClientSession | None = None
        broken: Refused | None = None

        def named(name: str) -> Any:
            first, _, index = name.partition(":")
            return tensors[first].operation.outputs[int(index or 0)]

        for kind, *rest in self.steps:
            if kind == "run":
                session = session or ClientSession(scope)
                found.append(broken or _ran(session, rest, named))
                continue
            if broken is not None:
                continue
            try:
                if kind == "op":
                    name, op, inputs, attrs = rest
                    given = [named(each) for each in inputs]
                    many = [given] if TABLE[op].inputs and TABLE[op].inputs[-1].many else given
                    tensors[name] = scope.op(op, *many, **attrs)
                else:
                    ys, xs, seeds, names = rest
                    weights = None if seeds is None else [named(each) for each in seeds]
                    grads = add_symbolic_gradients(
                        scope, [named(y) for y in ys], [named(x) for x in xs], weights
                    )
                    tensors.update(zip(names, grads, strict=True))
            except ConvgradError as error:
                broken = Refused(str(error))
        return found


def _ran(session: ClientSession, rest: Any, named: Any) -> Any:
    fetches, feeds = rest
    try:
        return session.run(
            [named(each) for each in fetches], {named(key): value for key, value in feeds.items()}
        )
    except ConvgradError as error:
        return Refused(str(error))


def _attribute(kind: str, value: Any) -> str:
    if kind == "tensor":
        return f"tensor {words_of(value)}"
    if kind == "type":
        return f"type {number_of(value)}"
    if kind == "shape":
        if value is None:
            return "shape -1"
        return f"shape {len(value)} " + " ".join(str(-1 if s is None else s) for s in value)
    if kind == "ints":
        return f"ints {len(value)} " + " ".join(map(str, value))
    if kind == "string":
        return f"string -{value}"
    return f"{kind} {int(value)}"


def read_results(text: str) -> dict[str, list[Any]]:
    """Return what `ops_cases.cc` printed, by case."""
    found: dict[str, list[Any]] = {}
    runs: list[Any] = []
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "case":
            runs = found.setdefault(rest, [])
        elif kind == "ok":
            runs.append([])
        elif kind == "error":
            runs.append(Refused(rest))
        elif kind == "tensor":
            runs[-1].append(read_tensor(rest.split(" ")))
    return found
