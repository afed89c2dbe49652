"""A studio on a free port, and a browser's side of it that needs no browser."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convgrad._apps.studio.api import Studio
from convgrad._apps.studio.runs import Limits, Runs
from convgrad._apps.studio.server import Server

TOKEN = "token-of-the-tests"


class Client:
    """Asks a studio."""

    def __init__(self, server: Server) -> None:
        self.server = server

    @property
    def port(self) -> int:
        return self.server.server_port

    def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes, Any]:
        """Send one request; headers are added to the right ones, or replace them."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            given = {"X-Convgrad-Token": TOKEN, **(headers or {})}
            connection.request(
                method, path, body, {k: v for k, v in given.items() if v is not None}
            )
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, content, _ = self.raw("GET", path)
        assert status == 200, content
        return json.loads(content)

    def post(self, path: str, **body: Any) -> Any:
        status, content, _ = self.raw("POST", path, json.dumps(body).encode())
        assert status == 200, content
        return json.loads(content)

    def refused(self, path: str, **body: Any) -> tuple[int, str]:
        """Return status and error of a question that is not answered."""
        status, content, _ = self.raw("POST", path, json.dumps(body).encode())
        assert status >= 400, content
        return status, json.loads(content)["error"]

    def run(self, page: Any, steps: int = 1, **more: Any) -> str:
        found: str = self.post("/api/run", page=page, steps=steps, **more)["run"]
        return found

    def ended(self, run: str, seconds: float = 60) -> Any:
        """Wait for a run's end and return its status."""
        until, since = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            status = self.get(f"/api/run/{run}?since={since}")
            since = status["version"]
            if status["state"] != "running":
                return status
        raise AssertionError(f"still running: {status}")


def serve(limits: Limits, file: Path | None = None, folder: Path | None = None) -> Iterator[Client]:
    server = Server(Studio(Runs(limits), file), 0, TOKEN, folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A studio with a built page of two files, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html>studio", encoding="utf-8")
    (folder / "assets" / "app.js").write_text("1", encoding="utf-8")
    (folder.parent / "secret.txt").write_text("secret", encoding="utf-8")
    yield from serve(Limits(), folder=folder)


@pytest.fixture
def small_studio() -> Iterator[Client]:
    """One whose runs may take 1 GB."""
    yield from serve(Limits(60.0, 1 << 30))


@pytest.fixture
def brief_studio() -> Iterator[Client]:
    """One whose runs may take 2 s."""
    yield from serve(Limits(2.0))


@pytest.fixture
def file_studio(tmp_path: Path) -> Iterator[Client]:
    """One that was started with a file."""
    yield from serve(Limits(), tmp_path / "page.json")
