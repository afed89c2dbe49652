"""HTTP on the loopback address, for one person's browser.

Other pages in that browser, and other programs, must not get in: every question needs the token that only the address
has, the host must be ours (a name that leads here is not enough), and so must the origin. Files are those of the built
page, listed when the server starts; what is asked for is looked up, never joined to a path.
"""

from __future__ import annotations

import hmac
import json
import mimetypes
import secrets
import socket
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..._base.errors import ArgumentError, said
from ..._base.text import finite
from ..pages.loading import decoded, json_of
from . import api
from .api import ErrorAnswer, Raw, Request, Studio
from .connections import IDLE_SECONDS, READING_SECONDS, Connections

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",  # for browsers that do not know `frame-ancestors`
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "Cache-Control": "no-store",
}
"""Headers of every answer: other pages can neither show this one in a frame, nor read or keep what it is told."""
_SEND_SECONDS = 60
"""For a browser to take an answer."""
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
MISSING = """<!doctype html><meta charset="utf-8"><title>convgrad studio</title>
<h1>The page of the studio is not in this installation</h1>
<p>Where convgrad's sources are, <code>make studio</code> builds it, and so does
<code>CONVGRAD_STUDIO=require pip install --force-reinstall --no-deps .</code>, or says why it cannot. Both use this
machine's Node.js, or take one from PyPI. A wheel that somebody else has built so will do as well.</p>
"""
HOW = (
    "the page of the studio is not in this installation; where convgrad's sources are, `make studio` builds it, or"
    " `CONVGRAD_STUDIO=require pip install --force-reinstall --no-deps .`"
)
"""The same in one line."""


