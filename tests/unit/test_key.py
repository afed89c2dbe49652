"""Keys change with all that changes a kernel, and with nothing else."""

from __future__ import annotations

import importlib.machinery
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import convgrad
from convgrad._codegen import symbol
from convgrad._jit import key
from convgrad._runtime import parfor
from convgrad._runtime.parking import Parking
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
        (("a", 1), replace(AVX2, has_double=False)),
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


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A package with a source in a sub-folder of a sub-folder, in place of our own."""
    family = tmp_path / "_algorithms" / "family" / "part"
    family.mkdir(parents=True)
    (tmp_path / "_problem.py").write_text("")
    (family.parent / "kernel.py").write_text("a = 1")
    (family / "tile.py").write_text("b = 1")
    monkeypatch.setattr(key, "_PACKAGE", tmp_path)
    return tmp_path


@pytest.mark.parametrize("change", ["content", "deeper", "new", "renamed", "moved", "gone"])
def test_sources_in_sub_folders_are_hashed(house, change):
    family = house / "_algorithms" / "family"
    before = key.sources.__wrapped__()
    assert before == key.sources.__wrapped__()
    if change == "content":
        (family / "kernel.py").write_text("a = 2")
    elif change == "deeper":
        (family / "part" / "tile.py").write_text("b = 2")
    elif change == "new":
        (family / "words.py").write_text("")
    elif change == "renamed":
        (family / "kernel.py").rename(family / "kernels.py")
    elif change == "moved":
        (family / "kernel.py").rename(family / "part" / "kernel.py")
    else:
        (family / "part" / "tile.py").unlink()
    assert key.sources.__wrapped__() != before


def test_what_is_no_source_is_not_hashed(house):
    before = key.sources.__wrapped__()
    beside = house / "_algorithms" / "family" / "__pycache__"
    beside.mkdir()
    (beside / "left.py").write_text("not imported from here")
    (beside.parent / "notes.txt").write_text("")
    (house / "_api").mkdir()
    (house / "_api" / "calls.py").write_text("doors write no kernels")
    assert key.sources.__wrapped__() == before


@pytest.mark.parametrize("folder", ["_algorithms", "_algorithms/family", "_algorithms/family/part"])
def test_a_folder_that_cannot_be_read_raises(house, monkeypatch, folder):
    """Taken for an empty one, it would give two versions one name. The error is made: root may read everything."""
    scan = os.scandir

    def refusing(path):
        if Path(path) == house / folder:
            raise PermissionError(13, "not readable", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PermissionError, match="not readable"):
        key.sources.__wrapped__()


def test_every_source_a_kernel_comes_from_is_hashed():
    """A folder missing in the list would serve old kernels after an update."""
    package = Path(convgrad.__file__).resolve().parent
    hashed = {(package / name).resolve() for name in key._source_names()}
    program = (
        "import sys, numpy as np, convgrad; from convgrad import _prepare;"
        "x = np.ones((1, 4, 4, 2), np.float32);"
        "convgrad.depthwise_conv2d(x, np.ones((3, 3, 2, 1), np.float32), 1, 'SAME');"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'convgrad'), sep='\\n')"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    used = {Path(line).resolve() for line in out.splitlines()}
    beside = {path.relative_to(package).parts[0] for path in used - hashed}
    # Doors, arguments, arrays, prices, threads and memory: they choose or call kernels and write none.
    assert beside <= {"_api", "_arguments", "_arrays", "_costs", "_runtime", "compat"}, beside
    inside = {path.relative_to(package).parts[:2] for path in used & hashed}
    assert {("_algorithms", "shared"), ("_codegen", "builder.py")} <= inside


def test_the_parallel_loop_carries_its_text():
    """It is written by `_runtime`, whose sources are not hashed, so its identity must say all."""
    source = parfor.source("x86_64", Parking.FUTEX)
    changed = replace(source, text=source.text + "; another line")
    assert key.text(source, AVX2) != key.text(changed, AVX2)


@pytest.mark.parametrize("change", ["version", "library", "time", "more"])
def test_another_llvmlite_is_another_key(tmp_path, monkeypatch, change):
    package = tmp_path / "llvmlite"
    (package / "binding").mkdir(parents=True)
    version, library = package / "_version.py", package / "binding" / "libllvmlite.so"
    version.write_text("version = '1'")
    library.write_bytes(b"code")
    spec = importlib.machinery.ModuleSpec("llvmlite", None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    before = key.llvm_version.__wrapped__()
    assert key.llvm_version.__wrapped__() == before
    if change == "version":
        version.write_text("version = '2'")
    elif change == "library":
        library.write_bytes(b"more code")
    elif change == "time":
        os.utime(library, (1, 1))
    else:
        (package / "binding" / "other.so").write_bytes(b"")
    assert key.llvm_version.__wrapped__() != before


def test_every_entry_is_part_of_the_key(monkeypatch):
    before = key.text("a", AVX2)
    for patch in (
        ("convgrad._jit.key.llvm_version", lambda: "another"),
        ("convgrad._jit.key.sources", lambda: "others"),
        ("platform.machine", lambda: "z80"),
        ("sys.platform", "plan9"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(*patch)
            assert key.text("a", AVX2) != before, patch
    assert key.text("a", AVX2) == before


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
