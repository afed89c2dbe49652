"""Runs: numbers on blocks, taps behind a cell, cancel, a loop, automatic runs."""

from __future__ import annotations

import json
import re
from typing import Any

from studio_browser import pages
from studio_browser.driving import Studio


def open_in(studio: Studio, page: dict[str, Any]) -> None:
    """Open a page by the file chooser."""
    with studio.page.expect_file_chooser() as chooser:
        studio["open"].click()
    data = json.dumps(page).encode()
    chooser.value.set_files({"name": "page.json", "mimeType": "application/json", "buffer": data})
    studio.count(len(page["blocks"]), len(page["wires"]))


def test_hover_a_cell_and_see_its_taps(studio: Studio) -> None:
    open_in(studio, pages.convolution())
    studio.run()
    assert studio.numbers("y", "output") == {
        (0, 0, 0, 0): 45,
        (0, 0, 1, 0): 54,
        (0, 1, 0, 0): 81,
        (0, 1, 1, 0): 90,
    }
    canvas = studio["view-y-output"].first.locator("canvas")
    canvas.scroll_into_view_if_needed()
    frame = studio.box(canvas)
    studio.page.mouse.move(frame["x"] + frame["width"] * 0.75, frame["y"] + frame["height"] * 0.75)
    trace = studio["trace"].first
    trace.wait_for()
    text = trace.inner_text()
    assert "[0, 1, 1, 0]" in text and re.search(r"\b90\b", text)
    # The nine products of the last cell: 5 6 7, 9 10 11, 13 14 15, each times one.
    for number in (5, 6, 7, 9, 10, 11, 13, 14, 15):
        assert re.search(rf"\b{number}\b", text), number


def test_a_long_run_is_cancelled_and_the_next_one_works(studio: Studio) -> None:
    open_in(studio, pages.endless())
    studio["steps"].fill("10000")
    studio["run"].click()
    studio["cancel"].wait_for()
    studio.page.wait_for_timeout(700)
    studio["cancel"].click()
    studio.page.locator("[data-testid=run-state].run-cancelled").wait_for()
    studio["steps"].fill("1")
    studio.type("x", "shape", "{1,4,4,1}")
    studio.type("f", "shape", "{2,2,1,1}")
    studio.spec("y", "output", "4")
    studio.fit()
    studio.run()
    assert len(studio.numbers("y", "output")) == 16


def test_a_run_follows_every_edit_if_asked_to(studio: Studio) -> None:
    open_in(studio, pages.convolution())
    studio["auto-run"].check()
    studio["result-y-output"].wait_for()
    studio.type("y", "padding", "SAME")
    studio["view-y-output"].first.get_by_role("img", name=re.compile("4 by 4")).wait_for()


def test_up_to_a_block(studio: Studio) -> None:
    open_in(studio, pages.convolution())
    studio.fit()
    studio.page.mouse.click(*studio.title("x"))
    studio["run-until"].click()
    studio["result-x-output"].wait_for()
    assert studio["result-y-output"].count() == 0


def test_the_loss_of_a_loop_is_drawn_live(studio: Studio) -> None:
    studio["menu-gallery"].click()
    studio["gallery-digits"].click()
    studio["run"].click()
    studio.page.locator("[data-testid^=curve-]").first.wait_for(timeout=30_000)
    if studio["cancel"].count():
        studio["cancel"].click()


def test_every_page_of_the_gallery_opens_without_a_problem(studio: Studio) -> None:
    studio["menu-gallery"].click()
    names = [
        str(card.get_attribute("data-testid"))
        for card in studio.page.locator("[data-testid^=gallery-]").all()
    ]
    assert len(names) >= 5
    studio.press("Escape")
    for name in names:
        studio["menu-gallery"].click()
        studio[name].click()
        studio["status"].filter(has_text="checked in").wait_for()
        studio.page.wait_for_timeout(150)
        assert studio.page.locator("[data-testid^=problem-]").all_inner_texts() == [], name
