"""The wheel in an empty environment, outside of the clone: what the README shows, the command, and C++."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import convgrad
import page_blocks
from outside.environment import Environment
from page_blocks import ROOT, blocks, framework_of, read

# Blocks of these frameworks run in their own tests: `make test-frameworks`. No other block may be left out.
NOT_THERE = ("torch", "jax", "tensorflow", "keras")
RUNS_BLOCK = "import json, sys, page_blocks; page_blocks.run_block(*json.load(sys.stdin))"
README = blocks("README.md", "python")


def package(installed: Environment) -> Path:
    """Return where the package is that the environment imports."""
    words = ("python", "-c", "import convgrad; print(convgrad.__file__)")
    return Path(installed.printed(*words).strip()).parent


def test_it_is_the_wheel_that_is_used(installed: Environment) -> None:
    found = package(installed)
    assert found.is_relative_to(installed.programs.parent) and not found.is_relative_to(ROOT)
    assert installed.printed("convgrad", "--version") == f"convgrad {convgrad.__version__}\n"


def test_nothing_else_was_installed(installed: Environment) -> None:
    """What the package needs, pip, and no framework."""
    listed = json.loads(installed.printed("python", "-m", "pip", "list", "--format", "json"))
    names = {each["name"].lower().replace("-", "_") for each in listed}
    assert names <= {"convgrad", "numpy", "ml_dtypes", "llvmlite", "pip", "setuptools"}
    installed.printed("python", "-m", "pip", "check")


def test_the_readme_has_blocks_to_run() -> None:
    left_out = [framework_of(source) for _, source in README]
    assert {name for name in left_out if name} <= set(NOT_THERE)
    assert left_out.count(None) >= 3


@pytest.mark.parametrize(
    ("line", "source"),
    [
        pytest.param(line, source, id=f"README.md:{line}")
        for line, source in README
        if framework_of(source) not in NOT_THERE
    ],
)
def test_a_block_of_the_readme(installed: Environment, line: int, source: str) -> None:
    shutil.copy(page_blocks.__file__, installed.folder)
    installed.printed("python", "-c", RUNS_BLOCK, input=json.dumps(["README.md", line, source]))


def test_a_wrong_block_would_be_noticed(installed: Environment) -> None:
    shutil.copy(page_blocks.__file__, installed.folder)
    wrong = ">>> import convgrad\n>>> convgrad.__version__\n'0.0'\n"
    ended = installed.run("python", "-c", RUNS_BLOCK, input=json.dumps(["README.md", 1, wrong]))
    assert ended.returncode != 0 and "Expected:" in ended.stderr


def test_a_bridge_without_its_framework_says_so(installed: Environment) -> None:
    for name in NOT_THERE:
        ended = installed.run("python", "-c", f"import convgrad.{name}")
        assert ended.returncode != 0
        last = ended.stderr.strip().splitlines()[-1]
        assert last.startswith(
            f"convgrad._base.errors.BackendMissingError: convgrad.{name} needs "
        ), last


def test_info(installed: Environment) -> None:
    said = json.loads(installed.printed("convgrad", "info", "--json"))
    assert said["convgrad"] == convgrad.__version__
    assert f"convgrad      {convgrad.__version__}" in installed.printed("convgrad", "info")


def test_explain(installed: Environment) -> None:
    words = "explain depthwise_conv2d_backprop_filter 8,28,28,192 3,3,192,1"
    assert f"convgrad {words}" in read("README.md")
    assert "* depthwise_direct: predicted" in installed.printed("convgrad", *words.split())


def test_run_keeps_its_kernels(installed: Environment) -> None:
    """Operands on disk, a result, and kernels for the next process."""
    made = (
        "import numpy as np; x = np.arange(32, dtype='f4').reshape(1, 4, 4, 2);"
        "np.save('x', x); np.save('f', np.ones((3, 3, 2, 1), 'f4'))"
    )
    installed.printed("python", "-c", made)
    words = "run conv2d --input x.npy --filter f.npy --strides 2 -o y.npy"
    installed.printed("convgrad", *words.split())
    assert np.load(installed.folder / "y.npy").ravel().tolist() == [189, 162, 270, 204]
    stats = json.loads(installed.printed("convgrad", "cache", "stats", "--json"))
    assert stats["used"] and stats["entries"] > 0
    assert Path(stats["folder"]).is_relative_to(installed.folder)


def test_the_studio_has_its_page(installed: Environment) -> None:
    assert "usage: convgrad studio" in installed.printed("convgrad", "studio", "--help")
    page = package(installed) / "_apps" / "studio" / "static" / "index.html"
    assert "<script" in page.read_text(encoding="utf-8")


def test_types_are_seen(installed: Environment) -> None:
    assert (package(installed) / "py.typed").is_file()


def test_cpp_as_the_page_says(installed: Environment) -> None:
    """The ten lines and the command of docs/cpp.md, with the headers of the wheel; unoptimized, 6 s instead of 40."""
    (program,) = (each for _, each in blocks("docs/cpp.md", "cpp") if "int main" in each)
    command = next(each for _, each in blocks("docs/cpp.md", "sh") if "gradient.cc" in each)
    (installed.folder / "gradient.cc").write_text(program, encoding="utf-8")
    assert " -O2 " in command
    printed = installed.printed("sh", "-ec", command.replace(" -O2 ", " -O0 "))
    assert f"`{printed.strip()}`" in read("docs/cpp.md")
    include = installed.printed("convgrad", "info", "--include").strip()
    assert Path(include).is_relative_to(installed.programs.parent)


def test_a_pack_in_c(installed: Environment) -> None:
    """The README's way out of Python: kernels as a library, whose self-test runs without any."""
    words = ("-o", "pack", "--name", "fast", "--target", "host")
    installed.printed("convgrad", "export", "conv2d 1x8x8x4 3x3x4x4", *words)
    compiled = "cd pack && cc fast_test.c fast.c libfast.a -lm -o self-test && ./self-test"
    assert "fast: 1 problems, 0 failed, 0 left out" in installed.printed("sh", "-ec", compiled)
