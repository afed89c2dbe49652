"""Programs that `cpp_source` writes: they compile with our headers, and compute what those of `python_source` do."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cc_programs import ROOT, Builds, one_and_others, run, setting
from convgrad._dtypes import BFLOAT16
from convgrad._pages.cpp_source import cpp_source
from convgrad._pages.exports import export
from convgrad._pages.python_source import python_source
from convgrad._studio.gallery import ENTRIES
from convgrad.graph import Scope, build, load, ops
from pages_files.graphs import (
    HOSTILE,
    Case,
    document_block,
    every_op,
    network,
    odd_constants,
    rename,
)

GRAPHS: dict[str, Callable[[], Case]] = {
    "the_document": document_block,
    "network": network,
    "every_op": every_op,
    "hostile_network": lambda: rename(network(), HOSTILE),
    "hostile_every_op": lambda: rename(every_op(), HOSTILE),
    "odd_numbers": lambda: _odd_numbers(),
}
GALLERY = ROOT / "src" / "convgrad" / "_studio" / "pages"
PAGES = [
    *(GALLERY / f"{entry.name}.json" for entry in ENTRIES),
    *sorted((ROOT / "examples" / "pages").glob("*.json")),
]
_DTYPES = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": BFLOAT16.numpy}
_SHOWN = "for (const Tensor& tensor : outputs) {\n"
_BITS = """    std::cout << "bits ";
    for (const char c : std::string(tensor.tensor_data())) {
      std::cout << ((c >> 4) & 15) << "," << (c & 15) << " ";
    }
    std::cout << "\\n";
"""


def _odd_numbers() -> Case:
    """Constants whose bits are easily lost."""
    scope = Scope.new_root_scope()
    for array in odd_constants():
        ops.Const(scope, array)
    return Case(scope)


def sources() -> dict[str, tuple[str, str]]:
    """Return every program in both languages."""
    found = {}
    for name, make in GRAPHS.items():
        case = make()
        given = (case.graph, case.fetches, case.feeds, case.initial, name)
        found[name] = (cpp_source(*given), python_source(*given))
    for path in PAGES:
        built = build(load(path))
        assert not built.problems
        name = re.sub("[^a-z0-9]", "_", path.stem)
        found[name] = (export("cpp", built), export("python", built))
    return found


def together(programs: dict[str, str], folder: Path) -> Path:
    """Write one program of all of them, which also print bits; its first argument chooses."""
    lines = []
    for text in programs.values():
        lines += [line for line in text.splitlines() if line.startswith("#include")]
    lines = sorted(set(lines))
    for name, text in programs.items():
        assert _SHOWN in text
        body = re.sub("(?m)^#include.*$", "", text).replace("int main()", f"int Main_{name}()")
        lines += [f"namespace program_{name} {{", body.replace(_SHOWN, _SHOWN + _BITS), "}"]
    lines += ["int main(int, char** argv) {", "  const std::string name = argv[1];"]
    for name in programs:
        lines.append(f'  if (name == "{name}") return program_{name}::Main_{name}();')
    place, part = folder / "exports.cc", folder / f"exports.{os.getpid()}"
    part.write_text("\n".join([*lines, "  return 2;", "}", ""]), encoding="ascii")
    part.replace(place)  # other workers compile it, too
    return place


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


SOURCES = sources()


@pytest.mark.parametrize("compiler", one_and_others())
@pytest.mark.parametrize("name", SOURCES)
def test_exports_compute_the_same(name: str, compiler: str, builds: Builds) -> None:
    place = together({each: cpp for each, (cpp, _) in SOURCES.items()}, builds.folder)
    done = run(builds.program(place, setting(compiler, "C++17")), name)
    assert done.returncode == 0, done.stderr
    expected = python_results(SOURCES[name][1])
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
