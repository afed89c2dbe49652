"""Signals, exits, forks and reloads at the worst moment."""

from __future__ import annotations

import sys

import pytest

from faults.children import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fork")
FORK = ("-W", "ignore:.*fork.*:DeprecationWarning")


def _alarms(seconds: float) -> str:
    """Raise from a signal handler at random moments of planning, compiling, writing and computing."""
    return f"""
    import random, sys
    class Alarm(BaseException): pass
    def ring(*_): raise Alarm
    def unraisable(info):  # an alarm that strikes in a finalizer is printed by Python, and does not matter
        if not isinstance(info.exc_value, Alarm): sys.__unraisablehook__(info)
    sys.unraisablehook = unraisable
    expect()
    import_all()  # an exception inside an import can leave CPython's import lock taken
    signal.signal(signal.SIGALRM, ring)
    pick, caught, tried = random.Random(3), 0, 0
    deadline = time.monotonic() + {seconds}
    while time.monotonic() < deadline:
        tried += 1
        try:
            if tried % 3 == 0:
                forget()
            signal.setitimer(signal.ITIMER_REAL, 10 ** pick.uniform(-5, -1))
            with convgrad.threads(3):
                work(range(pick.randrange(1, 6)))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    with convgrad.threads(3):
        work()
    assert caught, tried
    # Lent to nobody: whatever was computed is gone.
    print(len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0)
    """


@pytest.mark.long
def test_alarms_that_raise(warm):
    out = run(_alarms(1.0), warm, "-W", "ignore")
    assert int(out) < 16


@pytest.mark.faults_long
def test_alarms_that_raise_for_a_minute(tmp_path):
    out = run(_alarms(60.0), tmp_path, "-W", "ignore", seconds=120)
    assert int(out) < 16
    # A second signal can strike while the first one's leftovers are being removed.
    assert len([*tmp_path.rglob("*.partial")]) < 5


def test_control_c_while_compiling():
    """The compiler does not see the signal; the waiting main thread does, and nothing is left locked."""
    run(
        """
        import_all()
        from convgrad._compiler.jit import llvm
        real = llvm._emit_object
        interrupted = threading.Event()
        def emit(*args):
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupted.wait(30)  # a compile that were done by then would not be left over
            return real(*args)
        llvm._emit_object = emit
        try:
            work(range(1, 2))
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("not interrupted")
        assert len(llvm._jobs) == 1
        interrupted.set()
        llvm._emit_object = None  # what was begun is waited for, not begun again
        work(range(1, 2))
        assert not llvm._jobs
        assert not convgrad._compiler.jit._locks
        """,
        None,
    )


def test_control_c_while_computing(warm):
    run(
        """
        work(range(1))
        x, f = np.ones((32, 112, 112, 32), np.float32), np.ones((3, 3, 32, 1), np.float32)
        convgrad.depthwise_conv2d(x, f, 1, "SAME")
        for number in range(4):
            try:
                threading.Timer(0.003 * number, os.kill, (os.getpid(), signal.SIGINT)).start()
                while True:
                    convgrad.depthwise_conv2d(x, f, 1, "SAME")
            except KeyboardInterrupt:
                pass
        work(range(3))
        """,
        warm,
    )


def test_fork_in_the_middle_of_a_parallel_call(warm):
    run(
        """
        work(range(3))
        stop = threading.Event()
        def busy():
            with convgrad.threads(3):
                while not stop.is_set():
                    work(range(1))
        other = threading.Thread(target=busy)
        other.start()
        for _ in range(8):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with convgrad.threads(3):
                        work(range(3))
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        other.join()
        """,
        warm,
        *FORK,
    )


@pytest.mark.long
def test_sixty_four_threads_at_once(warm):
    """Cold, so that all of them plan and load; lists too, so that no warning filter is left behind."""
    run(
        """
        import warnings
        expect()
        filters = list(warnings.filters)
        barrier, failed = threading.Barrier(64), []
        def call(number):
            try:
                barrier.wait()
                with convgrad.threads(1 + number % 3):
                    work(range(number % 3, 3))
                    assert convgrad.conv2d([[[[2]]]], [[[[3]]]], 1, "SAME").item() == 6
            except BaseException as error:
                failed.append(error)
        callers = [threading.Thread(target=call, args=(n,)) for n in range(64)]
        for caller in callers: caller.start()
        for caller in callers: caller.join()
        assert not failed, failed[0]
        assert warnings.filters == filters
        """,
        warm,
    )


@pytest.mark.parametrize(
    "ending",
    [
        "time.sleep(0.05)",
        pytest.param("time.sleep(0.05); sys.exit(0)", marks=pytest.mark.faults_long),
        pytest.param("time.sleep(0.05); os._exit(0)", marks=pytest.mark.faults_long),
        pytest.param(
            "import atexit; atexit.register(work, range(2)); time.sleep(0.05)",
            marks=pytest.mark.faults_long,
        ),
        pytest.param(
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); os.kill(os.getpid(), signal.SIGTERM)",
            marks=pytest.mark.faults_long,
        ),
    ],
    ids=["end", "exit", "_exit", "atexit", "SIGTERM"],
)
def test_exit_while_daemon_threads_compute(warm, ending):
    run(
        f"""
        def busy():
            while True:
                work(range(3))
        work(range(3))
        for _ in range(4):
            threading.Thread(target=busy, daemon=True).start()
        {ending}
        """,
        warm,
    )


@pytest.mark.long
def test_reloaded_and_imported_again(warm):
    """Two imports share no classes, and a plan made by one for the other would be for another problem."""
    out = run(
        """
        import importlib
        work(range(3))
        kept = convgrad.conv2d
        importlib.reload(convgrad)
        work(range(3))
        importlib.reload(convgrad._runtime.threads)
        work(range(3))
        for name in [name for name in sys.modules if name.partition(".")[0] == "convgrad"]:
            del sys.modules[name]
        import convgrad as again
        assert again is not convgrad
        x, f = np.ones((2, 64, 64, 32), np.float32), np.ones((3, 3, 32, 8), np.float32)
        with again.threads(3):
            assert (again.conv2d(x, f, 1, "SAME") == again.reference.conv2d(x, f, 1, "SAME")).all()
        work(range(3))  # the earlier import still knows these
        try:
            kept(x, f, 1, "SAME")
        except RuntimeError as error:
            print(error)
        """,
        warm,
    )
    assert out.startswith("convgrad was imported a second time")
