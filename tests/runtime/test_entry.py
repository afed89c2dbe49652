"""The entry: a whole program in one call, from any language, with memory of its own."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import convgrad
from cases import Case, whole_numbers
from convgrad import _engine
from convgrad._base.errors import AllocationError, InternalError
from convgrad._compiler import jit
from convgrad._engine import planner, prepare
from convgrad._runtime import bound, code, entry, threads
from convgrad._runtime import slots as slot_text
from convgrad._runtime.bound import Bound
from convgrad._runtime.program import MEMORY, Launch, Program
from convgrad._runtime.run import run, try_again
from convgrad._runtime.state import OWN, SLOTS, STATE, STATE_BLOCK, State, address_of
from kernels import problem_of
from runtime.kernels import compile_text, launch

# Words: two pointers, a factor. Adds factor * 2**item to each of 8 numbers per item behind the second pointer.
STEP = """
define void @step(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %from = load ptr, ptr %args, align 8
  %to_at = getelementptr ptr, ptr %args, i64 1
  %to = load ptr, ptr %to_at, align 8
  %factor_at = getelementptr i64, ptr %args, i64 2
  %factor = load i64, ptr %factor_at, align 8
  br label %item
item:
  %i = phi i64 [ %begin, %entry ], [ %next, %item ]
  %x_at = getelementptr i64, ptr %from, i64 %i
  %x = load i64, ptr %x_at, align 8
  %y = mul i64 %x, %factor
  %y_at = getelementptr i64, ptr %to, i64 %i
  store i64 %y, ptr %y_at, align 8
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %item, label %done
done:
  ret void
}
"""
FIRST, RESULT, PARTIAL, PACKED = 0, 1, MEMORY["partial"], MEMORY["packed"]


@pytest.fixture(scope="module")
def step() -> int:
    return compile_text(STEP, ("step",), "step")["step"]


def chain(step: int, count: int, state: State = STATE_BLOCK, **sizes: int) -> Bound:
    """Return a program of three launches: first -> packed -> partial -> result, times 2, 3 and 5."""
    launches = (
        Launch(0, (FIRST, PACKED), (2,), count, 7, 0),
        Launch(0, (PACKED, PARTIAL), (3,), count, 5, 100),
        Launch(0, (PARTIAL, RESULT), (5,), count, 3, 0),
    )
    sizes = {"partial_bytes": 8 * count, "packed_bytes": 8 * count, **sizes}
    return Bound(
        Program(("step",), ("first", "result"), launches, **sizes), [(step, 0)], None, state
    )


def go(program: Bound, x, y, number: int = 1) -> None:
    """Run a program on so many threads of our own pool."""
    words = code.pack_call[2](program.address, number, OWN, x.ctypes.data, y.ctypes.data)
    status = code.entry_call()(words)
    if status:
        try_again(program, words, status)


def once(program: Bound) -> None:
    """Run a chain of ten numbers and check it."""
    x, y = np.arange(10), np.zeros(10, np.int64)
    go(program, x, y)
    np.testing.assert_array_equal(y, 30 * x)


@pytest.mark.parametrize("count", [1, 2, 1000])
@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_launches_follow_each_other(step, count, number):
    x, y = np.arange(count), np.zeros(count, np.int64)
    program = chain(step, count)
    for _ in range(100):
        y[:] = -1
        threads.pool.ensure(number)
        go(program, x, y, number)
        np.testing.assert_array_equal(y, 30 * x)


def test_a_program_survives_being_written_down(step):
    case = Case(False, 2, (9, 8), 1, 16, 24, (3, 3), (1, 1), (1, 1), "SAME")
    plan = planner.choose(problem_of(case, "filter"), jit.host_target())
    program = prepare.numbered(plan)
    again = Program.from_bytes(program.to_bytes())
    assert again == program and again.to_bytes() == program.to_bytes()
    assert program.launches and all(isinstance(name, str) for name in program.kernels)
    numbers = struct.pack("=q", prepare.bind(plan, jit.host_target()).address)
    assert numbers not in program.to_bytes()  # no address in it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"x" + data[1:], "magic line"),
        (lambda data: data[:40], "was cut to 40"),
        (lambda data: data[:-8], "bytes of them"),
        (lambda data: data.replace(b'["k"]', b"[[[]]"), "cannot be read"),
        (lambda data: data.replace(b'["k"]', b"[123]"), "is not a text"),
        (lambda data: data.replace(b"[[0,[0,1],", b"[[1,[0,1],"), "impossible sizes"),
        (lambda data: data.replace(b"[[0,[0,1],", b"[[0,[0,6],"), "pointers to nowhere"),
        (lambda data: data.replace(b",9,1,64,0]", b",9,0,64,0]"), "impossible sizes"),
        (lambda data: data.replace(b",9,1,64,0]", b",-9,1,6,0]"), "impossible sizes"),
        (lambda data: data.replace(b"[3,4]", b"[3,.5"), "cannot be read"),
        (lambda data: data.replace(b"[3,4]", b'[3,"4'), "cannot be read"),
        (lambda data: data.replace(b"false", b"12345"), "not a truth value"),
        (lambda data: data.replace(b",9,1,64,0]", b',9,"",4,0]'), "not fit a word"),
        (lambda data: data.replace(b",9,1,64,0]", b",9,1,64,2]"), "impossible sizes"),
        (lambda data: data.replace(b",9,1,64,0]", b",9,1,6,-1]"), "impossible sizes"),
        (lambda data: data.replace(b'["k"]', b'"kkk"'), "must be lists"),
        (lambda data: data.replace(b"[0,0]", b'["",]'), "cannot be read"),
        (lambda data: data.replace(b"[0,0]", b"[-1,0"), "cannot be read"),
    ],
)
def test_what_is_no_program_is_refused(change, message):
    data = Program(("k",), ("x", "y"), (Launch(0, (0, 1), (3, 4), 9, 1, 64, bytes(16)),)).to_bytes()
    changed = change(data)
    assert changed != data
    with pytest.raises(ValueError, match=message):
        Program.from_bytes(changed)


def test_memory_and_words_of_a_program_without_launches_are_checked_too():
    with pytest.raises(ValueError, match="not sizes of memory"):
        Program.from_bytes(Program((), (), (), partial_bytes=-1).to_bytes())


def test_a_kernel_with_more_words_than_the_entry_copies_is_refused(step):
    program = Program(("k",), ("x",), (Launch(0, (0,), (1,) * 5000, 1, 1, 0),))
    with pytest.raises(ValueError, match="too many words"):
        Program.from_bytes(program.to_bytes())
    with pytest.raises(InternalError, match="5001 words"):
        Bound(program, [(step, 0)])


def test_a_number_that_fits_no_word_is_refused():
    for words in ((2**63,), (-(2**63) - 1,)):
        data = Program(("k",), ("x",), (Launch(0, (0,), words, 1, 1, 0),)).to_bytes()
        with pytest.raises(ValueError, match="not fit a word"):
            Program.from_bytes(data)


# ---- memory


def slots(state: State = STATE_BLOCK) -> list[int]:
    at = STATE["SLOT"]
    return [block for block in state.words[at : at + SLOTS] if block]


def test_blocks_are_aligned_kept_and_released(step):
    state = State()
    seen = []
    for size in (80, 80, 5 << 20, 80, 5 << 20):
        once(chain(step, 10, state, partial_bytes=size))
        seen.append(sorted(slots(state)))
    assert seen[0] == seen[1] and len(seen[0]) == 3  # one for the scratch of the second launch
    assert seen[2] == seen[3] == seen[4] and len(seen[2]) == 4
    assert all(block % 64 == 0 for block in seen[2])
    assert any(block % (2 << 20) == 0 for block in seen[2])  # the large one is for huge pages
    code.current().release(state.address)
    assert not slots(state)


def test_what_is_kept_is_bounded(step):
    state = State()
    for size in range(1 << 20, 40 << 20, 1 << 20):
        once(chain(step, 10, state, partial_bytes=size))
    assert len(slots(state)) <= SLOTS
    code.current().release(state.address)
    once(chain(step, 10, state, packed_bytes=80, partial_bytes=slot_text.KEPT + 1))
    assert len(slots(state)) == 2  # the large one was freed
    code.current().release(state.address)


def test_a_large_block_is_not_taken_for_little(step):
    state = State()
    once(chain(step, 10, state, partial_bytes=32 << 20, packed_bytes=80))
    before = set(slots(state))
    once(chain(step, 10, state))
    assert set(slots(state)) >= before
    code.current().release(state.address)


@pytest.mark.parametrize("sizes", [{"partial_bytes": 1 << 53}, {"packed_bytes": 1 << 53}])
def test_no_memory_is_an_error_and_nothing_is_lost(step, sizes):
    state = State()
    once(chain(step, 10, state))
    before = sorted(slots(state))
    for _ in range(3):
        with pytest.raises(
            AllocationError, match=r"no memory for a workspace of 9,007,[\d,]+ bytes"
        ):
            once(chain(step, 10, state, **sizes))
        assert sorted(slots(state)) == before
    code.current().release(state.address)


def test_idle_memory_is_given_back_before_memory_is_refused(step, monkeypatch):
    """A first answer of "no memory" has the slots and the pool of results emptied, and the call made again."""
    once(chain(step, 10))
    assert slots()
    program = chain(step, 10)
    call, answers = code.entry_call(), [entry.NO_MEMORY]
    seen = []

    def short(words: bytes) -> int:
        if answers:
            return answers.pop()
        seen.append(slots())
        return call(words)

    monkeypatch.setattr(code, "entry_call", lambda: short)
    x, y = np.arange(10), np.zeros(10, np.int64)
    run(program, x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, 30 * x)
    assert seen == [[]]


@pytest.mark.parametrize("number", [1, 2])
def test_no_memory_for_scratch_is_an_error(counting, number):
    state = State()
    if number > 1:
        state["CONTROL"] = threads.pool.ensure(number).control
    program = counting.program(100, scratch_bytes=1 << 53, state=state)
    with pytest.raises(AllocationError, match="workspace"):
        launch(program, counting.counters.ctypes.data, number)
    assert counting.calls == 0 and not slots(state)


def test_sizes_beyond_all_memory_are_refused_before_they_wrap(step):
    with pytest.raises(AllocationError, match=f"workspace of {1 << 61:,} bytes"):
        chain(step, 10, partial_bytes=1 << 61)


def test_as_many_workspaces_as_threads_do_not_wrap(counting):
    """256 times 2**56 is 2**64: kernels would have been given addresses behind nothing."""
    with pytest.raises(AllocationError, match="workspace of"):
        counting.program(1000, scratch_bytes=1 << 56)
    state = State()
    state["CONTROL"] = threads.pool.ensure(2).control
    program = counting.program(1000, scratch_bytes=(1 << 54) - 1, state=state)
    with pytest.raises(AllocationError, match="workspace of"):
        launch(program, counting.counters.ctypes.data, 256)
    assert counting.calls == 0


def test_many_threads_share_the_blocks(step):
    state, wrong = State(), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            count = int(rng.integers(1, 20_000))
            x, y = rng.integers(0, 1000, count), np.zeros(count, np.int64)
            program = chain(step, count, state)
            go(program, x, y)
            if (y != 30 * x).any():
                wrong.append(count)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert len(slots(state)) <= SLOTS
    code.current().release(state.address)


def test_a_call_in_the_middle_of_a_call(step):
    """As by a finalizer or a signal handler that runs while the outer call asks for memory."""
    x, y = np.arange(500), np.zeros(500, np.int64)
    inner_result = np.zeros(500, np.int64)
    inner = chain(step, 500)
    blocks: dict[int, object] = {}

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
    def take(nbytes: int) -> int:
        run(inner, x.ctypes.data, inner_result.ctypes.data)
        memory = np.empty(nbytes + 64, np.uint8)
        address = memory.ctypes.data + -memory.ctypes.data % 64
        blocks[address] = memory
        return int(address)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    def give(address: int, nbytes: int) -> None:
        del blocks[address]

    state = State()
    state["TAKE"], state["GIVE"] = address_of(take), address_of(give)
    run(chain(step, 500, state), x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, 30 * x)
    np.testing.assert_array_equal(inner_result, 30 * x)
    assert not blocks


def test_a_block_that_is_no_program_is_refused():
    words = (ctypes.c_int64 * 32)(*range(100, 132))
    call = code.pack_call[3](ctypes.addressof(words), 1, 0, 0, 0, 0)
    assert code.entry_call()(call) == entry.NO_PROGRAM
    with pytest.raises(InternalError, match="status 2"):
        try_again(None, call, entry.NO_PROGRAM)


# ---- from C

C_CALLER = r"""
#include <stdint.h>
#include <pthread.h>

