"""Names that mean something to JavaScript, Python or C++ are names like others: in files, runs and exports."""

from __future__ import annotations

import contextlib
import io
import json

from convgrad._apps.pages import document, exports
from convgrad._apps.pages.build import build
from convgrad._apps.pages.run import PageRun

NAMES = (
    "constructor",
    "toString",
    "__proto__",
    "__builtins__",
    "__class__",
    "class",
    "None",
    "int",
)


def test_a_page_by_names_that_mean_something() -> None:
    """A sum of constants, each called by one of them, is read, written, run and exported."""
    text = json.dumps(
        {
            "format": "convgrad-page",
            "version": 1,
            "name": "__proto__",
            "blocks": [
                *({"id": name, "type": "Const", "pins": {"val": "2f"}} for name in NAMES),
                {"id": "valueOf", "type": "AddN", "pins": {}},
            ],
            "wires": [{"from": [name, "output"], "to": ["valueOf", "inputs"]} for name in NAMES],
        }
    )
    page = document.read(text.encode(), "page.json")
    assert document.read(document.write(page).encode(), "again") == page
    built = build(page)
    assert not built.problems
    results = PageRun(built).step()
    assert set(results) == {*NAMES, "valueOf"}
    assert float(results["valueOf"]["sum"]) == 2 * len(NAMES)

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(exports.export("python", built), {"__name__": "__main__"})
    assert f"\n{2.0 * len(NAMES)}" in printed.getvalue()
    assert exports.export("cpp", built).count("ops::Const(") == len(NAMES)
    assert all(f">{name}<" in exports.export("svg", built) for name in NAMES)
