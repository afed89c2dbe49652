"""`Program`: a plan as plain numbers, ready to run wherever its kernels are: no address, no object of Python.

A program is what leaves the house. `_engine/prepare.py` makes it from a plan and binds it to kernels in this process
(`_runtime.bound`); an exporter writes it down and binds it elsewhere. Nothing here knows convolution, arrays or
threads.

As bytes a program is `MAGIC`, the length of a JSON text in 8 little-endian bytes, that text, and the tables one behind
the other. Equal programs have equal bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

MOST_PLACES = 16
"""Places a program may have: the entry copies their addresses to the stack. Batch norm forwards has ten."""
MEMORY = {"partial": MOST_PLACES, "packed": MOST_PLACES + 1, "places": MOST_PLACES + 2}
"""What a launch's pointers can point to besides the places of its program, by numbers behind those: partial sums, an
operand in another order, and the addresses of all places, for kernels that choose among them."""
MOST_ARGUMENTS = 256
"""Words a kernel may have, table and pointers included: the entry copies them to the stack, where they take 2 KB."""
MAGIC = b"convgrad program 3\n"
_LENGTH = 8


@dataclass(frozen=True)
class Launch:
    """One kernel over its items."""

    kernel: int
    """Which of the program's kernels."""
    places: tuple[int, ...]
    """The kernel's first words: numbers of the program's places, or of `MEMORY`. The address of the table follows if
    there is one."""
    words: tuple[int, ...]
    """The words behind those."""
    items: int
    """Independent pieces of work, in any order, on any number of threads."""
    grain: int
    """How many items a thread takes at a time."""
    scratch_bytes: int
    """Workspace of one thread, besides what the kernel asks for itself."""
    table: bytes = field(default=b"", repr=False)
    """Constant 64-bit numbers the kernel looks up."""
    least: int = 0
    """How few items a thread takes where there are more threads than claims of `grain`; 0: no fewer."""

    @property
    def fewest(self) -> int:
        return self.least or self.grain

    def claim(self, threads: int) -> int:
        """Return how many items each of some threads takes at a time, as the entry does.

        >>> [Launch(0, (), (), 32, 4, 0, least=1).claim(threads) for threads in (2, 8, 16, 64)]
        [4, 4, 2, 1]
        """
        return max(self.fewest, min(self.grain, self.items // threads))


@dataclass(frozen=True)
class Program:
    """Launches in order; each sees all that the one before wrote."""

    kernels: tuple[str, ...]
    """Names of the kernels, each once; the code that binds the program knows them by these."""
    places: tuple[str, ...]
    """Names of the places it runs on: the caller gives their addresses in this order."""
    launches: tuple[Launch, ...]
    partial_bytes: int = 0
    packed_bytes: int = 0
    serial: bool = False
    """Whether the work is too little to share with other threads."""

    def to_bytes(self) -> bytes:
        """Write the program down.

        >>> program = Program(("k",), ("x", "f", "y"), (Launch(0, (0, 1, 2), (3, 4), 5, 1, 64, bytes(16)),))
        >>> Program.from_bytes(program.to_bytes()) == program
        True
        """
        launches = [
            [
                *(each.kernel, each.places, each.words),
                *(each.items, each.grain, each.scratch_bytes, each.least),
            ]
            for each in self.launches
        ]
        sizes = [len(launch.table) for launch in self.launches]
        memory = [self.partial_bytes, self.packed_bytes]
        value = [self.kernels, self.places, launches, sizes, memory, self.serial]
        text = json.dumps(value, separators=(",", ":")).encode()
        tables = b"".join(launch.table for launch in self.launches)
        return MAGIC + len(text).to_bytes(_LENGTH, "little") + text + tables

    @classmethod
    def from_bytes(cls, data: bytes) -> Program:
        """Read what `to_bytes` wrote; ValueError says what is wrong with anything else."""
        start = len(MAGIC) + _LENGTH
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("not a program: it does not begin with its magic line")
        end = start + int.from_bytes(data[len(MAGIC) : start], "little")
        if len(data) < max(start, end):
            raise ValueError(
                f"a program of at least {max(start, end)} bytes was cut to {len(data)}"
            )
        try:
            kernels, places, launches, sizes, memory, serial = json.loads(data[start:end])
            partial, packed = memory
            if type(kernels) is not list or type(places) is not list:
                raise ValueError("kernels and places must be lists")
            found = cls(
                *(tuple(kernels), tuple(places), _launches(launches, sizes, data[end:])),
                *(partial, packed, serial),
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"not a program: its text cannot be read ({error})") from None
        _check(found)
        return found


def _launches(rows: list[list[Any]], sizes: list[int], tables: bytes) -> tuple[Launch, ...]:
    if any(type(size) is not int or size < 0 for size in sizes) or sum(sizes) != len(tables):
        raise ValueError(f"tables of {sizes} bytes, and {len(tables)} bytes of them")
    found, at = [], 0
    for (kernel, places, words, *numbers, least), size in zip(rows, sizes, strict=True):
        items, grain, scratch = numbers
        table = tables[at : at + size]
        found.append(
            Launch(kernel, tuple(places), tuple(words), items, grain, scratch, table, least)
        )
        at += size
    return tuple(found)


def _check(program: Program) -> None:
    """Raise ValueError where a program that was read would make its runner read or write where it must not."""
    if not all(isinstance(name, str) for name in (*program.kernels, *program.places)):
        raise ValueError("not a program: the name of a kernel or a place is not a text")
    if len(program.places) > MOST_PLACES:
        raise ValueError(f"not a program: {len(program.places)} places, more than {MOST_PLACES}")
    if type(program.serial) is not bool:
        raise ValueError("not a program: `serial` is not a truth value")
    memory = (program.partial_bytes, program.packed_bytes)
    if not all(type(value) is int and 0 <= value < 2**63 for value in memory):
        raise ValueError(f"not a program: {memory} are not sizes of memory")
    for number, each in enumerate(program.launches):
        sizes = (each.items, each.grain, each.scratch_bytes, each.kernel, each.least)
        numbers = (*sizes, *each.places, *each.words)
        if not all(type(value) is int and -(2**63) <= value < 2**63 for value in numbers):
            raise ValueError(f"not a program: launch {number} has numbers that do not fit a word")
        if min(sizes) < 0 or each.grain < max(1, each.least) or each.kernel >= len(program.kernels):
            raise ValueError(f"not a program: launch {number} has impossible sizes")
        if len(each.table) % 8:
            raise ValueError(f"not a program: launch {number} has a table that is not whole words")
        known = {*range(len(program.places)), *MEMORY.values()}
        if not known.issuperset(each.places):
            raise ValueError(f"not a program: launch {number} has pointers to nowhere")
        if len(each.places) + len(each.words) >= MOST_ARGUMENTS:
            raise ValueError(f"not a program: launch {number} has too many words")
