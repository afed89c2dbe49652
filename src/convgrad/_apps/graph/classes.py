"""The classes of `convgrad.graph.ops`, one per row of the table, in the shape of TensorFlow's C++ classes.

`Conv2D(scope, input, filter, strides, padding, attrs)`: inputs and required attributes in TensorFlow's order, then an
`Attrs`. What may be left out can be written in three ways: ``Conv2D.Attrs().DataFormat("NCHW")``, the shorter
``Conv2D.DataFormat("NCHW")``, and as Python does, ``data_format="NCHW"``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from ..._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, shown
from . import dtypes
from .operation import Operation, Output
from .row import Attr, OpRow, canonical
from .scope import Scope, as_output
from .table import TABLE


class Attrs:
    """Attributes that were set; every setter returns a new one, so that a kept one never changes."""

    row: ClassVar[OpRow]

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = values or {}

    def __repr__(self) -> str:
        words = "".join(f".{_setter(self.row, name)}({v!r})" for name, v in self.values.items())
        return f"{self.row.name}.Attrs(){words}"


class Op:
    """A node that was added to a graph. Its outputs are attributes by their names; one output alone stands for it."""

    row: ClassVar[OpRow]
    Attrs: ClassVar[type[Attrs]]
    operation: Operation

    def __init__(self, scope: Scope, *args: Any, **kwargs: Any) -> None:
        if not isinstance(scope, Scope):
            raise ArgumentTypeError(
                f"{self.row.name}: `scope` must be a Scope and come first, got {shown(scope)}."
            )
        try:
            inputs, attrs = _arguments(self.row, self.Attrs, args, kwargs)
        except ConvgradError as error:
            raise scope.refused(self.row, error) from None
        self._bind(scope.add(self.row, inputs, attrs))

    def _bind(self, operation: Operation) -> None:
        self.operation = operation
        for output in operation.outputs:
            setattr(self, output.pin, output)

    @property
    def name(self) -> str:
        return self.operation.name

    def __repr__(self) -> str:
        return repr(self.operation)


class Const(Op):
    """A constant: an array, or nested lists of numbers. Python's floats are float32 and its ints int32."""

    def __init__(self, scope: Scope, value: Any, dtype: Any = None, shape: Any = None) -> None:
        if isinstance(scope, Scope):
            try:
                value = self._array(value, dtype, shape)
            except ConvgradError as error:
                raise scope.refused(self.row, error) from None
        super().__init__(scope, value)

    @staticmethod
    def _array(value: Any, dtype: Any, shape: Any) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the value in the dtype and shape that were asked for."""
        wanted = None if dtype is None else dtypes.read("Const", "dtype", dtype)
        if wanted is not None and isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value).astype(wanted)
        array = dtypes.array("Const", "value", value, wanted)
        if shape is not None:
            sizes = canonical("Const", Attr("shape", "shape"), shape)
            if None in sizes:
                raise ArgumentError(f"Const: `shape` must hold sizes >= 0, got {shown(shape)}.")
            if array.size != 1 and array.shape != sizes:
                raise ArgumentError(
                    f"Const: `value` must be one number or have shape {list(sizes)}, got {list(array.shape)}."
                )
            array = np.broadcast_to(array.reshape(() if array.size == 1 else sizes), sizes)
        return array


class InputList:
    """Several tensors as one argument: ``AddN(scope, InputList([a, b]))``. Lists in it are taken apart."""

    def __init__(self, *given: Any) -> None:
        """Take a list, or a scope and a list as every op does."""
        values = given[1:] if given and isinstance(given[0], Scope) else given
        self.outputs: list[Any] = list(_flat(values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, at: int) -> Any:
        return self.outputs[at]


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple | InputList):
            yield from _flat(value)
        else:
            yield value if (found := as_output(value)) is None else found


def _arguments(
    row: OpRow, kind: type[Attrs], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Sort the arguments of a call into inputs and attributes."""
    inputs = [pin.name for pin in row.inputs]
    names = [*inputs, *(attr.name for attr in row.required)]
    optional = [attr.name for attr in row.optional]
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    rest = list(args[len(names) :])
    attrs: dict[str, Any] = {}
    if rest and row.name == "Placeholder" and not isinstance(rest[0], Attrs):
        attrs["shape"] = rest.pop(0)
    if "attrs" in kwargs:
        rest.append(kwargs.pop("attrs"))
    rest = [each for each in rest if each is not None]
    if len(rest) > 1:
        raise ArgumentTypeError(
            f"{row.name}: takes a scope, {', '.join(names) or 'nothing'} and attrs, "
            f"got {len(args)} arguments behind the scope."
        )
    for each in rest:
        if not isinstance(each, kind):
            raise ArgumentTypeError(
                f"{row.name}: `attrs` must be made by {row.name}.Attrs() or its setters, got {shown(each)}."
            )
        attrs.update(each.values)
    for name, value in kwargs.items():
        if name in given or name in attrs:
            raise ArgumentTypeError(f"{row.name}: `{name}` was given twice.")
        if name in names:
            given[name] = value
        elif name in optional:
            attrs[name] = value
        else:
            known = ", ".join((*names, *optional, "attrs"))
            raise ArgumentTypeError(
                f"{row.name}: there is no argument `{name}` (there are: {known})."
            )
    if missing := [name for name in names if name not in given]:
        raise ArgumentTypeError(f"{row.name}: `{missing[0]}` is missing.")
    attrs.update({attr.name: given[attr.name] for attr in row.required})
    return [given[name] for name in inputs], attrs


