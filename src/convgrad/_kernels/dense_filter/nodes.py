"""Units as leaves of a binary tree: which sums of whole nodes a unit's sums are added to, and where they wait then.

A node of level l is 2^l units from a multiple of 2^l on. A unit whose number ends with l ones ends nodes of the levels
up to l, so it takes in their first halves, and what comes out waits for its own other half. The last unit of a slice
takes in all that waits, from the lowest level on: a node without a right half is its left half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._compiler.codegen import Bool, Int, KernelBuilder, Pointer, Variable, Vector
from ..shared.reduce import carries

LEVELS = 32
"""Of a tree, at most."""


@dataclass(frozen=True)
class Leaf:
    """What becomes of the sums of a unit."""

    taken: Int
    """How many levels it takes in."""
    level: Int
    """Where the sum waits, unless it is the last one."""
    last: Bool


@dataclass(frozen=True)
class Nodes:
    """Writes the tree into a kernel."""

    k: KernelBuilder
    levels: Pointer
    """Memory for the numbers of the levels to take in."""

    def start(self, unit: Int, last: Bool) -> Leaf:
        """Find out what a unit of a slice, the first being 0, takes in."""
        k = self.k
        level = carries(k, unit)
        ones = unit & (unit ^ (unit + 1))
        rest, taken = k.variable(k.select(last, unit, ones)), k.variable(k.i64(0))
        top = k.select(last, k.i64(LEVELS), level)
        with k.loop(0, top, carry=[rest, taken]) as number:
            # What is not taken in is written over by the next that is.
            self.levels.offset(taken.value).store_int(number)
            taken.value = taken.value + (rest.value & 1)
            rest.value = rest.value >> 1
        return Leaf(taken.value, level, last)

    def add(self, sums: Sequence[Variable[Vector]], at: Pointer, pitch: Int, leaf: Leaf) -> None:
        """Take in what waits at an address, levels `pitch` apart."""
        k = self.k
        with k.loop(0, leaf.taken, carry=sums) as number:
            place = at.offset(self.levels.offset(number).load_int() * pitch)
            for each in sums:
                each.value = place.load(each.value.lanes) + each.value
                place = place.offset(each.value.lanes)

    def keep(self, sums: Sequence[Variable[Vector]], at: Pointer, pitch: Int, leaf: Leaf) -> None:
        """Let sums wait for their other half."""
        place = at.offset(leaf.level * pitch)
        for each in sums:
            place.store(each.value)
            place = place.offset(each.value.lanes)
