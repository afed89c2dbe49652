"""The caller's floating-point mode changes no bit, loses no subnormal number, and is the caller's afterwards."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import convgrad
import fp_modes
from convgrad import _engine, reference
from convgrad import graph as graphs
from convgrad._base import config
from convgrad._base.fp_mode import default_mode, is_default
from convgrad._bridges.dask import tasks
from convgrad._engine import planner, prepare
from convgrad._runtime import code

pytestmark = pytest.mark.skipif(not fp_modes.AVAILABLE, reason="no fesetenv that we know here")

TESTS = Path(__file__).parents[1]
EVERY = [*fp_modes.MODES]


def _numbers(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _subnormal(shape, seed):
    """Numbers whose sums of some products with numbers near 1 stay subnormal, and none is 0."""
    drawn = np.random.default_rng(seed).uniform(1, 2, shape)
    return (drawn * 2.0**-140).astype(np.float32)


def _calls():
    """Return calls by name, of several algorithms, with operands that have subnormal numbers and others."""
    x, tiny = _numbers((2, 24, 24, 32), 1), _subnormal((2, 24, 24, 32), 2)
    dense, depthwise = _numbers((3, 3, 32, 16), 3), np.abs(_numbers((3, 3, 32, 1), 4)) + 1
    g = _numbers((2, 24, 24, 16), 5)
    wide = x.astype(np.float64) * 2.0**-1040
    half = (x * 2.0**-14).astype(np.float16)
    mean, variance = np.full(32, 2.0**-133, np.float32), np.full(32, 2.0**-100, np.float32)
    return {
        "depthwise of subnormals": lambda: convgrad.depthwise_conv2d(tiny, depthwise, 1, "SAME"),
        "depthwise dX": lambda: convgrad.depthwise_conv2d_backprop_input(
            tiny.shape, depthwise, tiny, 1, "SAME"
        ),
        "depthwise dW": lambda: convgrad.depthwise_conv2d_backprop_filter(
            tiny, depthwise.shape, x, 1, "SAME"
        ),
        "dense": lambda: convgrad.conv2d(x, dense, 1, "SAME"),
        "dense of subnormals": lambda: convgrad.conv2d(tiny, np.abs(dense), 1, "SAME"),
        "dense dX": lambda: convgrad.conv2d_backprop_input(x.shape, dense, g, 1, "SAME"),
        "dense dW": lambda: convgrad.conv2d_backprop_filter(x, dense.shape, g, 1, "SAME"),
        "dense float64": lambda: convgrad.conv2d(wide, dense.astype(np.float64), 1, "SAME"),
        "dense half": lambda: convgrad.conv2d(half, dense.astype(np.float16), 2, "VALID"),
        "batch norm": lambda: convgrad.batch_norm_act(x, activation="silu").y,
        "batch norm of subnormals": lambda: (
            convgrad.batch_norm_act(
                tiny, mean=mean, variance=variance, is_training=False, epsilon=2.0**-20
            ).y
        ),
    }


NO_ZEROS = ("depthwise of subnormals", "depthwise dX", "dense of subnormals")


@pytest.fixture(scope="module")
def expected():
    return {name: call().tobytes() for name, call in _calls().items()}


def test_the_calls_have_subnormal_results():
    """Or the rest of this file would show nothing."""
    calls = _calls()
    for name in NO_ZEROS:
        result = calls[name]()
        assert np.abs(result).min() > 0 and np.abs(result).max() < np.finfo(np.float32).tiny


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", EVERY)
def test_a_mode_of_the_caller_changes_no_bit(name, threads, expected):
    calls = _calls()
    with convgrad.threads(threads), fp_modes.set_to(name):
        found = {
            (which, turn): call() for which, call in calls.items() for turn in range(2)
        }  # no comparison in here: NumPy's would be in that mode
    for (which, _), result in found.items():
        assert result.tobytes() == expected[which], which


def test_workers_started_in_another_mode_change_no_bit(fresh_pool, expected):
    calls = _calls()
    with convgrad.threads(3), fp_modes.set_to("flush, upward"):
        calls["dense"]()
        assert convgrad._runtime.pool._pool.workers == 2
    with convgrad.threads(3):
        for name, call in calls.items():
            assert all(call().tobytes() == expected[name] for _ in range(3)), name


@pytest.mark.parametrize("name", ["default", "flush, upward"])
def test_flags_are_as_they_were(name):
    """A kernel that rounds, overflows and makes NaN leaves no flag, and takes none away."""
    case = _numbers((1, 6, 6, 8), 6)
    case[0, 0, 0, 0], case[0, 3, 3, 1] = np.inf, 3e38
    f, y = np.full((3, 3, 8, 1), -1e30, np.float32), np.empty((1, 6, 6, 8), np.float32)
    f[1, 1] = 0
    convgrad.depthwise_conv2d(case, f, 1, "SAME")
    bound = next(each for each in reversed(_engine.memory.values()) if hasattr(each, "address"))
    words = code.pack_call[3](bound.address, 1, 0, case.ctypes.data, f.ctypes.data, y.ctypes.data)
    call, flags = code.entry_call(), 0x3F if not fp_modes._ARM else 0
    with fp_modes.set_to(name):
        for before in (fp_modes.word() & ~flags, fp_modes.word() | flags & 0x11):
            fp_modes.set_word(before)
            assert call(words) == 0
            assert fp_modes.word() == before
    assert np.isnan(y).any() and np.isinf(y).any()


@pytest.mark.parametrize("name", EVERY)
def test_what_numpy_computes_for_us_is_in_the_default_mode(name):
    calls, add = _calls(), graphs.Scope.new_root_scope()
    few = ("depthwise of subnormals", "dense", "dense half", "batch norm")
    tiny = _subnormal((2, 3, 3, 4), 7)
    total = graphs.ops.Add(add, tiny, (tiny / 3).astype(np.float32))
    session = graphs.ClientSession(add)
    parts, thirds = [_numbers((50,), seed) for seed in range(3)], np.ones((2, 2, 4, 1)) / 3

    def all_of_it():
        with config.scope(kernels=False):
            found = [calls[each]() for each in few]
        found.append(reference.depthwise_conv2d(tiny, thirds, 1, "SAME"))
        found.append(reference.batch_norm_act(tiny).y)
        found += session.run([total])
        found.append(tasks.add("float32", *parts))
        return [each.tobytes() for each in found]

    want = all_of_it()
    with fp_modes.set_to(name):
        found = all_of_it()
    assert found == want


@pytest.mark.parametrize("name", EVERY)
def test_the_mode_is_known_and_put_back(name):
    with fp_modes.set_to(name):
        assert not is_default()
        with pytest.raises(ZeroDivisionError), default_mode():
            assert is_default() and fp_modes.mode() == 0
            with default_mode():
                assert fp_modes.mode() == 0
            raise ZeroDivisionError
        assert fp_modes.mode() == fp_modes.MODES[name]
    assert is_default()


def test_plans_and_kernels_are_made_in_the_default_mode(monkeypatch):
    """A prediction that is rounded upward might choose another plan, a constant might end in another digit."""
    calls = _calls()
    emitted, modes = [], set()
    load, best = prepare.jit.load, planner.best

    def noted(identity, emit, *more):
        emitted.append(emit().ir)
        modes.add(("kernel", fp_modes.mode()))
        return load(identity, emit, *more)

    def chosen(*given):
        modes.add(("plan", fp_modes.mode()))
        return best(*given)

    monkeypatch.setattr(prepare.jit, "load", noted)
    monkeypatch.setattr(planner, "best", chosen)

    def first_calls():
        emitted.clear()
        _engine.memory.clear()
        planner._choose.cache_clear()
        for call in calls.values():
            call()
        return list(emitted)

    want = first_calls()
    with fp_modes.set_to("flush, upward"):
        found = first_calls()
    assert len(want) >= 10 and found == want
    assert modes == {("kernel", 0), ("plan", 0)}


@pytest.mark.skipif(ctypes.util.find_library("gomp") is None, reason="no libgomp on this system")
def test_threads_of_openmp_compute_in_the_default_mode_and_keep_theirs(tmp_path):
    """A team that was started by a caller who flushes, as PyTorch's may be."""
    operands = tmp_path / "operands.npz"
    x, f = _subnormal((4, 32, 32, 32), 8), np.ones((3, 3, 32, 1), np.float32)
    np.savez(operands, x=x, f=f)
    want = hashlib.sha256(convgrad.depthwise_conv2d(x, f, 1, "SAME").tobytes()).hexdigest()
    program = f"""
        import ctypes, hashlib, sys
        sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent / "src")!r}]
        import numpy as np
        import convgrad, fp_modes
        from convgrad._runtime import threads
        from convgrad._runtime.state import OPENMP

        gomp = ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
        given = np.load({str(operands)!r})
        x, f = given["x"], given["f"]
        seen = []
        body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(fp_modes.mode()))
        def team():
            seen.clear()
            gomp.GOMP_parallel(body, None, 0, 0)
            return sorted(seen)
        def call():
            return convgrad.depthwise_conv2d(x, f, 1, "SAME")

        flush = fp_modes.MODES["flush"]
        with convgrad.options(pool="openmp"):
            assert threads.kind() == OPENMP
            with fp_modes.set_to("flush"):
                assert team() == [flush] * 3
                found = [call() for _ in range(4)]
            found += [call() for _ in range(4)]
            assert team() == [0, flush, flush]
        print(*{{hashlib.sha256(each.tobytes()).hexdigest() for each in found}})
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env={**os.environ, "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [want]
