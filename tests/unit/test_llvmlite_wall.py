"""One file imports llvmlite; all else can be imported where it is absent or slow."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

import convgrad
from convgrad._base.errors import CompileError
from convgrad._compiler.jit import llvm

PACKAGE = Path(convgrad.__file__).parent


def test_only_one_file_imports_llvmlite():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "llvmlite" for name in names):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == {"_compiler/jit/llvm.py"}


def test_an_old_llvmlite_is_refused_by_name(monkeypatch):
    package, binding = ModuleType("llvmlite"), ModuleType("llvmlite.binding")
    package.binding = binding
    binding.llvm_version_info = (15, 0, 7)
    monkeypatch.setitem(sys.modules, "llvmlite", package)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", binding)
    monkeypatch.setattr(llvm, "_binding", None)
    with pytest.raises(CompileError, match=r"0\.45 or newer .* found LLVM 15\.0\.7"):
        llvm.binding()


def test_a_missing_llvmlite_is_a_compile_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(llvm, "_binding", None)
    with pytest.raises(CompileError, match="cannot be imported"):
        llvm.binding()
