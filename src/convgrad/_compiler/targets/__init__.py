"""What a CPU is: rows of data, best first.

A row says which features the host must have, what LLVM is told, and the few numbers a planner or
a kernel needs. A row is chosen by features, never by a CPU's name: virtual machines report names
that say nothing. The vector width is a number of its own, because LLVM splits vectors that are
wider than the machine's: every width runs on every host, which is how the tests reach the code of
machines they do not have.

Kernels are also compiled ahead of time, for other systems (`systems`) and for devices that never compile anything
(`FOREIGN`). A host is never offered one of the latter.

Nothing here looks at the host; `jit.host` does that and passes in what it found.
"""

from __future__ import annotations

from collections.abc import Collection

from ._row import Register, Target
from .arm import ROWS as _ARM
from .devices import ROWS as FOREIGN
from .systems import SYSTEMS, System
from .x86 import ROWS as _X86

__all__ = [
    "ALL",
    "FOREIGN",
    "SYSTEMS",
    "TARGETS",
    "VECTOR_BITS",
    "Register",
    "System",
    "Target",
    "find",
    "match",
    "runnable",
]

TARGETS: tuple[Target, ...] = (*_X86, *_ARM)
"""The rows of hosts; within one architecture the best first, the one that always runs last."""

ALL: tuple[Target, ...] = (*TARGETS, *FOREIGN)
"""These, and the rows that no host is offered."""

VECTOR_BITS = (128, 256, 512)
"""The widths kernels can be written for."""


def runnable(architecture: str, features: Collection[str]) -> tuple[Target, ...]:
    """Return the rows a host can run, best first.

    >>> [row.name for row in runnable("x86_64", {"sse2", "avx", "avx2", "fma", "f16c"})]
    ['avx2', 'sse2']
    """
    return tuple(
        row for row in TARGETS if row.architecture == architecture and row.needs.issubset(features)
    )


def match(architecture: str, features: Collection[str]) -> Target | None:
    """Return the best row a host can run, or None for an architecture without rows."""
    rows = runnable(architecture, features)
    return rows[0] if rows else None


def find(name: str) -> Target:
    """Return the row called `name`, a host's or a foreign one; ValueError lists the names there are."""
    for row in ALL:
        if row.name == name:
            return row
    names = ", ".join(row.name for row in ALL)
    raise ValueError(f"no target is called {name!r}; there are {names}")
