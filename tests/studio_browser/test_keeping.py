"""What is kept: saved files, drafts over a reload and a crash of the server, two tabs, imports, exports, the theme."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

from pages_files.writing import save
from studio_browser import pages
from studio_browser.driving import Studio
from studio_browser.serving import Server

Serve = Callable[..., Server]
Visit = Callable[..., Studio]


def test_save_and_reload(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(pages.convolution()), encoding="utf-8")
    studio = visit(serve(str(file)).address)
    studio.count(3, 2)
    studio.type("y", "padding", "SAME")
    studio.press("Control+s")
    studio["notice"].filter(has_text="mine.json").wait_for()
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert {each["id"]: each for each in kept["blocks"]}["y"]["pins"]["padding"] == "SAME"
    studio.page.reload()
    studio.wait()
    studio.count(3, 2)
    assert studio["field-y-padding"].input_value() == "SAME"


def test_unsaved_work_survives_a_reload(studio: Studio) -> None:
    block = studio.add("Const", (80, 80))
    studio.type(block, "val", "{7,8,9}")
    studio.spec(block, "output", "3")
    studio.page.wait_for_timeout(400)  # a draft is written after 250
    studio.page.reload()
    studio.wait()
    assert studio[f"field-{block}-val"].input_value() == "{7,8,9}"


def test_the_server_is_killed_and_restarted_with_unsaved_work(serve: Serve, visit: Visit) -> None:
    server = serve()
    studio = visit(server.address)
    block = studio.add("Const", (80, 80))
    studio.type(block, "val", "{1,2,3}")
    studio.spec(block, "output", "3")
    server.kill()
    studio.type(block, "val", "{1,2,3,4}")
    studio["status"].filter(has_text="does not answer").wait_for()
    again = server.again()
    try:
        studio.spec(block, "output", "4")
        studio.run()
        assert studio.numbers(block, "output") == {(at,): at + 1 for at in range(4)}
        studio.page.reload()
        studio.wait()
        assert studio[f"field-{block}-val"].input_value() == "{1,2,3,4}"
    finally:
        again.stop()


def test_two_tabs_do_not_touch_each_other(address: str, visit: Visit) -> None:
    first = visit(address)
    second = visit(address, first.page.context)
    first.page.bring_to_front()
    one = first.add("Const", (80, 80))
    first.type(one, "val", "{1,2}")
    second.page.bring_to_front()
    two = second.add("Const", (80, 80))
    second.type(two, "val", "{5,6,7}")
    second["run"].click()  # both at once
    first.page.bring_to_front()
    first.run()
    assert list(first.numbers(one, "output").values()) == [1, 2]
    second.page.bring_to_front()
    assert list(second.numbers(two, "output").values()) == [5, 6, 7]
    first.page.wait_for_timeout(400)
    for studio, text in ((first, "{1,2}"), (second, "{5,6,7}")):
        studio.page.bring_to_front()
        studio.page.reload()
        studio.wait()
        assert studio[f"field-{one}-val"].input_value() == text


def test_an_enuspace_page_by_the_file_chooser(tmp_path: Path, studio: Studio) -> None:
    file = save(pages.enuspace(), tmp_path)
    with studio.page.expect_file_chooser() as chooser:
        studio["open"].click()
    chooser.value.set_files([str(file), str(file.with_suffix(".dat"))])
    check_product(studio)


def test_an_enuspace_page_by_drop(tmp_path: Path, studio: Studio) -> None:
    file = save(pages.enuspace(), tmp_path)
    parts = [
        (part.name, base64.b64encode(part.read_bytes()).decode())
        for part in (file, file.with_suffix(".dat"))
    ]
    transfer = studio.page.evaluate_handle(
        """parts => {
            const transfer = new DataTransfer();
            for (const [name, text] of parts) {
                const bytes = Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
                transfer.items.add(new File([bytes], name));
            }
            return transfer;
        }""",
        parts,
    )
    for event in ("dragenter", "dragover", "drop"):
        studio.page.dispatch_event(".canvas", event, {"dataTransfer": transfer})
    check_product(studio)


def check_product(studio: Studio) -> None:
    """The page of `pages.enuspace` is there, and its product has the numbers of the `.dat`."""
    studio.count(4, 3)
    studio.run()
    shown = studio.numbers("ID_C", "product")
    assert shown == {(row, col): (128 * row + col) / 8 for row in range(2) for col in range(3)}


def test_a_file_that_is_no_page_is_refused_in_words(tmp_path: Path, studio: Studio) -> None:
    file = tmp_path / "odd.json"
    file.write_text('{"format": "convgrad-page", "version": 99}', encoding="utf-8")
    with studio.page.expect_file_chooser() as chooser:
        studio["open"].click()
    chooser.value.set_files(str(file))
    studio["notice"].filter(has_text="version").wait_for()


def test_export_to_python(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    file = tmp_path / "page.json"
    file.write_text(json.dumps(pages.convolution()), encoding="utf-8")
    studio = visit(serve(str(file)).address)
    studio.count(3, 2)
    studio["menu-export"].click()
    studio["export-python"].click()
    source = studio["export-source"].inner_text()
    compile(source, "page.py", "exec")
    assert "Conv2D" in source


def test_the_licences_of_others_are_one_click_away(studio: Studio) -> None:
    studio["about"].click()
    with studio.page.context.expect_page() as opened:
        studio["notices"].click()
    text = opened.value.locator("body").inner_text()
    assert "react-dom" in text and "Permission is hereby granted" in text
    studio.press("Escape")
    studio["notices"].wait_for(state="detached")


def test_dark_and_light(address: str, visit: Visit) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        studio = visit(address, color_scheme=scheme)
        assert studio.page.evaluate("document.documentElement.dataset.theme") == scheme
        colours[scheme] = studio.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]
    seen = set()
    for _ in range(3):
        studio["theme"].click()
        seen.add(studio.page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}
