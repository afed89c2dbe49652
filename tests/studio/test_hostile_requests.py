"""Requests nobody should send: each gets one line of JSON and a status, and the studio lives on."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import time

import pytest

from convgrad._apps.studio import api, runs
from studio_pages import SQUARE, page


@pytest.fixture(autouse=True)
def lives_on(studio):
    yield
    assert studio.get("/api/health")["ok"] is True


def sent(studio, text: bytes) -> tuple[int, dict]:
    """Send bytes as they are and return status and document."""
    with socket.create_connection(("127.0.0.1", studio.port), timeout=20) as connection:
        connection.sendall(text)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def head(studio, line: str, *headers: str) -> bytes:
    token = studio.server.token
    lines = [line, f"Host: 127.0.0.1:{studio.port}", f"X-Convgrad-Token: {token}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Convgrad-Token": None},
        {"X-Convgrad-Token": ""},
        {"X-Convgrad-Token": "token-of-the-test"},
        {"X-Convgrad-Token": "token-of-the-tests2"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Host": ""},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_strangers_are_refused(studio, headers, method):
    path = "/api/start" if method == "GET" else "/api/check"
    body = json.dumps({"page": SQUARE}).encode() if method == "POST" else None
    status, content, _ = studio.raw(method, path, body, headers)
    assert status == 403
    assert set(json.loads(content)) == {"error"}


def test_a_stranger_gets_no_file_either(studio):
    assert studio.raw("GET", "/", None, {"Host": "evil.example"})[0] == 403


def test_our_own_page_is_answered(studio):
    for host in ("127.0.0.1", "localhost"):
        where = f"{host}:{studio.port}"
        headers = {"Host": where, "Origin": f"http://{where}"}
        assert studio.raw("GET", "/api/health", None, headers)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/../../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/assets/../../secret.txt",
        "/assets/..%5c..%5csecret.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/",
        "/assets",
        "/index.html%00.js",
        "file:///etc/passwd",
        "/api/gallery/..%2f..%2fserver",
        "/api/gallery/../server",
        "/api/gallery/nothing",
        "/api/nothing",
        "/api/run/r999",
        "/api/run/r999/tensor?block=x&pin=y",
        "/api/",
    ],
)
def test_paths_outside(studio, path):
    status, document = sent(studio, head(studio, f"GET {path} HTTP/1.1", "Connection: close"))
    assert status == 404 and set(document) == {"error"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Content-Length: 1073741824",), 413),
        (("Content-Length: 999999999999999999999999999",), 400),
        (("Content-Length: -1",), 400),
        (("Content-Length: 1e3",), 400),
        (("Content-Length: ",), 400),
        (("Content-Length: 2", "Content-Length: 3"), 400),
        (("Transfer-Encoding: chunked",), 411),
        (("Transfer-Encoding: chunked", "Content-Length: 5"), 411),
        ((), 411),
    ],
)
def test_sizes_of_bodies(studio, headers, status):
    text = head(studio, "POST /api/check HTTP/1.1", *headers)
    got, document = sent(studio, text)
    assert got == status and set(document) == {"error"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b'{"page": NaN}',
        b'{"page": 1e999}',
        b'{"a": 1, "a": 2}',
        b'{"page": "\\ud800"}',
        b"[" * 100_000,
        b'{"page":' * 50_000,
        b'{"page": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"page": ' + b"9" * 5000 + b"}",
        b"{}",
        b'{"page": {}}',
        b'{"page": {"format": "convgrad-page", "version": 2}}',
    ],
    ids=range(17),
)
def test_bodies_that_are_no_pages(studio, body):
    for path in ("/api/check", "/api/run", "/api/fits", "/api/save", "/api/export"):
        status, content, _ = studio.raw("POST", path, body)
        assert status == 400, content
        assert len(json.loads(content)["error"].splitlines()) == 1


def test_other_methods(studio):
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "NONSENSE"):
        assert studio.raw(method, "/api/start")[0] in (405, 501)
    assert studio.raw("POST", "/api/start", b"{}")[0] == 405
    assert studio.raw("GET", "/api/check")[0] == 405
    assert studio.raw("POST", "/index.html", b"{}")[0] == 405


def test_what_is_no_request(studio):
    with socket.create_connection(("127.0.0.1", studio.port), timeout=20) as connection:
        connection.sendall(b"hello\r\n\r\n")
        assert b'"error"' in connection.recv(1000)
    long = b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", studio.port), timeout=20) as connection:
        connection.sendall(long)
        assert b" 414 " in connection.recv(100)


def everything(studio, text):
    """Send bytes and return all that comes back until the server closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", studio.port), timeout=20) as connection:
        connection.sendall(text)
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


def test_a_refused_body_is_not_taken_for_a_request(studio):
    smuggled = head(studio, "GET /api/health HTTP/1.1")
    text = head(studio, "POST /api/nothing HTTP/1.1", f"Content-Length: {len(smuggled)}") + smuggled
    answer = everything(studio, text)
    assert answer.count(b"HTTP/1.1 ") == 1 and b" 404 " in answer


