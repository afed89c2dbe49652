"""What the fuzzer and the faults have found, one case each, so that none comes back."""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import dispatch
from convgrad._base import config
from convgrad._compiler.jit import host_target
from convgrad._engine import planner
from convgrad._kernels.dense_filter.tables import blocks, table
from convgrad._kernels.dense_filter.words import TAP
from convgrad._problem.convolution import OPS
from convgrad._problem.geometry import solve
from convgrad.errors import ArgumentError, ArgumentTypeError, DTypeError
from hostile.objects import EndlessList, EqualToAll, Liar, OddInt, OddStr, raising

X, F = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)


@pytest.mark.parametrize(
    "strides", [range(10**9), Liar(4, iter(int, 1)), EndlessList(), np.broadcast_to(np.int64(1), 2**40)]
)  # fmt: skip
def test_endless_sequences_are_not_spelled_out(strides):
    with pytest.raises(ArgumentError, match="should be of length 1, 2 or 4, got more than 64"):
        convgrad.conv2d(X, F, strides, "SAME")


def test_endless_sizes_and_pads():
    with pytest.raises(ArgumentError, match="must hold 4 values or 2 values, got more than 64"):
        convgrad.conv2d_backprop_input(range(10**12), F, X, 1, "SAME")
    with pytest.raises(ArgumentError, match="must be a list of size 2"):
        convgrad.conv2d(X, F, 1, [EndlessList(), EndlessList()])


def test_ints_and_strings_of_ones_own_become_plain_ones():
    """A subclass that compares as it likes would pass every check of a size."""
    assert convgrad.conv2d(X, F, OddInt(2), OddStr("VALID"), OddStr("NHWC")).shape == (1, 1, 1, 2)
    with pytest.raises(ArgumentError, match="strides"):
        convgrad.conv2d(X, F, OddInt(-2), "SAME")
    with pytest.raises(ArgumentError, match="data_format"):
        convgrad.conv2d(X, F, 1, "SAME", OddStr("rubbish"))
    with pytest.raises(ArgumentError, match="set_num_threads"):
        convgrad.set_num_threads(OddInt(0))


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["large", "low"])
def test_numbers_too_long_to_print(number):
    for call in (
        lambda: convgrad.conv2d(X, F, number, "SAME"),
        lambda: convgrad.conv2d(X, F, 1, ((0, number), (0, 0))),
        lambda: convgrad.conv2d_backprop_input([1, number, 4, 2], F, X, 1, "SAME"),
        lambda: convgrad.explain("conv2d", [1, number, 4, 2], F.shape),
        lambda: convgrad.set_num_threads(number),
    ):
        with pytest.raises(ArgumentError, match="which cannot be shown"):
            call()


def test_an_object_that_cannot_be_shown_does_not_hide_the_message():
    with pytest.raises(ArgumentTypeError, match="got <Raising, which cannot be shown: Mine>"):
        convgrad.conv2d(X, F, raising("__repr__"), "SAME")


