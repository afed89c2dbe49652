"""Programs that `cpp_source` and `python_source` write of the same graphs, and those in C++ as one program."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from convgrad._apps.pages.cpp_source import cpp_source
from convgrad._apps.pages.exports import export
from convgrad._apps.pages.python_source import python_source
from convgrad._apps.studio.gallery import ENTRIES
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

ROOT = Path(__file__).resolve().parent.parent
GRAPHS: dict[str, Callable[[], Case]] = {
    "the_document": document_block,
    "network": network,
    "every_op": every_op,
    "hostile_network": lambda: rename(network(), HOSTILE),
    "hostile_every_op": lambda: rename(every_op(), HOSTILE),
    "odd_numbers": lambda: _odd_numbers(),
}
GALLERY = ROOT / "src" / "convgrad" / "_apps" / "studio" / "pages"
PAGES = [
    *(GALLERY / f"{entry.name}.json" for entry in ENTRIES),
    *sorted((ROOT / "examples" / "pages").glob("*.json")),
]
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


@cache
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


@cache
def together() -> str:
    """Return one program of all of them, which also print bits; its first argument chooses."""
    programs = {name: cpp for name, (cpp, _) in sources().items()}
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
    return "\n".join([*lines, "  return 2;", "}", ""])
