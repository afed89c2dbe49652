"""The verb: what it opens, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from convgrad._cli.main import main
from convgrad._cli.studio import memory
from convgrad._studio import server
from studio_pages import SQUARE


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(tmp_path, signalled):
    file = tmp_path / "page.json"
    file.write_text(json.dumps(SQUARE), "utf-8")
    words = ["studio", str(file), "--no-browser", "--json", "--token", "a-token-of-mine"]
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
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
from convgrad._cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere.svg"], "must end in .json"),
        (["no/folder/page.json"], "no folder"),
        (["--port", "70000"], "port"),
        (["--port", "-1"], "port"),
        (["--token", "short"], "8 to 128"),
        (["--token", "with blanks in it"], "8 to 128"),
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
    assert "cannot be had" in capsys.readouterr().err


def test_amounts_of_memory():
    assert memory("4G") == 4 << 30 and memory("512M") == 512 << 20 and memory("1.5gib") == 3 << 29


def test_without_its_page_it_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "app.js").write_text("left over from a build that failed", "utf-8")
    monkeypatch.setattr(server, "built_page", lambda: tmp_path)
    monkeypatch.setattr(server.Server, "serve_forever", lambda *_, **__: None)
    assert main(["studio", "--no-browser"]) == 0
    said = capsys.readouterr().err
    assert "make studio" in said and "CONVGRAD_STUDIO=require pip install" in said
    assert "CONVGRAD_STUDIO=require pip install" in server.MISSING
