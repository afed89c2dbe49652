"""Write docs/house/walk.md: which functions of the package a first and a repeated call on NumPy arrays enter.

Usage: python tools/walk.py [--source DIR] [--print]

Both calls are traced (`sys.setprofile`) in a process of their own. Its kernels are on disk, put there by a process
before it, so LLVM is not asked. The CPU's row, one thread and an empty environment of switches are set, so every x86-64
machine walks the same way. `--source` counts another checkout's `src`; `--print` writes no page.

What is counted: functions that have a `def` of their own in the package and that a reader has to visit, each once, from
the public function's call until its return. Comprehensions, lambdas, properties and special methods are not counted:
they are read where they stand. Making the program (`_engine/prepare.py`: plan, kernels, code) is counted apart, and so
are the utensils of `_base`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "house" / "walk.md"
CALL = 'convgrad.conv2d_backprop_filter(x, [3, 3, 8, 16], g, strides=1, padding="SAME")'
PREPARING = ("_engine/prepare.py program", "_prepare.py executable")
"""Where a program is made: today, and in version 0.2.0."""
UTENSILS = ("_base/", "_config.py", "_dtypes.py", "_fp_mode.py", "_laziness.py", "_headroom.py")
MOST_FIRST, MOST_AGAIN = 40, 7


class Step(NamedTuple):
    """A function that was entered for the first time."""

    depth: int
    file: str
    name: str
    words: str

    @property
    def key(self) -> str:
        return f"{self.file} {self.name}"


@cache
def functions(path: str) -> dict[int, tuple[str, str]]:
    """Return the functions of a file that count, by their first lines: name and first sentence."""
    found: dict[int, tuple[str, str]] = {}

    def visit(node: ast.AST, inside: str) -> None:
        for each in ast.iter_child_nodes(node):
            name = inside
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                name = f"{inside}.{each.name}" if inside else each.name
            if isinstance(each, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in each.decorator_list]
                special = each.name.startswith("__") or any("property" in mark for mark in marks)
                if not special:
                    said = " ".join((ast.get_docstring(each) or "").partition("\n\n")[0].split())
                    line = min([each.lineno, *(mark.lineno for mark in each.decorator_list)])
                    found[line] = (name, said)
            visit(each, name)

    visit(ast.parse(Path(path).read_text(encoding="utf-8")), "")
    return found


def traced(call: Any, package: str) -> list[Step]:
    """Return the functions a call enters, each where it is entered first."""
    steps: dict[str, Step] = {}

    def entered(frame: Any, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(package):
            return
        row = functions(path).get(frame.f_code.co_firstlineno)
        if row is None or frame.f_code.co_name != row[0].rpartition(".")[2]:
            return
        depth, above = 0, frame.f_back
        while above is not None:
            name = above.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return  # what a module does when it is imported is not part of the walk
            if name.startswith(package):
                known = functions(name).get(above.f_code.co_firstlineno)
                depth += known is not None and known[0].rpartition(".")[2] == above.f_code.co_name
            above = above.f_back
        step = Step(depth, os.path.relpath(path, package).replace(os.sep, "/"), *row)
        steps.setdefault(step.key, step)

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(steps.values())


def child() -> None:
    """Trace both calls in this process, and print them."""
    import numpy as np

    import convgrad

    x, g = np.ones((2, 8, 8, 8), np.float32), np.ones((2, 8, 8, 16), np.float32)

    def call() -> Any:
        return eval(CALL, {"convgrad": convgrad, "x": x, "g": g})  # as the page shows it

    package = str(Path(convgrad.__file__).resolve().parent)
    print(json.dumps([traced(call, package), traced(call, package)]))


def walks(source: Path) -> tuple[list[Step], list[Step]]:
    """Return the walks of a first and a repeated call."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: value for name, value in os.environ.items() if name[:9] != "CONVGRAD_"}
        settings = {
            "CONVGRAD_CACHE_DIR": folder,
            "CONVGRAD_TARGET": "avx2",
            "CONVGRAD_NUM_THREADS": "1",
            "CONVGRAD_OPT_LEVEL": "0",
            "PYTHONPATH": str(source),
        }
        for _ in range(2):  # the first compiles
            answer = subprocess.run(
                [sys.executable, str(Path(__file__).resolve()), "--child"],
                env=kept | settings,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
    first, again = ([Step(*row) for row in rows] for rows in json.loads(answer.stdout))
    return first, again


def parts(steps: list[Step]) -> tuple[list[Step], list[Step]]:
    """Return the walk without the making of a program, and the steps of that."""
    corridor: list[Step] = []
    preparing: list[Step] = []
    depth: int | None = None
    for step in steps:
        if depth is not None and step.depth > depth:
            preparing.append(step)
            continue
        depth = step.depth if step.key in PREPARING else None
        corridor.append(step)
    return corridor, preparing


def counted(steps: list[Step]) -> list[Step]:
    return [step for step in steps if not step.file.startswith(UTENSILS)]


def _lines(steps: list[Step]) -> str:
    shown = []
    for step in steps:
        words = re.split(r"(?<=[a-z`)])[.;:] ", step.words)[0].rstrip(".")
        words = words if len(words) <= 70 else words[:70].rpartition(" ")[0] + " ..."
        name = f"{'  ' * step.depth}{step.name.rpartition('.')[2]}"
        shown.append(f"{name:<40} {step.file:<34} {words}".rstrip())
    return "\n".join(shown)


def page(first: list[Step], again: list[Step]) -> str:
    corridor, preparing = parts(first)
    doors = [step for step in preparing if not step.file.startswith(("_kernels/", "_compiler/"))]
    beneath = [step for step in preparing if step not in doors]
    about = round(len(beneath), -1)
    return f"""# The walk of a call

Which functions of the package a call on NumPy arrays enters, in order, each where it is entered first.
`python tools/walk.py` traces the calls and writes this page; a test compares it with the sources.

```text
{CALL}
```

| call | functions | utensils of `_base` besides | 0.2.0 |
|---|---|---|---|
| first | {len(counted(corridor))} | {len(corridor) - len(counted(corridor))} | 60 and 7 |
| repeated | {len(counted(again))} | {len(again) - len(counted(again))} | 9 and 1 |
| making the program, before the first runs | {len(doors)} | and about {about} of `_kernels` and `_compiler` | |

A function counts if it has a `def` of its own; comprehensions, lambdas, properties and special methods are read
where they stand. The first call is made in a new process that finds its kernels on disk, on one thread.
What is entered while a module is imported is not part of the walk.

## A first call

`prepare.program` makes the program; its walk is [below](#making-the-program).

```text
{_lines(corridor)}
```

## A repeated call

```text
{_lines(again)}
```

## Making the program

Only functions of `_engine`, `_runtime`, `_problem` and `_base` are listed. What lies beneath them is a family of
kernels that counts its work and [plans](kernels.md), and the [cache](compiler.md) that loads code.

```text
{_lines(doors)}
```
"""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="walk", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="folder with the package")
    parser.add_argument("--print", action="store_true", help="print counts, write no page")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.child:
        child()
        return 0
    first, again = walks(given.source)
    corridor, preparing = parts(first)
    for name, steps in (("first", corridor), ("repeated", again), ("preparing", preparing)):
        print(f"{name}: {len(counted(steps))}, {len(steps)} with utensils")
    if not given.print:
        PAGE.write_text(page(first, again), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