typedef int64_t (*entry)(const void *program, const void *first, const void *second, void *result);

struct call { entry run; const void *program, *first, *second; void *result; int64_t status; };

static void *work(void *data) {
    struct call *c = data;
    c->status = c->run(c->program, c->first, c->second, c->result);
    return 0;
}

/* On this thread, then on two threads that Python has never seen, at the same time. */
int64_t call_from_c(entry run, const void *program, const void *first, const void *second, void **results) {
    struct call calls[3];
    pthread_t threads[2];
    for (int i = 0; i < 3; i++) {
        struct call c = {run, program, first, second, results[i], -1};
        calls[i] = c;
    }
    work(&calls[0]);
    for (int i = 0; i < 2; i++) if (pthread_create(&threads[i], 0, work, &calls[i + 1])) return -2;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return calls[0].status | calls[1].status | calls[2].status;
}
"""


def c_caller(folder):
    """Return `call_from_c`, or a stand-in on ctypes where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)

        def call(run_at, program, first, second, results):
            return max(signature(run_at)(program, first, second, each) for each in results)

        return call
    source, library = folder / "caller.c", folder / "caller.so"
    source.write_text(C_CALLER)
    command = [compiler, "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    function = ctypes.CDLL(str(library)).call_from_c
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p] * 5
    return function


