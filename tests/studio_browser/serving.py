"""`convgrad studio` as a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SOURCES = Path(__file__).resolve().parents[2] / "src"


class Server:
    """A running studio; `kill` and `again` are a crash and a restart on the same port with the same token."""

    def __init__(self, *arguments: str, port: int = 0, token: str | None = None) -> None:
        self.arguments = arguments
        command = [sys.executable, "-m", "convgrad", "studio", *arguments, "--no-browser", "--json"]
        command += ["--port", str(port)]
        path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "CONVGRAD_STUDIO_TOKEN": token or ""},
        )
        assert self.process.stdout
        self.address: str = json.loads(self.process.stdout.readline())["address"]
        parts = urlsplit(self.address)
        self.port = parts.port or 0
        self.token = parse_qs(parts.query)["token"][0]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.stop()

    def again(self) -> Server:
        """Start it anew where it was."""
        return Server(*self.arguments, port=self.port, token=self.token)

    def stop(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(20)
        if self.process.stdout:
            self.process.stdout.close()
