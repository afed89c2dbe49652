"""Say which tests a change can affect, and run them: for developers, between two edits. CI runs all.

Usage: python tools/affected.py [--base REVISION] [--run] [-- PYTEST ARGUMENTS]

Files that differ from the base, also those not committed yet, are followed to the folders of tests: from a file of the
package to its row in the table of layers (`ALLOWED` of tests/unit/test_layers.py), to the rows that may import it, and
to the folders whose tests, helpers, pages or child programs name one of these. It errs on the side of too many: a row
that may be imported counts as imported. Bridges are the exception: only those who ask for a framework import them.
What no rule is known for affects everything.

The commands that run these tests are printed; `--run` runs them. Tests of bridges need `.venv-frameworks`.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = "tests/unit/test_layers.py"
PACKAGE = "src/convgrad/"

ALWAYS = ("tests/test_tiny.py", "tests/unit")
"""Quick, and `unit` reads all sources."""
LEFT_OUT = {"outside", "studio_browser"}
"""Folders with a target of their own (`make test-dist`, `make test-studio`): they need a wheel, a browser."""
FRAMEWORKS = {"jax_bridge", "keras_bridge", "pytorch", "tensorflow_bridge"}
"""Folders whose tests run in the environment that has the frameworks."""
READS = {
    "cc": (f"{PACKAGE}include/", "examples/"),
    "examples": ("examples/",),
    "export": (f"{PACKAGE}include/", "examples/"),
    "pages": ("docs/", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "mkdocs.yml"),
    "peers": (f"{PACKAGE}include/",),
    "bench": ("benchmarks/",),
    "tools": ("tools/", "changelog.d/", "studio/", "benchmarks/"),
    **dict.fromkeys(FRAMEWORKS, ("docs/", "examples/")),
}
"""What the tests of a folder read or run besides the package. A place ends in a slash, a file does not."""
RUNS = {"bench", "examples", "pages", "tools"}
"""Of these, the folders whose tests run whatever is in those places, so that these say what of the package is used.
Tests of bridges run only what is about their framework."""
NO_TESTS = ("LICENSE", ".gitignore", ".pre-commit-config.yaml", "changelog.d/")


@dataclass(frozen=True)
class Layers:
    """The table of layers: what may import what, and which rows are bridges."""

    allowed: Mapping[str, frozenset[str]]
    bridges: Mapping[str, str]
    """Rows that only who asks for a framework imports, and its name."""
    eager: frozenset[str]
    """What `import convgrad` imports at once."""

    def below(self, rows: Iterable[str]) -> set[str]:
        """Return rows and all that they may import, without bridges that they have not asked for."""
        found, waiting = set(), set(rows)
        while waiting:
            row = waiting.pop()
            found.add(row)
            more = self.eager if row == "__init__" else self.allowed[row]
            if row not in self.bridges:
                # The command line runs Dask itself; of arrays, `_arrays` waits until it meets one.
                kept = {"_bridges/dask"} if row != "_arrays" else set()
                more = more - (self.bridges.keys() - kept)
            waiting |= more - found
        return found


def layers(table: str, door: str) -> Layers:
    """Return the table as the sources of the test and of the package's `__init__` have it."""
    found = {}
    for node in ast.parse(table).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("ALLOWED", "BRIDGES"):
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
    allowed = {row: frozenset(others) | {"_base"} for row, others in found["ALLOWED"].items()}
    eager = set()
    for node in ast.parse(door).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [each.name for each in node.names]
            eager |= {row_of(str(name), allowed) for name in names}
    return Layers(allowed, found["BRIDGES"], frozenset(eager))


def row_of(name: str, rows: Container[str]) -> str:
    """Return the row of a dotted name inside of the package: a room, a part of one, a door, or the package itself."""
    parts = name.split(".")
    return next((row for row in ("/".join(parts[:2]), parts[0]) if row in rows), "__init__")


def rows_named(text: str, table: Layers) -> set[str]:
    """Return the rows a text uses: by imports, by attributes, in the texts of child programs, by the command.

    >>> rows = ("_compiler", "_apps/cli", "torch")
    >>> some = Layers(dict.fromkeys(rows, frozenset()), {"torch": "torch"}, frozenset())
    >>> sorted(rows_named("from convgrad._compiler.jit import key; convgrad.conv2d(x)", some))
    ['__init__', '_compiler']
    >>> sorted(rows_named("subprocess.run([sys.executable, '-m', 'convgrad', 'info'])", some))
    ['_apps/cli']
    >>> sorted(rows_named("torch = pytest.importorskip('torch')", some))
    ['torch']
    """
    names = set(re.findall(r"\bconvgrad\.(\w+(?:\.\w+)?)", text))
    for place, several in re.findall(r"\bfrom convgrad(?:\.(\w+))? import \(?([\w\s,]+)", text):
        names |= {f"{place}.{name}".lstrip(".") for name in re.findall(r"\w+", several)}
    found = {row_of(name, table.allowed) for name in names}
    if re.search(r"\bimport convgrad\b(?!\.)", text):
        found.add("__init__")
    asked = {f"_apps/{name.split('.')[0]}" for name in names}
    found |= asked & {"_apps/explain", "_apps/export"} & table.allowed.keys()
    if re.search(r"-m['\", ]+convgrad\b|\bconvgrad_command\b|bin/convgrad\b", text):
        found.add("_apps/cli")
    imported = set(re.findall(r"\b(?:importorskip\(.|import |from )(\w+)", text))
    return found | {row for row, framework in table.bridges.items() if framework in imported}