def test_a_page_too_large(studio):
    blocks = [{"id": f"b{at}", "type": "Relu"} for at in range(100_001)]
    status, error = studio.refused("/api/check", page={**SQUARE, "blocks": blocks, "wires": []})
    assert status == 400 and "100001" in error


def test_a_tensor_nobody_could_hold_is_looked_at_without_memory(studio):
    huge = page(
        ("v", "Variable", {"shape": "{1000000,1000000}", "initvalues": "1"}),
        ("s", "Square"),
        wires="v.ref > s.x",
    )
    answer = studio.post("/api/check", page=huge)
    assert answer["blocks"]["s"]["tensors"]["y"]["shape"] == [1000000, 1000000]
    huger = page(("v", "Variable", {"shape": "{1000000000000,1000000000000}", "initvalues": "1"}))
    assert "fits in memory" in studio.post("/api/check", page=huger)["blocks"]["v"]["problem"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/run", {"steps": 0}),
        ("/api/run", {"steps": -1}),
        ("/api/run", {"steps": 10**9}),
        ("/api/run", {"steps": 1.5}),
        ("/api/run", {"steps": True}),
        ("/api/run", {"until": 7}),
        ("/api/run", {"until": ["x"]}),
        ("/api/run", {"seed_values": [1]}),
        ("/api/fits", {}),
        ("/api/fits", {"wire": {"from": ["q", "output"], "to": ["y", "x"]}}),
        ("/api/fits", {"wire": {"from": ["x"], "to": ["y", "x"]}}),
        ("/api/fits", {"wire": {"from": ["x", "output", -1], "to": ["y", "x"]}}),
        ("/api/explain", {}),
        ("/api/export", {}),
        ("/api/import", {}),
        ("/api/import", {"name": "x.svg", "data": "***"}),
        ("/api/import", {"name": "x.svg", "data": "PHN2Zz4="}),
        ("/api/import", {"name": "../../x.json", "data": "e30="}),
        ("/api/feed", {"name": "x.npy"}),
        ("/api/feed", {"name": 7, "data": ""}),
    ],
)
def test_fields_that_are_wrong(studio, path, body):
    status, error = studio.refused(path, page=SQUARE, **body)
    assert status == 400 and len(error.splitlines()) == 1
    assert "/tmp" not in error


def test_unknown_things_of_a_run(studio):
    run = studio.run(SQUARE)
    studio.ended(run)
    for body in (
        {"block": "q", "pin": "y", "index": [0]},
        {"block": "y", "pin": "q", "index": [0]},
        {"block": "y", "pin": "y", "index": [3]},
        {"block": "y", "pin": "y", "index": [-1]},
        {"block": "y", "pin": "y", "index": []},
        {"block": "y", "pin": "y", "index": [0, 0]},
        {"block": "y", "pin": "y", "index": ["0"]},
        {"block": "y", "pin": "y", "index": [10**30]},
        {"block": "y", "pin": "y"},
        {"block": "x", "pin": "output", "index": [9]},
    ):
        status, error = studio.refused(f"/api/run/{run}/trace", **body)
        assert status == 400, error
    for query in ("", "?block=y", "?block=q&pin=y", "?block=y&pin=q", "?pin=y"):
        assert studio.raw("GET", f"/api/run/{run}/tensor{query}")[0] == 400
    assert studio.raw("GET", f"/api/run/{run}?since=x")[0] == 400
    assert studio.refused("/api/run/r999/cancel")[0] == 404
    assert studio.refused("/api/run/r999/trace", block="y", pin="y", index=[0])[0] == 404


@pytest.mark.parametrize(
    "lengths",
    [
        ("Transfer-Encoding: chunked",),
        ("Content-Length: 0", "Content-Length: 99"),
        ("Content-Length: 99",),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/health", "/nothing"])
def test_the_body_of_a_get_is_not_taken_for_a_request(studio, path, lengths):
    text = head(studio, f"GET {path} HTTP/1.1", *lengths) + head(studio, "GET / HTTP/1.1")
    answer = everything(studio, text)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_many_connections_at_once_do_not_wait_for_one_another(studio):
    start = time.monotonic()
    with contextlib.ExitStack() as opened:
        for _ in range(60):
            opened.enter_context(socket.create_connection(("127.0.0.1", studio.port), timeout=20))
        assert studio.get("/api/health")["ok"] is True
    assert time.monotonic() - start < 3  # it was 10: every sixth waited for a second try


def test_a_query_of_too_many_fields(studio):
    query = "&".join(f"f{at}=1" for at in range(30))
    status, content, _ = studio.raw("GET", f"/api/health?{query}")
    assert status == 400 and "query" in json.loads(content)["error"]


def test_what_the_system_refuses_is_told(studio, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/convgrad-x")

    monkeypatch.setattr(api.tempfile, "TemporaryDirectory", full)
    status, error = studio.refused("/api/import", name="x.svg", data="PHN2Zz4=")
    assert status == 500 and "No space left" in error and "/tmp" not in error
    monkeypatch.setattr(runs.subprocess, "Popen", full)
    monkeypatch.setattr(studio.server.studio.runs, "_spare", None)  # put back afterwards
    assert studio.refused("/api/run", page=SQUARE)[0] == 500
    studio.server.studio.runs.warm()  # raises nothing: the studio goes on without a spare process