CASES = [
    Case(True, 2, (20, 21), 24, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 2, (14, 14), 1, 33, 40, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 4, (28, 28), 1, 64, 64, (1, 1), (1, 1), (1, 1), "SAME", "NCHW"),
    Case(False, 1, (9, 9), 4, 8, 16, (5, 3), (2, 1), (1, 2), "SAME", "NHWC", "half"),
]


@pytest.mark.parametrize("case", CASES, ids=["depthwise", "3x3", "1x1", "half"])
def test_the_entry_called_from_c_gives_the_same_bits(case, tmp_path):
    call = c_caller(tmp_path)
    data = whole_numbers(case, np.random.default_rng(1))
    names = {"forward": "", "input": "_backprop_input", "filter": "_backprop_filter"}
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    for kind, suffix in names.items():
        problem = problem_of(case, kind)
        first, second = (np.ascontiguousarray(each) for each in operands[kind])
        sized = {
            "forward": (first, second),
            "input": (case.input_shape, first, second),
            "filter": (first, case.filter_shape, second),
        }[kind]
        name = ("depthwise_conv2d" if case.depthwise else "conv2d") + suffix
        expected = getattr(convgrad, name)(
            *sized, case.strides, case.padding, case.data_format, case.dilations
        )
        program = _engine.program(problem)
        assert type(program) is Bound
        threads.get_ready()
        results = [np.full(problem.result_shape, 7, problem.dtype.numpy) for _ in range(3)]
        places = (ctypes.c_void_p * 3)(*[each.ctypes.data for each in results])
        run_at = code.current().addresses[entry.RUN]
        arguments = (run_at, program.address, first.ctypes.data, second.ctypes.data, places)
        assert call(*arguments) == 0
        for result in results:
            assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("case", CASES, ids=["depthwise", "3x3", "1x1", "half"])
