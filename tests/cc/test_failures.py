"""No memory and no threads: a Status or the right result, never the end of the process.

Built with exceptions, which is how the standard library reports both. Without them (`-fno-exceptions`) its containers
end the process where they would have thrown; the memory of tensors and scratch does not come from them and still gives
a Status.
"""

from __future__ import annotations

import pytest

from cc_programs import PROGRAMS, Builds, found, run, setting


@pytest.mark.cc_long
@pytest.mark.parametrize("which", ["one", "all"])
@pytest.mark.parametrize("compiler", found())
def test_every_failing_allocation_is_a_status(compiler: str, which: str, builds: Builds) -> None:
    program = builds.program(PROGRAMS / "no_memory.cc", setting(compiler, "C++17"))
    done = run(program, which)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refusals" in done.stdout


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
def test_work_is_done_without_threads(compiler: str, builds: Builds) -> None:
    program = builds.program(PROGRAMS / "no_threads.cc", setting(compiler, "C++17"), "-ldl")
    done = run(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 threads: done" in done.stdout
