"""Keys change with all that changes a kernel, and with nothing else."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from convgrad._compiler.codegen import symbol
from convgrad._compiler.jit import key
from convgrad._compiler.targets import find
from convgrad._runtime import parfor
from convgrad._runtime.parking import Parking
from sources import FILES, imported_files, imports, read

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
    assert key.identity_text(identity, target) != key.identity_text(("a", 1), AVX2)


def test_cache_sizes_do_not_matter():
    assert key.identity_text("a", AVX2) == key.identity_text("a", AVX2.with_caches(1, 2, 3))


def test_sources_are_hashed_by_content(tmp_path, monkeypatch):
    (tmp_path / "_codegen").mkdir()
    path = tmp_path / "_codegen" / "x.py"
    monkeypatch.setattr(key, "_PACKAGE", tmp_path)
    monkeypatch.setattr(key, "_FOLDERS", ("_codegen",))
    monkeypatch.setattr(key, "_FILES", ())
    hashes = []
    for content in ("a = 1", "a = 2", "a = 1"):
        path.write_text(content)
        hashes.append(key.sources.__wrapped__())
    (tmp_path / "_api.py").write_text("")
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A package with a source in a sub-folder of a sub-folder, in place of our own."""
    family = tmp_path / "_kernels" / "family" / "part"
    family.mkdir(parents=True)
    (tmp_path / "_problem").mkdir()
    (tmp_path / "_problem/convolution.py").write_text("")
    (family.parent / "kernel.py").write_text("a = 1")
    (family / "tile.py").write_text("b = 1")
    monkeypatch.setattr(key, "_PACKAGE", tmp_path)
    monkeypatch.setattr(key, "_FOLDERS", ("_kernels",))
    monkeypatch.setattr(key, "_FILES", ("_problem/convolution.py",))
    return tmp_path


@pytest.mark.parametrize("change", ["content", "deeper", "new", "renamed", "moved", "gone"])
def test_sources_in_sub_folders_are_hashed(house, change):
    family = house / "_kernels" / "family"
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
    beside = house / "_kernels" / "family" / "__pycache__"
    beside.mkdir()
    (beside / "left.py").write_text("not imported from here")
    (beside.parent / "notes.txt").write_text("")
    (house / "_api").mkdir()
    (house / "_base").mkdir()
    (house / "_api" / "calls.py").write_text("doors write no kernels")
    (house / "_base/text.py").write_text("nor do words for people")
    assert key.sources.__wrapped__() == before


@pytest.mark.parametrize("folder", ["_kernels", "_kernels/family", "_kernels/family/part"])
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


@pytest.mark.parametrize("missing", ["_problem/convolution.py", "_kernels"])
def test_what_must_be_hashed_and_is_not_there_raises(house, missing):
    """Where only compiled files are installed, two versions would have one name."""
    if missing.endswith(".py"):
        (house / missing).unlink()
    else:
        (house / missing).rename(house / "elsewhere")
    with pytest.raises(FileNotFoundError):
        key.sources.__wrapped__()


HASHED = set(key._source_names())
WRITE_NOTHING = {
    "_compiler/costs": "prices choose among kernels; a kernel's identity says what was chosen",
    "_base/__init__.py": "empty but for a docstring, as are the next two",
    "_compiler/__init__.py": "empty",
    "_problem/__init__.py": "empty",
    "_base/errors.py": "what is raised is not a kernel",
    "_base/fp_mode.py": "the mode in which NumPy computes for the reference, which has no kernels",
    "_problem/oracle.py": "sums for the reference, which has no kernels",
}
"""What files with kernels import, and why a change of it cannot change a kernel."""


def unhashed(files: set[str], hashed: set[str]) -> list[str]:
    """Return which files import something that is not hashed, and what."""
    return [
        f"{file} imports {other}, which is not hashed: add it to _FILES of _compiler/jit/key.py"
        for file in sorted(files)
        for other in sorted(imported_files(file, read(file)) - hashed)
        if not {other, "/".join(other.split("/")[:2])} & WRITE_NOTHING.keys()
    ]


