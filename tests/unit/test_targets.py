"""Rows are chosen by features, and the switches can choose another one."""

from __future__ import annotations

import pytest

from convgrad._base import config
from convgrad._base.errors import CompileError
from convgrad._compiler.jit import host
from convgrad._compiler.targets import ALL, FOREIGN, TARGETS, find, match, runnable

AVX2 = {"sse2", "avx", "avx2", "fma", "f16c"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


@pytest.mark.parametrize(
    ("architecture", "features", "name"),
    [
        ("x86_64", AVX512, "avx512"),
        ("x86_64", AVX512 - {"avx512vl"}, "avx2"),
        ("x86_64", AVX2, "avx2"),
        ("x86_64", AVX2 - {"fma"}, "sse2"),
        ("x86_64", set(), "sse2"),
        ("aarch64", {"asimd"}, "neon"),
    ],
)
def test_the_best_row_wins(architecture, features, name):
    row = match(architecture, features)
    assert row is not None and row.name == name


def test_an_unknown_architecture_has_no_row():
    assert match("riscv64", AVX512) is None


def test_foreign_rows_are_found_by_name_and_offered_to_no_host():
    names = ["wasm", "wasm_simd", "cortex_m4", "cortex_m7", "riscv64", "riscv64v"]
    assert [row.name for row in FOREIGN] == names
    assert all(find(row.name) is row for row in ALL)
    everything = frozenset().union(AVX512, {"asimd", "simd128", "v", "m", "a", "f", "d", "c"})
    for architecture in {row.architecture for row in ALL}:
        assert not set(runnable(architecture, everything)) & set(FOREIGN)
    assert runnable("riscv64", everything) == ()


def test_a_riscv_host_computes_without_kernels(monkeypatch):
    monkeypatch.setattr(host, "architecture", lambda: "riscv64")
    host._choose.cache_clear()
    with pytest.raises(CompileError, match="no kernels are written for the architecture 'riscv64'"):
        host.target()
    host._choose.cache_clear()


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_every_row_has_systems(row):
    assert row.triple == row.systems[0].triple == row.system_called().triple
    assert row.system_called().name == (
        "linux" if row in TARGETS or "riscv" in row.name else "none"
    )
    for system in row.systems:
        assert row.system_called(system.name) is row.system_of(system.triple) is system
        macho = system.object_format == "macho"
        assert (system.archive_style, system.symbol_prefix) == (
            ("bsd", "_") if macho else ("gnu", "")
        )
    with pytest.raises(
        ValueError, match=f"the target {row.name} has no system called 'dos'; there are "
    ):
        row.system_called("dos")
    with pytest.raises(ValueError, match=f"the target {row.name} has no triple 'z80'; there are "):
        row.system_of("z80")


def test_products_are_fused_where_the_hardware_does_it():
    fused = {row.name: (row.fuses(4), row.fuses(8)) for row in ALL}
    both, none = (True, True), (False, False)
    assert fused == {
        **dict.fromkeys(("avx512", "avx2", "neon", "cortex_m7", "riscv64", "riscv64v"), both),
        **dict.fromkeys(("sse2", "wasm", "wasm_simd"), none),
        "cortex_m4": (True, False),
    }


def test_every_architecture_ends_with_a_row_that_always_runs():
    for architecture in {row.architecture for row in TARGETS}:
        assert runnable(architecture, set())[-1].needs == frozenset()


def test_width_is_separate_from_the_row():
    row = find("avx2").with_vector_bits(512)
    assert (row.lanes(4), row.lanes(8), row.label) == (16, 8, "avx2v512")
    assert row.features == find("avx2").features


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'mmx'.*avx2.*neon.*riscv64v"):
        find("mmx")


def test_caches_come_from_the_host_where_it_tells():
    row = find("sse2").with_caches(None, 1 << 20, None)
    assert (row.l1_bytes, row.l2_bytes, row.l3_bytes) == (32 << 10, 1 << 20, 4 << 20)


def test_cpuinfo_of_both_kinds():
    arm = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd fphp\n"
    assert host.cpuinfo_features(arm) == {"fp", "asimd", "fphp"}
    assert host.cpuinfo_features("nothing here") == frozenset()


def test_the_host_sees_what_llvm_sees():
    """For the features rows ask about."""
    from convgrad._compiler.jit import llvm

    asked = frozenset().union(*(row.needs for row in TARGETS))
    if host.architecture() == "x86_64":
        assert host.features() & asked == llvm.host_features() & asked


def test_switches_choose_row_and_width():
    plain = host.target()
    weakest = runnable(host.architecture(), host.features())[-1]
    with config.scope(target=weakest.name, vector_bits=512):
        chosen = host.target()
    assert (chosen.name, chosen.vector_bits) == (weakest.name, 512)
    assert host.target() == plain


def test_a_row_the_host_cannot_run_is_refused(monkeypatch):
    monkeypatch.setattr(host, "features", lambda: frozenset(AVX2))
    monkeypatch.setattr(host, "architecture", lambda: "x86_64")
    host._choose.cache_clear()
    with (
        config.scope(target="avx512"),
        pytest.warns(RuntimeWarning, match="'avx512' is ignored: this machine can run avx2, sse2"),
    ):
        assert host.target().name == "avx2"
    host._choose.cache_clear()
