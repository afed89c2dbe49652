"""A page in a real Chromium for every test, with its own storage; all requests are kept, none may leave the machine.

The browser is the machine's (`/usr/bin/chromium`, or CONVGRAD_CHROMIUM), never a download. Where it, playwright or the
built page is missing, tests are skipped; with CONVGRAD_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from studio_browser.driving import Studio
from studio_browser.serving import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path(os.environ.get("CONVGRAD_CHROMIUM", "/usr/bin/chromium"))
STATIC = Path(__file__).resolve().parents[2] / "src" / "convgrad" / "_apps" / "studio" / "static"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 10_000
"""Milliseconds after which something that does not show up fails the test."""


def missing() -> str | None:
    """Say what these tests lack here."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install -e '.[studio-test]'"
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}: apt install chromium"
    if not (STATIC / "index.html").is_file():
        return "the studio's page is not built: make studio-build"
    return None


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    why = missing()
    if why and os.environ.get("CONVGRAD_REQUIRE_BROWSER") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET))
        yield made
        made.close()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Return the address of a studio without a file, for all tests that neither end it nor save."""
    server = Server()
    yield server.address
    server.stop()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Return a function that starts servers; all are gone after the test."""
    started: list[Server] = []

    def start(*arguments: str) -> Server:
        started.append(Server(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Studio]]:
    """Return a function that opens an address; afterwards no request may have left the machine and no script failed."""
    contexts: list[Any] = []
    requests: list[str] = []
    errors: list[str] = []

    def open_page(address: str, context: Any = None, **options: Any) -> Studio:
        if context is None:
            context = browser.new_context(viewport={"width": 1500, "height": 950}, **options)
            context.set_default_timeout(PATIENCE)
            context.on("request", lambda request: requests.append(request.url))
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        studio = Studio(page)
        studio.wait()
        return studio

    yield open_page
    for context in contexts:
        context.close()
    local = ("http://127.0.0.1:", "data:", "blob:")
    assert [url for url in requests if not url.startswith(local)] == []
    assert errors == []


@pytest.fixture
def studio(address: str, visit: Callable[..., Studio]) -> Studio:
    """Return an empty page."""
    return visit(address)