def test_every_source_a_kernel_comes_from_is_hashed():
    """Something missing in the list would serve old kernels after an update. What is hashed is closed under imports."""
    # These import what keeps and runs kernels; what they write themselves is all in these files.
    writers = HASHED - {"_compiler/jit/__init__.py", "_compiler/jit/llvm.py", "_engine/probe.py"}
    assert unhashed(writers, HASHED) == []
    assert {
        "_kernels/shared/table.py",
        "_compiler/codegen/builder.py",
        "_kernels/norm/plan.py",
    } < writers
    assert set(FILES) >= HASHED
    reasons = {
        name
        for each in writers
        for file in imported_files(each, read(each))
        for name in (file, "/".join(file.split("/")[:2]))
    }
    assert WRITE_NOTHING.keys() <= reasons, "a reason that nothing needs"


def test_an_import_that_is_not_hashed_is_named():
    (found,) = unhashed(
        {"_compiler/kernel.py", "_compiler/codegen/builder.py"}, HASHED - {"_compiler/kernel.py"}
    )[:1]
    assert found.startswith(
        "_compiler/codegen/builder.py imports _compiler/kernel.py, which is not hashed"
    )


def test_all_code_that_writes_texts_is_hashed():
    """By the builder, or by hand into a `KernelSource`; others only show texts, or rename kernels of packs."""
    tools = {
        "convgrad._compiler.codegen",
        "convgrad._compiler.codegen.KernelBuilder",
        "convgrad._compiler.kernel.KernelSource",
    }
    users = {file for file in FILES if tools & imports(file, read(file))}
    assert users - HASHED <= {
        "_apps/explain/__init__.py",
        "_apps/export/pack.py",
        "_compiler/jit/objects.py",
        "_compiler/jit/symbols.py",
    }
    assert {"_engine/probe.py", "_compiler/jit/functions.py"} < users


def test_functions_of_bridges_carry_their_text():
    """Their sources are not hashed, so their identities must say all: the text is a plain field of each."""
    found = {}
    for file in FILES:
        for node in ast.walk(ast.parse(read(file))):
            if isinstance(node, ast.ClassDef):
                lines = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                plain = {ast.unparse(each.target): each.value is None for each in lines}
                if {"name", "symbols", "text"} <= plain.keys():
                    found[file] = plain["text"]
    assert found == dict.fromkeys(
        [
            "_bridges/jax/handler.py",
            "_runtime/parfor.py",
            "_bridges/tensorflow/kernels.py",
            "_bridges/torch/install.py",
        ],
        True,
    )
    users = [file for file in FILES if re.search(r"load_functions\(|load_runtime\(", read(file))]
    assert {"/".join(file.split("/")[:2]) for file in users} == {
        *("_bridges/jax", "_bridges/tensorflow", "_bridges/torch", "_engine/prepare.py")
    }


def test_the_parallel_loop_carries_its_text():
    """It is written by `_runtime`, whose sources are not hashed, so its identity must say all."""
    source = parfor.source("x86_64", Parking.FUTEX)
    changed = replace(source, text=source.text + "; another line")
    assert key.identity_text(source, AVX2) != key.identity_text(changed, AVX2)