def _setter(row: OpRow, name: str) -> str:
    return next(attr.setter for attr in row.optional if attr.name == name)


def _made(row: OpRow) -> type[Op]:
    """Return the class of a row."""
    attrs = type("Attrs", (Attrs,), {"row": row, "__qualname__": f"{row.name}.Attrs"})
    body: dict[str, Any] = {"row": row, "Attrs": attrs, "__module__": "convgrad.graph.ops"}
    for attr in row.optional:
        setattr(attrs, attr.setter, _chained(attr, attrs, row))
        body[attr.setter] = staticmethod(_static(attr, attrs))
    bases = (Const,) if row.name == "Const" else (Op,)
    body["__doc__"] = row.summary
    if row.name == "Const":
        body["__doc__"] = Const.__doc__
    else:
        body["__signature__"] = signature(row)
    return type(row.name, bases, body)


def _chained(attr: Attr, kind: type[Attrs], row: OpRow) -> Callable[..., Attrs]:
    def setter(self: Attrs, value: Any) -> Attrs:
        return kind({**self.values, attr.name: canonical(f"{row.name}.Attrs", attr, value)})

    setter.__name__ = attr.setter
    return setter


def _static(attr: Attr, kind: type[Attrs]) -> Callable[..., Attrs]:
    def setter(value: Any) -> Attrs:
        found: Attrs = getattr(kind(), attr.setter)(value)
        return found

    setter.__name__ = attr.setter
    return setter


def signature(row: OpRow) -> inspect.Signature:
    """Return the arguments of an op's class."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ["scope", *(pin.name for pin in row.inputs), *(attr.name for attr in row.required)]
    found = [inspect.Parameter(name, kind) for name in names]
    if row.name == "Placeholder":
        found.append(inspect.Parameter("shape", kind, default=None))
    if row.optional:
        found.append(inspect.Parameter("attrs", kind, default=None))
        only = inspect.Parameter.KEYWORD_ONLY
        taken = {each.name for each in found}
        found += [
            inspect.Parameter(attr.name, only, default=attr.default)
            for attr in row.optional
            if attr.name not in taken
        ]
    return inspect.Signature(found)


CLASSES: dict[str, type[Op]] = {name: _made(row) for name, row in TABLE.items()}
"""By the op's name."""

__all__ = ["CLASSES", "Attrs", "InputList", "Op", "Output"]
