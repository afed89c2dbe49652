"""Names that every object of JavaScript has already: of blocks, pins and dtypes, from the file to the program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studio_browser import pages
from studio_browser.driving import Studio
from studio_browser.serving import Server

Serve = Callable[..., Server]
Visit = Callable[..., Studio]


def named() -> dict[str, Any]:
    """Return a sum of two vectors under such names."""
    numbers = {"dtype": "DT_FLOAT", "shape": [2], "data": [1, 2]}
    return pages.document(
        [
            {"id": "constructor", "type": "Const", "at": [0, 0], "pins": {"val": numbers}},
            {"id": "toString", "type": "Const", "at": [0, 340], "pins": {"val": "{10f,20f}"}},
            {"id": "__proto__", "type": "Add", "at": [420, 60], "pins": {}},
        ],
        "constructor.output > __proto__.x\ntoString.output > __proto__.y",
        "hasOwnProperty",
    )


def test_a_page_of_blocks_called_by_names_of_objects(
    tmp_path: Path, serve: Serve, visit: Visit
) -> None:
    file = tmp_path / "page.json"
    file.write_text(json.dumps(named()), encoding="utf-8")
    studio = visit(serve(str(file)).address)
    studio.count(3, 2)
    studio.spec("__proto__", "z", "float 2")
    studio.run()
    assert studio.numbers("__proto__", "z") == {(0,): 11, (1,): 22}

    # A new name and an edit; the draft of them is what a reload begins with.
    studio.fit()
    studio.rename("toString", "hasOwnProperty")
    studio.type("hasOwnProperty", "val", "{30f,40f}")
    studio.spec("hasOwnProperty", "output", "float 2")
    studio.page.wait_for_timeout(400)
    studio.page.reload()
    studio.wait()
    studio.count(3, 2)
    studio.spec("__proto__", "z", "float 2")
    studio.run()
    assert studio.numbers("__proto__", "z") == {(0,): 31, (1,): 42}

    # Two results beside each other, and the block chosen in the inspector.
    studio.fit()
    studio.page.mouse.click(*studio.title("constructor"))
    studio["inspector"].get_by_role("heading", name="constructor").wait_for()
    studio.page.keyboard.down("Shift")
    studio.page.mouse.click(*studio.title("__proto__"))
    studio.page.keyboard.up("Shift")
    studio["compare-cells"].filter(has_text="__proto__").wait_for()

    studio["menu-export"].click()
    studio["export-python"].click()
    compile(studio["export-source"].inner_text(), "page.py", "exec")
    studio.press("Escape", "Control+s")
    studio["notice"].filter(has_text="page.json").wait_for()
    kept = {each["id"]: each for each in json.loads(file.read_text(encoding="utf-8"))["blocks"]}
    assert kept.keys() == {"constructor", "hasOwnProperty", "__proto__"}


def test_a_block_is_added_and_called_constructor(studio: Studio) -> None:
    """The name is typed, the wire drawn by mouse; a pasted block brings a type, a pin and a dtype called so."""
    studio.rename(studio.add("Const", (60, 60)), "constructor")
    studio.type("constructor", "val", "{3f,4f}")
    studio.rename(studio.add("Square", (440, 60)), "__proto__")
    studio.wire("constructor.output", "__proto__.x")
    studio.count(2, 1)
    studio.spec("__proto__", "y", "float 2")
    odd = pages.document(
        [
            {
                "id": "valueOf",
                "type": "__proto__",
                "at": [60, 500],
                "pins": {
                    "val": {"dtype": "__proto__", "shape": [1], "data": [1]},
                    "__proto__": "a text",
                },
            }
        ]
    )
    studio.press("Escape", "Escape")
    studio.page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData('text/plain', text);
            document.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));
        }""",
        json.dumps(odd),
    )
    studio.count(3, 1)
    studio["field-valueOf-val"].filter(has_text="__proto__").wait_for()
    studio.fit()
    studio.type("valueOf", "__proto__", "another")
    studio.page.wait_for_timeout(400)
    studio.page.reload()
    studio.wait()
    assert studio["field-valueOf-__proto__"].input_value() == "another"
