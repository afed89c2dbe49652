"""OpenMP's threads as a pool: found where it is loaded, right for any number of threads, left alone after a fork."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or ctypes.util.find_library("gomp") is None,
    reason="no libgomp on this system",
)

PREAMBLE = """
import ctypes, os, sys, threading
sys.path[:0] = [{tests!r}, {sources!r}]
import numpy as np
import convgrad
from dataclasses import replace
from cases import Case
from kernels import problem_of
from convgrad import _engine
from convgrad._base import config
from convgrad._runtime import code, openmp, pool, threads
from convgrad._runtime.state import OPENMP, OWN, STATE_BLOCK
from runtime.kernels import Counting, loader

def gomp():
    return ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)

def framework():
    sys.modules["torch"] = type(sys)("torch")

x = np.random.default_rng(1).standard_normal((4, 28, 28, 32), np.float32)
f = np.random.default_rng(2).standard_normal((3, 3, 32, 32), np.float32)

def bits():
    y = convgrad.conv2d(x, f, 1, "SAME")
    return [
        y.tobytes(),
        convgrad.conv2d_backprop_input(x.shape, f, y, 1, "SAME").tobytes(),
        convgrad.conv2d_backprop_filter(x, f.shape, y, 1, "SAME").tobytes(),
        convgrad.depthwise_conv2d(x, f[:, :, :, :1].copy(), 1, "SAME").tobytes(),
        *with_bias(y),
    ]

def with_bias(y):
    case = Case(False, 4, (28, 28), 1, 32, 32, (3, 3), (1, 1), (1, 1), "SAME")
    found = []
    for kind, first, second, side in (("forward", x, f, "output"), ("filter", x, y, "output")):
        problem = replace(problem_of(case, kind), bias=side)
        result, bias = np.empty(problem.result_shape, np.float32), np.ones(32, np.float32)
        _engine.run(problem, *(each.ctypes.data for each in (first, second, result, bias)))
        found += [result.tobytes(), bias.tobytes()]
    assert found[2] != f.tobytes() and found[1] == np.ones(32, np.float32).tobytes()
    return found
