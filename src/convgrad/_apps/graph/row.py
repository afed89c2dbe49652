"""What one row of the op table says: signature, dtype rule, shape rule, compute, gradient.

Everything else reads these rows: the classes of `convgrad.graph.ops`, sessions, gradients, pages and exported sources.
A new op is a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..._base.errors import ArgumentError, ArgumentTypeError, DTypeError, shown
from . import dtypes
from .dtypes import Dtype
from .spec import Sizes, Spec

if TYPE_CHECKING:
    from .operation import Operation, Output
    from .scope import Scope

AttrKind = Literal["bool", "float", "int", "ints", "shape", "string", "tensor", "type"]
Attrs: TypeAlias = Mapping[str, Any]
"""Attributes by name, in canonical form: ints are tuples, types NumPy dtypes, tensors arrays nobody writes to."""
Arrays: TypeAlias = "Sequence[np.ndarray[Any, np.dtype[Any]]]"
Kernel: TypeAlias = Callable[..., Any]
"""Takes the inputs as arrays and returns the output, or a tuple of several."""


@dataclass(frozen=True)
class Pin:
    """One input."""

    name: str
    allowed: frozenset[Dtype] = dtypes.ANY
    same: str = ""
    """Inputs with the same letter have the same dtype; a Python number takes that of an array beside it."""
    many: bool = False
    """Whether it takes a list of tensors; only the last input may."""
    ref: bool = False
    """Whether it must be a Variable, or what updates one."""


@dataclass(frozen=True)
class Attr:
    """One attribute: required ones are arguments behind the inputs, the others setters of `Attrs`."""

    name: str
    kind: AttrKind
    default: Any = None
    words: tuple[str, ...] = ()
    """The only values allowed, if any are listed."""

    @property
    def setter(self) -> str:
        """The name in C++: `data_format` is set by `DataFormat`.

        >>> Attr("use_cudnn_on_gpu", "bool").setter
        'UseCudnnOnGpu'
        """
        return "".join(part[:1].upper() + part[1:] for part in self.name.split("_"))


@dataclass(frozen=True)
class NodeCall:
    """What a shape rule sees of a node: attributes, and the inputs as far as they are known."""

    row: OpRow
    attrs: Attrs
    inputs: tuple[Spec, ...]

    def __getitem__(self, name: str) -> Spec:
        """Return an input by its name."""
        return self.inputs[self.row.pin_at(name)]

    def refuse(self, rule: str, got: Any) -> ArgumentError:
        """Return the error that says which rule is broken; the node's name is added by code that knows it."""
        return ArgumentError(
            f"{self.row.name}: {rule}, got {got if isinstance(got, str) else shown(got)}."
        )


Infer: TypeAlias = Callable[[NodeCall], "Sequence[Spec]"]
Gradient: TypeAlias = (
    "Callable[[Scope, Operation, Sequence[Output | None]], Sequence[Output | None]]"
)


def no_gradient(
    scope: Scope, node: Operation, grads: Sequence[Output | None]
) -> Sequence[Output | None]:
    """Say that no output depends smoothly on any input."""
    return [None] * len(node.inputs)


