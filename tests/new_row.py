"""A package with one more activation, as a row and nothing else, and children that compute with it.

`add` copies the package and writes the row into `_problem/activations.py`. Softsign is u / (1 + |u|), which PyTorch and
Keras have, so that layers of theirs must be recognised too. Children are bridges' `child_of_new_row.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from child_python import child_environment

NAME = "softsign"
ROW = """ROWS = (
    Activation(
        "softsign",
        value=lambda o, u, slope: u / (1 + o.where(u > 0, u, -u)),
        kernel=lambda k, u, slope: u / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0),
        derivative=lambda o, u, slope: 1 / (1 + o.where(u > 0, u, -u)) ** 2,
        kernel_gradient=lambda k, u, g, slope: (
            g
            / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0)
            / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0)
        ),
        torch="softsign",
        torch_layer="Softsign",
        keras="softsign",
    ),
"""


def add(folder: Path) -> None:
    """Write the package with the row into a folder."""
    import convgrad

    package = folder / "convgrad"
    ignored = shutil.ignore_patterns("__pycache__", "include")
    shutil.copytree(Path(convgrad.__file__).parent, package, ignore=ignored)
    table = package / "_problem" / "activations.py"
    text = table.read_text(encoding="utf-8")
    assert text.count("\nROWS = (\n") == 1
    table.write_text(text.replace("ROWS = (\n", ROW, 1), encoding="utf-8")


def run(folder: Path, script: Path) -> None:
    """Run a script with the new row, in a process of its own."""
    add(folder)
    environment = child_environment({"KERAS_BACKEND": "torch"})
    environment["PYTHONPATH"] = os.pathsep.join((str(folder), environment["PYTHONPATH"]))
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment | {"NEW_ROW": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def check_package() -> None:
    """Check, in a child, that the package is the one with the row."""
    import convgrad

    assert Path(convgrad.__file__).parent.parent == Path(os.environ["NEW_ROW"]), convgrad.__file__


def check_door(make: Any, back: Any, own: type) -> None:
    """Check both functions on arrays of a framework, with and without what is kept beside an image."""
    from norm_doors import Case, check_case

    for residual in ("", "before", "after"):
        for is_training in (True, False):
            case = Case(activation=NAME, residual=residual, is_training=is_training)
            check_case(case, make, back, own)
