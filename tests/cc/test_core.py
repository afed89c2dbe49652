"""Names, Variables, long chains and threads: `core_graphs.cc` in every build, with Eigen's tensors too."""

from __future__ import annotations

from pathlib import Path

import pytest

from cc_programs import (
    PROGRAMS,
    Builds,
    Setting,
    eigen,
    found,
    run,
    setting,
    settings,
    skip_without,
)


def check(program: Path, *words: str) -> None:
    done = run(program, *words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_core_graphs(builds: Builds) -> None:
    check(builds.all_together(settings()[0]), "core_graphs")


@pytest.mark.cc_long
@pytest.mark.parametrize("how", settings()[1:], ids=str)
def test_core_graphs_in_every_build(how: Setting, builds: Builds) -> None:
    check(builds.all_together(how), "core_graphs")


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
def test_core_graphs_with_threads_watched(compiler: str, builds: Builds) -> None:
    check(builds.program(PROGRAMS / "core_graphs.cc", setting(compiler, "threads")))


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
def test_core_graphs_with_eigen(compiler: str, builds: Builds) -> None:
    program = builds.all_together(setting(compiler, "C++17"), "-DCONVGRAD_WITH_EIGEN", eigen())
    check(program, "core_graphs")
    check(program, "guide_first")


@pytest.mark.skipif(not found(), reason="there is neither g++ nor clang++ here")
def test_a_sanitizer_without_its_library_is_skipped_with_a_reason() -> None:
    skip_without(found()[0], "-O0")
    with pytest.raises(pytest.skip.Exception, match="cannot link -fsanitize=none-such"):
        skip_without(found()[0], "-O0", "-fsanitize=none-such")
