"""TensorFlow's include lines: every header of the folder is fresh and compiles alone and with all others."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cc_programs import INCLUDE, ROOT, Builds, found, setting, settings

SPEC = importlib.util.spec_from_file_location("cc_shim", ROOT / "tools" / "cc_shim.py")
assert SPEC and SPEC.loader
cc_shim = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(cc_shim)
SHIM = INCLUDE / "shim"


def test_the_folder_is_fresh() -> None:
    written = {str(path.relative_to(SHIM)) for path in SHIM.rglob("*.h")}
    assert written == {*cc_shim.headers(), "tensorflow/convgrad.h"}
    for path, text in cc_shim.headers().items():
        assert (SHIM / path).read_text() == text, "run: python tools/cc_shim.py"


@pytest.mark.cc_long
def test_all_include_lines_together_in_any_order(builds: Builds, tmp_path: Path) -> None:
    source = tmp_path / "lines.cc"
    lines = [f'#include "{path}"' for path in sorted(cc_shim.headers(), reverse=True)]
    source.write_text("\n".join([*lines, "int main() { return 0; }", ""]))
    builds.program(source, settings()[0])


@pytest.mark.cc_long
def test_two_files_of_one_program_may_include_everything(builds: Builds, tmp_path: Path) -> None:
    text = '#include "tensorflow/cc/ops/standard_ops.h"\n#include "tensorflow/cc/client/client_session.h"\n'
    other = tmp_path / "other.cc"
    other.write_text(
        text + "int Other() { return tensorflow::Scope::NewRootScope().ok() ? 0 : 1; }\n"
    )
    source = tmp_path / "main.cc"
    source.write_text(text + "int Other();\nint main() { return Other(); }\n")
    for compiler in found():
        builds.program(source, setting(compiler, "C++17"), str(other))
