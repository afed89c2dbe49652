"""The package's own sources as data: which files there are, and who imports whom."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import convgrad

ROOT = Path(convgrad.__file__).parent
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache  # several tests ask for each file
def imports(file: str, source: str) -> set[str]:
    """Return the dotted names of everything a file imports, at any depth, relative ones resolved.

    `from a import b` counts as `a.b`, since `b` may be a module.
    """
    package = ["convgrad", *file.split("/")[:-1]]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parts = [*base, *(node.module.split(".") if node.module else [])]
            found |= {".".join([*parts, alias.name]) for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {word.value for word in node.args[:1] if isinstance(word, ast.Constant)}
    return found


def imported_files(file: str, source: str) -> set[str]:
    """Return the files of the package that a file imports, with the packages they are in and its own."""
    names = {*imports(file, source), ".".join(["convgrad", *file.split("/")[:-1], ""])}
    found = set()
    for parts in (name.split(".")[1:] for name in names if name.startswith("convgrad.")):
        for count in range(1, len(parts) + 1):
            place = "/".join(parts[:count])
            found |= {f"{place}.py", f"{place}/__init__.py"} & set(FILES)
    return found - {file}


def reached(files: Iterable[str]) -> set[str]:
    """Return some files and all that they import, and what those import."""
    found, waiting = set(), set(files)
    while waiting:
        file = waiting.pop()
        found.add(file)
        waiting |= imported_files(file, read(file)) - found
    return found
