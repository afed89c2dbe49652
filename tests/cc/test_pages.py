"""Programs of the pages on C++ and packs compile and do what the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import convgrad

DOCS = Path(__file__).resolve().parents[2] / "docs"
INCLUDE = Path(convgrad.__file__).parent / "include"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")


def fences(page: str, language: str) -> list[str]:
    """Return the blocks of a page that are in one language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(*words: object) -> str:
    ended = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.cc_long
def test_ten_lines_of_cpp(tmp_path: Path) -> None:
    (program,) = (each for each in fences("cpp.md", "cpp") if "int main" in each)
    source = tmp_path / "gradient.cc"
    source.write_text(program)
    run(
        "g++",
        "-std=c++17",
        "-O0",
        "-pthread",
        *WARNINGS,
        f"-I{INCLUDE}",
        source,
        "-o",
        tmp_path / "gradient",
    )
    printed = run(tmp_path / "gradient").strip()
    assert f"`{printed}`" in (DOCS / "cpp.md").read_text(encoding="utf-8")


def test_a_pack_in_c(tmp_path: Path) -> None:
    """The first program as it stands, and the two look-ups in programs around them."""
    program, by_line, look_up = fences("packs.md", "c")
    (line,) = re.findall(
        r'convgrad export "([^"]*)" -o pack', (DOCS / "packs.md").read_text(encoding="utf-8")
    )
    (other,) = re.findall(r'cg_find_line\(&layer, "([^"]*)"\)', by_line)
    convgrad.export([line, other], tmp_path, name="layer", target="sse2", with_test=False)
    before, _, after = program.partition("  return ")
    call, _, _ = after.partition(";")
    compared = f"  if (code != {call}) return 1;\n  return code;\n}}\n"
    (tmp_path / "a.c").write_text(program)
    (tmp_path / "b.c").write_text(f"{before}{look_up}{compared}")
    arrays = (
        "static float input[28 * 28 * 8], filter[3 * 3 * 8 * 16], output[28 * 28 * 16], bias[16];\n"
    )
    (scratch,) = re.findall(r".* scratch\[.*\n", program)
    (tmp_path / "c.c").write_text(
        f'#include "layer.h"\n{arrays}{scratch}int main(void) {{\n{by_line}  return code;\n}}\n'
    )
    pack = (tmp_path / "layer.c", tmp_path / "liblayer.a")
    for name in ("a", "b", "c"):
        run(
            "gcc",
            "-std=c11",
            *WARNINGS,
            f"-I{tmp_path}",
            tmp_path / f"{name}.c",
            *pack,
            "-o",
            tmp_path / name,
        )
        run(tmp_path / name)


@pytest.mark.cc_long
def test_kernels_are_compiled_in_one_file(tmp_path: Path) -> None:
    """Two files that both make graphs, of which one has the kernels; without it they do not link."""
    (program,) = (each for each in fences("cpp.md", "cpp") if "int main" in each)
    (tmp_path / "main.cc").write_text(program)
    (tmp_path / "kernels.cc").write_text(
        '#define CONVGRAD_IMPLEMENTATION\n#include "convgrad/cc/convgrad.h"\n'
    )
    flags = ("-std=c++17", "-O0", "-pthread", "-DCONVGRAD_SEPARATE", *WARNINGS, f"-I{INCLUDE}")
    objects = [tmp_path / f"{name}.o" for name in ("main", "kernels")]
    for made in objects:
        run("g++", *flags, "-c", made.with_suffix(".cc"), "-o", made)
    with pytest.raises(AssertionError, match="FindRow"):
        run("g++", "-pthread", objects[0], "-o", tmp_path / "program")
    run("g++", "-pthread", *objects, "-o", tmp_path / "program")
    assert "[[[3]]][[[10]]][[[9]]]" in run(tmp_path / "program")
