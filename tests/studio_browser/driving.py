"""The studio as hands and eyes use it: blocks from the palette, wires by mouse, texts by keyboard, numbers as shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

_CELL = re.compile(r"\[([\d, ]*)\]\s*(\S+)")


class Studio:
    """One tab."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def __getitem__(self, testid: str) -> Locator:
        return self.page.get_by_test_id(testid)

    def wait(self) -> None:
        """Wait until it can be used: the palette has its blocks."""
        self.page.locator('[data-testid^="palette-"][role=option]').first.wait_for()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def ids(self) -> set[str]:
        """Return the blocks on the page."""
        found = self.page.locator('article[data-testid^="block-"]').all()
        return {str(each.get_attribute("data-testid"))[6:] for each in found}

    def add(self, symbol: str, at: tuple[int, int]) -> str:
        """Search the palette for a block by keyboard, add it, drag it to a place by mouse; return its id."""
        self.press("Escape", "Escape", "/")
        search = self["palette-search"]
        search.press("Control+a")
        search.type(symbol)
        before = self.ids()
        self[f"palette-{symbol}"].wait_for()
        search.press("Enter")
        self.page.wait_for_function(
            "count => document.querySelectorAll('article[data-testid^=\"block-\"]').length > count",
            arg=len(before),
        )
        (made,) = self.ids() - before
        self.move(made, at)
        return made

    def move(self, block: str, at: tuple[int, int]) -> None:
        """Drag a block by its title to a point of the canvas."""
        canvas = self.box(self.page.locator(".canvas"))
        x, y = self.title(block)
        self.drag((x, y), (canvas["x"] + at[0], canvas["y"] + at[1]))

    def title(self, block: str) -> tuple[float, float]:
        """Return a point of a block's title."""
        frame = self.box(self[f"block-{block}"])
        return frame["x"] + min(40, frame["width"] / 3), frame["y"] + 10

    def rename(self, block: str, name: str) -> str:
        """Give a block another id, by keyboard."""
        self.page.mouse.click(*self.title(block))
        self.press("F2")
        field = self[f"rename-{block}"]
        field.press("Control+a")
        field.type(name)
        field.press("Enter")
        self[f"block-{name}"].wait_for()
        return name

    def type(self, block: str, pin: str, text: str) -> None:
        """Type a text on a pin."""
        field = self[f"field-{block}-{pin}"]
        field.click()
        field.press("Control+a")
        field.type(text) if text else field.press("Delete")

    def wire(self, source: str, target: str) -> None:
        """Drag a wire from `block.pin` to `block.pin` by mouse."""
        ends = [end.split(".") for end in (source, target)]
        points = [self.centre(self[f"pin-{block}-{pin}"]) for block, pin in ends]
        self.drag(*points)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move(*end, steps=4)
        mouse.up()

    def box(self, locator: Locator) -> Any:
        frame = locator.bounding_box()
        assert frame, f"{locator} is not shown"
        return frame

    def centre(self, locator: Locator) -> tuple[float, float]:
        frame = self.box(locator)
        return frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2

    def fit(self) -> None:
        """Show the whole page and wait until it stands still."""
        self.press("Escape", "Escape", "f")
        self.page.wait_for_timeout(300)

    def run(self, state: str = "done") -> None:
        """Run the page and wait for the end."""
        self["run"].click()
        self.page.locator(f"[data-testid=run-state].run-{state}").wait_for(timeout=60_000)

    def spec(self, block: str, pin: str, text: str) -> None:
        """Wait until a shape and dtype stand at an output."""
        self.page.get_by_test_id(f"spec-{block}-{pin}").filter(has_text=text).wait_for()

    def count(self, blocks: int, wires: int) -> None:
        """Wait until the line below counts so many."""
        self["status"].filter(has_text=f"{blocks} blocks, {wires} wires").wait_for()

    def wires(self) -> int:
        return self.page.locator("g.wire").count()

    def numbers(self, block: str, pin: str) -> dict[tuple[int, ...], float]:
        """Read all cells of a result from its heat map, by arrow keys; sliders are moved to their ends."""
        view = self[f"view-{block}-{pin}"].first
        found: dict[tuple[int, ...], float] = {}
        sliders = view.locator("input[type=range]")
        if sliders.count() == 0:
            return self._slice(view)
        assert sliders.count() == 1, "one slider is enough for these tests"
        slider = sliders.first
        last = int(str(slider.get_attribute("max")))
        slider.focus()
        slider.press("Home")
        for at in range(last + 1):
            found |= self._slice(view)
            if at < last:
                slider.focus()
                slider.press("ArrowRight")
        return found

    def _slice(self, view: Locator) -> dict[tuple[int, ...], float]:
        canvas = view.locator("canvas")
        rows, cols = map(
            int, re.findall(r"of (\d+) by (\d+)", str(canvas.get_attribute("aria-label")))[0]
        )
        found = {}
        canvas.focus()
        canvas.press("ArrowRight")  # enters at the first cell
        for row in range(rows):
            for col in range(cols):
                text = view.get_by_test_id("cell-value").inner_text()
                match = _CELL.search(text)
                assert match, text
                index = tuple(int(word) for word in match[1].split(",") if word.strip())
                found[index] = float(match[2])
                if col < cols - 1:
                    canvas.press("ArrowLeft" if row % 2 else "ArrowRight")
            canvas.press("ArrowDown")
        canvas.evaluate("element => element.blur()")
        assert len(found) == rows * cols
        return found
