"""`tools/affected.py`: which tests a change can affect, by the table of layers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import affected

ROOT = affected.ROOT
TABLE = affected.layers(
    (ROOT / affected.LAYERS).read_text(encoding="utf-8"),
    (ROOT / affected.PACKAGE / "__init__.py").read_text(encoding="utf-8"),
)
FOLDERS = affected.folders(ROOT, TABLE)
EVERY = {folder.name for folder in FOLDERS}


def by(*files: str) -> set[str]:
    return set(affected.affected(files, TABLE, FOLDERS))


def test_the_table_is_the_one_of_the_test():
    from unit import test_layers

    assert {row: set(others) for row, others in TABLE.allowed.items()} == {
        row: others | {"_base"} for row, others in test_layers.ALLOWED.items()
    }
    assert TABLE.bridges == test_layers.BRIDGES
    assert {"_api", "nn", "reference"} < TABLE.eager
    assert not TABLE.eager & {"graph", "_apps/explain", "torch", "_apps/export"}, (
        "these are imported late"
    )


@pytest.mark.parametrize(
    "file",
    [
        *(
            "_compiler/codegen/builder.py",
            "_kernels/dense_direct/kernel.py",
            "_compiler/jit/llvm.py",
            "_base/config.py",
        ),
        *("_problem/convolution.py", "_base/errors.py", "_compiler/targets/x86.py"),
    ],
)
def test_what_kernels_come_from_affects_all_that_computes(file):
    assert by(f"src/convgrad/{file}") > {
        "numeric",
        "runtime",
        "graph",
        "cli",
        "pytorch",
        "jax_bridge",
    }


@pytest.mark.parametrize(
    ("file", "inside", "outside"),
    [
        ("src/convgrad/_apps/cli/info.py", {"cli", "hostile"}, {"numeric", "graph", "codegen"}),
        ("src/convgrad/_apps/studio/server.py", {"studio", "cli"}, {"numeric", "codegen", "pytorch"}),
        ("src/convgrad/_bridges/torch/sums.py", {"pytorch", "keras_bridge", "arrays"}, {"numeric", "cli", "graph"}),
        ("src/convgrad/_bridges/jax/mapping.py", {"jax_bridge", "arrays"}, {"numeric", "pytorch", "cli"}),
        ("src/convgrad/_bridges/dask/plan.py", {"dask_bridge", "cli"}, {"codegen", "pytorch"}),
        ("src/convgrad/_apps/pages/svg.py", {"pages_files", "studio"}, {"numeric", "codegen"}),
        ("src/convgrad/_kernels/norm/apply.py", {"numeric", "pytorch", "jax_bridge"}, {"codegen"}),
        ("src/convgrad/include/convgrad_pack.h", {"export", "cc"}, {"numeric", "cli"}),
        ("tests/norms.py", {"numeric"}, {"cli", "unit"}),
        ("tests/sources.py", {"unit"}, {"numeric"}),
        ("tests/graph/test_random.py", {"graph"}, EVERY - {"graph"}),
        ("docs/jax.md", {"pages", "jax_bridge"}, {"numeric", "unit"}),
        ("tools/fit.py", {"tools"}, EVERY - {"tools"}),
        ("examples/digits.py", {"examples"}, {"numeric", "unit"}),
        ("changelog.d/some.fixed.md", {"tools"}, {"numeric"}),
        ("LICENSE", set(), EVERY),
    ],
)  # fmt: skip
def test_folders_of_a_file(file, inside, outside):
    found = by(file)
    assert inside <= found, inside - found
    assert not found & outside, found & outside


@pytest.mark.parametrize(
    "file", ["Makefile", "pyproject.toml", "tests/conftest.py", "no/such/rule.x"]
)
def test_what_nothing_is_known_of_affects_everything(file):
    assert by(file) == EVERY


def test_places_and_folders_that_rules_name_are_there():
    for name, places in affected.READS.items():
        assert name in EVERY
        for place in places:
            assert (ROOT / place).exists(), place
    assert affected.LEFT_OUT | affected.FRAMEWORKS | affected.RUNS <= EVERY


def test_the_commands():
    names = {"cli", "pytorch", "studio_browser", "unit"}
    plain, bridges = affected.commands(names, ["src/convgrad/_base/text.py", "docs/x.md"], ["-n2"])
    assert plain[1:] == [
        *("-m", "pytest", "-q", "tests/test_tiny.py", "tests/unit", "tests/cli"),
        *("src/convgrad/_base/text.py", "-n2"),
    ]
    assert bridges == [".venv-frameworks/bin/python", "-m", "pytest", "-q", "tests/pytorch", "-n2"]
    (alone,) = affected.commands(set(), ["src/convgrad/_bridges/torch/sums.py"], [])
    assert alone[4:] == [
        "tests/test_tiny.py",
        "tests/unit",
    ]  # doctests of a bridge need its framework


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "kept").write_text("a")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("checkout", "-q", "-b", "work")
    (tmp_path / "committed").write_text("a")
    git("add", ".")
    git("commit", "-q", "-m", "second")
    (tmp_path / "kept").write_text("b")
    (tmp_path / "new").write_text("")
    git("branch", "-f", "elsewhere", "main")
    return tmp_path


def test_changes_are_those_since_the_base_and_those_not_committed(clone):
    assert affected.changed_files("main", clone) == ["committed", "kept", "new"]
    assert affected.changed_files("HEAD", clone) == ["kept", "new"]
    with pytest.raises(SystemExit, match="git merge-base nowhere HEAD"):
        affected.changed_files("nowhere", clone)


def test_running(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(affected, "changed_files", lambda base: ["tools/affected.py"])
    monkeypatch.setattr(affected, "folders", lambda root, table: FOLDERS)
    monkeypatch.setattr(
        subprocess, "run", lambda command, cwd: ran.append(command) or subprocess.CompletedProcess(command, 3)
    )  # fmt: skip
    assert affected.main(["--run", "--", "-x"]) == 3
    assert ran == [
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *affected.ALWAYS,
            "tests/tools",
            "tools/affected.py",
            "-x",
        ]
    ]
    shown = capsys.readouterr().out
    assert "tests/tools: tools/affected.py" in shown and "pytest -q tests/test_tiny.py" in shown
    ran.clear()
    assert affected.main([]) == 0 and not ran
    monkeypatch.setattr(affected, "changed_files", lambda base: [])
    assert (
        affected.main(["--base", "x"]) == 0 and "nothing differs from x" in capsys.readouterr().out
    )
