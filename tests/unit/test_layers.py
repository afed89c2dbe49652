"""Who may import whom: the house of docs/how-it-works.md, as an allow-list checked against the sources.

A row names a module or package of `src/convgrad` and the other ones it may import; inside a package everything is
allowed. A module without a row fails, and so does a row that nothing needs: the table is the house as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from graphlib import TopologicalSorter

import pytest

from sources import FILES, ROOT, imports, read

OPEN = {"_errors"}  # an error may be raised anywhere
ALLOWED = {
    # The doors. `__init__` is the package itself.
    "__init__": {
        "_api",
        "_batch_norm",
        "_explain",
        "_export",
        "_options",
        "_runtime",
        "_version",
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
    "__main__": {"_cli"},
    "nn": {"_api"},
    "raw_ops": {"_api"},
    "compat": {"_api", "nn", "raw_ops"},
    "dispatch": {"_dispatch"},
    "errors": set(),
    "graph": {"_graph", "_pages"},
    "reference": {
        "_arguments",
        "_arrays",
        "_batch_norm",
        "_dtypes",
        "_fp_mode",
        "_norm",
        "_oracle",
        "_problem",
    },
    "_api": {
        "_arguments",
        "_arrays",
        "_batch_norm",
        "_config",
        "_dispatch",
        "_dtypes",
        "_engine",
        "_norm",
        "_problem",
        "_runtime",
    },
    # Leaving the corridor by its side doors.
    "_explain": {
        "_algorithms",
        "_api",
        "_arguments",
        "_config",
        "_costs",
        "_dtypes",
        "_dask",
        "_formula",
        "_lazy_shapes",
        "_jit",
        "_kernel",
        "_machines",
        "_plan",
        "_planner",
        "_probe",
        "_problem",
        "_problem_text",
        "_runtime",
        "_targets",
    },
    "_export": {
        "_algorithms",
        "_config",
        "_dtypes",
        "_engine",
        "_files",
        "_fp_mode",
        "_geometry",
        "_graph",
        "_jit",
        "_kernel",
        "_layer_text",
        "_networks",
        "_options",
        "_oracle",
        "_pages",
        "_planner",
        "_prepare",
        "_problem",
        "_problem_text",
        "_program",
        "_runtime",
        "_targets",
        "_text",
        "_version",
    },
    "_graph": {"_api", "_arguments", "_dtypes", "_fp_mode", "_geometry", "_problem", "_text"},
    "_machines": {"_config", "_jit", "_targets"},
    "_probe": {"_codegen", "_jit", "_kernel", "_prepare", "_program", "_runtime", "_targets"},
    "_cli": {
        "_arguments",
        "_dask",
        "_export",
        "_graph",
        "_pages",
        "_dtypes",
        "_prepare",
        "_bench",
        "_check",
        "_config",
        "_files",
        "_headroom",
        "_jit",
        "_layer_text",
        "_options",
        "_problem",
        "_problem_text",
        "_runtime",
        "_studio",
        "_targets",
        "_text",
        "_version",
        "__init__",
    },
    "_bench": {
        "__init__",
        "_children",
        "_config",
        "_dtypes",
        "_files",
        "_frameworks",
        "_geometry",
        "_jit",
        "_layer_text",
        "_memory",
        "_messages",
        "_networks",
        "_probe",
        "_problem",
        "_problem_text",
        "_runtime",
        "_text",
        "_version",
        "jax",
        "keras",
        "reference",
        "tensorflow",
        "torch",
    },
    "_check": {
        "_batch_norm",
        "_children",
        "_dtypes",
        "_files",
        "_frameworks",
        "_geometry",
        "_messages",
        "_norm",
        "_oracle",
        "_problem",
        "_problem_text",
        "reference",
    },
    "_frameworks": {"_dtypes", "_problem"},
    "testing": {"_check"},
    "_pages": {"_dtypes", "_files", "_graph"},
    "_studio": {
        "_children",
        "_formula",
        "_dtypes",
        "_explain",
        "_geometry",
        "_graph",
        "_messages",
        "_pages",
        "_prepare",
        "_problem",
        "_text",
        "_version",
    },
    # The corridor.
    "_engine": {
        "_config",
        "_fp_mode",
        "_norm",
        "_prepare",
        "_problem",
        "_record",
        "_runtime",
        "_warnings",
    },
    "_norm": {"_codegen", "_dtypes", "_fp_mode", "_kernel", "_plan", "_targets"},
    "_record": {"_files", "_problem", "_problem_text", "_warnings"},
    "_prepare": {
        "_algorithms",
        "_dtypes",
        "_headroom",
        "_jit",
        "_kernel",
        "_norm",
        "_plan",
        "_planner",
        "_problem",
        "_program",
        "_runtime",
        "_targets",
    },
    "_arguments": {"_geometry", "_problem", "_laziness"},
    "_batch_norm": {"_arguments", "_dtypes", "_norm"},
    "_batch_norm_graphs": {"_arguments", "_batch_norm", "_dtypes", "_norm"},
    "_problem": {"_dtypes", "_geometry"},
    "_problem_text": {"_dtypes", "_geometry", "_layer_text", "_problem"},
    "_networks": set(),
    "_layer_text": {"_geometry"},
    "_planner": {"_algorithms", "_config", "_costs", "_fp_mode", "_plan", "_problem", "_targets"},
    "_plan": {"_problem"},
    "_costs": {"_targets"},
    "_algorithms": {
        "_codegen",
        "_costs",
        "_dtypes",
        "_fp_mode",
        "_geometry",
        "_kernel",
        "_oracle",
        "_plan",
        "_problem",
        "_targets",
    },
    "_options": {"_config"},
    "_oracle": {"_dtypes", "_fp_mode", "_geometry", "_headroom", "_problem"},
    "_arrays": {"_dask", "_dtypes", "_jax", "_laziness", "_runtime", "_tensorflow", "_torch"},
    # Bridges: a framework's own types above, programs on addresses below.
    "tensorflow": {"_api", "_memory", "_tensorflow"},
    "_tensorflow": {
        "_arguments",
        "_batch_norm_graphs",
        "_config",
        "_dtypes",
        "_engine",
        "_geometry",
        "_norm",
        "_prepare",
        "_problem",
        "_runtime",
    },
    "torch": {"_api", "_memory", "_report", "_torch", "compat", "nn", "raw_ops"},
    "_torch": {
        "_config",
        "_dtypes",
        "_engine",
        "_memory",
        "_norm",
        "_prepare",
        "_problem",
        "_report",
        "_runtime",
        "_warnings",
    },
    "jax": {"_api", "_jax", "_memory"},
    "_dask": {
        "_config",
        "_dtypes",
        "_engine",
        "_fp_mode",
        "_geometry",
        "_problem",
        "_problem_text",
        "_runtime",
        "_version",
    },
    "_lazy_shapes": {"_arrays", "_dask", "_dtypes", "_problem"},
    "_jax": {
        "_batch_norm_graphs",
        "_blocks",
        "_config",
        "_dtypes",
        "_engine",
        "_geometry",
        "_norm",
        "_prepare",
        "_problem",
        "_problem_text",
        "_runtime",
        "_version",
        "_warnings",
    },
    "keras": {"_keras", "_memory", "_report"},
    "_keras": {"_api", "_memory", "_report", "_torch", "_warnings", "jax", "tensorflow"},
    # How a kernel is written, compiled and run. None of these knows convolution.
    "_codegen": {"_dtypes", "_kernel", "_targets"},
    "_jit": {"_children", "_config", "_headroom", "_kernel", "_messages", "_targets", "_warnings"},
    "_runtime": {"_config", "_program"},
    "_targets": set(),
    "_kernel": set(),
    "_program": set(),
    "_messages": {"_dtypes"},
    # Leaves.
    "_blocks": set(),
    "_children": set(),
    "_config": {"_blocks", "_warnings"},
    "_dispatch": set(),
    "_dtypes": set(),
    "_errors": set(),
    "_files": set(),
    "_formula": {"_geometry", "_problem"},
    "_laziness": set(),
    "_geometry": set(),
    "_headroom": set(),
    "_fp_mode": set(),
    "_memory": set(),
    "_report": {"_memory", "_text"},
    "_text": set(),
    "_version": set(),
    "_warnings": set(),
}

LLVM = {"_jit/llvm.py", "_codegen/builder.py"}
"""The only files that may import llvmlite, which has no types and may one day be absent."""
FRAMEWORKS = {
    *("tensorflow", "torch", "jax", "jaxlib", "keras", "xarray", "cupy", "scipy"),
    *("dask", "distributed", "zarr"),
}
"""Never imported: an array of theirs shows that its framework is loaded already."""
RIVALS = {
    **{f"_frameworks/{name}.py": {name} for name in ("tensorflow", "torch", "jax")},
    **{
        file.relative_to(ROOT).as_posix(): {name}
        for name in ("torch", "jax", "tensorflow", "keras")
        for file in ROOT.glob(f"_bench/train/{name}_*.py")
    },
}
"""The exceptions, each for one framework: they run in a child process that exists to load it."""
STORES = {
    "_cli/dask_graph.py": {"dask"},
    "_cli/schedulers.py": {"dask", "distributed"},
    "_cli/stores.py": {"zarr"},
}
"""Of the command line, what a run through Dask imports, inside functions: nothing else of it waits for that."""
BRIDGES = {  # like ALLOWED a plain table, which tools/affected.py reads too
    "_dask": "dask",
    "_jax": "jax",
    "_keras": "keras",
    "_tensorflow": "tensorflow",
    "_torch": "torch",
    "jax": "jax",
    "keras": "keras",
    "tensorflow": "tensorflow",
    "torch": "torch",
}
"""Rows that are imported only by who asks for a framework, or has one of its arrays."""


def component(file: str) -> str:
    """Return the row a file belongs to."""
    return file.removesuffix(".py").split("/")[0]


def neighbours(file: str, source: str) -> set[str]:
    """Return the rows a file imports, its own excepted."""
    inside = {name.split(".")[1] for name in imports(file, source) if name.startswith("convgrad.")}
    own = {"convgrad"} & imports(file, source)  # `import convgrad` reaches every door at once
    rows = {name if name in ALLOWED else "__init__" for name in inside} | {"__init__" for _ in own}
    return rows - {component(file)}


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
        (unallowed, "_engine.py", "from . import _config", None),
        (
            unallowed,
            "_engine.py",
            "from . import _cli",
            "_engine.py: `_engine` may not import ['_cli']",
        ),
        (
            unallowed,
            "_new/part.py",
            "",
            "_new/part.py: `_new` has no row in ALLOWED; add one, as narrow as it can be",
        ),
        (strange, "_engine.py", "import numpy", None),
        (strange, "_engine.py", "import llvmlite.ir", "_engine.py may not import ['llvmlite']"),
        (strange, "_jit/llvm.py", "import llvmlite.binding", None),
        (
            strange,
            "_jit/llvm.py",
            "from torch import nn",
            "_jit/llvm.py may not import ['torch']",
        ),
        (strange, "_torch/sums.py", "import torch", None),
        (strange, "_torch/sums.py", "import jax", "_torch/sums.py may not import ['jax']"),
    ],
)
def test_a_file_at_fault_is_named(
    find: Callable[[str, str], str | None], file: str, source: str, told: str | None
) -> None:
    assert find(file, source) == told


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


def test_a_row_stands_for_something() -> None:
    missing = ALLOWED.keys() - {component(file) for file in FILES}
    assert not missing, f"no such module: {sorted(missing)}"


@pytest.mark.parametrize(
    ("file", "source", "rows"),
    [
        ("_engine.py", "from . import _planner", {"_planner"}),
        ("_engine.py", "from ._planner import choose", {"_planner"}),
        ("_engine.py", "import convgrad._planner", {"_planner"}),
        ("_engine.py", "from convgrad import _planner", {"_planner"}),
        ("_engine.py", "def f():\n    from ._planner import choose", {"_planner"}),
        ("_algorithms/reference.py", "from .. import _oracle", {"_oracle"}),
        ("_algorithms/reference.py", "from . import direct", set()),
        ("_algorithms/reference.py", "from ._direct import x", set()),
        ("_algorithms/reference.py", "from convgrad._algorithms import direct", set()),
        ("compat/v1/nn.py", "from ..._api.v1 import conv2d", {"_api"}),
        ("compat/v1/nn.py", "from .. import v2", set()),
        ("_engine.py", "from convgrad import conv2d", {"__init__"}),
        ("_engine.py", "import convgrad", {"__init__"}),
        ("_engine.py", "import numpy as np", set()),
    ],
)
def test_the_reader_itself(file: str, source: str, rows: set[str]) -> None:
    assert neighbours(file, source) == rows


def test_a_framework_is_seen_inside_a_function() -> None:
    source = "def f():\n    import torch.nn\n    from llvmlite import binding\n    import_module('jax.lax')"
    assert outsiders("_arrays/numpy.py", source) == {"torch", "llvmlite", "jax"}
