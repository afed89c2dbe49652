"""Nodes of graphs: the settings of a kernel, read once from the attributes TensorFlow has for it.

Each different combination of operation, dtype and settings is a row. A kernel is the number of its row: TensorFlow asks
for an address and never looks at what is there.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

from ..._base.dtypes import DTYPES, DType, accumulator
from ..._base.errors import ArgumentError, shown
from ..._problem import arguments
from ..._problem.convolution import Call, Settings
from ..._problem.norm import normalisation
from ..._problem.norm.normalisation import Normalisation
from . import fusions
from .capi import Library
from .fusions import FusedOps
from .kernel import FUSED_FORMS, MOST_INPUTS

NUMBERS: dict[DType, int] = {row: row.tensorflow for row in DTYPES}
"""What TensorFlow's C interface calls a dtype."""
_DTYPES = {number: row for row, number in NUMBERS.items()}
_LONGEST = 64
"""Of texts and lists that are read; TensorFlow's are shorter, and so is what its checks let through."""


_LONGEST_CALL = 400
"""Of a call of batch norm as text."""


@dataclass(frozen=True)
class Node:
    """All that a node says about its calls."""

    call: Call
    settings: Settings
    dtype: DType
    form: str
    """Which inputs the op has: a row of `kernel.FORMS`, or one of `kernel.FUSED_FORMS`."""
    fused: FusedOps | None = None
    """What else it computes, if it has one of those."""


@dataclass(frozen=True)
class PassNode:
    """All that a node of batch norm says about its calls: a call, whose sizes are not known yet."""

    call: Normalisation


class Nodes:
    """Rows, each once; they are never forgotten, as a graph may be run at any time."""

    def __init__(self) -> None:
        self._rows: list[Node | PassNode] = []
        self._numbers: dict[Node | PassNode, int] = {}
        self._lock = threading.Lock()

    def number(self, node: Node | PassNode) -> int:
        """Return the number of a row, which begin at 1: 0 would be no address."""
        with self._lock:
            found = self._numbers.get(node)
            if found is None:
                self._rows.append(node)
                found = self._numbers[node] = len(self._rows)
            return found

    def row(self, number: int) -> Node | PassNode:
        return self._rows[number - 1]


class Attributes:
    """The attributes of the node a kernel is created for."""

    def __init__(self, library: Library, construction: int) -> None:
        self._library, self._construction = library, construction

    def node(self, call: Call, form: str) -> Node:
        """Return what the attributes say, or raise what is wrong with them."""
        number = ctypes.c_int()
        self._get("Type", "T", ctypes.byref(number))
        settings = arguments.settings(
            *(call.function, arguments.RAW, self._ints("strides"), self._text("padding")),
            *(self._text("data_format"), self._ints("dilations")),
            self._ints("explicit_paddings") if self._has("explicit_paddings") else [],
        )
        dtype = _DTYPES.get(number.value)
        if dtype is None:
            raise ArgumentError(
                f"{call.function}: `T` must be one of {', '.join(row.name for row in NUMBERS)}, "
                f"got TensorFlow's dtype {number.value}."
            )
        fused = self._fused(call, dtype, form) if form in FUSED_FORMS else None
        return Node(call, settings, dtype, form, fused)

    def _fused(self, call: Call, dtype: DType, form: str) -> FusedOps:
        """Return what is fused with a convolution, all of whose inputs have dtypes and an order that are known."""
        found = fusions.read(
            *(call.function, self._texts("fused_ops")),
            *(self._float("epsilon"), self._float("leakyrelu_alpha")),
        )
        args, pads = found.inputs - 2, form == "fused_padded"
        number = ctypes.c_int64()
        self._get("Int64", "num_args", ctypes.byref(number))
        wanted = NUMBERS[dtype if found.rows == fusions.NONE else accumulator(dtype)]
        types = self._types("TArgs") if self._has("TArgs") else [NUMBERS[dtype]] * args
        order = self._text("filter_format") if self._has("filter_format") else "HWIO"
        more = ctypes.c_int64()
        if self._has("num_host_args"):
            self._get("Int64", "num_host_args", ctypes.byref(more))
        if (
            (number.value, types, order, more.value) != (args, [wanted] * args, "HWIO", 0)
            or found.inputs + pads > MOST_INPUTS
            or (pads and args > 1)
        ):
            raise ArgumentError(
                f"{call.function}: fused with {', '.join(self._texts('fused_ops'))} it must have {args} arguments of "
                f"TensorFlow's dtype {wanted} and a filter in HWIO, got {number.value} of dtypes {types}, {order}, and "
                f"{more.value} more; {fusions.HELP}."
            )
        return found

    def pass_node(self) -> PassNode:
        """Return what the attributes of a node of batch norm say, or raise what is wrong with them."""
        call = normalisation.read(self._text("call", _LONGEST_CALL))
        inputs = call.operands
        if call.given is not None and not call.task.name.startswith("forward"):
            inputs += call.rows  # which are not read (`passes`)
        for name, places in (("Tin", inputs), ("Tout", call.results)):
            wanted = [NUMBERS[call.dtype(place)] for place in places]
            if self._types(name) != wanted:
                raise ArgumentError(
                    f"batch_norm_act: attribute `{name}` must be {wanted} (TensorFlow's dtypes of "
                    f"{', '.join(places)}), got {self._types(name)}."
                )
        return PassNode(call)

    def _types(self, name: str) -> list[int]:
        count, _ = self._size(name)
        values = (ctypes.c_int * max(count, 1))()
        if count > 0:
            self._get("TypeList", name, values, count)
        return list(values[: max(count, 0)])

    def _has(self, name: str) -> bool:
        with self._library.status() as status:
            return bool(
                self._library.OpKernelConstruction_HasAttr(
                    self._construction, name.encode(), status
                )
            )

    def _get(self, kind: str, name: str, *to: Any) -> None:
        get = getattr(self._library, f"OpKernelConstruction_GetAttr{kind}")
        with self._library.status() as status:
            get(self._construction, name.encode(), *to, status)
            self._library.check(status, f"a question for the attribute {name}")

    def _size(self, name: str, longest: int = _LONGEST) -> tuple[int, int]:
        items, total = ctypes.c_int32(), ctypes.c_int32()
        self._get("Size", name, ctypes.byref(items), ctypes.byref(total))
        size = max(items.value, total.value)
        if size > longest:
            raise ArgumentError(f"attribute `{name}` must be short, got {shown(size)} items.")
        return items.value, total.value

    def _float(self, name: str) -> float:
        value = ctypes.c_float()
        self._get("Float", name, ctypes.byref(value))
        return float(value.value)

    def _texts(self, name: str) -> list[str]:
        count, total = self._size(name, _LONGEST_CALL)
        if count < 1:
            return []
        values, lengths = (ctypes.c_void_p * count)(), (ctypes.c_size_t * count)()
        storage = ctypes.create_string_buffer(total + 1)
        self._get("StringList", name, values, lengths, count, storage, total)
        pairs = zip(values, lengths, strict=True)
        return [ctypes.string_at(at, length).decode(errors="replace") for at, length in pairs if at]

    def _ints(self, name: str) -> list[int]:
        count, _ = self._size(name)
        values = (ctypes.c_int64 * max(count, 1))()
        if count > 0:
            self._get("Int64List", name, values, count)
        return list(values[: max(count, 0)])

    def _text(self, name: str, longest: int = _LONGEST) -> str:
        _, length = self._size(name, longest)
        buffer = ctypes.create_string_buffer(length + 1)
        self._get("String", name, buffer, length)
        return buffer.raw[:length].decode(errors="replace")
