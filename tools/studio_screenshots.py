"""Take the pictures of docs/studio.md in a real Chromium: `python tools/studio_screenshots.py [NAME ...]`.

Needs `make studio-build`, playwright (`pip install -e '.[studio-test]'`) and /usr/bin/chromium. The pages are those of
the gallery, so a picture is what a reader gets with one click. Pictures are written with 256 colours where Pillow is
installed, and must stay below 150 kB.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from studio_browser.conftest import CHROMIUM, QUIET  # noqa: E402
from studio_browser.driving import Studio  # noqa: E402
from studio_browser.serving import Server  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "studio"
LARGEST = 150_000
SIZE = {"width": 1280, "height": 800}


def gallery(studio: Studio, name: str) -> None:
    """Open a page of the gallery and show it whole."""
    studio["menu-gallery"].click()
    studio[f"gallery-{name}"].click()
    studio["status"].filter(has_text="checked in").wait_for()
    studio.fit()


def run(studio: Studio) -> None:
    """Run, wait for all pictures, show the page whole."""
    studio.run()
    studio.page.wait_for_timeout(1200)
    studio.fit()
    studio.page.mouse.move(5, 5)
    studio.page.wait_for_timeout(400)


def near(studio: Studio, name: str, turns: int) -> None:
    """Turn the wheel over a block, which comes nearer and stays where it is."""
    studio.page.mouse.move(*studio.title(name))
    for _ in range(turns):
        studio.page.mouse.wheel(0, -120)
        studio.page.wait_for_timeout(120)
    studio.page.mouse.move(5, 5)
    studio.page.wait_for_timeout(300)


def drag(studio: Studio, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Move the page under the mouse."""
    studio.page.mouse.move(*start)
    studio.page.mouse.down()
    studio.page.mouse.move(*end, steps=8)
    studio.page.mouse.up()


def choose(studio: Studio, name: str) -> None:
    """Click a block, so that the inspector shows it."""
    studio.page.mouse.click(*studio.title(name))
    studio.page.mouse.move(5, 5)
    studio.page.wait_for_timeout(500)


def block(studio: Studio) -> None:
    gallery(studio, "document")
    run(studio)
    run(studio)  # the first one compiles kernels
    choose(studio, "filter_gradient")
    studio["explain"].wait_for()


def dilated(studio: Studio) -> None:
    gallery(studio, "dilated-gradient")
    run(studio)
    choose(studio, "ours")
    studio.page.keyboard.down("Shift")
    choose(studio, "tensorflow")
    studio.page.keyboard.up("Shift")
    studio["compare"].first.wait_for()
    studio.page.wait_for_timeout(500)


def taps(studio: Studio) -> None:
    gallery(studio, "conv2d")
    run(studio)
    canvas = studio.page.locator("[data-testid^=view-] canvas").last
    frame = studio.box(canvas)
    studio.page.mouse.move(frame["x"] + frame["width"] * 0.4, frame["y"] + frame["height"] * 0.4)
    studio["trace"].first.wait_for()
    studio.page.wait_for_timeout(400)


def errors(studio: Studio) -> None:
    gallery(studio, "playground")
    for name, pin, text in (
        ("same", "padding", "SOME"),
        ("valid", "strides", "1,2"),
        ("strided", "attrs", "dilations_ = {1,2}"),
    ):
        studio[f"field-{name}-{pin}"].fill(text)
        studio[f"problem-{name}"].wait_for()
    studio.press("Escape")
    studio.page.wait_for_timeout(600)  # blocks make room
    studio.fit()
    near(studio, "same", 2)


def digits(studio: Studio) -> None:
    gallery(studio, "digits")
    near(studio, "training", 10)
    studio["field-training-steps"].fill("2000")  # the page's own are over too soon for a picture
    studio.press("Escape")
    drag(studio, (300, 70), (60, 90))
    studio["run"].click()
    studio["run-state"].filter(has_text=re.compile(r"step [1-9]\d\d/")).wait_for(timeout=60_000)
    studio.page.wait_for_timeout(300)


def edit(studio: Studio) -> None:
    """Nothing run: shapes on wires, the block chosen in the inspector."""
    gallery(studio, "document")
    choose(studio, "filter_gradient")
    studio["explain"].wait_for()


PICTURES: dict[str, tuple[Callable[[Studio], None], str]] = {
    "block": (block, "light"),
    "block-dark": (block, "dark"),
    "edit": (edit, "light"),
    "dilated": (dilated, "light"),
    "taps": (taps, "light"),
    "errors": (errors, "light"),
    "digits": (digits, "dark"),
}


def small(picture: bytes) -> bytes:
    """Return a PNG with 256 colours, which the studio's flat areas do not miss."""
    try:
        from PIL import Image
    except ImportError:
        return picture
    written = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return min(picture, written.getvalue(), key=len)


def take(browser: Any, address: str, name: str) -> None:
    """Take one picture."""
    act, scheme = PICTURES[name]
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    studio = Studio(page)
    studio.wait()
    act(studio)
    picture = small(page.screenshot())
    context.close()
    if len(picture) > LARGEST:
        raise SystemExit(f"{name}.png has {len(picture)} bytes, more than {LARGEST}")
    (FOLDER / f"{name}.png").write_bytes(picture)
    print(f"{name}.png {len(picture) / 1000:.0f} kB")


def main() -> int:
    """Take the pictures named, or all."""
    parser = argparse.ArgumentParser(description="Take the pictures of docs/studio.md.")
    parser.add_argument("name", nargs="*", choices=[*PICTURES, []], help="all, if none is named")
    names = parser.parse_args().name or list(PICTURES)
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET))
            for name in names:
                take(browser, server.address, name)
            browser.close()
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
