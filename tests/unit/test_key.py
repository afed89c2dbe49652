"""Keys change with all that changes a kernel, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace

import pytest

from convgrad._codegen import symbol
from convgrad._jit import key
from convgrad._targets import find

AVX2 = find("avx2")


def test_entries_have_names():
    names = [name for name, _ in key.entries(("a", 1), AVX2)]
    assert names == ["kernel", "target", "flags", "sources", "llvm", "platform"]


@pytest.mark.parametrize(
    ("identity", "target"),
    [
        (("a", 2), AVX2),
        (("a", 1), find("sse2")),
        (("a", 1), AVX2.with_vector_bits(128)),
        (("a", 1), replace(AVX2, has_half=False)),
        (("a", 1), replace(AVX2, features="+avx2")),
    ],
)
def test_differences_show(identity, target):
    assert key.text(identity, target) != key.text(("a", 1), AVX2)


def test_cache_sizes_do_not_matter():
    assert key.text("a", AVX2) == key.text("a", AVX2.with_caches(1, 2, 3))


def test_sources_are_hashed_by_content(tmp_path, monkeypatch):
    (tmp_path / "_codegen").mkdir()
    path = tmp_path / "_codegen" / "x.py"
    monkeypatch.setattr(key, "_PACKAGE", tmp_path)
    hashes = []
    for content in ("a = 1", "a = 2", "a = 1"):
        path.write_text(content)
        hashes.append(key.sources.__wrapped__())
    (tmp_path / "_api.py").write_text("")
    assert hashes[0] == hashes[2] != hashes[1]


def test_the_same_in_every_process():
    program = (
        "from convgrad._jit import key; from convgrad._targets import find; import sys;"
        "text = key.text(('a', 1, frozenset()), find('avx2'));"
        "print(key.digest(text), 'llvmlite' in sys.modules)"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert answers == {key.digest(key.text(("a", 1, frozenset()), AVX2)) + " False\n"}


def test_a_missing_llvmlite_is_a_key_too(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert key.llvm_version.__wrapped__() == "absent"


def test_symbols_spell_themselves():
    name = symbol("bwd_filter", "bf16", "r2t4", AVX2, (1, 2))
    assert name.startswith("cg_bwd_filter_bf16_r2t4_avx2v256_")
    assert name != symbol("bwd_filter", "bf16", "r2t4", AVX2, (1, 3))
    with pytest.raises(AssertionError):
        symbol("bwd filter", "f32", "", AVX2)


def test_a_signal_inside_a_repr_does_not_merge_two_kernels():
    """A dataclass whose repr was interrupted answers `...` from then on; names must not depend on it."""

    @dataclass(frozen=True)
    class Inner:
        number: int

    @dataclass(frozen=True)
    class Outer:
        inner: Inner
        rest: tuple[Inner, ...] = ()

    def poison(thing: object) -> None:
        running = type(thing).__repr__.__closure__
        for cell in running or ():
            if isinstance(cell.cell_contents, set):
                cell.cell_contents.add((id(thing), threading.get_ident()))

    one, two = Outer(Inner(1), (Inner(2),)), Outer(Inner(2))
    before = key.text(one, AVX2), key.text(two, AVX2)
    for thing in (one, two, one.inner, two.inner, *one.rest):
        poison(thing)
    assert repr(one) == repr(two) == "..."
    assert (key.text(one, AVX2), key.text(two, AVX2)) == before
    assert before[0] != before[1]
    assert "Outer(inner=" in before[0] and "Inner(number=2)" in before[0]
