"""Python files that somebody has left in the current folder: nothing of ours runs them but the one that is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from child_python import child_environment
from convgrad._apps.bench.process import Process
from convgrad._apps.check.child import Isolated
from convgrad._apps.cli.main import main
from convgrad._apps.studio.runs import Limits, Runs
from convgrad._base import children
from convgrad._compiler import targets
from convgrad._compiler.jit import objects
from convgrad._compiler.kernel import KernelSource
from convgrad.errors import ArgumentError
from studio_pages import SQUARE

NAMES = (
    *("numpy", "llvmlite", "ml_dtypes", "convgrad", "rich", "matplotlib", "dask", "zarr", "torch"),
    *("json", "typing", "signal", "runpy", "sitecustomize", "usercustomize"),
)
PLANTED = "import pathlib\npathlib.Path({marker!r}).touch()\nraise SystemExit('planted')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files that have names of modules; each says that it ran, and nothing works with it."""
    place = tmp_path / "here"
    place.mkdir()
    for name in NAMES:
        (place / f"{name}.py").write_text(PLANTED.format(marker=str(tmp_path / f"ran-{name}")))
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", ["", str(place), *sys.path])  # as `python -m` and `-c` have it
    return place


def ran(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.parent.glob("ran-*"))


def test_a_run_of_the_studio(folder):
    runs = Runs(Limits())
    try:
        run = runs.find(runs.start(json.dumps(SQUARE), 1, None))
        status = run.status(0, 60.0)
        while status["state"] == "running":
            status = run.status(status["version"], 60.0)
    finally:
        runs.close()
    assert status["state"] == "done", status["problem"]
    assert ran(folder) == []


def test_a_kernel_that_is_checked(folder):
    with Isolated("convgrad.reference", "conv2d", 60.0):
        pass
    if PathFinder.find_spec("torch", children.import_path()) is None:
        # It is the installed one or none, never a file of that name.
        with pytest.raises(ArgumentError, match="torch is not installed"):
            Isolated("torch", "conv2d", 60.0).__enter__()
    assert ran(folder) == []


def test_a_compiler_of_packs(folder):
    ir = "define i64 @f() {\n  ret i64 1\n}\n"
    row = next(row for row in targets.ALL if row.name == "avx2")
    (made,) = objects.compile_all([KernelSource("f", ir)], row, row.triple)
    assert made and ran(folder) == []


def test_a_worker_of_a_benchmark(folder):
    worker = Process("from convgrad._apps.bench.worker import main; main()", {})
    try:
        worker.send(("hello",))
        assert "no such request" in worker.receive(60.0)[1]
    finally:
        worker.stop()
    assert ran(folder) == []


KERNEL = """
import helper_beside_it
import numpy
import library_with_an_extra

def conv2d(*arguments, **settings):
    import late_helper
    return late_helper.conv2d(*arguments, **settings)
"""
LIBRARY = """
try:
    import an_extra
except ImportError:
    an_extra = None
"""


def test_only_what_was_named_is_imported(folder):
    """The command as pip installs it: a script in another folder. One process for the verb, one for the kernel."""
    parent = folder.parent
    (folder / "mykernels.py").write_text(KERNEL)
    (folder / "helper_beside_it.py").touch()
    (folder / "late_helper.py").write_text("from convgrad import conv2d\n")
    planted = PLANTED.format(marker=str(parent / "ran-an_extra"))
    (folder / "an_extra.py").write_text(planted)
    library = parent / "library"
    library.mkdir()
    (library / "library_with_an_extra.py").write_text(LIBRARY)
    script = parent / "convgrad-script"
    script.write_text("import sys\nfrom convgrad._apps.cli.main import main\nsys.exit(main())\n")
    words = ["check", "mykernels", "conv2d", "--problems", "2", "--property", "basic"]
    sys.path[:2] = [str(library)]  # goes into the child's PYTHONPATH, as a user's own would
    for more in ([], ["--in-process"]):
        done = subprocess.run(
            [sys.executable, str(script), *words, *more],
            env=child_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 pass" in done.stdout
        assert ran(folder) == []


def test_an_installed_module_comes_first_and_the_error_says_so(folder, capsys):
    assert main(["check", "colorsys:conv2d", "conv2d", "--in-process"]) == 2
    assert "has no function 'conv2d'." in capsys.readouterr().err
    (folder / "colorsys.py").write_text("def conv2d(): pass\n")
    assert main(["check", "colorsys:conv2d", "conv2d", "--in-process"]) == 2
    assert "which comes before colorsys.py of the current folder" in capsys.readouterr().err


def test_the_path_of_a_child(folder, monkeypatch):
    here, elsewhere = str(folder), str(folder.parent)
    monkeypatch.setattr(sys, "path", ["", here, Path(elsewhere), "relative", children.ROOT])
    rest = [elsewhere, str(folder / "relative"), children.ROOT]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert children.import_path() == rest
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", elsewhere]))
    assert children.import_path() == rest
    for named in (".", here):
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([elsewhere, named]))
        assert children.import_path() == [here, *rest]
    monkeypatch.setattr(sys, "path", [elsewhere])  # found by an import hook
    assert children.import_path() == [children.ROOT, elsewhere]
    monkeypatch.chdir(children.ROOT)
    monkeypatch.setattr(sys, "path", ["", elsewhere, children.ROOT])
    assert children.import_path() == [elsewhere, children.ROOT]


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
def test_a_current_folder_that_is_gone(tmp_path, monkeypatch):
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    monkeypatch.setattr(sys, "path", ["", children.ROOT])
    for words in ("", "src"):
        monkeypatch.setenv("PYTHONPATH", words)
        assert children.import_path() == [children.ROOT]


def test_a_child_has_its_arguments_and_our_flags(folder):
    text = f"print(sys.argv[1:], sys.path == {children.import_path()!r}, flush=True)"
    done = subprocess.run(
        children.python_command(text, "a b"), capture_output=True, text=True, check=True
    )
    assert done.stdout == "['a b'] True\n" and ran(folder) == []
    inner = (
        "import sys; from convgrad._base import children; print(children.python_command('')[1:-2])"
    )
    outer = f"import sys; sys.path[:] = {children.import_path()}; {inner}"
    for flags in (["-I"], ["-E", "-s"]):
        given = [sys.executable, *flags, "-c", outer]
        done = subprocess.run(given, capture_output=True, text=True, check=True, cwd=folder.parent)
        assert all(repr(flag) in done.stdout for flag in flags)