"""


def child(body: str, **environment: str) -> str:
    """Run a program in a process of its own, with 8 threads for OpenMP; it must end by itself, quietly, with code 0."""
    program = PREAMBLE.format(tests=str(TESTS), sources=str(TESTS.parent / "src"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program + textwrap.dedent(body)],
        env={**os.environ, "OMP_NUM_THREADS": "8", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_it_is_never_loaded_by_us():
    out = child(
        """
        bits()
        with convgrad.options(pool="openmp"):
            assert threads.kind() == OWN
            bits()
            assert threads.story() == ("own", "no OpenMP runtime is loaded in this process")
        assert threads.story() == ("own", "none of torch is imported in this process")
        assert not openmp.usable() and openmp.runtime() is None
        with open("/proc/self/maps") as maps:
            print(any("libgomp" in line for line in maps))
        """
    )
    assert out == "False\n"


def test_who_chooses_it():
    child(
        """
        library = gomp()
        assert threads.kind() == OWN  # loaded, but no framework works with it
        with convgrad.options(pool="openmp"):
            assert threads.kind() == OPENMP
        framework()
        assert threads.kind() == OPENMP
        assert openmp.runtime().path.endswith("libgomp.so.1") or "libgomp" in openmp.runtime().path
        assert threads.story() == ("openmp", openmp.runtime().path)
        with convgrad.options(pool="own"):
            assert threads.kind() == OWN and threads.story() == ("own", "asked for")
        """
    )
    child("gomp(); framework(); assert threads.kind() == OWN", CONVGRAD_POOL="own")
    child("gomp(); assert threads.kind() == OPENMP", CONVGRAD_POOL="openmp")


def test_a_framework_that_comes_later_is_noticed():
    child(
        """
        first = bits()
        assert threads.kind() == OWN
        gomp(); framework()
        assert threads.kind() == OPENMP
        assert bits() == first
        """
    )


def test_the_same_bits_on_any_number_of_threads_through_both_pools():
    child(
        """
        gomp()
        found = []
        for count in (1, 2, 3, 8):
            for pool_name in ("own", "openmp"):
                with convgrad.threads(count), convgrad.options(pool=pool_name):
                    found.append(bits())
        assert all(each == found[0] for each in found)
        """
    )


def test_every_item_is_run_once_and_no_workspace_is_shared():
    child(
        """
        import random
        gomp()
        code.ensure(loader)
        assert openmp.usable()
        counting = Counting()
        source = random.Random(1)
        for _ in range(3000):
            counting.run(
                items=source.randint(0, 48),
                grain=source.randint(1, 9),
                scratch_bytes=source.choice((0, 8, 1000)),
                threads=source.randint(1, 8),
                pauses=source.choice((0, 0, 100)),
                pool=OPENMP,
            )
        counting.run(4000, 1, threads=2, pauses=1000, pool=OPENMP)
        assert counting.calls == 4000 and pool._pool is None
        """
    )


def test_work_is_shared():
    child(
        """
        gomp()
        code.ensure(loader)
        assert openmp.usable()
        from runtime.test_launch import lending
        counting = Counting()
        lent = np.zeros(64, np.int64)
        state = lending(lent)
        state["GOMP"], state["OMP_MAX"] = STATE_BLOCK["GOMP"], STATE_BLOCK["OMP_MAX"]
        for _ in range(200):
            lent[0] = lent[16] = -1
            counting.run(64, scratch_bytes=8, threads=2, pauses=50_000, pool=OPENMP, state=state)
            if lent[0] >= 0 and lent[16] >= 0:
                break
        else:
            raise AssertionError("200 jobs of several milliseconds, and nobody helped")
        """
    )


def test_its_own_number_of_threads_is_the_default():
    child(
        """
        gomp(); framework()
        assert convgrad.get_num_threads() == 3
        gomp().omp_set_num_threads(5)
        assert convgrad.get_num_threads() == 5
        with convgrad.threads(2):
            assert convgrad.get_num_threads() == 2
        with convgrad.threads(7):
            assert convgrad.get_num_threads() == 5  # never more than there are
        bits()
        """,
        OMP_NUM_THREADS="3",
    )


def test_a_share_of_the_processors_is_heeded_where_nobody_said_a_number():
    child(
        """
        del os.environ["OMP_NUM_THREADS"]
        gomp().omp_set_num_threads(64); framework()
        threads._default = 2  # what a container's quota comes to
        assert convgrad.get_num_threads() == 2 and threads.ready() == (2, OPENMP)
        """
    )


def team() -> str:
    return """
        def threads_now():
            return len(os.listdir("/proc/self/task"))
    """


def test_the_framework_keeps_its_threads():
    """A smaller team would end those it does not need, and the framework would have to start them again."""
    child(
        team()
        + """
        library = gomp(); framework()
        body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
        with convgrad.options(pool="own"), convgrad.threads(1):
            bits()  # all that is compiled is there
        library.GOMP_parallel(body, None, 0, 0)
        before = threads_now()
        with convgrad.threads(2):
            for _ in range(5):
                bits()
        assert threads_now() == before, (threads_now(), before)
        """
    )


def test_no_more_threads_are_asked_for_than_there_are():
    """libgomp ends the process where it cannot start a thread."""
    child(
        team()
        + """
        gomp(); framework()
        bits()
        before = threads_now()
        with convgrad.threads(40):
            bits()
        assert threads_now() <= before  # the compiler's own thread may have ended
        assert len(os.listdir("/proc/self/task")) >= 2  # and there is a second one
        """,
        OMP_NUM_THREADS="2",
    )


def test_a_library_that_comes_after_the_first_call_is_found():
    child(
        """
        with convgrad.options(pool="openmp"):
            first = bits()
            assert threads.kind() == OWN
            library = gomp()
            import html.parser  # any import: there is no other sign
            assert threads.kind() == OPENMP and bits() == first
        """
    )


def test_many_callers_at_once():
    child(
        """
        gomp(); framework()
        first, wrong = bits(), []

        def caller():
            for _ in range(10):
                if bits() != first:
                    wrong.append(1)

        callers = [threading.Thread(target=caller) for _ in range(4)]
        for each in callers: each.start()
        for each in callers: each.join()
        assert not wrong and STATE_BLOCK["OMP_BUSY"] == 0
        """
    )


def test_a_forked_child_uses_our_own_pool():
    """libgomp would wait for threads that are not there."""
    child(
        """
        import warnings
        warnings.simplefilter("ignore")
        gomp(); framework()
        first = bits()
        assert threads.kind() == OPENMP
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    assert threads.kind() == OWN and not openmp.usable()
                    with convgrad.options(pool="openmp"):
                        assert threads.kind() == OWN
                        assert threads.story()[1] == "OpenMP's threads do not survive a fork"
                    assert bits() == first
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert threads.kind() == OPENMP and bits() == first
        """
    )


def test_inside_a_parallel_region_the_caller_works_alone():
    """A framework that calls from its own parallel loop gets no threads within threads, and the right numbers."""
    child(
        """
        library = gomp(); framework()
        first, found = bits(), []
        body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: found.append(bits() == first))
        library.GOMP_parallel(body, None, 2, 0)
        assert found == [True, True]
        """
    )


def test_a_c_caller_uses_it_too():
    child(
        """
        gomp(); framework()
        first = bits()
        threads.get_ready()
        assert STATE_BLOCK["POOL"] == OPENMP and STATE_BLOCK["THREADS"] == 0
        convgrad.set_num_threads(3)
        threads.get_ready()
        assert STATE_BLOCK["THREADS"] == 3
        """
    )
