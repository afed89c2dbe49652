"""A loader for the parallel loop, and kernels that check how they are called."""

from __future__ import annotations

import itertools

import llvmlite.binding as llvm
import numpy as np

from convgrad._runtime import code, threads
from convgrad._runtime.bound import Bound
from convgrad._runtime.program import Launch, Program
from convgrad._runtime.run import try_again
from convgrad._runtime.state import OWN, STATE_BLOCK, State

_keep: list[object] = []
_compiler = None
_serial = itertools.count()


def compile_text(text: str, symbols: tuple[str, ...], name: str) -> dict[str, int]:
    """Compile IR text for this machine; the code stays for good."""
    global _compiler
    if _compiler is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), opt=2, jit=True, reloc="pic", codemodel="small"
        )
        _compiler = llvm.create_lljit_compiler(machine)
    builder = llvm.JITLibraryBuilder().add_ir(
        f'target triple = "{llvm.get_default_triple()}"\n{text}'
    )
    for symbol in symbols:
        builder.export_symbol(symbol)
    library = builder.link(_compiler, f"{name}_{next(_serial)}")
    _keep.append(library)
    return {symbol: library[symbol] for symbol in symbols}


def loader(source) -> dict[str, int]:
    return compile_text(source.text, source.symbols, source.name)


def launch(program: Bound, first: int, count=None, pool=OWN) -> None:
    """Run a program on `count` threads, or as many as the settings say."""
    if count is None:
        count, pool = threads.ready()
    elif count > 1 and pool == OWN and not program.serial:
        threads.pool.ensure(min(count, program.chunks))
    words = code.pack_call[1](program.address, count, pool, first)
    status = code.entry_call()(words)
    if status:
        try_again(program, words, status)


def count_kernel() -> int:
    """Return the address of `COUNT`, compiled once."""
    if not _count:
        _count.append(compile_text(COUNT, ("count",), "count")["count"])
    return _count[0]


_count: list[int] = []

# Words: counters (one i64 per item), pauses per item, faults, longest run seen, calls.
# Adds 1 to the item's counter; a fault is a workspace that changed under the kernel's hands.
COUNT = """
define void @count(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %counters = load ptr, ptr %args, align 8
  %pauses_at = getelementptr i64, ptr %args, i64 1
  %pauses = load i64, ptr %pauses_at, align 8
  %faults_at = getelementptr i64, ptr %args, i64 2
  %faults = load ptr, ptr %faults_at, align 8
  %longest_at = getelementptr i64, ptr %args, i64 3
  %longest = load ptr, ptr %longest_at, align 8
  %calls_at = getelementptr i64, ptr %args, i64 4
  %calls = load ptr, ptr %calls_at, align 8
  %length = sub i64 %end, %begin
  %was = atomicrmw max ptr %longest, i64 %length seq_cst, align 8
  %call = atomicrmw add ptr %calls, i64 1 seq_cst, align 8
  %has_scratch = icmp ne ptr %scratch, null
  br label %item
item:
  %i = phi i64 [ %begin, %entry ], [ %next, %after ]
  %counter = getelementptr i64, ptr %counters, i64 %i
  %old = atomicrmw add ptr %counter, i64 1 seq_cst, align 8
  br i1 %has_scratch, label %mark, label %busy
mark:
  store volatile i64 %i, ptr %scratch, align 8
  br label %busy
busy:
  %n = phi i64 [ 0, %item ], [ 0, %mark ], [ %n1, %busy ]
  %n1 = add i64 %n, 1
  call void asm sideeffect "", "r"(i64 %n1)
  %more = icmp slt i64 %n1, %pauses
  br i1 %more, label %busy, label %check
check:
  br i1 %has_scratch, label %look, label %after
look:
  %mine = load volatile i64, ptr %scratch, align 8
  %spoilt = icmp ne i64 %mine, %i
  br i1 %spoilt, label %fault, label %after
fault:
  %f = atomicrmw add ptr %faults, i64 1 seq_cst, align 8
  br label %after
after:
  %next = add i64 %i, 1
  %go = icmp slt i64 %next, %end
  br i1 %go, label %item, label %done
done:
  ret void
}
"""


class Counting:
    """The counting kernel with its counters; `run` fails unless every item was run exactly once."""

    def __init__(self, most: int = 4096) -> None:
        self.address = count_kernel()
        self.counters = np.zeros(most, np.int64)
        self.marks = np.zeros(3, np.int64)
        mark = self.marks.ctypes.data
        self.pointers = (mark, mark + 8, mark + 16)

    def program(
        self, items, grain=1, scratch_bytes=64, pauses=0, state=STATE_BLOCK, least=0
    ) -> Bound:
        """Return a program that is one launch of the kernel."""
        words = (pauses, *self.pointers)
        launch = Launch(0, (0,), words, items, grain, scratch_bytes, least=least)
        return Bound(
            Program(("count",), ("counters",), (launch,)), [(self.address, 0)], self, state
        )

    def run(
        self,
        items,
        grain=1,
        scratch_bytes=64,
        threads=None,
        pauses=0,
        pool=OWN,
        state: State = STATE_BLOCK,
        least=0,
    ) -> None:
        assert items <= len(self.counters)
        self.counters[:] = 0
        self.marks[:] = 0
        launch(
            self.program(items, grain, scratch_bytes, pauses, state, least),
            self.counters.ctypes.data,
            threads,
            pool,
        )
        assert (self.counters[:items] == 1).all(), self.counters[:items]
        assert not self.counters[items:].any()
        assert self.marks[0] == 0, "two threads shared a workspace"

    @property
    def longest(self) -> int:
        return int(self.marks[1])

    @property
    def calls(self) -> int:
        return int(self.marks[2])
