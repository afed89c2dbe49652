"""Exported C++ against TensorFlow's own headers, where they are installed: `pytest -m peers`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from convgrad._apps.graph.table import TABLE
from convgrad._apps.pages.cpp_source import cpp_source
from pages_files.cpp_headers import class_of
from pages_files.graphs import HOSTILE, Case, every_op, network, rename

pytestmark = pytest.mark.peers

OURS = ("SpreadReduced", "SumToShape")
"""Ops that TensorFlow does not have."""


@pytest.mark.parametrize("make", [network, every_op, lambda: rename(every_op(), HOSTILE)])
def test_exports_compile(make: Callable[[], Case], tmp_path: Path) -> None:
    found, compiler = find_spec("tensorflow"), shutil.which("g++")
    if found is None or found.origin is None or compiler is None:
        pytest.skip("there is no TensorFlow, or no g++")
    include = Path(found.origin).with_name("include")
    case = make()
    source, ours = tmp_path / "program.cc", tmp_path / "ours.h"
    source.write_text(cpp_source(case.graph, case.fetches, case.feeds, case.initial))
    classes = "".join(class_of(TABLE[name]) for name in OURS)
    ours.write_text(
        '#include "tensorflow/cc/ops/standard_ops.h"\n'
        f"namespace tensorflow {{ namespace ops {{ namespace internal {{\n{classes}}} }} }}\n"
    )
    command = [compiler, "-std=c++17", "-fsyntax-only", "-w", "-I", include, "-include", ours]
    done = subprocess.run([*command, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
