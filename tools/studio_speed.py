"""Measure the studio in a real Chromium: `python tools/studio_speed.py [--blocks 500] [--keys 40]`.

Prints the size of the page, the time from starting `convgrad studio` to a page that can be used, and the latency of an
edit on a page of many blocks: from the key to the new shape drawn on the block edited. All the others hang on it and
change too, the nearest with it, the rest when the hands rest: that is not in the figure. A shape is
drawn when it stands in the document and the next frame has been painted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from studio_browser import pages  # noqa: E402
from studio_browser.conftest import CHROMIUM, QUIET, STATIC  # noqa: E402
from studio_browser.driving import Studio  # noqa: E402
from studio_browser.serving import Server  # noqa: E402

WATCH = """([field, spec]) => {
    window.latencies = [];
    const input = document.querySelector(`[data-testid="${field}"]`);
    const shown = document.querySelector(`[data-testid="${spec}"]`);
    let pressed = 0;
    input.addEventListener('keydown', event => { pressed = event.timeStamp; }, true);
    new MutationObserver(() => requestAnimationFrame(() => {
        const frame = new MessageChannel();
        frame.port1.onmessage = () => {
            if (pressed) window.latencies.push(performance.now() - pressed);
            pressed = 0;
        };
        frame.port2.postMessage(0);
    })).observe(shown, { characterData: true, childList: true, subtree: true });
}"""
"""Time from the event of a key, as the browser stamps it, to the task after the frame that draws the new shape."""


def sizes() -> None:
    """Print the bytes of the built page, by kind."""
    for kind in ("js", "css"):
        files = [each.read_bytes() for each in STATIC.rglob(f"*.{kind}")]
        total, packed = sum(map(len, files)), sum(len(gzip.compress(each)) for each in files)
        print(f"{kind}: {total / 1000:.0f} kB ({packed / 1000:.0f} kB with gzip)")
    print(f"page: {sum(f.stat().st_size for f in STATIC.rglob('*') if f.is_file()) / 1000:.0f} kB")


def latency(studio: Studio, spec: str, keys: int) -> list[float]:
    """Type digits into the shape of the first block and take them out again; return milliseconds per key."""
    field = studio["field-b0-shape"]
    field.click()
    field.press("End")
    field.press("ArrowLeft")
    studio.page.evaluate(WATCH, ["field-b0-shape", spec])
    for at in range(keys):
        before = studio.page.evaluate("latencies.length")
        field.press("Backspace" if at % 2 else "1")  # {3} and {31}
        for _ in range(100):
            studio.page.wait_for_timeout(60)
            if studio.page.evaluate("latencies.length") > before:
                break
    return list(studio.page.evaluate("latencies"))


def say(title: str, numbers: list[float]) -> None:
    if numbers:
        ordered = sorted(numbers)
        print(
            f"{title}: median {statistics.median(numbers):.0f} ms, "
            f"90% below {ordered[int(0.9 * (len(ordered) - 1))]:.0f} ms, "
            f"largest {ordered[-1]:.0f} ms ({len(numbers)} keys)"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the studio.")
    parser.add_argument("--blocks", type=int, default=500)
    parser.add_argument("--keys", type=int, default=40)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    sizes()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET))
        browser.new_page().close()  # the browser itself is not what is measured
        for count in (4, given.blocks):
            file = Path(folder) / f"{count}.json"
            file.write_text(json.dumps(pages.chain(count)), encoding="utf-8")
            began = time.perf_counter()
            server = Server(str(file))
            answered = time.perf_counter()
            stack.callback(server.stop)
            page = browser.new_page(viewport={"width": 1500, "height": 950})
            page.goto(server.address)
            studio = Studio(page)
            studio.wait()
            studio.count(count, count - 1)
            last = studio[f"spec-b{count - 1}-y"].filter(has_text="3")
            last.wait_for(state="attached")  # from afar a block shows no shapes
            usable = time.perf_counter()
            print(
                f"{count} blocks: server after {answered - began:.2f} s, usable after {usable - began:.2f} s"
            )
            page.wait_for_timeout(600)
            for _ in range(40):
                page.mouse.move(*studio.title("b0"))
                if studio.box(studio["block-b0"])["width"] > 150:
                    break
                page.mouse.wheel(0, -240)
                page.wait_for_timeout(150)
            say("  key to shape", latency(studio, "spec-b0-output", given.keys))
            page.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
