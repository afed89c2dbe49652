"""No memory: an error that says so, and a library that works again when there is some."""

from __future__ import annotations

import sys

import pytest

from faults.children import finish, run, start

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS is Linux's")

LIMITED = """
import resource
from pathlib import Path

def limited(megabytes, call):
    "Call with so much more address space than is in use; returns the error, or None."
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(megabytes * 2**20), resource.RLIM_INFINITY))
    try:
        call()
    except MemoryError as error:
        return error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_the_compiler_is_not_asked_when_memory_is_short():
    """LLVM ends the process where it gets no memory."""
    out = run(
        LIMITED
        + """
import_all()
expect()
for megabytes in (1, 2, 8, 32):
    forget()
    error = limited(megabytes, lambda: work(range(1, 2)))
    assert isinstance(error, convgrad.errors.AllocationError), error
print(error)
forget()
work(range(1, 2))
""",
        None,
    )
    assert out.startswith("depthwise_conv2d: no memory to compile a kernel: fewer than ")


def test_no_memory_for_results_and_copies(warm):
    out = run(
        LIMITED
        + """
import_all()
work(range(1, 2))
x, f = np.ones((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
f16 = np.ones((3, 3, 16, 8), np.float32)
wide = np.broadcast_to(np.float32(1), (64, 512, 512, 16))
def far(): convgrad.conv2d(x, f, 1, ((0, 2**14), (0, 2**14)))
def copied(): convgrad.conv2d(wide, f16, 1, "SAME")
def oracle(): convgrad.reference.conv2d(wide, f16, 1, "SAME")
for call in (far, copied, oracle):
    for _ in range(3):
        error = limited(64, call)
        assert error is not None, call
        print(type(error).__name__, error)
work(range(1, 2))
""",
        warm,
    )
    assert "AllocationError conv2d: no memory for a result of 1,073,872,900 bytes" in out


def test_no_memory_for_the_buffers_of_numpys_loops():
    """NumPy raises that error without holding the interpreter lock, and crashes."""
    run(
        LIMITED
        + """
grad, f = np.ones((2, 12, 12, 8), np.float32), np.ones((3, 3, 8, 8), np.float32)
def call(): convgrad.reference.conv2d_backprop_input((2, 12, 12, 8), f, grad, 1, "SAME")
call()
memory = []
def hungry():
    while True:  # take what malloc has in store, in pieces of the size that is asked for
        try:
            memory.append(bytearray(60_000))
        except MemoryError:
            break
    call()
for _ in range(3):
    assert isinstance(limited(0.1, hungry), MemoryError)
    memory.clear()
call()
""",
        None,
    )


SOME_LIMIT = """
expect()
if {loaded}:
    import_all()
for _ in range(2):
    limited({megabytes}, lambda: work({calls}))
    forget()
work({calls})
"""


def test_no_memory_to_import_the_compiler():
    """Its library has 170 MB, so 20 are not enough: the reference computes, and says so once."""
    program = SOME_LIMIT.format(loaded=False, megabytes=20, calls="range(1, 2)")
    _, errors = finish(start(LIMITED + program, None, "-W", "always::RuntimeWarning"))
    assert errors.count("RuntimeWarning") == 1, errors
    assert "so the slow reference is used: llvmlite cannot be imported" in errors


@pytest.mark.faults_long
@pytest.mark.parametrize("loaded", [False, True], ids=["cold", "loaded"])
def test_any_limit(loaded):
    """From nothing to plenty: errors are MemoryErrors, the reference steps in, or it works; never an abort."""
    for tenths in [*range(0, 100, 7), *range(100, 3000, 190)]:
        program = SOME_LIMIT.format(loaded=loaded, megabytes=tenths / 10, calls="")
        run(LIMITED + program, None, "-W", "ignore")
