"""The frame around a kernel: the register of every row, and nothing where there is none."""

from __future__ import annotations

import re

import pytest

from convgrad._compiler.codegen import F32, KernelBuilder
from convgrad._compiler.jit import llvm, symbols
from convgrad._compiler.targets import ALL, find

INSTRUCTIONS = {
    "mxcsr": (r"v?stmxcsr", r"v?ldmxcsr"),
    "fpcr": (r"mrs\s+\w+, FPCR", r"msr\s+FPCR, \w+"),
    "fpscr": (r"vmrs\s+\w+, fpscr", r"vmsr\s+fpscr, \w+"),
    "frm": (r"frrm\s", r"fsrmi?\s"),
}
"""By register, what reads it and what writes it."""


def _doubling(target):
    k = KernelBuilder("doubling", target)
    place = k.arg_pointer(0, F32)
    with k.loop(k.begin, k.end) as i:
        value = place.offset(i).load(1)
        place.offset(i).store(value + value)
    return k.finish()


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_the_mode_is_set_before_the_items_and_put_back_behind_them(row):
    text = llvm.assembly(_doubling(row).ir, row, triple=row.triple)
    if row.mode_register is None:
        assert row.architecture == "wasm32" and "doubling.items" not in text
        return
    read, write = INSTRUCTIONS[row.mode_register]
    call = r"(?:call\w*|blx?|jal)\s+\"?doubling\.items"
    found = re.findall(rf"^\s+({read}|{write}|{call})", text, re.MULTILINE)
    kinds = [
        next(i for i, one in enumerate((read, write, call)) if re.match(one, each))
        for each in found
    ]
    assert kinds == [0, 1, 2, 1]


def test_a_kernel_keeps_one_name_in_packs():
    """Its items are named after it, or equal kernels would not be one function."""
    row = find("avx2")
    source = _doubling(row)
    other = type(source)("other", source.ir.replace("@doubling", "@other"), source.scratch_bytes)
    one = symbols.in_pack(source, row, row.triple)
    assert symbols.in_pack(other, row, row.triple) == one
    assert one.ir.count(f"@{one.symbol}.items(") == 2 and "doubling" not in one.ir
