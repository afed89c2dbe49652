"""Connections: how many there may be, how long they may keep the studio waiting, what guards every answer."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time

import pytest

from convgrad._apps.studio import connections, runs, server
from convgrad._apps.studio.connections import Connections
from studio_pages import SQUARE


def opened(studio) -> socket.socket:
    return socket.create_connection(("127.0.0.1", studio.port), timeout=20)


def request(studio, path: str, token: str | None = None) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{studio.port}"]
    if token is not None:
        lines.append(f"X-Convgrad-Token: {token}")
    return "\r\n".join([*lines, "", ""]).encode()


def answer(connection: socket.socket) -> bytes:
    """Return one answer of a connection that stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    (length,) = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
    while len(body) < int(length.split()[1]):
        body += connection.recv(65536)
    return found


def is_closed(connection: socket.socket, drops: bytes = b"") -> bool:
    """Wait for the other side to close, sending a byte now and then meanwhile."""
    connection.settimeout(0.05)
    until = time.monotonic() + 20
    for at in range(100_000):
        try:
            if at < len(drops):
                connection.sendall(drops[at : at + 1])
            if connection.recv(65536) == b"":
                return True
        except TimeoutError:
            if time.monotonic() > until:
                return False
        except OSError:
            return True
    return False


def test_those_beyond_the_limit_are_told_so(small_studio, monkeypatch):
    monkeypatch.setattr(connections, "MOST", 4)
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(opened(small_studio)) for _ in range(4)]
        for connection in first:  # each has its thread
            connection.sendall(request(small_studio, "/api/health", small_studio.server.token))
            assert b" 200 " in answer(connection)
        for _ in range(3):
            status, content, headers = small_studio.raw("GET", "/api/health")
            assert status == 503 and "too many connections" in json.loads(content)["error"]
            assert headers["Connection"] == "close"
        first[0].sendall(request(small_studio, "/api/health", small_studio.server.token))
        assert b" 200 " in answer(first[0])  # those that are in stay in
        first[0].close()
        until = time.monotonic() + 20
        while small_studio.raw("GET", "/api/health")[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_turned_away_they_are_not_kept(small_studio, monkeypatch):
    monkeypatch.setattr(connections, "MOST", 0)
    monkeypatch.setattr(connections, "_MOST_LINGERING", 2)
    monkeypatch.setattr(connections, "_LINGER_SECONDS", 0.1)
    kept = small_studio.server.connections._lingering
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(opened(small_studio)) for _ in range(6)]
        assert all(is_closed(each) for each in many)
        until = time.monotonic() + 20
        while kept:
            assert len(kept) <= 3 and time.monotonic() < until
            time.sleep(0.02)


@pytest.mark.parametrize("drops", [b"", b"G" * 400, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 80])
def test_who_does_not_show_the_token_is_not_waited_for(small_studio, monkeypatch, drops):
    monkeypatch.setattr(connections, "STRANGER_SECONDS", 0.3)
    with opened(small_studio) as connection:
        assert is_closed(connection, drops)


def test_files_alone_do_not_keep_a_connection(small_studio, monkeypatch):
    monkeypatch.setattr(connections, "STRANGER_SECONDS", 0.5)
    with opened(small_studio) as connection:
        assert is_closed(connection, request(small_studio, "/nothing") * 20)


@pytest.mark.parametrize("drops", [b"", b"POST /api/check HTTP/1.1\r\n" + b"A: b\r\n" * 80])
def test_who_has_shown_it_is_waited_for_longer_but_not_for_ever(small_studio, monkeypatch, drops):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.6)
    monkeypatch.setattr(server, "READING_SECONDS", 0.6)
    with opened(small_studio) as connection:
        connection.sendall(request(small_studio, "/api/health", small_studio.server.token))
        assert b" 200 " in answer(connection)
        assert is_closed(connection, drops)


def test_a_body_that_never_ends(small_studio, monkeypatch):
    monkeypatch.setattr(server, "READING_SECONDS", 0.5)
    with opened(small_studio) as connection:
        head = request(small_studio, "/api/check", small_studio.server.token)
        head = head.replace(b"GET", b"POST", 1)[:-2] + b"Content-Length: 1000\r\n\r\n"
        connection.sendall(head)
        assert is_closed(connection, b"{" * 900)


def test_only_who_keeps_us_waiting_is_ended(monkeypatch):
    monkeypatch.setattr(connections, "STRANGER_SECONDS", -1.0)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        known = Connections()
        assert known.admit(mine)
        known.wait(mine, None)  # an answer is under way
        known.tidy()
        mine.sendall(b"answer")
        assert theirs.recv(10) == b"answer"
        known.wait(mine, -1.0)
        known.tidy()
        assert theirs.recv(10) == b""
        known.forget(mine)
        known.wait(mine, 1.0)
        assert known._deadlines == {}


def test_the_token_is_told_when_it_was_shown(file_studio):
    file_studio.raw("GET", "/api/health", None, {"X-Convgrad-Token": "wrong"})
    file_studio.raw("GET", "/")
    assert not file_studio.server.arrived.is_set()
    file_studio.get("/api/health")
    assert file_studio.server.arrived.is_set()


@pytest.mark.parametrize("path", ["/", "/assets/app.js", "/nothing", "/api/health", "/api/nothing"])
@pytest.mark.parametrize("token", ["token-of-the-tests", "wrong"])
def test_every_answer_is_guarded(studio, path, token):
    _, _, headers = studio.raw("GET", path, None, {"X-Convgrad-Token": token})
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'none'" and policy["default-src"] == "'self'"
    assert "script-src" not in policy and "unsafe-eval" not in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Server"].strip() == "convgrad"


def test_answers_that_come_too_late_are_not_kept(studio, monkeypatch):
    run = studio.run(SQUARE)
    studio.ended(run)
    found = studio.server.studio.runs.find(run)
    found.process.child.send_signal(signal.SIGSTOP)  # so that no answer can be there in time
    try:
        with monkeypatch.context() as patched:
            patched.setattr(runs, "_ANSWER_SECONDS", 0.01)
            for _ in range(5):
                assert studio.raw("GET", f"/api/run/{run}/tensor?block=y&pin=y")[0] == 404
    finally:
        found.process.child.send_signal(signal.SIGCONT)
    # Answers come in order: when this one is here, the others have come.
    assert studio.raw("GET", f"/api/run/{run}/tensor?block=y&pin=y")[0] == 200
    assert found.answers == {}
