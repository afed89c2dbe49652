"""One file imports llvmlite; all else can be imported where it is absent or slow."""

from __future__ import annotations

import ast
from pathlib import Path

import convgrad

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
    assert found == {"_jit/llvm.py"}