@dataclass(frozen=True)
class Folder:
    """A folder of tests."""

    name: str
    rows: frozenset[str]
    """What it uses of the package, and what that may import."""
    files: frozenset[str]
    """Helpers beside the folders that it uses."""


def folders(root: Path, table: Layers) -> list[Folder]:
    """Return all folders of tests, with what they use."""
    tests = root / "tests"
    helpers = {path.stem: path for path in tests.glob("*.py") if path.stem != "conftest"}
    texts = {name: path.read_text(encoding="utf-8") for name, path in helpers.items()}
    found = []
    for place in sorted(each for each in tests.iterdir() if each.is_dir()):
        own = [path.read_text(encoding="utf-8") for path in place.rglob("*.py")]
        if not own:
            continue
        used = _helpers_of(own, texts)
        run = READS[place.name] if place.name in RUNS else ()
        read = [*own, *(texts[name] for name in used), *_texts_of(root, run)]
        rows = set().union(*(rows_named(text, table) for text in read))
        files = {f"tests/{name}.py" for name in used}
        found.append(Folder(place.name, frozenset(table.below(rows)), frozenset(files)))
    return found


def _helpers_of(texts: list[str], helpers: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        named = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.M)) & helpers.keys() - found
        found |= named
        waiting += [helpers[name] for name in named]
    return found


def _texts_of(root: Path, places: Iterable[str]) -> Iterator[str]:
    """Return what is in some places that can name parts of the package: programs and pages."""
    for place in places:
        paths = (root / place).rglob("*") if place.endswith("/") else [root / place]
        for path in paths:
            if path.suffix in (".py", ".md") and path.is_file():
                yield path.read_text(encoding="utf-8")


def affected(
    changed: Iterable[str], table: Layers, all_folders: list[Folder]
) -> dict[str, set[str]]:
    """Return the folders that changed files can affect, and by which of them."""
    found: dict[str, set[str]] = {}
    for file in changed:
        for name in _folders_of(file, table, all_folders):
            found.setdefault(name, set()).add(file)
    return found


def _folders_of(file: str, table: Layers, all_folders: list[Folder]) -> set[str]:
    every = {folder.name for folder in all_folders}
    readers = {
        name
        for name, places in READS.items()
        if any(
            file == place or (place.endswith("/") and file.startswith(place)) for place in places
        )
    } & every
    if file.startswith(PACKAGE):
        parts = file.removeprefix(PACKAGE).removesuffix(".py").removesuffix("/__init__").split("/")
        row = row_of(".".join(parts), table.allowed)
        row = row if row != "__init__" else parts[0]
        if row in table.allowed and file.endswith((".py", ".pyi")):
            return readers | {folder.name for folder in all_folders if row in folder.rows}
        return readers or every
    if file.startswith("tests/"):
        parts = file.split("/")
        if len(parts) > 2:
            return {parts[1]} & every
        users = {folder.name for folder in all_folders if file in folder.files}
        return users if file != "tests/conftest.py" and (users or file == ALWAYS[0]) else every
    if readers or file.startswith("studio/") or file.startswith(NO_TESTS):
        return readers
    return every


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from where this branch left the base; also new ones that git does not know."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"affected: git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.split("\n")

    fork = git("merge-base", base, "HEAD")[0]
    names = {*git("diff", "--name-only", fork), *git("ls-files", "--others", "--exclude-standard")}
    return sorted(names - {""})


def commands(names: Iterable[str], changed: Iterable[str], more: list[str]) -> list[list[str]]:
    """Return what runs the tests of some folders: one command without frameworks, one with them."""
    chosen = sorted(set(names) - LEFT_OUT)
    modules = [
        file
        for file in changed
        if file.startswith((PACKAGE, "tools/", "benchmarks/"))
        and file.endswith(".py")
        and (ROOT / file).exists()
        and not re.match(
            rf"({PACKAGE}(_bridges/)?|benchmarks/train/)(torch|jax|tensorflow|keras)(\b|_)", file
        )
    ]
    plain = [f"tests/{name}" for name in chosen if name not in FRAMEWORKS]
    plain = [*ALWAYS, *(each for each in plain if each not in ALWAYS), *modules]
    found = [[sys.executable, "-m", "pytest", "-q", *plain, *more]]
    bridges = [f"tests/{name}" for name in chosen if name in FRAMEWORKS]
    if bridges:
        found.append([".venv-frameworks/bin/python", "-m", "pytest", "-q", *bridges, *more])
    return found


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="affected", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--base", default="main", help="compare with this revision; default main")
    parser.add_argument("--run", action="store_true", help="run the tests")
    parser.add_argument("more", nargs="*", metavar="PYTEST ARGUMENT", help="handed on to pytest")
    given = parser.parse_args(words)
    changed = changed_files(given.base)
    if not changed:
        print(f"nothing differs from {given.base}")
        return 0
    table = layers(
        (ROOT / LAYERS).read_text(encoding="utf-8"),
        (ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8"),
    )
    all_folders = folders(ROOT, table)
    found = affected(changed, table, all_folders)
    print(
        f"{len(changed)} files differ from {given.base}; {len(found)} of {len(all_folders)} folders"
    )
    for name, why in sorted(found.items()):
        told = ", ".join(sorted(why)[:3]) + (f" and {len(why) - 3} more" if len(why) > 3 else "")
        note = " (not run: it has a target of its own)" if name in LEFT_OUT else ""
        print(f"  tests/{name}{note}: {told}")
    status = 0
    for command in commands(found, changed, given.more):
        print(shlex.join(command), flush=True)
        if given.run:
            status = max(status, subprocess.run(command, cwd=ROOT).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
