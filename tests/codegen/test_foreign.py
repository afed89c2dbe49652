"""Objects for CPUs this machine is not: LLVM accepts them, and they call nothing."""

from __future__ import annotations

import re

import pytest

from convgrad._base.errors import CompileError
from convgrad._compiler.codegen import BF16, F16, F32, F64, I32, KernelBuilder, transpose
from convgrad._compiler.jit import elf, llvm
from convgrad._compiler.targets import TARGETS, VECTOR_BITS, find

TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
ALL = [row.with_vector_bits(bits) for row in TARGETS for bits in VECTOR_BITS]


def _everything(target):
    """Write a kernel that uses every operation LLVM might turn into a library call."""
    k = KernelBuilder("probe", target)
    for element in (F32, F64, I32, F16, BF16):
        lanes = target.lanes(max(4, element.size))
        x = k.arg_pointer(0, element)
        y = k.arg_pointer(1, element)
        total = k.variable(x.load(lanes))
        with k.loop(k.begin, k.end, carry=[total]) as i:
            total.value = k.fma(x.offset(i).load(lanes), x.broadcast(lanes), total.value)
        y.store(total.value)
        n = k.arg_i64(2)
        y.offset(n).store(x.load(lanes, count=n), count=n)
        y.offset(99).store(x.load(lanes, count=lanes - 1), count=lanes - 1)
        y.offset(n % 17 + n // 3).store(total.value.sum())
        y.prefetch()
    rows = [k.arg_pointer(0, F32).offset(8 * i).load(8) for i in range(8)]
    for i, column in enumerate(transpose(rows)):
        k.arg_pointer(1, F32).offset(8 * i).store(column)
    for case in k.cases(k.arg_i64(3), range(8)):
        value = k.constant(F32, 4, 1.5 + case) + k.arg_pointer(0, F32).load(4)
        k.arg_pointer(1, F32).offset(case * case).store(value)
    return k.finish()


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.label)
def test_objects_need_no_linker(target):
    code = llvm.compile_object(_everything(target).ir, target, triple=TRIPLES[target.architecture])
    image = elf._Image(code)
    assert image.entry("probe") % 16 == 0
    image.relocate(1 << 40)  # raises Unsupported for calls and unknown relocations


def test_a_row_uses_its_registers():
    def text(name):
        target = find(name)
        return llvm.assembly(_everything(target).ir, target, triple=TRIPLES[target.architecture])

    assert re.search(r"vfmadd\w+\s.*%zmm", text("avx512"))
    avx2 = text("avx2")
    assert re.search(r"vfmadd\w+\s.*%ymm", avx2) and "zmm" not in avx2
    assert "vcvtph2ps" in avx2 and "vcvtps2ph" in avx2
    sse2 = text("sse2")
    assert "mulps" in sse2 and not re.search(r"\bv[a-z]+ps\b|ymm", sse2)
    assert re.findall(r"call\w*\s+(\S+)", sse2) == ["probe.items"]  # no half-float library
    assert re.search(r"fmla\s+v\d+\.4s", text("neon"))


def test_broken_ir_is_a_compile_error():
    with pytest.raises(CompileError, match=r"LLVM refused a kernel: .*parsing error"):
        llvm.compile_object("define nonsense", find("sse2"))
    undominated = (
        "define void @f(i1 %c) {\n br i1 %c, label %a, label %b\n"
        "a:\n %x = add i64 1, 2\n br label %b\nb:\n %y = add i64 %x, 1\n ret void\n}\n"
    )
    with pytest.raises(CompileError, match="dominate"):
        llvm.compile_object(undominated, find("sse2"))