def test_a_text_is_named_by_all_that_decides_its_code(monkeypatch):
    names = [name for name, _ in key.text_entries("text", AVX2)]
    assert names == ["text", "machine", "compiler", "llvm", "platform"]
    before = key.text_of("text", AVX2)
    assert before != key.text_of("text ", AVX2)
    assert before != key.text_of("text", find("sse2"))
    assert before != key.text_of("text", replace(AVX2, features="+avx2"))
    # How wide vectors are written, and which instructions are asked for, is in the text.
    assert before == key.text_of("text", AVX2.with_vector_bits(128).with_caches(1, 2, 3))
    for patch in (
        ("convgrad._compiler.jit.key.llvm_version", lambda: "another"),
        ("convgrad._compiler.jit.key._compiler", lambda: "another"),
        ("platform.machine", lambda: "z80"),
        ("sys.platform", "plan9"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(*patch)
            assert key.text_of("text", AVX2) != before, patch


def test_what_compiles_is_hashed_for_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(key, "_PACKAGE", tmp_path)
    path = tmp_path / "_compiler/jit/llvm.py"
    path.parent.mkdir(parents=True)
    path.write_text("OPT_LEVEL = 2")
    before = key._compiler.__wrapped__()
    path.write_text("OPT_LEVEL = 3")
    assert key._compiler.__wrapped__() != before


@pytest.fixture
def llvmlite(tmp_path, monkeypatch):
    """A package in place of the installed one."""
    package = tmp_path / "llvmlite"
    (package / "binding").mkdir(parents=True)
    (package / "_version.py").write_text("version = '1'")
    (package / "binding" / "libllvmlite.so").write_bytes(b"code")
    spec = importlib.machinery.ModuleSpec("llvmlite", None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    return package


@pytest.mark.parametrize("change", ["version", "library", "time", "more"])
def test_another_llvmlite_is_another_key(llvmlite, change):
    before = key.llvm_version.__wrapped__()
    assert key.llvm_version.__wrapped__() == before
    library = llvmlite / "binding" / "libllvmlite.so"
    if change == "version":
        (llvmlite / "_version.py").write_text("version = '2'")
    elif change == "library":
        library.write_bytes(b"more code")
    elif change == "time":
        os.utime(library, (1, 1))
    else:
        (llvmlite / "binding" / "other.so").write_bytes(b"")
    assert key.llvm_version.__wrapped__() != before


@pytest.mark.parametrize("change", ["time", "hash", "size", "content"])
def test_an_llvmlite_installed_anew_is_the_same(llvmlite, change):
    """Installers set times of their own and write hashes down: kernels that CI has kept are found from a new place."""
    library = llvmlite / "binding" / "libllvmlite.so"
    record = llvmlite.parent / "llvmlite-1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("llvmlite/binding/libllvmlite.so,sha256=abc,4\n")
    before = key.llvm_version.__wrapped__()
    if change == "time":
        os.utime(library, (1, 1))
    elif change == "hash":
        record.write_text("llvmlite/binding/libllvmlite.so,sha256=abd,4\n")
    elif change == "size":
        library.write_bytes(b"edoc1")
    else:
        library.write_bytes(b"edoc")
    assert (key.llvm_version.__wrapped__() == before) is (change == "time")


def test_every_entry_is_part_of_the_key(monkeypatch):
    before = key.identity_text("a", AVX2)
    for patch in (
        ("convgrad._compiler.jit.key.llvm_version", lambda: "another"),
        ("convgrad._compiler.jit.key.sources", lambda: "others"),
        ("platform.machine", lambda: "z80"),
        ("sys.platform", "plan9"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(*patch)
            assert key.identity_text("a", AVX2) != before, patch
    assert key.identity_text("a", AVX2) == before


def test_the_same_in_every_process():
    program = (
        "from convgrad._compiler.jit import key; from convgrad._compiler.targets import find; import sys;"
        "text = key.identity_text(('a', 1, frozenset()), find('avx2'));"
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
    assert answers == {key.digest(key.identity_text(("a", 1, frozenset()), AVX2)) + " False\n"}


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
    before = key.identity_text(one, AVX2), key.identity_text(two, AVX2)
    for thing in (one, two, one.inner, two.inner, *one.rest):
        poison(thing)
    assert repr(one) == repr(two) == "..."
    assert (key.identity_text(one, AVX2), key.identity_text(two, AVX2)) == before
    assert before[0] != before[1]
    assert "Outer(inner=" in before[0] and "Inner(number=2)" in before[0]
