"""Opening the browser without telling the token to everybody.

Every user of a machine can read the command lines of all processes, the browser's too. So the browser is not given the
address but a file that leads there, which only its owner can read, and which is gone when the browser has come.
"""

from __future__ import annotations

import html
import os
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = """<!doctype html><meta charset="utf-8"><title>convgrad studio</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={address}">
<p><a href="{address}">Open the studio</a></p>
"""


@contextmanager
def opened(address: str, arrived: threading.Event) -> Iterator[None]:
    """Open the browser at an address; `arrived` says that it is there."""
    folder = tempfile.TemporaryDirectory(
        prefix="convgrad-", ignore_cleanup_errors=True
    )  # mode 0700

    def browse() -> None:
        webbrowser.open(place)  # some browsers block until they are closed
        arrived.wait()
        folder.cleanup()

    with folder:
        place = _written(Path(folder.name) / "studio.html", address).as_uri()
        threading.Thread(target=browse, daemon=True).start()
        yield


def _written(path: Path, address: str) -> Path:
    """Write the file that leads to an address; nobody else can read it at any time."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(address=html.escape(address)))
    return path
