"""The example of a filter gradient in a page, in a real Chromium."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from cc.test_examples import built

if TYPE_CHECKING:
    from playwright.sync_api import Browser


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    if shutil.which("clang") is None or shutil.which("wasm-ld") is None:
        pytest.skip("clang and wasm-ld are needed to build the page")
    built("wasm/build.sh", tmp_path)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()


def test_the_page_finds_the_filter(browser: Browser, address: str) -> None:
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    page.select_option("#filter", "edges")
    said = page.locator("#said")
    said.filter(has_text="done").wait_for(timeout=60_000)
    text = said.inner_text()
    assert float(text.split("largest error of a tap ")[1].split(",")[0]) < 0.05
    assert wrong == []
    page.close()
