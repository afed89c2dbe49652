"""Nodes of graphs: the settings of a kernel, read once from the attributes TensorFlow has for it.

Each different combination of operation, dtype and settings is a row. A kernel is the number of its row: TensorFlow asks
for an address and never looks at what is there.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

from .. import _arguments
from .._dtypes import BFLOAT16, DOUBLE, FLOAT, HALF, INT32, DType
from .._errors import ArgumentError, shown
from .._norm import call as norm_call
from .._norm.call import Call as NormCall
from .._problem import Call, Settings
from .capi import Library

NUMBERS: dict[DType, int] = {FLOAT: 1, DOUBLE: 2, INT32: 3, BFLOAT16: 14, HALF: 19}
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
    """Which inputs the op has: a row of `kernel.FORMS`."""


@dataclass(frozen=True)
class PassNode:
    """All that a node of batch norm says about its calls: a call, whose sizes are not known yet."""

    call: NormCall


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
        settings = _arguments.settings(
            *(call.function, _arguments.RAW, self._ints("strides"), self._text("padding")),
            *(self._text("data_format"), self._ints("dilations")),
            self._ints("explicit_paddings") if self._has("explicit_paddings") else [],
        )
        dtype = _DTYPES.get(number.value)
        if dtype is None:
            raise ArgumentError(
                f"{call.function}: `T` must be one of {', '.join(row.name for row in NUMBERS)}, "
                f"got TensorFlow's dtype {number.value}."
            )
        return Node(call, settings, dtype, form)

    def pass_node(self) -> PassNode:
        """Return what the attributes of a node of batch norm say, or raise what is wrong with them."""
        call = norm_call.read(self._text("call", _LONGEST_CALL))
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