def test_what_an_object_raises_is_quoted_in_one_line():
    """PyTorch's and CUDA's messages have many lines, and ours promises one; an exception may resist being read, too."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise Silent

    class Elsewhere:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise self.error

    for error, said in (
        (RuntimeError("not here\n  at line 3\r\n"), r"\(RuntimeError: not here at line 3\)\."),
        (RuntimeError("x " * 1000), r"\(RuntimeError: (x )+x\.\.\.\)\."),
        (Silent(), r"\(Silent: it cannot be shown\)\."),
    ):
        with pytest.raises(
            ArgumentTypeError, match=f"^conv2d: `input` must be .* {said}$"
        ) as caught:
            convgrad.conv2d(Elsewhere(error), F, 1, "SAME")
        assert len(str(caught.value)) < 500
    with pytest.raises(ArgumentError) as ragged:
        convgrad.conv2d([[Elsewhere(ValueError("a\nb"))]], F, 1, "SAME")
    assert len(str(ragged.value).splitlines()) == 1


def test_options_and_explain_take_nothing_that_only_looks_like_a_word():
    with (
        pytest.raises(ArgumentError, match="`winograd` must be one of"),
        convgrad.options(winograd=EqualToAll()),
    ):
        pass
    with pytest.raises(ArgumentError, match="`op` must be one of"):
        convgrad.explain([], X.shape, F.shape)
    for dtype in ("f4,", {"names": ["a"]}, object(), b"\xff"):
        with pytest.raises(DTypeError, match="`dtype` must be one of"):
            convgrad.explain("conv2d", X.shape, F.shape, dtype=dtype)


def test_exact_is_true_or_false():
    """Asking a stranger whether it is true runs its code, and a length of 10**30 is an OverflowError."""
    with pytest.raises(ArgumentTypeError, match="`exact` must be True or False"):
        convgrad.reference.conv2d(X, F, 1, "SAME", exact=Liar(10**30, []))


def test_explain_does_not_plan_for_ever():
    with pytest.raises(ArgumentError, match=r"at most 262,144 rows and columns, got 1,073,741,824"):
        convgrad.explain("conv2d", [1, 2**30, 4, 2], F.shape)


@pytest.mark.parametrize("operation", ["conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"])
def test_windows_of_thousands_of_rows_are_planned_at_once(operation):
    """Planning took minutes: every output row has a list of taps of its own under SAME."""
    story = convgrad.explain(operation, [1, 8192, 1, 2], [4096, 1, 2, 2])
    assert story.algorithm == "reference"
    assert "lists of taps" in str(story)
    small = convgrad.explain(operation, [1, 256, 1, 2], [64, 1, 2, 2])
    assert small.algorithm != "reference"
    assert planner.choose(small.problem, host_target()).steps


@pytest.mark.parametrize("operation", [row.function for row in OPS])
@pytest.mark.parametrize("channels", [1, 2])
def test_windows_of_millions_on_one_pixel(operation, channels):
    """One of its taps meets the pixel; planning and the reference went through all of them, for up to a minute."""
    filters = 1 if "depthwise" in operation else channels
    convgrad.explain(operation, [1, 1, 1, channels], [1, 3, channels, filters])  # measures roofs
    x = np.ones((1, 1, 1, channels), np.float32)
    f = np.ones((1, 3 * 10**6, channels, filters), np.float32)
    operands = {"conv2d": (x, f), "input": (x.shape, f, x), "filter": (x, f.shape, x)}
    start = time.monotonic()
    convgrad.explain(operation, x.shape, [1, 10**7, channels, filters])
    got = getattr(convgrad, operation)(*operands[operation.split("_")[-1]], 1, "SAME")
    assert time.monotonic() - start < 3
    assert got.sum() == (channels if "depthwise" in operation else channels**2)


def test_sizes_no_memory_holds_are_refused_before_planning():
    wide = np.broadcast_to(np.float32(1), (1, 2**20, 2**20, 2))
    with pytest.raises(MemoryError):
        convgrad.conv2d(wide, F, 1, "SAME")


def test_lists_leave_the_warning_filters_alone():
    """`warnings.catch_warnings` belongs to the process: two threads in it can leave an error filter behind."""
    before = list(warnings.filters)
    failed: list[BaseException] = []

    def call() -> None:
        try:
            for _ in range(50):
                convgrad.conv2d([[[[2.0]]]], [[[[3.0]]]], 1, "SAME")
        except BaseException as error:
            failed.append(error)

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failed and warnings.filters == before


def test_no_memory_for_an_objects_array_is_said_so():
    class Hungry:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise MemoryError("mine")

    with pytest.raises(MemoryError, match="mine"):
        convgrad.conv2d(Hungry(), F, 1, "SAME")


@pytest.mark.parametrize("wrong", [3, "x", None])
def test_dispatch_takes_types_only(wrong):
    with pytest.raises(ArgumentTypeError, match="must be a type"):
        dispatch.dispatch_for_types(convgrad.nn.conv2d, wrong)
    with pytest.raises(ArgumentTypeError, match="a signature must be a dict"):
        dispatch.dispatch_for_api(convgrad.nn.conv2d, wrong)
    with pytest.raises(ArgumentTypeError, match="must be a type"):
        dispatch.dispatch_for_api(convgrad.nn.conv2d, {"input": wrong})


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("multiplier", [None, 1, 3])
def test_strides_of_thousands_of_millions(data_format, multiplier):
    """An input gradient listed the taps of every phase, and there are as many phases as the stride is long."""
    channels = 16
    x = np.arange(5 * 5 * channels, dtype=np.float32) % 7
    x = x.reshape((1, 5, 5, channels) if data_format == "NHWC" else (1, channels, 5, 5))
    f = np.arange(9 * channels * (multiplier or 4), dtype=np.float32) % 5
    f = f.reshape(3, 3, channels, -1)
    family = "conv2d" if multiplier is None else "depthwise_conv2d"
    how = {"strides": 2**31 - 1, "padding": "SAME", "data_format": data_format}
    y = getattr(convgrad, family)(x, f, **how)
    for call, operands in (
        ("_backprop_input", (x.shape, f, y)),
        ("_backprop_filter", (x, f.shape, y)),
    ):
        expected = getattr(convgrad.reference, family + call)(*operands, **how)
        assert np.array_equal(getattr(convgrad, family + call)(*operands, **how), expected)


def test_taps_are_listed_by_axis():
    """A window of 256x256 on 2x2 pixels took 10 s to plan: an empty list for each of 65,536 taps, four times."""
    axis = blocks(solve(2, 256, 1, 1, "SAME"), 2)
    data, places = table(axis, axis, 2, listed=True)
    assert places["runs_at"] - places["taps_at"] == 2 * 256 * len(TAP) and len(data) < 9 << 10


@pytest.mark.parametrize(
    "sizes, operation",
    [
        ((1, 1, 50_000, 1), "conv2d_backprop_input"),
        ((1, 1, 50_000, 1), "conv2d_backprop_filter"),
    ],
)
def test_rows_far_apart_are_not_copied_again_and_again(sizes, operation):
    """Blocks of one row under a window of 2001 copied all of them each time: a minute for a million rows."""
    story = convgrad.explain(operation, sizes, [3, 3, 1, 2], dilations=1000, data_format="NCHW")
    assert story.algorithm != "depthwise_packed"
    times = {name: each["predicted_us"] for name, each in story.to_dict()["candidates"].items()}
    assert times["depthwise_packed"] is None or times["depthwise_packed"] > times[story.algorithm]


def test_a_ring_of_rows_far_apart_goes_on_from_unit_to_unit():
    """Filter gradients of `depthwise_packed` copied a window of 2001 rows for each unit."""
    x, g = np.ones((1, 50_000, 1, 1), np.float32), np.ones((1, 50_000, 1, 2), np.float32)
    times = {}
    for dilation in (1, 1000, 1, 1000, 1, 1000):
        began = time.perf_counter()
        found = convgrad.conv2d_backprop_filter(x, [3, 3, 1, 2], g, 1, "SAME", dilations=dilation)
        times[dilation] = min(times.get(dilation, 1e9), time.perf_counter() - began)
        assert (
            found[:, 1].ravel().tolist()
            == [50_000 - dilation] * 2 + [50_000] * 2 + [50_000 - dilation] * 2
        )
    assert times[1000] < 50 * times[1]


def test_messages_quoting_other_libraries_stay_in_one_line():
    """JAX explains in three paragraphs why a tracer is not an array."""

    class Wordy:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("first\n\n  second\n" * 100)

    with pytest.raises(ArgumentTypeError, match="RuntimeError: first second first") as caught:
        convgrad.conv2d(Wordy(), F, 1, "SAME")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    with pytest.raises(ArgumentError, match="got a list that is not") as caught_list:
        convgrad.conv2d([Wordy()], F, 1, "SAME")
    assert "\n" not in str(caught_list.value)
    with pytest.raises(ArgumentError, match="`a b` is an unknown option") as caught_name:
        convgrad.options(**{"a\nb": 1})
    assert "\n" not in str(caught_name.value)


def _half_open(n: int) -> Any:
    with convgrad.threads(n):
        yield


def test_generators_leave_their_blocks_in_any_order():
    before = convgrad.get_num_threads()
    first, second = _half_open(3), _half_open(5)
    next(first), next(second)
    first.close()
    assert convgrad.get_num_threads() == 5
    second.close()
    assert convgrad.get_num_threads() == before


def test_a_block_left_by_another_thread_changes_nothing_there():
    """It was a ValueError about a token."""
    failed: list[BaseException] = []
    generator = _half_open(3)

    def enter_here_leave_there() -> None:
        next(generator)

    def leave() -> None:
        try:
            with convgrad.threads(7):
                generator.close()
                assert convgrad.get_num_threads() == 7
        except BaseException as error:
            failed.append(error)

    for step in (enter_here_leave_there, leave):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert not failed


def test_a_block_can_be_entered_again():
    """It was an AttributeError from inside contextlib."""
    before, block = convgrad.get_num_threads(), convgrad.threads(3)
    for _ in range(2):
        with block, block:
            assert convgrad.get_num_threads() == 3
    assert convgrad.get_num_threads() == before
    assert convgrad.threads(4)(convgrad.get_num_threads)() == 4


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("family", ["conv2d", "depthwise_conv2d"])
@pytest.mark.parametrize("part", ["", "_backprop_input", "_backprop_filter"])
def test_nothing_is_explained_too(family, part, data_format):
    """Algorithms divide by sizes: an empty batch or output was a ZeroDivisionError, or `min()` of nothing."""
    for sizes, filters in (
        ((0, 4, 4, 4), (3, 3, 4, 1)),
        ((1, 2, 2, 2), (3, 3, 2, 1)),
        ((1, 4, 4, 4), (3, 3, 4, 0)),
    ):
        story = convgrad.explain(family + part, sizes, filters, 1, "VALID", data_format)
        assert story.algorithm == "reference" and story.scratch_bytes == 0
        assert str(story).endswith("nothing to add up: the result is empty, or zeros")
        assert '"flops": 0' in story.to_json()


@pytest.mark.parametrize("switch", ["vector_bits", "cache_bytes", "num_threads"])
def test_superscripts_are_no_numbers(switch):
    """They are digits to Python, and none it can read."""
    with pytest.raises(ValueError, match="it must be"):
        config.SWITCHES[switch].parse("²")
