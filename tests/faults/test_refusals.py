"""A system that refuses: threads, executable memory, processors, a home, a stack, a second interpreter."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys

import pytest

from faults.children import finish, run, start

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux")

# From Linux 6.3 a process may give up, for good, to make memory executable that was writable.
REFUSE = """
import ctypes
def refuse():
    if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
        print("cannot refuse")
        os._exit(0)
"""


# Python itself shows a warning once for each line of code that gives it, and would hide that ours come again and again.
ALL_WARNINGS = ("-W", "always::RuntimeWarning")


def _with_refusal(program: str, cache) -> tuple[str, str]:
    out, errors = finish(start(REFUSE + program, cache, *ALL_WARNINGS))
    if out.startswith("cannot refuse"):
        pytest.skip("this kernel cannot refuse executable memory")
    return out, errors


@pytest.mark.parametrize(
    "state",
    [
        "cold",
        pytest.param("kernels on disk", marks=pytest.mark.faults_long),
        pytest.param("compiler loaded", marks=pytest.mark.faults_long),
    ],
)
def test_no_executable_memory_is_one_warning_and_the_reference(warm, state):
    if state == "kernels on disk":
        run("work(range(2))", warm)
    _, errors = _with_refusal(
        "import_all()\n" * (state == "compiler loaded")
        + """
refuse()
for _ in range(2):
    work(range(4))
""",
        warm if state == "kernels on disk" else None,
    )
    assert errors.count("RuntimeWarning") == 1, errors
    assert "kernels cannot be compiled here, so the slow reference is used" in errors
    assert "this system refuses executable memory: Permission denied" in errors


def test_a_system_that_lets_nothing_be_executable():
    """There llvmlite cannot be imported either, and fails with a MemoryError of ctypes; it must not be asked."""
    _, errors = finish(
        start(
            """
            class Stop:
                def find_spec(self, name, path=None, target=None):
                    if name.partition(".")[0] == "llvmlite" and path is not None:
                        raise MemoryError
            expect()
            sys.meta_path.insert(0, Stop())
            from convgrad._compiler.jit import elf
            class Refusing:
                def __getattr__(self, name):
                    return (lambda *_: -1) if name == "mprotect" else getattr(real, name)
            real = elf._library()
            elf._c = Refusing()
            work(range(4))
            """,
            None,
            *ALL_WARNINGS,
        )
    )
    assert errors.count("RuntimeWarning") == 1, errors
    assert "this system refuses executable memory" in errors


def test_threads_start_after_executable_memory_is_refused():
    """By a sandbox that closes late: the loop came with the first kernel, so nothing more is needed."""
    out, errors = _with_refusal(
        """
with convgrad.threads(1):
    work(range(1))
refuse()
with convgrad.threads(4):
    work(range(1))
    work(range(1))
from convgrad._runtime import pool
print(pool._pool.workers)
""",
        None,
    )
    assert (out, errors) == ("3\n", "")


def test_no_more_threads(warm):
    """RLIMIT_NPROC does not bind root, so root becomes nobody first."""
    out = run(
        """
        import resource
        import_all()
        expect()
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        with convgrad.threads(4):
            work(range(2))
            work(range(2))
        from convgrad._runtime import pool
        print(pool._pool.workers, pool._pool.refused)
        """,
        None,
    )
    assert out == "0 True\n"


def _limit_stack(kilobytes: int):
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = resource.RLIM_INFINITY if kilobytes < 0 else kilobytes << 10
    return lambda: resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def _one_cpu() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _long(*values):
    return pytest.param(*values, marks=pytest.mark.faults_long)


@pytest.mark.parametrize(
    ("options", "environment", "before"),
    [
        (["-X", "dev"], {"PYTHONMALLOC": "debug"}, _limit_stack(256)),
        (
            [],
            {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "x", "CONVGRAD_CACHE_DIR": None},
            _one_cpu,
        ),
        _long([], {"HOME": None, "TMPDIR": "/nonexistent", "CONVGRAD_CACHE_DIR": None}, None),
        _long([], {"CONVGRAD_CACHE_DIR": "~nobody-of-that-name/cache"}, None),
        _long([], {}, _limit_stack(-1)),
    ],
    ids=["developer, small stack", "no home, 1 CPU", "homeless", "no user", "large stack"],
)
def test_odd_surroundings(warm, tmp_path, options, environment, before):
    if "HOME" in environment and environment["HOME"] is None:
        environment = {**environment, "XDG_CACHE_HOME": str(tmp_path)}  # not the user's own cache
    out = run(
        """
        with convgrad.threads(4):
            work(range(3))
        print("done")
        """,
        warm,
        *options,
        environment=environment,
        before=before,
    )
    assert out == "done\n"


@pytest.mark.parametrize("kilobytes", [_long(64), _long(256)])
def test_compiling_on_a_small_stack(kilobytes):
    run(
        f"""
        import_all()
        threading.stack_size({kilobytes} << 10)
        failed = []
        def call():
            try:
                work(range({6 if kilobytes > 64 else 2}))
            except BaseException as error:
                failed.append(error)
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        assert not failed, failed
        """,
        None,
    )


SUB = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
try:
    sub = interpreters.create(isolated=False)
except TypeError:  # since 3.13 a name of a configuration
    sub = interpreters.create("legacy")
path = sys.path
failed = interpreters.run_string(sub, f'''
import sys, warnings
sys.path[:] = {path}
warnings.simplefilter("ignore")  # NumPy says that it hardly supports this
try:
    from work import *
    with convgrad.threads(4):
        work(range(3))
    from convgrad._runtime import pool
    assert pool._pool is None
    big = convgrad.conv2d(np.ones((1, 200, 200, 16), np.float32), np.ones((1, 1, 16, 16), np.float32), 1, "SAME")
    print("worked")
except ImportError as error:
    print("refused:", error)
''')
assert failed is None, failed
"""


@pytest.mark.skipif(
    not any(map(importlib.util.find_spec, ("_interpreters", "_xxsubinterpreters"))),
    reason="no sub-interpreters",
)
@pytest.mark.parametrize("ending", [_long("closed"), "left", _long("second")])
def test_sub_interpreters(warm, ending):
    """NumPy serves one interpreter of a process: there we work, without threads; elsewhere its import is refused."""
    program = SUB + ("interpreters.destroy(sub)\n" if ending == "closed" else "")
    out = run(
        ("from work import *\nwork(range(1))\n" if ending == "second" else "") + program,
        warm,
        imports="",
    )
    if ending == "second":
        assert out.startswith("refused:")
    else:
        assert out == "worked\n" or out.startswith("refused:")


UNLOCKED = """
import sys
sys._is_gil_enabled = lambda: False  # what a free-threaded Python answers; the rest of this one has its lock
try:
    import convgrad
except ImportError as error:
    print(error)
else:
    print(convgrad.conv2d([[[[1.0]]]], [[[[2.0]]]], 1, "SAME").item())
"""


@pytest.mark.parametrize(("wanted", "answer"), [("0", "PYTHON_GIL=1"), ("1", "2.0\n")])
def test_free_threaded_python_is_refused_unless_asked_for(wanted, answer):
    environment = {**os.environ, "CONVGRAD_FREE_THREADING": wanted}
    out = subprocess.run(
        [sys.executable, "-c", UNLOCKED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert answer in out
