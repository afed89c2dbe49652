"""A page that the studio cannot draw: words instead of a blank page, and no draft that brings the same failure back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studio_browser.driving import Studio


def spoil(route: Any) -> None:
    """Give an answer that the page cannot draw, whenever a block is called bad."""
    answer = route.fetch()
    said = answer.json()
    if "bad" in said["blocks"]:
        said["notes"] = None
    route.fulfill(response=answer, json=said)


def fail(studio: Studio) -> None:
    """Call a block bad, and see the studio fail."""
    studio.page.route("**/api/check", spoil)
    studio.page.mouse.click(*studio.title("good"))
    studio.press("F2")
    studio["rename-good"].fill("bad")
    studio["rename-good"].press("Enter")
    studio["crash"].wait_for()


def test_a_page_that_cannot_be_drawn(tmp_path: Path, studio: Studio) -> None:
    studio.rename(studio.add("Const", (80, 80)), "good")
    studio.type("good", "val", "{1,2}")
    studio.spec("good", "output", "2")
    studio.press("Escape", "Escape")
    fail(studio)
    assert studio["crash-error"].inner_text()
    with studio.page.expect_download() as download:
        studio["crash-download"].click()
    download.value.save_as(tmp_path / "page.json")
    kept = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert [(each["id"], each["pins"]["val"]) for each in kept["blocks"]] == [("bad", "{1,2}")]

    # The step that led there is undone, and all is as before.
    studio["crash-undo"].click()
    studio.spec("good", "output", "2")

    # A reload begins with an empty page and offers what failed; opened, it fails again, and still nothing is lost.
    fail(studio)
    studio.page.reload()
    studio.wait()
    studio.count(0, 0)
    studio["notice"].get_by_role("button", name="Open it").click()
    studio["crash"].wait_for()
    studio.page.reload()
    studio.wait()
    studio["notice"].get_by_role("button", name="Open it").wait_for()

    # Given up, it is gone for good.
    studio["notice"].get_by_role("button", name="Open it").click()
    studio["crash-discard"].click()
    studio.count(0, 0)
    studio.page.reload()
    studio.wait()
    studio.count(0, 0)
    assert studio["notice"].count() == studio["crash"].count() == 0
