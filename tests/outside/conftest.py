"""What `make dist` built, and an environment with nothing in it but the wheel; run by `make test-dist`."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pytest

from outside.environment import Environment
from page_blocks import ROOT
from tools import dist


def built() -> tuple[Path, Path]:
    try:
        return dist.built()
    except FileNotFoundError as error:
        pytest.fail(f"{error}; `make test-dist` builds them first")


@pytest.fixture(scope="session")
def archive() -> Path:
    """Return the archive of the sources."""
    return built()[0]


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Return the wheel."""
    return built()[1]


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment that has the wheel and what it needs, from the index pip is set to."""
    outside = tmp_path_factory.mktemp("outside")
    assert not outside.is_relative_to(ROOT)
    venv.create(outside / "venv", with_pip=True)
    programs = outside / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    ended = subprocess.run(
        [*map(str, pip), str(wheel)], cwd=outside, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (outside / "work").mkdir()
    return Environment(programs, outside / "work")
