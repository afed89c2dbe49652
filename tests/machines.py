"""Machines that plans are looked at for, and that kernels can be run as: a CPU row and the sizes of its caches.

A plan is data, so a test of plans asks for a `machine` and runs for all of these on any machine. Kernels run
here or not at all: `pytest --machine server tests/numeric` computes with the vectors and caches of that machine, by the
switches, and with this one's instructions: LLVM splits vectors that are too wide.
"""

from __future__ import annotations

from typing import NamedTuple

from convgrad._base import config
from convgrad._compiler import jit
from convgrad._compiler.targets import Target, find


class Machine(NamedTuple):
    row: str
    caches: str
    """As in CONVGRAD_CPU_CACHES."""

    @property
    def target(self) -> Target:
        """The row with these caches, for plans."""
        return find(self.row).with_caches(*config.read_caches(self.caches))

    @property
    def variables(self) -> dict[str, str]:
        """What makes a process compute as this machine would, as far as this one can."""
        return {
            "CONVGRAD_VECTOR_BITS": str(self.target.vector_bits),
            "CONVGRAD_CPU_CACHES": self.caches,
        }


MACHINES = {
    "zen3": Machine("avx2", "32K,512K,32M"),
    "desktop": Machine("avx2", "48K,2M,30M"),
    "server": Machine("avx512", "48K,2M,32M"),
    "small": Machine("sse2", "32K,256K,2M"),
}
"""Zen 3, on which plans were tuned; Intel's desktops and servers, whose second caches are large; and one whose caches
are small."""


def targets() -> dict[str, Target]:
    """Return what plans are looked at for: what this process computes for, also with `--machine`, and these."""
    here = jit.host_target()
    return {"host": here} | {
        name: machine.target for name, machine in MACHINES.items() if machine.target != here
    }
