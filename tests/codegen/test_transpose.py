"""Transposes of every width and type."""

from __future__ import annotations

import numpy as np
import pytest

from calling import TARGETS, label, run
from convgrad._compiler.codegen import F32, F64, I32, KernelBuilder, transpose
from convgrad._compiler.jit import llvm
from convgrad._compiler.targets import find


@pytest.mark.parametrize("target", TARGETS, ids=label)
@pytest.mark.parametrize("element", [F32, F64, I32], ids=lambda e: e.short)
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_rows_become_columns(target, element, size):
    dtype = {F32: np.float32, F64: np.float64, I32: np.int32}[element]
    x = np.arange(size * size).astype(dtype).reshape(size, size)
    y = np.zeros_like(x)

    def write(k):
        rows = [k.arg_pointer(0, element).offset(i * size).load(size) for i in range(size)]
        for i, column in enumerate(transpose(rows)):
            k.arg_pointer(1, element).offset(i * size).store(column)

    run(target, write, x, y)
    np.testing.assert_array_equal(y, x.T)


def test_eight_by_eight_costs_24_shuffles():
    k = KernelBuilder("probe", find("avx2"))
    rows = [k.arg_pointer(0, F32).offset(i * 8).load(8) for i in range(8)]
    columns = transpose(rows)
    assert sum("shufflevector" in line for line in k.emitter.body) == 24
    for i, column in enumerate(columns):
        k.arg_pointer(1, F32).offset(i * 8).store(column)
    text = llvm.assembly(k.finish().ir, find("avx2"), triple="x86_64-unknown-linux-gnu")
    names = [line.split()[0] for line in text.splitlines() if line.startswith("\tv")]
    moves = ("vmovups", "vmovaps", "vmovupd", "vmovapd", "vinsertf128", "vzeroupper")
    assert sum(not name.startswith(moves) for name in names) <= 24
