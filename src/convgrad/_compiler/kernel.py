"""The two parcels of the compiling end: `KernelSource` goes into `jit`, `Kernel` comes out.

They stand apart so that the code that writes kernels, the code that compiles them and the code
that calls them share nothing but these. Nothing here knows LLVM, files or threads.

Every kernel has one and the same signature::

    void kernel(void *args, int64 begin, int64 end, void *scratch)

`args` is a block of 64-bit words: pointers and run-time geometry, in an order the algorithm
chooses. `[begin, end)` are the work items of this call. `scratch` is the calling thread's own
64-byte aligned workspace of `scratch_bytes`. A kernel keeps nothing between calls and knows no
threads: the caller splits the items. It computes in the default floating-point mode, whatever the calling
thread's is, and leaves that as it found it.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, Literal

Origin = Literal["disk", "text", "llvm"]
"""Found on disk by its key, found there by its text, or compiled."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel as text."""

    symbol: str
    """The function's name; `codegen.names` spells it."""
    ir: str
    """LLVM IR that defines `symbol`, which may call one function of its own (`codegen.fp_mode`), and nothing else."""
    scratch_bytes: int = 0
    """Workspace one thread needs."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as machine code in this process."""

    symbol: str
    address: int
    """Where the function starts; valid as long as somebody holds this object."""
    scratch_bytes: int
    compile_ms: float
    """What LLVM took, 0 when it was not asked."""
    origin: Origin
    """Where the code came from when this process first asked; every later time it was in memory."""
    code: object = field(default=None, repr=False, compare=False)
    """What keeps the code mapped; None where it is never given back."""


_LATER = "later"


def added_field(default: Any) -> Any:
    """Return a field that an identity got later: at its default it is not spelled, and old kernels keep their names.

    A name decides where a kernel lies on disk and what a pack calls it.
    """
    return field(default=default, metadata={_LATER: True})


def identity_fields(identity: Any) -> list[Field[Any]]:
    """Return the fields that tell an identity: all but later ones at their default."""
    found = [each for each in fields(identity) if each.repr]
    return [
        each
        for each in found
        if _LATER not in each.metadata
        or each.default is MISSING
        or getattr(identity, each.name) != each.default
    ]


def spelled(value: object) -> str:
    """Spell an identity as its repr does, fields of fields included, for names that must tell kernels apart.

    Not `repr` itself: a dataclass guards its own against recursion with a set of objects at work, and a signal handler
    that raises at the wrong moment leaves an object in it for good. Its repr is then `...`, and so was that of a second
    kernel; both had one name on disk, and one was run for the other.

    >>> spelled((1, "a", None))
    "(1, 'a', None)"
    """
    if is_dataclass(value) and not isinstance(value, type):
        kept = [each.name for each in identity_fields(value)]
        inner = ", ".join(f"{name}={spelled(getattr(value, name))}" for name in kept)
        return f"{type(value).__qualname__}({inner})"
    if isinstance(value, tuple):
        name = "" if type(value) is tuple else type(value).__qualname__
        return f"{name}({', '.join(map(spelled, value))})"
    return repr(value)
