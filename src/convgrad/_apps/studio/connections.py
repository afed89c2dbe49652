"""The connections of a server: how many there may be, and how long each may keep us waiting.

Every connection is a thread, and anybody on the machine can open one; the token is asked for later. So there is a most,
those beyond it get an error at once, and those that keep us waiting for a request are closed: soon if they have not
shown the token yet. A connection that waits for our answer is left alone.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any

MOST = 100
"""Browsers open six to a server, for all tabs together."""
STRANGER_SECONDS = 10.0
"""Until a connection must have shown the token; one that only gets files ends then."""
IDLE_SECONDS = 60.0
"""Between two requests of one that has."""
READING_SECONDS = 30.0
"""For the rest of a request, from the end of its first line."""
_LINGER_SECONDS = 1.0
"""After which a connection that was turned away is closed; at once, it might not have read why."""
_MOST_LINGERING = 100

_FULL = b'{"error": "there are too many connections: close some tabs, or try again"}'
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nRetry-After: 10\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n%s"
) % (len(_FULL), _FULL)


class Connections:
    """Those of one server. Methods are called by its accepting thread, and by the connections' own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[Any, float | None] = {}
        """Of each socket that has a thread: until when it may keep us waiting; None while we answer."""
        self._lingering: list[tuple[socket.socket, float]] = []

    def admit(self, connection: Any) -> bool:
        """Count a new connection, unless there are too many: then it is told so, and ours to close."""
        with self._lock:
            if len(self._deadlines) < MOST:
                self._deadlines[connection] = time.monotonic() + STRANGER_SECONDS
                return True
        with suppress(OSError):
            connection.setblocking(False)
            connection.send(BUSY)
            connection.shutdown(socket.SHUT_WR)
        self._lingering.append((connection, time.monotonic() + _LINGER_SECONDS))
        while len(self._lingering) > _MOST_LINGERING:
            _closed(self._lingering.pop(0)[0])
        return False

    def wait(self, connection: Any, seconds: float | None) -> None:
        """Let a connection keep us waiting so long from now; None: it is we who work."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            if connection in self._deadlines:
                self._deadlines[connection] = until

    def forget(self, connection: Any) -> None:
        """Count a connection no more."""
        with self._lock:
            self._deadlines.pop(connection, None)

    def tidy(self) -> None:
        """End connections whose time is over. Their threads find nothing more to read."""
        now = time.monotonic()
        with self._lock:
            for connection, until in self._deadlines.items():
                if until is not None and until < now:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
        while self._lingering and self._lingering[0][1] < now:
            _closed(self._lingering.pop(0)[0])

    def close(self) -> None:
        """Close what was turned away."""
        while self._lingering:
            _closed(self._lingering.pop()[0])


def _closed(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.recv(1 << 16)  # what is unread when a connection is closed undoes what was sent
    connection.close()
