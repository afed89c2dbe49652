"""Draw the house: rooms, floors and counts of the package, as its sources are.

Usage: python tools/house.py [--source DIR] [--names] [--json] [--before DIR]

A floor is how far a room is from the ground: a room on floor 2 imports something of floor 1 and nothing higher. Doors
are what users import. `--names` also lists the names of classes and functions that are defined three times or more.
`--source` counts another checkout's `src`, of any version. `--before` writes the counts of that one and of this one
into the table of docs/house/measures.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SPLIT = ("_apps", "_bridges")
"""Rooms whose parts are rows of their own, as in tests/unit/test_layers.py."""
BRIDGES = ("torch", "jax", "tensorflow", "keras", "dask")
LAYOUTS = {"RECORD", "FUSED", "TABLE", "BUFFER", "PASS"}
"""What the words of a record are called where compiled code reads them."""
SERVER = 100
"""Instructions from which on a text answers calls by itself."""
PAGE = ROOT / "docs/house/measures.md"
SAID = {
    "private_entries": "private entries on the top floor",
    "files": "files",
    "lines": "lines",
    "compiled_servers": "compiled servers of hand-written SSA",
    "record_layouts": "record layouts of bridges",
    "ssa_lines": "hand-written SSA lines",
    "ssa_files": "files that have them",
    "ssa_lines_of_bridges": "hand-written SSA lines of bridges",
    "engine_functions_of_bridges": "names of `_engine` that bridges use",
    "homes_of_batch_norm": "homes of batch norm",
    "names_defined_three_times": "public names defined three times or more",
}
"""The measures in words, as the page has them."""
INSTRUCTION = re.compile(r"^\s*(%[\w.$]+ = \w|store |br |ret |call |set |define |[\w.]+:$|switch )")


@dataclass(frozen=True)
class Row:
    """A room, a part of one, or a door."""

    name: str
    floor: int
    files: int
    lines: int
    functions: int
    imports: tuple[str, ...]


@dataclass(frozen=True)
class Measures:
    """What tells how easy the house is to live in; docs/house/measures.md says which way each should go."""

    private_entries: int
    """On the top floor of the package."""
    files: int
    lines: int
    compiled_servers: int
    """Files of bridges with at least `SERVER` instructions written by hand."""
    record_layouts: int
    """Tables of words that compiled code of bridges reads."""
    ssa_lines: int
    """Instructions of LLVM IR written by hand, all of the package."""
    ssa_files: int
    ssa_lines_of_bridges: int
    engine_functions_of_bridges: tuple[str, ...]
    """Functions and types of the engine that bridges name."""
    homes_of_batch_norm: tuple[str, ...]
    """Folders outside of bridges and apps with a file that is about it; kernels are not counted."""
    names_defined_three_times: int


def package(source: Path) -> Path:
    found = source / "convgrad"
    if not (found / "__init__.py").is_file():
        raise SystemExit(f"house: {source}: there is no package `convgrad`")
    return found


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py"))


def row_of(place: str) -> str:
    """Return the row of a file, by its place in the package.

    >>> row_of("_apps/cli/main.py"), row_of("_base/text.py"), row_of("nn.py")
    ('_apps/cli', '_base', 'nn')
    """
    parts = place.removesuffix(".py").removesuffix("/__init__").split("/")
    return "/".join(parts[: 2 if parts[0] in SPLIT else 1])


def imported(place: str, tree: ast.Module) -> Iterator[str]:
    """Return the places of modules that a file may import, without saying whether they are files or names in them."""
    here = place.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            parts = [*base, *(node.module or "").split(".")] if node.module else base
            if not node.level:
                if parts[:1] != ["convgrad"]:
                    continue
                parts = parts[1:]
            for alias in node.names:
                yield "/".join([*parts, alias.name])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("convgrad."):
                    yield alias.name.replace(".", "/").removeprefix("convgrad/")


def rows(house: Path) -> list[Row]:
    """Return the rows, from the ground up."""
    every: dict[str, list[Path]] = {}
    for path in files(house):
        every.setdefault(row_of(path.relative_to(house).as_posix()), []).append(path)
    uses: dict[str, set[str]] = {}
    for name, inside in every.items():
        found = {
            row
            for path in inside
            for place in imported(path.relative_to(house).as_posix(), _tree(path))
            for row in (row_of(place), row_of(place).split("/")[0])
            if row in every
        }
        uses[name] = found - {name, *SPLIT}
    floors: dict[str, int] = {}
    for name in TopologicalSorter(uses).static_order():
        floors[name] = 1 + max((floors[other] for other in uses[name]), default=-1)
    made = [
        Row(
            *(name, floors[name], len(inside), sum(_lines(path) for path in inside)),
            *(sum(_functions(path) for path in inside), tuple(sorted(uses[name]))),
        )
        for name, inside in every.items()
    ]
    return sorted(made, key=lambda row: (row.floor, row.name))


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def _functions(path: Path) -> int:
    return sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(_tree(path))
    )


def ssa_lines(path: Path) -> int:
    """Return how many lines of a file are instructions of LLVM IR, written out in texts."""
    return sum(
        bool(INSTRUCTION.match(line))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "getelementptr" in node.value or re.search(r"^\s*%[\w.$]+ = ", node.value, re.M)
        for line in node.value.splitlines()
    )


def _bridge_files(house: Path) -> list[Path]:
    folders = [house / place / name for name in BRIDGES for place in (".", "_bridges")]
    folders += [house / f"_{name}" for name in BRIDGES]
    shared = sorted((house / "_bridges").glob("*.py"))
    return [*shared, *(path for folder in folders for path in files(folder))]


def _engine_names(house: Path) -> set[str]:
    """Return what bridges name of the engine: attributes of the module, and what is imported from it."""
    found = set()
    modules = ("_engine", "_prepare", "prepare")
    for path in _bridge_files(house):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in modules:
                    found.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] in modules:
                found |= {alias.name for alias in node.names} - set(modules)
    return found


def _assigned(path: Path) -> Iterator[str]:
    for node in _tree(path).body:
        if isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def names(house: Path) -> Counter[str]:
    """Return how often public names of classes and functions are defined at the top of a module."""
    return Counter(
        node.name
        for path in files(house)
        for node in _tree(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    )


def measures(house: Path) -> Measures:
    entries = {
        path.name
        for path in house.iterdir()
        if path.name.startswith("_") and not path.name.startswith("__")
    }
    texts = {path: count for path in files(house) if (count := ssa_lines(path))}
    bridges = _bridge_files(house)
    servers = [path for path in bridges if texts.get(path, 0) >= SERVER]
    layouts = [name for path in bridges for name in _assigned(path) if name in LAYOUTS]
    norm = re.compile(r"norm|passes")
    homes = {
        path.parent.relative_to(house).as_posix() + "/"
        if norm.search(path.parent.name)
        else path.relative_to(house).as_posix()
        for path in files(house)
        if path not in bridges
        and not path.relative_to(house)
        .as_posix()
        .startswith(("_kernels", "_apps", "_check", "_bench"))
        and norm.search(path.relative_to(house).as_posix())
    }
    return Measures(
        len(entries),
        len(files(house)),
        sum(map(_lines, files(house))),
        len(servers),
        len(layouts),
        sum(texts.values()),
        len(texts),
        sum(texts[path] for path in bridges if path in texts),
        tuple(sorted(_engine_names(house))),
        tuple(sorted(homes)),
        sum(count >= 3 for count in names(house).values()),
    )


def table(before: Measures, now: Measures) -> str:
    """Return both sides as a table of Markdown."""
    lines = ["| measure | before | now |", "|---|---:|---:|"]
    for name, words in SAID.items():
        sides = (getattr(side, name) for side in (before, now))
        counts = (len(side) if isinstance(side, tuple) else side for side in sides)
        lines.append(f"| {words} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines) + "\n"


def rewritten(page: str, table: str) -> str:
    """Return a page with another table of measures."""
    return re.sub(r"\| measure \|.*\n(\|.*\n)+", lambda _: table, page, count=1)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="house", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="folder with the package")
    parser.add_argument("--names", action="store_true", help="list names that are defined often")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--before", type=Path, help="older `src`: write docs/house/measures.md")
    given = parser.parse_args(words)
    house = package(given.source)
    found, counted = rows(house), measures(house)
    if given.before is not None:
        both = table(measures(package(given.before)), counted)
        PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), both), encoding="utf-8")
    often = {name: count for name, count in names(house).most_common() if count >= 3}
    if given.json:
        told = {"rows": [asdict(row) for row in found], "measures": asdict(counted), "names": often}
        print(json.dumps(told, indent=1))
        return 0
    print("floor  room                    files  lines  functions  imports")
    for row in reversed(found):
        numbers = f"{row.files:>5}  {row.lines:>5}  {row.functions:>9}"
        print(f"{row.floor:>5}  {row.name:<22}  {numbers}  {' '.join(row.imports)}")
    print()
    for name, value in asdict(counted).items():
        shown = f"{len(value)}: {', '.join(value)}" if isinstance(value, tuple) else f"{value:,}"
        print(f"{name.replace('_', ' '):<32} {shown}")
    if given.names:
        print()
        print(", ".join(f"{name} x{count}" for name, count in often.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
