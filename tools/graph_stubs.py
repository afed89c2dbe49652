"""Write the types of `convgrad.graph.ops`, whose classes are made from the table of ops when it is imported.

    python tools/graph_stubs.py [--check]

`--check` writes nothing and fails if the file is not what the table says.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from convgrad._apps.graph.row import Attr, OpRow
from convgrad._apps.graph.table import TABLE

STUBS = Path(__file__).resolve().parents[1] / "src" / "convgrad" / "graph" / "ops.pyi"

HEAD = '''\
"""Types of the ops. Written by tools/graph_stubs.py from the table of ops: change the table, not this file."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._apps.graph.classes import Attrs as _Attrs
from .._apps.graph.classes import InputList as InputList
from .._apps.graph.classes import Op as _Op
from .._apps.graph.operation import Operation, Output
from .._apps.graph.scope import Scope

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]] | np.generic
_Tensor: TypeAlias = Output | Operation | _Op | _Array | float | Sequence[Any]
_Tensors: TypeAlias = InputList | Sequence[_Tensor]
_Ints: TypeAlias = Sequence[int] | np.ndarray[Any, np.dtype[Any]]
_Shape: TypeAlias = Sequence[int | None] | np.ndarray[Any, np.dtype[Any]] | int | None
_Dtype: TypeAlias = str | type | np.dtype[Any]
'''

TYPES = {
    "bool": "bool",
    "float": "float",
    "int": "int",
    "ints": "_Ints",
    "shape": "_Shape",
    "string": "str",
    "tensor": "_Array | float | Sequence[Any]",
    "type": "_Dtype",
}
"""What an attribute of each kind may be given."""

CONST = (
    "value: _Array | float | Sequence[Any]",
    "dtype: _Dtype | None = None",
    "shape: _Shape = None",
)
"""The one class with a signature of its own."""


def arguments(row: OpRow) -> list[str]:
    """Return the arguments behind the scope."""
    if row.name == "Const":
        return list(CONST)
    found = [f"{pin.name}: {'_Tensors' if pin.many else '_Tensor'}" for pin in row.inputs]
    found += [f"{attr.name}: {TYPES[attr.kind]}" for attr in row.required]
    optional = row.optional
    if row.name == "Placeholder":
        found.append("shape: _Shape | Placeholder.Attrs = None")
        optional = ()
    if row.optional:
        found.append(f"attrs: {row.name}.Attrs | None = None")
    if optional:
        found.append("*")
        found += [f"{attr.name}: {TYPES[attr.kind]} = {_default(attr)}" for attr in optional]
    return found


def _default(attr: Attr) -> str:
    if isinstance(attr.default, str):
        return json.dumps(attr.default)
    return repr(attr.default) if isinstance(attr.default, int) else "..."


def stub(row: OpRow) -> str:
    """Return the class of a row."""
    lines = [f"class {row.name}(_Op):"]
    lines += [f"    {name}: Output" for name in row.outputs]
    if row.optional:
        lines.append("    class Attrs(_Attrs):")
        for attr in row.optional:
            lines.append(
                f"        def {attr.setter}(self, value: {TYPES[attr.kind]}) -> {row.name}.Attrs: ..."
            )
        lines.append("")
        for attr in row.optional:
            lines.append("    @staticmethod")
            lines.append(
                f"    def {attr.setter}(value: {TYPES[attr.kind]}) -> {row.name}.Attrs: ..."
            )
    lines.append("    def __init__(")
    lines += [f"        {each}," for each in ("self", "scope: Scope", *arguments(row))]
    lines.append("    ) -> None: ...")
    return "\n".join(lines) + "\n"


def text() -> str:
    """Return the whole file."""
    return "\n".join([HEAD, *(stub(row) for row in TABLE.values())])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if it would change"
    )
    options = parser.parse_args(arguments)
    wanted = text()
    if options.check:
        if not STUBS.exists() or STUBS.read_text(encoding="utf-8") != wanted:
            print(
                f"{STUBS.name} is not what the table says: run python tools/graph_stubs.py",
                file=sys.stderr,
            )
            return 1
        return 0
    STUBS.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