def test_the_entry_with_a_bias_gives_the_same_bits(case):
    """`cg_run_places` reads a bias, or writes its gradient, as a call from Python does."""
    data = whole_numbers(case, np.random.default_rng(1))
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    sides = {"forward": "output", "input": "input", "filter": "output"}
    for kind, side in sides.items():
        problem = replace(problem_of(case, kind), bias=side)
        first, second = (np.ascontiguousarray(each) for each in operands[kind])
        numbers = np.arange(problem.bias_c).astype(problem.dtype.numpy)
        results = [np.full(problem.result_shape, 7, problem.dtype.numpy) for _ in range(2)]
        biases = [numbers.copy() for _ in range(2)]
        at = [first.ctypes.data, second.ctypes.data]
        program = _engine.run(problem, *at, results[0].ctypes.data, biases[0].ctypes.data)
        assert type(program) is Bound
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2)
        run_at = signature(code.current().addresses[entry.RUN_PLACES])
        addresses = (ctypes.c_int64 * 4)(*at, results[1].ctypes.data, biases[1].ctypes.data)
        assert run_at(program.address, ctypes.addressof(addresses)) == 0
        assert results[0].tobytes() == results[1].tobytes()
        assert biases[0].tobytes() == biases[1].tobytes()
        assert (biases[0].tobytes() == numbers.tobytes()) == (kind != "filter")


def test_the_layout_is_the_documented_one(step):
    """docs/house/runtime.md shows these words; bridges are written against them."""
    program = chain(step, 10)
    words = (ctypes.c_int64 * 64).from_address(program.address)
    header = dict(zip(bound.PROGRAM, words, strict=False))
    assert bytes(words)[:8] == b"CPROGRM3"
    assert header["STATE"] == STATE_BLOCK.address and header["LAUNCHES"] == 3
    assert (header["PARTIAL"], header["PACKED"], header["THREADS"]) == (80, 80, 4)
    at = len(bound.PROGRAM)
    for factor, grain in ((2, 7), (3, 5), (5, 3)):
        one = dict(zip(bound.LAUNCH, words[at:], strict=False))
        assert (one["KERNEL"], one["ITEMS"], one["GRAIN"]) == (step, 10, grain)
        assert (one["PLACES"], one["WORDS"], one["LEAST"]) == (2, 1, grain)
        assert words[at + len(bound.LAUNCH) + 2] == factor
        at += one["NEXT"]
    page = Path(__file__).parents[2] / "docs" / "house" / "runtime.md"
    text = page.read_text(encoding="utf-8")
    for name in (*bound.PROGRAM, *bound.LAUNCH, *entry.SYMBOLS):
        assert f"`{name}`" in text, f"docs/house/runtime.md does not speak of {name}"
    told = {"partial": "partial sums", "packed": "packed operand"}
    told["places"] = "the addresses themselves"
    listed = ", ".join(f"{at} {told[name]}" for name, at in MEMORY.items())
    assert listed in text
    assert ", ".join(name.lower() for name in entry.CALL_WORDS) in text
