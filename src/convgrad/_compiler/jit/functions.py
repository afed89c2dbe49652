"""Functions that are not kernels, as one kernel: it writes their addresses to its words.

The entry, the parallel loop and the handlers of bridges come as text, with symbols to be found. This adds the text
that finds them, so it is hashed with all that writes kernels (`key`).
"""

from __future__ import annotations

from typing import Protocol

from convgrad._compiler.kernel import KernelSource


class Functions(Protocol):
    """A text of LLVM IR with functions to be found by name.

    The text is part of what its kernel is called: the fields of a class of this kind say all of it.
    """

    @property
    def name(self) -> str: ...

    @property
    def symbols(self) -> tuple[str, ...]: ...

    @property
    def text(self) -> str: ...


def address_table(source: Functions) -> KernelSource:
    """Return functions as a kernel that writes their addresses to its words.

    They are local to the object (`dso_local`), so that it needs no table of imports to be loaded.
    """
    symbol = f"{source.name}_table"
    stores = "".join(
        f"  %at{i} = getelementptr i64, ptr %args, i64 {i}\n  store ptr @{name}, ptr %at{i}, align 8\n"
        for i, name in enumerate(source.symbols)
    )
    writes = f"define void @{symbol}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{\n{stores}  ret void\n}}\n"
    text = source.text
    for name in source.symbols:
        for kind in ("void", "i64"):
            text = text.replace(f"define {kind} @{name}(", f"define dso_local {kind} @{name}(")
    return KernelSource(symbol, text + writes)
