"""What an edit of the sources costs: on a copy of the package, edited and asked for kernels in a child process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convgrad._compiler.jit import Counts
from sources import ROOT

PROGRAM = """
import json, platform, sys
from dataclasses import asdict
from functools import partial
from convgrad import _kernels
from convgrad._compiler import jit
from convgrad._kernels.shared.pixel_sum import PixelSumKernel
from convgrad._engine.prepare import load_functions
from convgrad._runtime import parfor, parking

assert jit.__file__.startswith(sys.argv[1]), jit.__file__
target = jit.host_target()
for planes in (False, True):
    identity = PixelSumKernel("f32", planes)
    jit.load(identity, partial(_kernels.emit, identity, target), target)
load_functions(parfor.source(platform.machine(), parking.choose_way()))
print(json.dumps(asdict(jit.counted())))
"""
KERNELS = 3
"""Of the program: two of a family, and the compiled half of the runtime."""
FAMILY = "_kernels/shared/pixel_sum.py"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package, whose kernels have been compiled."""
    place = tmp_path_factory.mktemp("edited")
    skipped = shutil.ignore_patterns("__pycache__", "include", "static", "*.csv")
    shutil.copytree(ROOT, place / "convgrad", ignore=skipped)
    found = asked(place)
    assert (found.compiled, found.from_disk, found.from_text) == (KERNELS, 0, 0)
    return place


def asked(place: Path) -> Counts:
    """Ask for the kernels in a new process."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CONVGRAD_CACHE_DIR": str(place / "kept"),
        "CONVGRAD_DISK_CACHE": "1",
    }
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place)], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return Counts(**json.loads(found.stdout))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_an_edit_costs(copied: Path) -> None:
    """In one test, each on top of the one before: a process takes half a second."""
    comment = '"""\n\nfrom __future__', '"""\n\n# a comment\nfrom __future__'
    for file in (
        "_base/text.py",
        "_base/errors.py",
        "_compiler/jit/cache.py",
        "_runtime/parfor.py",
    ):
        edit(copied / "convgrad" / file, *comment)
    found = asked(copied)
    assert (found.compiled, found.from_disk, found.from_text) == (0, KERNELS, 0)
    assert found.writing_s == 0, "not even a text was written"

    edit(copied / "convgrad" / FAMILY, *comment)
    found = asked(copied)
    assert (found.compiled, found.from_disk, found.from_text) == (0, 0, KERNELS)
    assert found.importing_s == 0, "LLVM was not needed"

    edit(copied / "convgrad" / FAMILY, "_SIDE_BY_SIDE = 4", "_SIDE_BY_SIDE = 2")
    found = asked(copied)
    assert (found.compiled, found.from_text) == (KERNELS - 1, 1), "the runtime's text is the same"

    edit(copied / "convgrad" / FAMILY, "_SIDE_BY_SIDE = 2", "_SIDE_BY_SIDE = 4")
    edit(copied / "convgrad/_runtime/parfor.py", '_LOOP = """', '_LOOP = """\n; of another version')
    found = asked(copied)
    assert found.from_disk == KERNELS - 1, "going back finds the old ones"
    assert found.compiled == 1, "the runtime's text has changed, though its file is not hashed"
