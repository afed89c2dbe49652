"""What is public is listed, what is listed is there, and importing the package brings no framework and no compiler."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

import convgrad
from convgrad._apps.graph.table import TABLE

PUBLIC = [
    "convgrad",
    "convgrad.compat",
    "convgrad.compat.v1",
    "convgrad.compat.v1.nn",
    "convgrad.compat.v1.raw_ops",
    "convgrad.compat.v2",
    "convgrad.compat.v2.nn",
    "convgrad.compat.v2.raw_ops",
    "convgrad.dispatch",
    "convgrad.errors",
    "convgrad.graph",
    "convgrad.graph.ops",
    "convgrad.nn",
    "convgrad.raw_ops",
    "convgrad.reference",
    "convgrad.testing",
]
NEED_FRAMEWORK = {
    "convgrad.jax": "jax",
    "convgrad.keras": "keras",
    "convgrad.tensorflow": "tensorflow",
    "convgrad.torch": "torch",
}
"""Public modules that cannot be imported where a framework is absent."""
HERE = [*PUBLIC, *(name for name, framework in NEED_FRAMEWORK.items() if find_spec(framework))]


KEPT = {
    "convgrad": "BatchNormGradients BatchNormResult Explanation __version__ batch_norm_act batch_norm_act_grad "
    "explain export get_num_threads options set_num_threads "
    "threads compat dispatch errors graph nn raw_ops reference testing",
    "convgrad.dispatch": "GlobalOpDispatcher NOT_SUPPORTED OpDispatcher add_dispatch_list dispatch_for_api "
    "dispatch_for_types",
    "convgrad.errors": "AllocationError ArgumentError ArgumentTypeError BackendMissingError CompileError ConvgradError "
    "DTypeError InternalError",
    "convgrad.graph": "Block Built Cancelled ClientSession Explanation Graph Note Operation Output Page PageRun Scope "
    "Spec Status Value Wire add_symbolic_gradients build cpp_source load ops page_of python_source save svg",
    "convgrad.reference": "batch_norm_act batch_norm_act_grad conv2d conv2d_backprop_filter conv2d_backprop_input "
    "depthwise_conv2d "
    "depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input",
    "convgrad.testing": "Finding Report Row check_op implementation",
}
"""Names programs use; the operations are in test_signatures. One that goes needs a line in the changelog."""


@pytest.mark.parametrize("name", KEPT)
def test_no_public_name_is_lost(name):
    assert set(KEPT[name].split()) <= set(importlib.import_module(name).__all__)


@pytest.mark.parametrize("name", HERE)
def test_listed_names_are_there_once(name):
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []
    assert module.__doc__


@pytest.mark.parametrize("name", HERE)
def test_what_is_defined_for_users_is_listed(name):
    """Functions, classes and constants defined by the package; modules and borrowed tools do not count."""
    module = importlib.import_module(name)
    source = ast.parse(Path(module.__file__).read_text())
    local = {
        each.name
        for each in source.body
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name[0] != "_"
    }
    if (
        name != "convgrad.reference"
    ):  # the one public module that holds code, and imports tools for it
        local |= {
            alias.asname or alias.name
            for each in ast.walk(source)
            if isinstance(each, ast.ImportFrom)
            and each.module not in ("__future__", "typing")
            and each.names[0].name
            not in ("_explain", "door")  # imported on first use, under public names
            for alias in each.names
            if alias.name not in ("*", "__all__") and not (alias.asname or "").startswith("_")
        }
    star = any(
        isinstance(each, ast.ImportFrom) and each.names[0].name == "*" for each in source.body
    )
    if name == "convgrad":
        local -= set(NEED_FRAMEWORK.values())  # a star import must not need one
    if name in NEED_FRAMEWORK:
        local -= {"BackendMissingError"}  # what it raises
    if name == "convgrad.graph.ops":  # made from the table of ops
        local = {*local - {"CLASSES"}, *TABLE}
    assert star or local == set(module.__all__)


def test_no_other_module_is_public():
    found = {"convgrad"} | {
        each.name
        for each in pkgutil.walk_packages(convgrad.__path__, "convgrad.")
        if not any(part.startswith("_") for part in each.name.split("."))
    }
    assert sorted(found) == sorted([*PUBLIC, *NEED_FRAMEWORK])


def test_public_modules_are_attributes_of_the_package():
    for name in PUBLIC[1:]:
        parent, _, child = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(parent), child), types.ModuleType)


def test_public_functions_and_classes_are_documented():
    for name in HERE:
        module = importlib.import_module(name)
        for each in module.__all__:
            value = getattr(module, each)
            if inspect.isfunction(value) or inspect.isclass(value):
                assert inspect.getdoc(value), f"{name}.{each}"


def test_the_version_is_a_version():
    numbers = convgrad.__version__.split("+")[0].split(".")
    assert len(numbers) >= 2 and numbers[0].isdigit()


def test_types_are_shipped():
    assert (Path(convgrad.__file__).parent / "py.typed").exists()


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True
    ).stdout


FRAMEWORKS = ["torch", "tensorflow", "jax", "jaxlib", "dask", "keras", "cupy", "scipy", "numba"]


def test_importing_brings_in_no_framework_and_no_compiler():
    loaded = json.loads(run("import json, sys, convgrad; print(json.dumps(sorted(sys.modules)))"))
    roots = {name.partition(".")[0] for name in loaded}
    assert roots.isdisjoint([*FRAMEWORKS, "llvmlite", "pytest", "hypothesis"])
    beside = {root for root in roots if root in ("numpy", "ml_dtypes", "convgrad")}
    assert beside == {"numpy", "ml_dtypes", "convgrad"}


def test_frameworks_are_not_needed():
    """With every framework made impossible to import, a gradient is still computed."""
    program = f"""
import sys
for name in {FRAMEWORKS!r}:
    sys.modules[name] = None
import numpy as np, convgrad
from convgrad import *
x = np.ones((1, 3, 3, 1), np.float32)
print(convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 1, 1], x, 1, "SAME").sum())
"""
    assert float(run(program)) == 49


def test_importing_starts_no_thread_and_writes_nothing(tmp_path):
    """Neither here, nor at home, nor in the cache's folder, nor among temporary files: the audit hook sees them all."""
    program = f"""
import os, sys, threading
os.chdir({str(tmp_path)!r})
for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "CONVGRAD_CACHE_DIR"):
    os.environ[name] = {str(tmp_path)!r}
written = []
def watch(event, arguments):
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(arguments[0])
    elif event in ("os.mkdir", "os.rename", "os.remove", "socket.connect", "subprocess.Popen", "os.fork"):
        written.append((event, *arguments[:1]))
import numpy, ml_dtypes
sys.dont_write_bytecode = True
sys.addaudithook(watch)
import convgrad, convgrad.nn, convgrad.raw_ops, convgrad.compat.v1.nn
print(threading.active_count(), written, os.listdir("."))
"""
    assert run(program).strip() == "1 [] []"


def test_import_time():
    """At most twice NumPy's own, best of three: the package itself is a few dozen small files."""
    program = """
import sys, time
start = time.perf_counter()
import numpy, ml_dtypes
between = time.perf_counter()
import convgrad
print(between - start, time.perf_counter() - between)
"""
    times = [tuple(map(float, run(program).split())) for _ in range(3)]
    theirs, ours = (min(column) for column in zip(*times, strict=True))
    assert ours < 2 * theirs, f"convgrad {ours:.3f} s, numpy and ml_dtypes {theirs:.3f} s"
