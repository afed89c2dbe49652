"""The loop's text compiles for every system, without symbols to resolve."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from convgrad._runtime import parfor
from convgrad._runtime.parking import CONTROL, CONTROL_WORDS, Parking

SYSTEMS = [
    ("x86_64-unknown-linux-gnu", "x86_64", Parking.FUTEX),
    ("aarch64-unknown-linux-gnu", "aarch64", Parking.FUTEX),
    ("aarch64-unknown-linux-gnu", "aarch64", Parking.PTHREAD),
    ("arm64-apple-macosx11.0.0", "arm64", Parking.PTHREAD),
    ("x86_64-pc-windows-msvc", "AMD64", Parking.ADDRESS),
    ("powerpc64le-unknown-linux-gnu", "ppc64le", Parking.PTHREAD),
]


@pytest.mark.parametrize(("triple", "machine", "way"), SYSTEMS)
def test_text_needs_no_symbols(triple, machine, way):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    source = parfor.source(machine, way)
    module = llvm.parse_assembly(source.text)
    module.verify()
    defined = {function.name for function in module.functions if not function.is_declaration}
    declared = {function.name for function in module.functions if function.is_declaration}
    assert set(source.symbols) <= defined
    assert all(name.startswith("llvm.") for name in declared)
    module.triple = triple
    target = llvm.Target.from_triple(triple)
    machine_code = target.create_target_machine(opt=2, reloc="pic", codemodel="small")
    calls = {
        line.split()[-1].lstrip("_").rstrip("@PLT")
        for line in machine_code.emit_assembly(module).splitlines()
        if line.split()[:1] in (["callq"], ["bl"]) and not line.split()[-1].startswith(("*", "%"))
    }
    assert calls and calls <= defined, calls - defined
    assert machine_code.emit_object(module)


def test_control_fields_do_not_overlap():
    assert len(set(CONTROL.values())) == len(CONTROL)
    assert max(CONTROL.values()) + 16 <= CONTROL_WORDS
    # A pthread mutex and a condition variable take at most 64 bytes each.
    assert CONTROL["CONDITION"] - CONTROL["MUTEX"] >= 8
