"""Packs in other people's builds: CMake, pkg-config, linkers that drop what nobody names, two packs in a program."""

from __future__ import annotations

import re
import shutil

import pytest

import convgrad
from packs import run, tool

LINES = """
conv2d 2x14x14x16 3x3x16x24
conv2d_backprop_input 2x14x14x16 3x3x16x24
conv2d_backprop_filter 2x14x14x16 3x3x16x24
depthwise_conv2d 2x12x12x8 3x3x8x1
depthwise_conv2d_backprop_filter 2x12x12x8 3x3x8x1
"""
ONE = r"""
#include <stdio.h>
#include "net.h"
static float x[2 * 12 * 12 * 8], f[3 * 3 * 8], y[2 * 12 * 12 * 8];
#define SCRATCH net_depthwise_forward_f32_2x12x12x8_k3x3_o8_same_SCRATCH
static union { double align; unsigned char bytes[SCRATCH + 64]; } memory;
int main(void) {
  unsigned char *scratch = memory.bytes + (64 - (size_t)memory.bytes % 64) % 64;
  int i, code;
  for (i = 0; i < 2 * 12 * 12 * 8; i++) x[i] = 1.0f;
  for (i = 0; i < 72; i++) f[i] = 1.0f;
  code = net_depthwise_forward_f32_2x12x12x8_k3x3_o8_same(x, f, y, scratch, sizeof memory.bytes - 64);
  printf("%d %g %g\n", code, (double)y[0], (double)y[(12 + 1) * 8]);
  return code;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("linking") / "pack"
    convgrad.export(LINES, place, name="net")
    return place


@pytest.fixture
def program(tmp_path):
    (tmp_path / "one.c").write_text(ONE)
    return tmp_path / "one.c"


@pytest.mark.cc_long
def test_a_program_that_names_one_problem_gets_its_kernels_only(folder, program, tmp_path):
    whole, small = tmp_path / "whole", tmp_path / "small"
    files = ["-I", folder, program, folder / "net.c", folder / "libnet.a"]
    run(tool("gcc"), "-O1", *files, "-o", whole)
    sections = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    run(tool("gcc"), "-O1", *sections, *files, "-o", small)
    assert run(whole) == run(small) == "0 4 9\n"

    def kernels(path):
        return set(re.findall(r"cgk_\w+", run(tool("nm"), path)))

    report = (folder / "net.c").read_text()
    assert kernels(whole) == set(re.findall(r"cgk_\w+", report))
    found = re.search(r"depthwise_forward_\w+_launches\[\d+\] = \{(.*?)\};", report, re.DOTALL)[1]
    assert kernels(small) == set(re.findall(r"cgk_\w+", found))


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(program LANGUAGES {language})
find_package(net {version} CONFIG REQUIRED)
find_package(net CONFIG REQUIRED)
add_executable(one {source})
target_link_libraries(one PRIVATE net::net)
add_executable(test {folder}/net_test.c)
set_source_files_properties({folder}/net_test.c PROPERTIES LANGUAGE {language})
target_link_libraries(test PRIVATE net::net)
"""


@pytest.mark.cc_long
@pytest.mark.parametrize("language", ["C", "CXX"])
def test_cmake_finds_it_in_a_clean_folder(folder, tmp_path, language):
    """Also after it was moved, and in a project that has no C."""
    tool("cmake")
    moved = tmp_path / "a folder" / "moved"
    shutil.copytree(folder, moved)
    name = "one.c" if language == "C" else "one.cc"
    (tmp_path / name).write_text(ONE)
    (tmp_path / "CMakeLists.txt").write_text(
        CMAKE.format(
            language=language,
            source=name,
            version="0.1",
            folder=f'"{moved}"'.strip('"').replace(" ", "\\ "),
        )
    )
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}")
    run("cmake", "--build", build)
    assert run(build / "one") == "0 4 9\n"
    assert "5 problems, 0 failed" in run(build / "test")


def test_cmake_refuses_a_newer_version_than_it_is(folder, tmp_path):
    tool("cmake")
    (tmp_path / "one.c").write_text(ONE)
    (tmp_path / "CMakeLists.txt").write_text(
        CMAKE.format(language="C", source="one.c", version="99.0", folder=folder)
    )
    with pytest.raises(AssertionError, match=r"99\.0"):
        run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Dnet_DIR={folder}")


def test_pkg_config_finds_it(folder, program, tmp_path, monkeypatch):
    tool("pkg-config")
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    monkeypatch.setenv("PKG_CONFIG_PATH", str(moved))
    flags = run("pkg-config", "--cflags", "--libs", "net").split()
    source = run("pkg-config", "--variable=source", "net").strip()
    assert source == str(moved / "net.c")
    run(tool("gcc"), program, source, *flags, "-o", tmp_path / "one")
    assert run(tmp_path / "one") == "0 4 9\n"
    assert run("pkg-config", "--modversion", "net").strip() == convgrad.__version__


@pytest.mark.cc_long
def test_two_packs_live_in_one_program(folder, tmp_path):
    """With kernels in common, which are one function then."""
    other = tmp_path / "other"
    convgrad.export(LINES + "\nconv2d 1x9x9x4 3x3x4x5", other, name="more", with_test=False)
    (tmp_path / "both.c").write_text(
        '#include <stdio.h>\n#include "net.h"\n#include "more.h"\n'
        "int main(void) {\n"
        "  const cg_problem *p = &net.entries[0]->problem;\n"
        '  printf("%lu %lu %d\\n", (unsigned long)net.count, (unsigned long)more.count,\n'
        "         cg_find(&net, p)->launches[0].kernel == cg_find(&more, p)->launches[0].kernel);\n"
        "  return 0;\n}\n"
    )
    files = [tmp_path / "both.c", folder / "net.c", other / "more.c"]
    libraries = [folder / "libnet.a", other / "libmore.a"]
    run(tool("gcc"), "-I", folder, "-I", other, *files, *libraries, "-o", tmp_path / "both")
    assert run(tmp_path / "both") == "5 6 1\n"


def test_a_pack_for_another_machine_does_not_compile_here(tmp_path):
    convgrad.export(
        "conv2d 1x9x9x4 3x3x4x5", tmp_path / "pack", name="far", target="cortex_m4", with_test=False
    )
    with pytest.raises(AssertionError, match="far is a pack for cortex_m4"):
        run(tool("gcc"), "-c", tmp_path / "pack/far.c", "-o", tmp_path / "far.o")


def test_another_version_of_the_header_is_refused(folder, tmp_path):
    text = (folder / "convgrad_pack.h").read_text()
    (tmp_path / "convgrad_pack.h").write_text(text.replace("CG_VERSION 2u", "CG_VERSION 1u"))
    (tmp_path / "use.c").write_text('#include "convgrad_pack.h"\n#include "net.h"\n')
    with pytest.raises(AssertionError, match="export the pack again"):
        run(
            tool("gcc"),
            "-I",
            tmp_path,
            "-I",
            folder,
            "-c",
            tmp_path / "use.c",
            "-o",
            tmp_path / "use.o",
        )
