"""The floating-point mode a kernel computes in: always the default one, whatever the caller's is.

Rounding, flushing of subnormal numbers and traps are a register of each thread, and a function computes by what it
finds there. TensorFlow and XLA flush subnormals on their threads, so does PyTorch if asked, and a library built with
-ffast-math does it to the thread that loads it. A kernel called from there would lose subnormals, and one whose items
are shared among threads with different modes would lose other ones at each call.

So the function others call is a frame: it saves the register, sets the default (round to nearest even, keep
subnormals, no traps), calls the function with the items, and puts the register back, flags included: nobody can tell
from the flags that a kernel ran. Everything that runs kernels comes through it: both pools, bridges, packs, tests. The
items are a function of their own because LLVM may move arithmetic across a change of the mode within one function; it
moves none across a call.

The frame takes 8 ns on x86-64 (Zen 4), once per chunk of items.
"""

from __future__ import annotations

from dataclasses import dataclass

from convgrad._compiler.targets import Register

ITEMS = ".items"
"""What the name of the function with the items has behind the kernel's."""

_ARM_MODE = sum(1 << bit for bit in (19, 22, 23, 24, 25, 26))
"""FZ16, RMode, FZ, DN and AHP: the same places in FPCR and FPSCR."""
_ARM_64_MODE = _ARM_MODE | sum(1 << bit for bit in (0, 1, 2, 8, 9, 10, 11, 12, 13, 15))
"""And FIZ, AH, NEP, the traps and EBF. Bits without a meaning here stay as they are."""


@dataclass(frozen=True)
class _Way:
    """The lines for one register."""

    declarations: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


_WAYS: dict[Register, _Way] = {
    "mxcsr": _Way(
        ("declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"),
        (
            "%found = alloca i32, align 4",
            "%usual = alloca i32, align 4",
            "call void @llvm.x86.sse.stmxcsr(ptr %found)",
            f"store i32 {0x1F80}, ptr %usual, align 4",
            "call void @llvm.x86.sse.ldmxcsr(ptr %usual)",
        ),
        ("call void @llvm.x86.sse.ldmxcsr(ptr %found)",),
    ),
    "fpcr": _Way(
        (
            "declare i64 @llvm.aarch64.get.fpcr()",
            "declare i64 @llvm.aarch64.get.fpsr()",
            "declare void @llvm.aarch64.set.fpcr(i64)",
            "declare void @llvm.aarch64.set.fpsr(i64)",
        ),
        (
            "%found = call i64 @llvm.aarch64.get.fpcr()",
            "%flags = call i64 @llvm.aarch64.get.fpsr()",
            f"%usual = and i64 %found, {~_ARM_64_MODE}",
            "call void @llvm.aarch64.set.fpcr(i64 %usual)",
        ),
        (
            "call void @llvm.aarch64.set.fpcr(i64 %found)",
            "call void @llvm.aarch64.set.fpsr(i64 %flags)",
        ),
    ),
    "fpscr": _Way(
        ("declare i32 @llvm.arm.get.fpscr()", "declare void @llvm.arm.set.fpscr(i32)"),
        (
            "%found = call i32 @llvm.arm.get.fpscr()",
            f"%usual = and i32 %found, {~_ARM_MODE}",
            "call void @llvm.arm.set.fpscr(i32 %usual)",
        ),
        ("call void @llvm.arm.set.fpscr(i32 %found)",),
    ),
    # No intrinsic of LLVM's reads RISC-V's flags, and llvmlite has no parser for assembly of other machines.
    "frm": _Way(
        ("declare i32 @llvm.get.rounding()", "declare void @llvm.set.rounding(i32)"),
        ("%found = call i32 @llvm.get.rounding()", "call void @llvm.set.rounding(i32 1)"),
        ("call void @llvm.set.rounding(i32 %found)",),
    ),
}


def framed(symbol: str, register: Register | None) -> tuple[str, list[str]]:
    """Return how the definition of the function with the items begins, and the lines of the frame around it.

    There is no frame where there is no register to set; the items then are the kernel.
    """
    if register is None:
        return f"define void @{symbol}", []
    way = _WAYS[register]
    items = f"@{symbol}{ITEMS}"
    return f"define internal void {items}", [
        f"define void @{symbol}(ptr noalias %args, i64 %begin, i64 %end, ptr noalias %scratch) #0 {{",
        "entry:",
        *(f"  {line}" for line in way.before),
        f"  call void {items}(ptr %args, i64 %begin, i64 %end, ptr %scratch)",
        *(f"  {line}" for line in way.after),
        "  ret void",
        "}",
        *way.declarations,
    ]
