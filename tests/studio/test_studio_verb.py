"""The verb: what it opens, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from child_python import child_environment
from convgrad._apps.cli.main import main
from convgrad._apps.cli.studio import read_memory
from convgrad._apps.studio import server
from studio_pages import SQUARE


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(tmp_path, signalled):
    file = tmp_path / "page.json"
    file.write_text(json.dumps(SQUARE), "utf-8")
    words = ["studio", str(file), "--no-browser", "--json"]
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment({"CONVGRAD_STUDIO_TOKEN": "a-token-of-mine"}),
    )
    try:
        facts = json.loads(child.stdout.readline())
        assert facts["address"] == f"http://127.0.0.1:{facts['port']}/?token=a-token-of-mine"
        request = urllib.request.Request(
            f"http://127.0.0.1:{facts['port']}/api/start",
            headers={"X-Convgrad-Token": facts["token"]},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            start = json.load(answer)
        assert start["file"] == "page.json" and start["page"] == SQUARE
        child.send_signal(signalled)
        child.communicate(timeout=30)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == (0 if signalled == signal.SIGINT else 143)


_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of some shells
from convgrad._apps.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def served(monkeypatch):
    """Return how to run the verb on a server that ends at once, and the server."""

    def run(*words):
        made = []
        monkeypatch.setattr(server.Server, "serve_forever", lambda self, **_: made.append(self))
        status = main(["studio", *words])
        return status, made[0] if made else None

    return run


def test_a_token_from_a_file_is_the_same_next_time(served, tmp_path, capsys):
    file = tmp_path / "token"
    _, first = served("--no-browser", "--token-file", str(file))  # it is made
    assert len(first.token) >= 24 and file.read_text().strip() == first.token
    assert served("--no-browser", "--token-file", str(file))[1].token == first.token
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o640)
        assert served("--no-browser", "--token-file", str(file)) == (2, None)
        assert "chmod 600" in capsys.readouterr().err
        file.chmod(0o600)
    for text in ("short", "with blanks in it", "", "t" * 129, "t\xf6ken-of-mine"):
        file.write_text(text, "utf-8")
        assert served("--no-browser", "--token-file", str(file)) == (2, None)
        told = capsys.readouterr().err
        assert "8 to 128" in told and (not text or text not in told)


def test_a_token_from_the_environment(served, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CONVGRAD_STUDIO_TOKEN", "a-token-of-mine")
    assert served("--no-browser")[1].token == "a-token-of-mine"
    assert "CONVGRAD_STUDIO_TOKEN" not in os.environ  # runs and the browser need not know
    assert served("--no-browser")[1].token != "a-token-of-mine"
    monkeypatch.setenv("CONVGRAD_STUDIO_TOKEN", "short")
    assert served("--no-browser") == (2, None)
    assert "CONVGRAD_STUDIO_TOKEN holds no token" in capsys.readouterr().err
    monkeypatch.setenv("CONVGRAD_STUDIO_TOKEN", "a-token-of-mine")
    assert main(["info"]) == 0
    shown = capsys.readouterr()
    assert "a-token-of-mine" not in shown.out + shown.err and "unknown" not in shown.err


@pytest.mark.parametrize("come", [True, False])
def test_the_browser_is_not_told_the_token_on_its_command_line(come, monkeypatch, capsys):
    """It gets a file that leads there, which nobody else can read and which is gone once it has come."""
    opened, told = [], threading.Event()

    def browse(address):
        opened.append(address)
        told.set()

    def serve(self, **_):
        assert told.wait(30)
        path = Path(url2pathname(urlsplit(opened[0]).path))
        assert opened[0].startswith("file:") and self.token not in opened[0]
        assert f'url={self.address}"' in path.read_text("utf-8")
        if os.name == "posix":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        opened.append(path)
        if come:
            self.arrived.set()
            until = time.monotonic() + 30
            while path.parent.exists():
                assert time.monotonic() < until
                time.sleep(0.01)

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setattr(server.Server, "serve_forever", serve)
    assert main(["studio"]) == 0, capsys.readouterr().err
    assert not opened[1].parent.exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere.svg"], "must end in .json"),
        (["no/folder/page.json"], "no folder"),
        (["--port", "70000"], "port"),
        (["--port", "-1"], "port"),
        (["--token", "a-token-of-mine"], "give --token-file FILE, or set CONVGRAD_STUDIO_TOKEN"),
        (["--token-file", "no/folder/token"], "cannot be made"),
        (["--token-file", "."], "it is a folder"),
        (["--memory", "lots"], "such as 4G"),
        (["--memory", "1K"], "at least"),
        (["--seconds", "0"], "seconds"),
    ],
)
def test_refusals(words, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["studio", "--no-browser", *words]) == 2
    assert reason in capsys.readouterr().err


def test_a_broken_file_is_refused(tmp_path, capsys):
    (tmp_path / "page.json").write_text("{", "utf-8")
    assert main(["studio", str(tmp_path / "page.json"), "--no-browser"]) == 2
    assert "page.json" in capsys.readouterr().err


def test_a_port_that_is_taken(studio, capsys):
    assert main(["studio", "--no-browser", "--port", str(studio.port)]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_amounts_of_memory():
    assert (
        read_memory("4G") == 4 << 30
        and read_memory("512M") == 512 << 20
        and read_memory("1.5gib") == 3 << 29
    )


def test_without_its_page_it_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "app.js").write_text("left over from a build that failed", "utf-8")
    monkeypatch.setattr(server, "built_page", lambda: tmp_path)
    monkeypatch.setattr(server.Server, "serve_forever", lambda *_, **__: None)
    assert main(["studio", "--no-browser"]) == 0
    said = capsys.readouterr().err
    assert "make studio" in said and "CONVGRAD_STUDIO=require pip install" in said
    assert "CONVGRAD_STUDIO=require pip install" in server.MISSING
