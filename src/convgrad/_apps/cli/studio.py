"""Serve the block studio: pages of blocks and wires, edited, run and looked at in the browser.

FILE is the page to open: one of ours (.json), which is also where it is saved, or enuSpace's, which is only read. A
file that is not there yet begins an empty page. Without FILE the studio opens with its gallery, and pages are
downloaded.

The server listens on the loopback address alone and answers only requests with the token in the address it prints.
Every run of a page is a process of its own, ended after --seconds, with at most --memory. Ctrl-C ends the studio.
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..pages import document
from ..pages.files import read_page
from . import operation, studio_token
from .screen import Screen
from .verb import DONE, Refusal

NAME = "studio"
SUMMARY = "edit, run and look at pages of blocks in the browser"
EXAMPLES = """
convgrad studio
convgrad studio page.json
convgrad studio page.json --port 8080 --token-file ~/.studio-token --no-browser
convgrad studio --seconds 60 --memory 1G
"""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_LEAST_MEMORY = 512 << 20
"""The interpreter, NumPy and the kernels need most of it."""


def read_memory(text: str) -> int:
    """Read an amount of memory.

    >>> read_memory("1.5G")
    1610612736
    """
    match = re.fullmatch(
        r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE
    )
    if match is None:
        raise ArgumentTypeError(f"an amount such as 4G is needed, got {text!r}")
    found = int(float(match[1]) * _UNITS[match[2].upper()])
    if not _LEAST_MEMORY <= found < 1 << 60:
        raise ArgumentTypeError(f"at least {_LEAST_MEMORY >> 20}M are needed, got {text!r}")
    return found


def port(text: str) -> int:
    """Read a port."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
        raise ArgumentTypeError(f"a port from 0 to 65535 is needed, got {text!r}")
    return int(text)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the file, the address, and what a run may take."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="the page to open, and to save to")
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="the port; by default a free one"
    )
    studio_token.add_argument(parser)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address and open nothing"
    )
    parser.add_argument(
        "--seconds",
        type=operation.count,
        default=600,
        metavar="N",
        help="longest time of a run; default 600",
    )
    parser.add_argument(
        "--memory",
        type=read_memory,
        default=4 << 30,
        metavar="SIZE",
        help="most memory of a run, such as 4G, the default",
    )


def run(given: Namespace, screen: Screen) -> int:
    """Serve until Ctrl-C."""
    from ..studio import opening  # other verbs need no server
    from ..studio.api import Studio
    from ..studio.runs import Limits, Runs
    from ..studio.server import HOW, Server

    token = studio_token.read(given.token_file)
    file, page = _opened(given.file, screen)
    runs = Runs(Limits(float(given.seconds), given.memory))
    try:
        server = Server(Studio(runs, file, page), given.port, token)
    except OSError as error:
        raise Refusal(f"port {given.port} cannot be used: {error.strerror or error}") from None
    with server, ExitStack() as stack:
        if "/" not in server.static:
            screen.note(HOW)
        if given.json:
            facts = {"address": server.address, "port": server.server_port, "token": server.token}
            print(json.dumps(facts), flush=True)
        else:
            print(f"{server.address}\nCtrl-C ends the studio.", flush=True)
        if not given.no_browser:
            stack.enter_context(opening.opened(server.address, server.arrived))
        runs.warm()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt as error:
            if type(error) is not KeyboardInterrupt:  # asked to end by the system
                raise
    return DONE


def _opened(name: str | None, screen: Screen) -> tuple[Path | None, Any]:
    """Return where to save, and the page to begin with."""
    if name is None:
        return None, None
    path = Path(name)
    if not path.exists():
        if path.suffix.lower() != ".json":
            raise Refusal(f"there is no file {name}; a new page must end in .json")
        if not path.parent.is_dir():
            raise Refusal(f"there is no folder {path.parent}")
        return path, None
    page = read_page(path)
    for note in dict.fromkeys(map(str, page.notes)):
        screen.note(f"note: {note}")
    found = json.loads(document.write(page))
    if page.dialect != "convgrad":
        screen.note(
            f"{name} is a page of enuSpace and is only read; download the page to keep changes"
        )
        return None, found
    return path, found
