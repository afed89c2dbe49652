"""Programs that `cpp_source` writes: they compile with our headers, and compute what those of `python_source` do."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

from cc_exports import sources
from cc_programs import Builds, one_and_others, run, setting
from convgrad._base.dtypes import BFLOAT16

_DTYPES = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": BFLOAT16.numpy}


def python_results(source: str) -> dict[str, np.ndarray[Any, Any]]:
    """Run an exported Python program here."""
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(source, "exported.py", "exec"), space)  # our own text
    kept: dict[str, np.ndarray[Any, Any]] = {}
    inner = space["run"]

    def run_(*arguments: Any) -> Any:
        kept.update(inner(*arguments))
        return kept

    space["run"] = run_
    with contextlib.redirect_stdout(io.StringIO()):
        space["main"]()
    return kept


def read(printed: str) -> list[np.ndarray[Any, Any]]:
    """Read tensors as the programs print them: bits, then a dtype and a shape."""
    arrays = []
    lines = printed.splitlines()
    for bits, said in zip(lines[::2], lines[1::2], strict=True):
        pairs = [pair.split(",") for pair in bits.removeprefix("bits ").split()]
        data = bytes(int(high) * 16 + int(low) for high, low in pairs)
        dtype, _, shape = said.partition(" ")
        sizes = [int(size) for size in shape.strip("[]").split(",") if size]
        arrays.append(np.frombuffer(data, _DTYPES.get(dtype, dtype)).reshape(sizes))
    return arrays


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", one_and_others())
@pytest.mark.parametrize("name", sources())
def test_exports_compute_the_same(name: str, compiler: str, builds: Builds) -> None:
    done = run(builds.all_together(setting(compiler, "C++17")), "exports", name)
    assert done.returncode == 0, done.stderr
    expected = python_results(sources()[name][1])
    results = read(done.stdout)
    assert len(results) == len(expected) > 0
    for (title, array), result in zip(expected.items(), results, strict=True):
        assert (result.dtype, result.shape) == (array.dtype, array.shape), title
        if result.tobytes() == array.tobytes():
            continue
        assert array.dtype.kind in "fV", title
        assert name != "odd_numbers", title
        wide = array.astype(np.float64)
        size = np.abs(wide).max()
        close = {2: 0.01, 4: 1e-5, 8: 1e-12}[array.dtype.itemsize]
        np.testing.assert_allclose(
            result.astype(np.float64), wide, rtol=close, atol=close * size, err_msg=title
        )
