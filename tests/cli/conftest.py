"""Shared by the tests of the command line: run a command in this process, in a folder of its own."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from convgrad._apps.cli.main import main
from convgrad._base import config


class Ending(NamedTuple):
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document of standard output; anything beside it is an error here."""
        return json.loads(self.out)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def heed_interrupts() -> None:
    """Called in a child: what is started in the background of a shell ignores Ctrl-C, and so would the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def convgrad_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ending]:
    """Return a function that runs ``convgrad WORDS`` and says how it ended."""

    def run(*words: object) -> Ending:
        capsys.readouterr()
        status = main([str(word) for word in words])
        return Ending(status, *capsys.readouterr())

    return run


@pytest.fixture
def without_compiler() -> Iterator[None]:
    """Let the reference compute, where nothing is about kernels: each new shape of a block would be compiled."""
    with config.scope(kernels=False):
        yield
