"""A warning points at the caller's line, through whichever door the call came."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from inspect import currentframe
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import _engine, dispatch, raw_ops
from convgrad._base import config
from convgrad._base.errors import CompileError
from convgrad._engine import prepare

ROOT = Path(convgrad.__file__).parent
ONE = np.ones((1, 1, 1, 1), np.float32)


def line() -> int:
    """Return the caller's line."""
    frame = currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def through_the_top_level() -> int:
    convgrad.conv2d(ONE, ONE, 1, "SAME")
    return line() - 1


def through_raw_ops() -> int:
    raw_ops.Conv2D(input=ONE, filter=ONE, strides=[1, 1, 1, 1], padding="SAME")
    return line() - 1


def through_separable() -> int:
    convgrad.separable_conv2d(ONE, ONE, ONE, 1, "SAME")
    return line() - 1


def through_explain() -> int:
    convgrad.explain("conv2d", (1, 1, 1, 1), (1, 1, 1, 1))
    return line() - 1


class Mine:
    """An array type with a handler of its own, which calls back."""


handled: list[int] = []


@dispatch.dispatch_for_types(convgrad.conv2d, Mine)
def conv2d_of_mine(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    dilations: Any = 1,
    name: Any = None,
) -> Any:
    handled.append(line() + 1)
    return convgrad.conv2d(ONE, ONE, 1, "SAME")


def through_a_handler() -> int:
    convgrad.conv2d(Mine(), ONE, 1, "SAME")
    return handled.pop()


DOORS = [
    through_the_top_level,
    through_raw_ops,
    through_separable,
    through_explain,
    through_a_handler,
]
COMPUTING = [door for door in DOORS if door is not through_explain]


def check(record: Any, wanted: int, text: str) -> None:
    (found,) = [each for each in record if text in str(each.message)]
    assert (found.filename, found.lineno) == (__file__, wanted)
    assert found.category is RuntimeWarning


@pytest.mark.parametrize("door", DOORS)
def test_a_variable_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, door: Any) -> None:
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setattr(config, "_decided", None)
    monkeypatch.setenv("CONVGRAD_VECTOR_BITS", "100")
    with pytest.warns(RuntimeWarning) as record:
        wanted = door()
    check(record, wanted, "CONVGRAD_VECTOR_BITS='100' is ignored")


@pytest.mark.parametrize("door", DOORS)
def test_a_target_this_machine_cannot_run(monkeypatch: pytest.MonkeyPatch, door: Any) -> None:
    name = f"of {door.__name__}"  # what was chosen once is remembered
    with config.scope(target=name), pytest.warns(RuntimeWarning) as record:
        wanted = door()
    check(record, wanted, f"target '{name}' is ignored")


@pytest.mark.parametrize("door", COMPUTING)
def test_kernels_that_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch, door: Any) -> None:
    def refuse(*_: Any) -> Any:
        raise CompileError("not today")

    monkeypatch.setattr(prepare, "program", refuse)
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(_engine, "_warned", False)
    with pytest.warns(RuntimeWarning) as record:
        wanted = door()
    check(record, wanted, "the slow reference is used: not today")


def test_a_script_is_shown_its_own_line(tmp_path: Path) -> None:
    """As Python prints it, with the line itself."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, convgrad\n"
        "one = np.ones((1, 1, 1, 1), np.float32)\n"
        'convgrad.nn.conv2d(one, one, 1, "SAME")  # the third line\n'
    )
    ran = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "CONVGRAD_KERNELS": "perhaps", "PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{script}:3: RuntimeWarning: convgrad: CONVGRAD_KERNELS='perhaps'" in ran.stderr
    assert "# the third line" in ran.stderr


def test_no_module_warns_in_another_way() -> None:
    for path in ROOT.rglob("*.py"):
        calls = [
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]
        ways = {"warnings.warn", "warnings.warn_explicit"} & set(calls)
        place = path.relative_to(ROOT).as_posix()
        assert not ways or place == "_base/warnings.py", f"{place}: use `_base.warnings.warn`"
