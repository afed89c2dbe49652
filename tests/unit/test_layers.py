"""Who may import whom: the house of docs/how-it-works.md, as an allow-list checked against the sources.

A row names a room or a door of `src/convgrad`, or a part of `_bridges` or `_apps`, and the other ones it may import;
inside of a row everything is allowed. A module without a row fails, and so does a row that nothing needs: the table is
the house as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from sources import FILES, imports, read

HERE = Path(__file__).parents[2]
OPEN = {"_base"}  # errors, dtypes, switches and words are for everybody
ALLOWED = {
    # The doors. `__init__` is the package itself.
    "__init__": {
        "_api",
        "_apps/explain",
        "_apps/export",
        "_problem",
        "_runtime",
        "compat",
        "dispatch",
        "errors",
        "graph",
        "jax",
        "keras",
        "nn",
        "raw_ops",
        "reference",
        "tensorflow",
        "testing",
        "torch",
    },
    "__main__": {"_apps/cli"},
    "nn": {"_api"},
    "raw_ops": {"_api"},
    "compat": {"_api", "nn", "raw_ops"},
    "dispatch": {"_api"},
    "errors": set(),
    "reference": {"_arrays", "_problem"},
    "graph": {"_apps/graph", "_apps/pages"},
    "testing": {"_apps/check"},
    "torch": {"_api", "_bridges/report", "_bridges/torch", "compat", "nn", "raw_ops"},
    "jax": {"_api", "_bridges/jax"},
    "tensorflow": {"_api", "_bridges/tensorflow"},
    "keras": {"_bridges/keras", "_bridges/report"},
    # The corridor.
    "_base": set(),
    "_problem": set(),
    "_compiler": set(),
    "_kernels": {"_compiler", "_problem"},
    "_runtime": set(),
    "_engine": {"_compiler", "_kernels", "_problem", "_runtime"},
    "_arrays": {
        "_bridges/dask",
        "_bridges/jax",
        "_bridges/tensorflow",
        "_bridges/torch",
        "_engine",
        "_problem",
        "_runtime",
    },
    "_api": {"_arrays", "_engine", "_problem"},
    # Bridges: a framework's own types above, programs on addresses below.
    "_bridges": set(),
    "_bridges/dask": {"_engine", "_problem", "_runtime"},
    "_bridges/records": {"_runtime"},
    "_bridges/serve": {"_bridges/records", "_compiler", "_runtime"},
    "_bridges/look_up": {"_bridges/serve", "_runtime"},
    "_bridges/jax": {"_bridges/records", "_bridges/serve", "_engine", "_problem", "_runtime"},
    "_bridges/tensorflow": {
        "_bridges/look_up",
        "_bridges/records",
        "_bridges/serve",
        "_engine",
        "_problem",
        "_runtime",
    },
    "_bridges/torch": {
        "_bridges/look_up",
        "_bridges/records",
        "_bridges/report",
        "_bridges/serve",
        "_engine",
        "_problem",
        "_runtime",
    },
    "_bridges/keras": {
        "_api",
        "_bridges/report",
        "_bridges/torch",
        "_problem",
        "jax",
        "tensorflow",
    },
    "_bridges/peers": {"_problem"},
    "_bridges/report": set(),
    # Leaving the corridor by its side doors.
    "_apps": set(),
    "_apps/bits": {"__init__", "_engine", "_problem"},
    "_apps/bench": {
        "__init__",
        "_bridges/peers",
        "_compiler",
        "_engine",
        "_problem",
        "_runtime",
        "reference",
    },
    "_apps/check": {"_bridges/peers", "_problem", "reference"},
    "_apps/cli": {
        "__init__",
        "_bridges/dask",
        "_compiler",
        "_engine",
        "_problem",
        "_runtime",
        "_apps/bench",
        "_apps/bits",
        "_apps/check",
        "_apps/export",
        "_apps/graph",
        "_apps/pages",
        "_apps/studio",
    },
    "_apps/explain": {
        "_api",
        "_arrays",
        "_bridges/dask",
        "_compiler",
        "_engine",
        "_kernels",
        "_problem",
        "_runtime",
    },
    "_apps/export": {
        "_apps/graph",
        "_apps/pages",
        "_compiler",
        "_engine",
        "_kernels",
        "_problem",
        "_runtime",
    },
    "_apps/graph": {"_api", "_problem"},
    "_apps/pages": {"_apps/graph"},
    "_apps/studio": {"_apps/explain", "_apps/graph", "_apps/pages", "_engine", "_problem"},
}
SPLIT = {"_apps", "_bridges"}
"""Rooms of which each part has a row of its own."""

COMPILER: dict[str, set[str]] = {
    "kernel": set(),
    "targets": set(),
    "codegen": {"kernel", "targets"},
    "costs": {"targets"},
    "jit": {"kernel", "targets"},
    "machines": {"jit", "targets"},
}
"""Inside of `_compiler`: a kernel is written, priced and compiled by parts that do not know each other."""

LLVM = {"_compiler/jit/llvm.py"}
"""The only file that may import llvmlite, which has no types and may one day be absent."""
FRAMEWORKS = {
    *("tensorflow", "torch", "jax", "jaxlib", "keras", "xarray", "cupy", "scipy"),
    *("dask", "distributed", "zarr"),
}
"""Never imported: an array of theirs shows that its framework is loaded already."""
RIVALS = {f"_bridges/peers/{name}.py": {name} for name in ("tensorflow", "torch", "jax")}
"""The exceptions, each for one framework: they run in a child process that exists to load it."""
STORES = {
    "_apps/cli/dask_graph.py": {"dask"},
    "_apps/cli/schedulers.py": {"dask", "distributed"},
    "_apps/cli/stores.py": {"zarr"},
}
"""Of the command line, what a run through Dask imports, inside functions: nothing else of it waits for that."""
BRIDGES = {  # like ALLOWED a plain table, which tools/affected.py reads too
    "_bridges/dask": "dask",
    "_bridges/jax": "jax",
    "_bridges/keras": "keras",
    "_bridges/tensorflow": "tensorflow",
    "_bridges/torch": "torch",
    "jax": "jax",
    "keras": "keras",
    "tensorflow": "tensorflow",
    "torch": "torch",
}
"""Rows that are imported only by those who ask for a framework, or have one of its arrays."""


def component(file: str) -> str:
    """Return the row a file belongs to."""
    parts = file.removesuffix(".py").removesuffix("/__init__").split("/")
    return "/".join(parts[: 2 if parts[0] in SPLIT else 1])


def neighbours(file: str, source: str) -> set[str]:
    """Return the rows a file imports, its own excepted."""
    rows = {row_of(name) for name in imports(file, source) if name.split(".")[0] == "convgrad"}
    return rows - {component(file)}


def row_of(name: str) -> str:
    """Return the row of a dotted name. `convgrad` itself reaches every door at once."""
    row = component("/".join(name.split(".")[1:3]))
    return next((each for each in (row, row.split("/")[0]) if each in ALLOWED), "__init__")


def outsiders(file: str, source: str) -> set[str]:
    return {name.split(".")[0] for name in imports(file, source)} - {"convgrad"}


def unallowed(file: str, source: str) -> str | None:
    """Return what is wrong with the rows a file imports."""
    row = component(file)
    if row not in ALLOWED:
        return f"{file}: `{row}` has no row in ALLOWED; add one, as narrow as it can be"
    wrong = neighbours(file, source) - ALLOWED[row] - OPEN
    return f"{file}: `{row}` may not import {sorted(wrong)}" if wrong else None


def strange(file: str, source: str) -> str | None:
    """Return what is wrong with what a file imports from outside of the package."""
    others = outsiders(file, source)
    bridged = {BRIDGES[row]} if (row := component(file)) in BRIDGES else set()
    wrong = others & FRAMEWORKS - RIVALS.get(file, set()) - STORES.get(file, set()) - bridged
    wrong |= others & {"llvmlite"} if file not in LLVM else set()
    return f"{file} may not import {sorted(wrong)}" if wrong else None


# One loop each, not a test per file: 1,080 tests take long to collect and report. All files at fault are named.


def test_imports_are_allowed() -> None:
    assert not [wrong for file in FILES if (wrong := unallowed(file, read(file)))]


def test_only_the_walls_touch_llvm_and_nothing_touches_a_framework() -> None:
    assert not [wrong for file in FILES if (wrong := strange(file, read(file)))]


@pytest.mark.parametrize(
    ("find", "file", "source", "told"),
    [
        (unallowed, "_engine/plan.py", "from .. import _problem", None),
        (unallowed, "_engine/plan.py", "from .._base import config", None),
        (
            unallowed,
            "_engine/plan.py",
            "from .._apps import cli",
            "_engine/plan.py: `_engine` may not import ['_apps/cli']",
        ),
        (
            unallowed,
            "_bridges/jax/sums.py",
            "from ..torch import sums",
            "_bridges/jax/sums.py: `_bridges/jax` may not import ['_bridges/torch']",
        ),
        (
            unallowed,
            "_new/part.py",
            "",
            "_new/part.py: `_new` has no row in ALLOWED; add one, as narrow as it can be",
        ),
        (strange, "_engine/__init__.py", "import numpy", None),
        (
            strange,
            "_engine/__init__.py",
            "import llvmlite.ir",
            "_engine/__init__.py may not import ['llvmlite']",
        ),
        (strange, "_compiler/jit/llvm.py", "import llvmlite.binding", None),
        (
            strange,
            "_compiler/jit/llvm.py",
            "from torch import nn",
            "_compiler/jit/llvm.py may not import ['torch']",
        ),
        (strange, "_bridges/torch/sums.py", "import torch", None),
        (
            strange,
            "_bridges/torch/sums.py",
            "import jax",
            "_bridges/torch/sums.py may not import ['jax']",
        ),
    ],
)
def test_a_file_at_fault_is_named(
    find: Callable[[str, str], str | None], file: str, source: str, told: str | None
) -> None:
    assert find(file, source) == told


def test_parts_of_the_compiler_keep_apart() -> None:
    used: dict[str, set[str]] = {part: set() for part in COMPILER}
    for file in FILES:
        if file.startswith("_compiler/") and (part := _part(file)) in COMPILER:
            names = imports(file, read(file))
            used[part] |= {_part(each.replace(".", "/")[9:]) for each in names} & COMPILER.keys()
    assert {part: others - {part} for part, others in used.items()} == COMPILER


def _part(file: str) -> str:
    parts = file.removesuffix(".py").split("/")
    return parts[1] if parts[0] == "_compiler" and len(parts) > 1 else ""


def test_no_row_allows_more_than_is_used() -> None:
    used: dict[str, set[str]] = {row: set() for row in ALLOWED}
    for file in FILES:
        used[component(file)] |= neighbours(file, read(file))
    idle = {row: sorted(allowed - used[row]) for row, allowed in ALLOWED.items()}
    assert not any(idle.values()), {row: names for row, names in idle.items() if names}


def test_rows_are_acyclic_and_name_only_rows() -> None:
    for row, allowed in ALLOWED.items():
        assert allowed <= ALLOWED.keys(), f"{row}: no such row: {sorted(allowed - ALLOWED.keys())}"
    tuple(TopologicalSorter(ALLOWED).static_order())  # raises CycleError


ORDER = (
    *("_base", "_problem", "_compiler", "_kernels", "_runtime", "_engine"),
    *("_bridges", "_arrays", "_api", "_apps"),
)
"""The rooms as docs/how-it-works.md lists them, from the ground up."""


def test_rooms_import_only_rooms_above_them_in_the_table() -> None:
    """But for Keras's bridge, which calls the public functions."""
    page = (HERE / "docs/how-it-works.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \[`(_\w+)/`\]", page, re.M)) == ORDER
    wrong = {
        (row, other)
        for row, allowed in ALLOWED.items()
        for other in allowed
        if (here := row.split("/")[0]) in ORDER and (there := other.split("/")[0]) in ORDER
        if ORDER.index(there) > ORDER.index(here)
    }
    assert wrong == {("_bridges/keras", "_api")}