def static_files(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return type and content of all files of the built page, by their paths in addresses."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
            if kind is not None and (kind.startswith("text/") or kind == "image/svg+xml"):
                kind += "; charset=utf-8"
            name = "/" + path.relative_to(folder).as_posix()
            found[name] = (kind or "application/octet-stream", path.read_bytes())
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def built_page() -> Path:
    """Return the folder of the built page; it may not be there."""
    return Path(str(files(__package__) / "static"))


class Server(ThreadingHTTPServer):
    """One studio."""

    daemon_threads = True
    request_queue_size = 128
    """Beyond it a connection waits a second for its next try; the default of 5 is less than two tabs open at once."""
    allow_reuse_address = True

    def __init__(
        self, studio: Studio, port: int = 0, token: str | None = None, folder: Path | None = None
    ) -> None:
        self.studio = studio
        self.token = token or secrets.token_urlsafe(24)
        self.arrived = threading.Event()
        """Set when somebody has come who knows the token."""
        self.connections = Connections()
        self.static = static_files(folder or built_page())
        super().__init__(("127.0.0.1", port), Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.server_port}/?token={urllib.parse.quote(self.token)}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread, or turn it away."""
        if self.connections.admit(request):
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.forget(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that keep us waiting; `serve_forever` calls it several times a second."""
        self.connections.tidy()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that end early; browsers do that all the time."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        super().server_close()
        self.connections.close()
        self.studio.runs.close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "convgrad", ""
    timeout = _SEND_SECONDS
    _known = False
    """Whether the connection has shown the token."""

    def setup(self) -> None:
        super().setup()
        # An answer is two writes, and the second must not wait for the first to be acknowledged.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def handle_one_request(self) -> None:
        self._may_take(IDLE_SECONDS)
        super().handle_one_request()

    def parse_request(self) -> bool:
        self._may_take(READING_SECONDS)
        return super().parse_request()

    def _may_take(self, seconds: float | None) -> None:
        """Say how long to wait for the other side; without the token it gets no more time than it had."""
        if self._known:
            self.server.connections.wait(self.connection, seconds)

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal is the user's."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what `http.server` itself refuses, as JSON too."""
        self.close_connection = True
        self._error(code, message or "the request cannot be read")

    def _answer(self, method: str) -> None:
        self._unread = True
        if method == "GET" and self._has_body():
            self.close_connection = True  # nobody reads it, and it must not be taken for a request
        try:
            self._guard()
            path, _, query = self.path.partition("?")
            if not path.startswith("/api/"):
                self._file(method, path)
                return
            self._check_token()
            handler, parts = api.route(method, path)
            body = self._body() if method == "POST" else {}
            self._may_take(None)
            found = api.answer(self.server.studio, handler, Request(parts, _pairs(query), body))
        except ErrorAnswer as refused:
            self._error(refused.status, str(refused))
        except MemoryError:
            self._error(500, "there is not enough memory for the answer")
        except OSError:
            raise
        except Exception as error:
            self._error(500, f"internal error: {said(error)}")
        else:
            if isinstance(found, Raw):
                self._send(200, "application/octet-stream", found.content, found.headers)
            else:
                self._json(200, found)

    def _has_body(self) -> bool:
        lengths = self.headers.get_all("Content-Length") or []
        return "Transfer-Encoding" in self.headers or any(each.strip() != "0" for each in lengths)

    def _guard(self) -> None:
        """Refuse requests that reach us under another name, or from another page."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.server.hosts:
            raise ErrorAnswer(403, "the host of the address must be 127.0.0.1 or localhost")
        for origin in self.headers.get_all("Origin") or ():
            if origin.strip().lower() not in self.server.origins:
                raise ErrorAnswer(403, "requests of other pages are not answered")

    def _check_token(self) -> None:
        given = self.headers.get("X-Convgrad-Token", "")
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            raise ErrorAnswer(
                403, "the token is missing or wrong: open the address that was printed"
            )
        self._known = True
        self._may_take(READING_SECONDS)
        self.server.arrived.set()

    def _body(self) -> dict[str, Any]:
        if self.headers.get("Transfer-Encoding") is not None:
            raise ErrorAnswer(411, "a body must come with Content-Length, not in chunks")
        lengths = self.headers.get_all("Content-Length") or []
        if not lengths:
            raise ErrorAnswer(411, "Content-Length is missing")
        digits = lengths[0].strip()
        if len(lengths) > 1 or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise ErrorAnswer(400, "Content-Length must be a whole number")
        if int(digits) > api.MOST_BODY:
            raise ErrorAnswer(413, f"a body may have {api.MOST_BODY} bytes")
        data = self.rfile.read(int(digits))
        if len(data) < int(digits):
            raise ErrorAnswer(400, "the body ends early")
        self._unread = False
        try:
            value = json_of(decoded(data, "body")[0], "body")
        except ArgumentError as error:
            raise ErrorAnswer(400, str(error)) from None
        if not isinstance(value, dict):
            raise ErrorAnswer(400, "the body must be an object of JSON")
        return value

    def _file(self, method: str, path: str) -> None:
        if method != "GET":
            raise ErrorAnswer(405, f"{method} is not for files")
        found = self.server.static.get(path)
        if found is None and path in ("/", "/index.html"):
            self._send(503, "text/html; charset=utf-8", MISSING.encode(), {})
        elif found is None:
            raise ErrorAnswer(404, "there is no such file")
        else:
            self._send(200, *found, {})

    def _json(self, status: int, value: Any) -> None:
        try:
            text = json.dumps(value, allow_nan=False)
        except ValueError:
            text = json.dumps(finite(value), allow_nan=False)
        self._send(status, "application/json", text.encode("utf-8", "backslashreplace"), {})

    def _error(self, status: int, text: str) -> None:
        if getattr(self, "_unread", True) and getattr(self, "command", "") != "GET":
            self.close_connection = True  # what was not read must not be taken for a request
        self._json(status, {"error": " ".join(text.split())})

    def _send(self, status: int, kind: str, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in {**_GUARDS, **headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _pairs(query: str) -> dict[str, str]:
    try:
        return dict(urllib.parse.parse_qsl(query, keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise ErrorAnswer(400, f"the query cannot be read: {error}") from None
