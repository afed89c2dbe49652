"""The shape of a row. Apart from the tables so that they can import it without a cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from .systems import SYSTEMS, System

Register = Literal["mxcsr", "fpcr", "fpscr", "frm"]
"""Where a thread keeps how it rounds and whether it flushes subnormal numbers to zero; `codegen.fp_mode` sets them.
RISC-V's `frm` is the rounding alone: it has no flushing and no traps."""


@dataclass(frozen=True)
class Target:
    """One kind of CPU."""

    name: str
    """Short, as it stands in kernel symbols."""
    architecture: str
    """A row of `systems`, and the first part of a triple: x86_64, aarch64, wasm32, thumbv7em or riscv64."""
    needs: frozenset[str]
    """Features the host must report, in the words of Linux and LLVM, which agree on these."""
    cpu: str
    """LLVM's CPU name: the baseline of the architecture, so that only `features` add to it."""
    features: str
    """LLVM's feature string."""
    vector_bits: int
    vector_registers: int
    has_fma: bool
    """Fused multiply-add in hardware; without it a product is rounded before the sum."""
    has_half: bool
    """float16 to float32 and back in hardware; without it integer code does the same."""
    mode_register: Register | None
    """Register of the floating-point mode; None where there is none, because there is one mode only."""
    has_double: bool = True
    """float64 in hardware; without it each operation is a call of the compiler's library, which fuses nothing."""
    l1_bytes: int = 32 << 10
    """Level-one data cache of one core. These three are usual sizes until the host says better."""
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept, because every call of every operation looks something up by target."""
        return hash((self.name, self.vector_bits, self.l1_bytes, self.l2_bytes, self.l3_bytes))

    def with_vector_bits(self, bits: int) -> Target:
        """Return this CPU seen through vectors of another width."""
        assert bits in (128, 256, 512), bits
        return replace(self, vector_bits=bits)

    def with_caches(self, l1: int | None, l2: int | None, l3: int | None) -> Target:
        """Return this CPU with measured cache sizes; None keeps the row's."""
        return replace(
            self,
            l1_bytes=l1 or self.l1_bytes,
            l2_bytes=l2 or self.l2_bytes,
            l3_bytes=l3 or self.l3_bytes,
        )

    def lanes(self, itemsize: int) -> int:
        """Return how many elements of `itemsize` bytes one vector holds."""
        return self.vector_bits // 8 // itemsize

    def fuses(self, itemsize: int) -> bool:
        """Return whether a product of floats of `itemsize` bytes and a sum are rounded once."""
        return self.has_fma and (itemsize != 8 or self.has_double)

    @property
    def systems(self) -> tuple[System, ...]:
        """The systems objects can be made for, the default first."""
        return SYSTEMS[self.architecture]

    @property
    def triple(self) -> str:
        """The default system's: Linux's for hosts."""
        return self.systems[0].triple

    def system_called(self, name: str | None = None) -> System:
        """Return the system called `name`, or the default one; ValueError lists those there are."""
        for system in self.systems:
            if name in (None, system.name):
                return system
        names = ", ".join(system.name for system in self.systems)
        raise ValueError(f"the target {self.name} has no system called {name!r}; there are {names}")

    def system_of(self, triple: str) -> System:
        """Return the system with a triple; ValueError lists those there are."""
        for system in self.systems:
            if system.triple == triple:
                return system
        triples = ", ".join(system.triple for system in self.systems)
        raise ValueError(f"the target {self.name} has no triple {triple!r}; there are {triples}")

    @property
    def label(self) -> str:
        """The name for symbols: the width shows where it is not the row's own."""
        return f"{self.name}v{self.vector_bits}"