def test_every_file_that_may_import_llvmlite_does() -> None:
    assert {file for file in FILES if "llvmlite" in outsiders(file, read(file))} == LLVM


def test_a_row_stands_for_something() -> None:
    missing = ALLOWED.keys() - {component(file) for file in FILES}
    assert not missing, f"no such module: {sorted(missing)}"


@pytest.mark.parametrize(
    ("file", "source", "rows"),
    [
        ("_api/v1.py", "from .. import _engine", {"_engine"}),
        ("_api/v1.py", "from .._engine import planner", {"_engine"}),
        ("_api/v1.py", "from .._engine.planner import choose", {"_engine"}),
        ("_api/v1.py", "import convgrad._engine.planner", {"_engine"}),
        ("_api/v1.py", "from convgrad import _engine", {"_engine"}),
        ("_api/v1.py", "def f():\n    from .._engine.planner import choose", {"_engine"}),
        ("_api/v1.py", "from .._apps.cli import main", {"_apps/cli"}),
        ("_api/v1.py", "from .._apps import cli", {"_apps/cli"}),
        ("_apps/cli/main.py", "from .. import graph", {"_apps/graph"}),
        ("_apps/cli/main.py", "from ..graph.row import OpRow", {"_apps/graph"}),
        ("_kernels/reference.py", "from .._problem import oracle", {"_problem"}),
        ("_kernels/reference.py", "from . import direct", set()),
        ("_kernels/reference.py", "from convgrad._kernels import direct", set()),
        ("compat/v1/nn.py", "from ..._api.v1 import conv2d", {"_api"}),
        ("compat/v1/nn.py", "from .. import v2", set()),
        ("_engine/plan.py", "from convgrad import conv2d", {"__init__"}),
        ("_engine/plan.py", "import convgrad", {"__init__"}),
        ("_engine/plan.py", "import numpy as np", set()),
    ],
)
def test_the_reader_itself(file: str, source: str, rows: set[str]) -> None:
    assert neighbours(file, source) == rows


def test_a_framework_is_seen_inside_a_function() -> None:
    source = "def f():\n    import torch.nn\n    from llvmlite import binding\n    import_module('jax.lax')"
    assert outsiders("_arrays/numpy.py", source) == {"torch", "llvmlite", "jax"}
