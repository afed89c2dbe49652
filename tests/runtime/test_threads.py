"""How many threads there are, where that number comes from, and what can happen to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from convgrad._base import config
from convgrad._base.errors import ArgumentError, ArgumentTypeError
from convgrad._runtime import cpus, pool, threads
from convgrad._runtime.state import STATE_BLOCK
from convgrad._runtime.threads import get_num_threads, set_num_threads

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src"
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

PREAMBLE = """
import os, signal, sys, threading, time
sys.path[:0] = [{tests!r}, {sources!r}]
from runtime.kernels import Counting, loader
from convgrad._runtime import code, pool, threads
code.ensure(loader)
counting = Counting()
"""


def in_subprocess(body: str, environment=None, seconds: float = 20) -> str:
    """Run a program that launches kernels; it must end by itself, quietly, with code 0."""
    program = PREAMBLE.format(tests=str(TESTS), sources=str(SOURCES)) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_set_get_and_scope():
    set_num_threads(3)
    assert get_num_threads() == 3
    with threads.threads(5):
        assert get_num_threads() == 5
        seen = []
        other = threading.Thread(target=lambda: seen.append(get_num_threads()))
        other.start()
        other.join()
        with threads.threads(np.int64(1)):
            assert get_num_threads() == 1
        assert get_num_threads() == 5
    assert seen == [3]
    assert get_num_threads() == 3


def test_the_default_is_what_the_process_may_use():
    assert get_num_threads() == cpus.available_cpus()


@pytest.mark.parametrize("set_it", [set_num_threads, lambda n: threads.threads(n).__enter__()])
@pytest.mark.parametrize(
    ("n", "error", "text"),
    [
        (0, ArgumentError, "`n` must be from 1 to 256, got 0."),
        (-2, ArgumentError, "got -2."),
        (257, ArgumentError, "got 257."),
        (2.0, ArgumentTypeError, "`n` must be an integer, got 2.0."),
        ("2", ArgumentTypeError, "got '2'."),
        (True, ArgumentTypeError, "got True."),
        (None, ArgumentTypeError, "got None."),
    ],
)
def test_wrong_numbers(set_it, n, error, text):
    with pytest.raises(error, match=r"threads: `n` must be .*") as caught:
        set_it(n)
    assert str(caught.value).endswith(text)


def test_the_environment_is_read():
    program = "print(threads.get_num_threads())"
    assert in_subprocess(program, {"CONVGRAD_NUM_THREADS": "7"}) == "7\n"


@pytest.mark.parametrize("text", ["0", "two", "-1", "1000"])
def test_a_wrong_environment_is_a_warning(monkeypatch, text):
    monkeypatch.setenv("CONVGRAD_NUM_THREADS", text)
    monkeypatch.setattr(config, "_environment", {})
    with pytest.warns(RuntimeWarning, match=f"CONVGRAD_NUM_THREADS='{text}' is ignored: it must"):
        assert get_num_threads() == cpus.available_cpus()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_one_processor_means_one_thread():
    out = in_subprocess(
        """
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(threads.get_num_threads())
        counting.run(64)
        print(pool._pool, counting.calls)
        counting.run(64, threads=4, pauses=1000)
        print(pool._pool.workers)
        """
    )
    assert out.split() == ["1", "None", "1", "3"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000"}, 0.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "rubbish"}, None),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "300000 100000",
            },
            2.0,
        ),
        # Inside a container: the path is the host's, the mount is ours.
        ({"proc/self/cgroup": "0::/host/x\n", "sys/fs/cgroup/cpu.max": "100000 50000"}, 2.0),
        (
            {
                "proc/self/cgroup": "3:memory:/m\n4:cpu,cpuacct:/docker/1\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us": "250000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/\n0::/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_cgroup_quota(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpus.cgroup_cpus(tmp_path) == expected


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (0.5, 1), (2.5, 3), (64.0, 4)])
def test_quota_and_affinity_together(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(cpus, "cgroup_cpus", lambda: quota)
    assert cpus.available_cpus() == expected


def test_going_up_and_down_starts_no_more_than_the_most(counting, fresh_pool):
    before = threading.active_count()
    for n in [2, 5, 1, 3, 5, 2] * 20:
        set_num_threads(n)
        counting.run(40)
    assert pool._pool.workers == 4
    assert threading.active_count() == before + 4
    pool._pool.stop(5)
    assert threading.active_count() == before


def test_an_interrupt_while_workers_are_placed_leaves_the_pool_growing(
    counting, fresh_pool, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(STATE_BLOCK), "place_workers", interrupted)
        with pytest.raises(KeyboardInterrupt):
            counting.run(100, threads=2)
    counting.run(100, threads=4)
    assert pool._pool.workers == 3 and STATE_BLOCK["CONTROL"] == pool._pool.control


def test_no_more_workers_are_started_than_there_is_work_for(counting, fresh_pool):
    counting.run(12, grain=4, threads=100)
    assert pool._pool.workers == 2


def test_refused_threads_are_done_without(counting, fresh_pool, monkeypatch):
    real = threading.Thread.start
    attempts = []

    def start(self):
        attempts.append(self)
        if len(attempts) > 2:
            raise RuntimeError("can't start new thread")
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        counting.run(100, threads=8)
        assert pool._pool.workers == 2
        counting.run(100, threads=8)
        assert len(attempts) == 3  # not asked again at every call
    set_num_threads(4)
    counting.run(100)
    assert pool._pool.workers == 3


@can_fork
@forks
def test_a_forked_child_works_and_starts_its_own_threads(counting):
    counting.run(64, threads=3)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert pool._pool is None
            for _ in range(50):
                counting.run(64, threads=3, pauses=100)
            assert pool._pool.workers == 2
            code = 0
        finally:
            os._exit(code)
    assert wait_for(child) == 0
    counting.run(64, threads=3)


@can_fork
@forks
def test_fork_in_the_middle_of_another_threads_call(make_counting):
    """The child sees a loop that is busy for ever, and must not wait for it."""
    busy, mine = make_counting(), make_counting()
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            busy.run(64, threads=3, pauses=3000)

    caller = threading.Thread(target=keep_busy)
    caller.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for _ in range(5):
                        mine.run(64, threads=3, pauses=100)
                    code = 0
                finally:
                    os._exit(code)
            assert wait_for(child) == 0
    finally:
        stop.set()
        caller.join()


def wait_for(child: int, seconds: float = 20) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def test_spawned_processes_work(tmp_path):
    program = PREAMBLE.format(tests=str(TESTS), sources=str(SOURCES)) + textwrap.dedent(
        """
        import multiprocessing

        def work(n):
            counting.run(64, threads=3)
            return n + pool._pool.workers

        if __name__ == "__main__":
            counting.run(64, threads=2)
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(pool.map(work, [10, 20]))
        """
    )
    script = tmp_path / "spawning.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[12, 22]\n", "")


@pytest.mark.parametrize(
    "ending",
    [
        "",  # workers spinning
        "time.sleep(0.05)",  # workers parked
        "threading.Thread(target=many, args=(3000,)).start()",
        "threading.Thread(target=many, args=(10**9,), daemon=True).start()",
        "import atexit; atexit.register(lambda: counting.run(64, threads=3))",
        "pool.close(); counting.run(64, threads=3); assert pool._pool is None",
    ],
    ids=["spinning", "parked", "thread", "daemon", "atexit", "closed"],
)
def test_exit_is_clean(ending):
    in_subprocess(
        f"""
        def many(count):
            for _ in range(count):
                counting.run(64, threads=3, pauses=100)

        many(20)
        {ending}
        """
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_leaves_everything_usable():
    out = in_subprocess(
        """
        def interrupt():
            watched.wait()
            for _ in range(20):
                time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            done.append(True)

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
        watched, done = threading.Event(), []
        for _ in range(3):
            counting.run(64, threads=3)
        threading.Thread(target=interrupt).start()
        caught = 0
        while not done:
            try:
                watched.set()
                while not done:
                    counting.run(64, threads=3, pauses=1000)
            except KeyboardInterrupt:
                caught += 1
        assert pool._pool.words[64] == 0, "the loop is still taken"
        counting.run(64, threads=3)
        print(caught > 0)
        """
    )
    assert out == "True\n"