@dataclass(frozen=True, eq=False)
class OpRow:
    """One op."""

    name: str
    """TensorFlow's name of the C++ class."""
    summary: str
    inputs: tuple[Pin, ...]
    outputs: tuple[str, ...]
    infer: Infer
    compute: Callable[[Operation], Kernel] | None
    """Makes the kernel of a node; None for what the session itself provides (Placeholder, Variable)."""
    gradient: Gradient | None = None
    """Gradients of the inputs; None if the op must not be differentiated through."""
    required: tuple[Attr, ...] = ()
    optional: tuple[Attr, ...] = ()
    elementwise: bool = False
    """Whether the kernel takes `out=` and may be given one of its inputs for it."""
    alias: bool = False
    """Whether the output may be the memory of the first input."""
    updates: bool = False
    """Whether the output is the new value of the Variable that is the first input."""
    internal: bool = False
    """Whether it only occurs in gradients; TensorFlow keeps such ops in `ops::internal`."""
    eager: bool = False
    """Whether it is run as soon as it can be: it needs no more than its input's shape."""
    _pins: dict[str, int] = field(init=False, repr=False)

    plain: bool = field(init=False, repr=False)
    """Whether every input is one tensor, and any may be."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pins", {pin.name: at for at, pin in enumerate(self.inputs)})
        plain = not any(pin.many or pin.ref for pin in self.inputs)
        object.__setattr__(self, "plain", plain)

    def pin_at(self, name: str) -> int:
        return self._pins[name]

    @property
    def attrs(self) -> tuple[Attr, ...]:
        return (*self.required, *self.optional)

    def pin_of(self, at: int) -> Pin:
        """Return the pin an input belongs to; those of a list share the last."""
        return self.inputs[min(at, len(self.inputs) - 1)]

    def check_allowed(self, pin: Pin, dtype: Dtype) -> None:
        """Refuse a dtype that an input does not take."""
        if dtype not in pin.allowed:
            raise DTypeError(
                f"{self.name}: `{pin.name}` must be one of {dtypes.listed(pin.allowed)}, got {dtype.name}."
            )

    def check_dtypes(self, specs: Sequence[Spec]) -> None:
        """Refuse dtypes the op does not take, and inputs that must agree and do not."""
        seen: dict[str, tuple[str, Dtype]] = {}
        for at, spec in enumerate(specs):
            pin = self.pin_of(at)
            self.check_allowed(pin, spec.dtype)
            if pin.same:
                first, dtype = seen.setdefault(pin.same, (pin.name, spec.dtype))
                if dtype != spec.dtype:
                    raise DTypeError(
                        f"{self.name}: `{first}` and `{pin.name}` must have the same dtype, "
                        f"got {dtype.name} and {spec.dtype.name}."
                    )


def canonical(function: str, attr: Attr, value: Any) -> Any:
    """Return an attribute's value in the one form the table works with, or raise an error that names it."""
    kind, name = attr.kind, attr.name
    if kind == "type":
        return dtypes.read(function, name, value)
    if kind == "tensor":
        return _frozen(dtypes.array(function, name, value, None))
    if kind == "shape":
        return _shape(function, name, value)
    if kind == "ints":
        return _ints(function, name, value)
    if kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise ArgumentTypeError(
                f"{function}: `{name}` must be True or False, got {shown(value)}."
            )
        return bool(value)
    if kind == "int":
        return _int(function, name, value)
    if kind == "float":
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ArgumentTypeError(f"{function}: `{name}` must be a number, got {shown(value)}.")
        return float(value)
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{function}: `{name}` must be a string, got {shown(value)}.")
    if attr.words and value not in attr.words:
        wanted = " or ".join(map(repr, attr.words))
        raise ArgumentError(f"{function}: `{name}` must be {wanted}, got {shown(value)}.")
    return str(value)


def _frozen(
    array: np.ndarray[Any, np.dtype[Any]],
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a copy nobody writes to: what a graph is built from must not change under it."""
    own = np.array(array, order="C", copy=True)
    own.flags.writeable = False
    return own


def _int(function: str, name: str, value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"{function}: `{name}` must be an integer, got {shown(value)}.")
    if not -(2**63) <= int(value) < 2**63:
        raise ArgumentError(f"{function}: `{name}` must fit 64 bits, got {shown(value)}.")
    return int(value)


def _ints(function: str, name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(
            f"{function}: `{name}` must be a list of integers, got {shown(value)}."
        )
    return tuple(_int(function, name, each) for each in value)


def _shape(function: str, name: str, value: Any) -> Sizes | None:
    """None is a shape of unknown rank; None and -1 in a list are unknown sizes."""
    if value is None:
        return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = (value,)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(
            f"{function}: `{name}` must be a list of sizes, got {shown(value)}."
        )
    sizes = tuple(None if each is None else _int(function, name, each) for each in value)
    found = tuple(None if each == -1 else each for each in sizes)
    if any(each is not None and each < 0 for each in found):
        raise ArgumentError(
            f"{function}: `{name}` must hold sizes >= 0, or -1 or None for an unknown one, got {shown(value)}."
        )
    return found
