"""Compiled handlers and their table: many threads, more kinds of calls than are kept, memory that runs out."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import convgrad
from convgrad import torch as ours
from convgrad._bridges.records import MADE_WORDS, RECORD, UNSERVED
from convgrad._bridges.torch import fused_handler, handler, install, recipes
from convgrad._bridges.torch.records import body
from convgrad._bridges.torch.server import ABSENT, TENSOR_WORDS, Served
from convgrad._bridges.torch.tensors import DTYPES, Given, Tensor, nchw_strides
from convgrad._runtime import records
from pytorch.configurations import CONFIGURATIONS, some
from pytorch.running import bits, everything, function, operands

FLOAT32 = next(number for number, row in DTYPES.items() if row.short == "f32")


def in_threads(number: int, work: Any) -> None:
    """Run a function on several threads at once, and raise what any of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(number)

    def run(at: int) -> None:
        try:
            start.wait()
            work(at)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(number)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]


def table() -> Any:
    handlers = install.handlers()
    assert handlers is not None, "this PyTorch has what handlers need"
    return handlers.table


def test_a_call_is_learnt_once() -> None:
    table().clear()
    image, weight = torch.randn(1, 3, 11, 13), torch.randn(5, 3, 2, 3)
    for _ in range(3):
        ours.conv2d(image, weight)
        assert len(table()) == 1
    ours.conv2d(image, weight, stride=2)
    ours.conv2d(image, weight, torch.zeros(5))
    assert len(table()) == 3


@pytest.mark.parametrize("limit", ["records", "bytes"])
def test_more_kinds_of_calls_than_are_kept(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Records are dropped while other threads run them."""
    table().clear()
    chosen = [each for each in some(24, seed=12) if not each.left_to_pytorch]
    tensors = [operands(each, torch.float32) for each in chosen]
    wanted = [
        bits(everything(function(each), given)) for each, given in zip(chosen, tensors, strict=True)
    ]
    kinds = len(table())
    if limit == "records":
        monkeypatch.setattr(records, "MOST", 5)
    else:
        monkeypatch.setattr(records, "MOST_BYTES", 30_000)
    table().clear()
    longest = 0

    def work(at: int) -> None:
        nonlocal longest
        rng = random.Random(at)
        for _ in range(60):
            which = rng.randrange(len(chosen))
            made = everything(function(chosen[which]), tensors[which])
            assert bits(made) == wanted[which], str(chosen[which])
            longest = max(longest, len(table()))

    in_threads(4, work)
    assert 0 < longest < kinds


def test_threads_with_different_shapes() -> None:
    """Each thread meets calls for the first time while others run."""
    table().clear()
    chosen = [each for each in CONFIGURATIONS[::5] if not each.left_to_pytorch]
    tensors = [operands(each, torch.float32, seed=5) for each in chosen]
    results: list[list[bytes]] = [[] for _ in range(4)]

    def work(at: int) -> None:
        order = list(range(len(chosen)))
        random.Random(at).shuffle(order)
        made = {which: bits(everything(function(chosen[which]), tensors[which])) for which in order}
        results[at] = [made[which] for which in range(len(chosen))]

    in_threads(4, work)
    assert all(each == results[0] for each in results)


def test_switches_are_heeded() -> None:
    """By calls, by patched calls and by backward passes, inside a block and after it."""
    torch.manual_seed(0)
    image = torch.randn(2, 32, 20, 20).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(32, 32, 3, 3)
    image.requires_grad_()

    def calls() -> list[bytes]:
        with ours.patch():
            patched = F.conv2d(image, weight, padding=1)
        (gradient,) = torch.autograd.grad(kept, image, torch.ones_like(kept), retain_graph=True)
        return [bits([patched]), bits([gradient])]

    kept = ours.conv2d(image, weight, padding=1)
    before = calls()
    with convgrad.options(winograd="off"):
        first = calls()
        direct = ours.conv2d(image, weight, padding=1)
        inside = calls()
    after = calls()
    assert first == inside and first[0] == bits([direct])
    assert before == after and before[0] == bits([kept])
    assert all(one != other for one, other in zip(before, inside, strict=True))


def test_switches_of_another_thread() -> None:
    """A call outside a block, while another thread is in one, leaves nothing in the table that the block finds."""
    torch.manual_seed(0)
    image = torch.randn(2, 32, 22, 22).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(32, 32, 3, 3)
    table().clear()
    made: list[Any] = []
    with ours.patch(), convgrad.options(winograd="off"):
        other = threading.Thread(target=lambda: made.append(F.conv2d(image, weight, padding=1)))
        other.start()
        other.join()
        inside = ours.conv2d(image, weight, padding=1)
    outside = ours.conv2d(image, weight, padding=1)
    assert bits([made[0]]) == bits([outside]) != bits([inside])


def test_no_memory_is_lost() -> None:
    """Handles and results are given back, by calls that are computed and by calls that fail."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.Conv2d(4, 4, 3, groups=4)
    )
    ours.accelerate(model)
    image = torch.randn(2, 4, 64, 64)

    def resident() -> int:
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) >> 8

    def work() -> None:
        for _ in range(60):
            model.zero_grad()
            model(image).sum().backward()
            with pytest.raises(RuntimeError):
                model(image[:, :3])
        gc.collect()

    work()
    before = resident()
    for _ in range(3):
        work()
    # 180 rounds of 2 MB and more: whatever is not given back shows.
    assert resident() - before < 40


def test_arguments_are_given_back() -> None:
    tensors = torch.randn(1, 2, 4, 4), torch.randn(2, 2, 3, 3), torch.randn(2)
    image, weight, bias = tensors

    def users() -> list[int]:
        """How many tensors share each memory: a handle that is not deleted is one more."""
        return [torch._C._storage_Use_Count(each.untyped_storage()._cdata) for each in tensors]

    for call in (
        lambda: ours.conv2d(image, weight, bias),
        lambda: ours.conv2d(image[..., ::2], weight, bias, padding=1),
    ):
        call()
        before = users()
        for _ in range(10):
            call()
        assert users() == before


def test_unaligned_memory() -> None:
    """An address that is not a multiple of an element's size is not given to kernels."""
    memory = torch.zeros(4 * 2 * 5 * 5 + 1, dtype=torch.uint8)
    numbers = torch.randn(1, 2, 5, 5)
    memory[1:] = numbers.reshape(-1).view(torch.uint8)
    try:
        image = torch.frombuffer(memory.numpy().data, dtype=torch.float32, offset=1, count=50)
    except (ValueError, RuntimeError):
        pytest.fail("PyTorch has learnt to refuse such tensors: this test can go")
    image = image.reshape(1, 2, 5, 5)
    assert image.data_ptr() % 4
    weight = torch.randn(3, 2, 3, 3)
    assert bits([ours.conv2d(image, weight)]) == bits([ours.conv2d(numbers, weight)])


@pytest.mark.parametrize("served", [handler.SERVED, fused_handler.SERVED])
def test_the_layout_of_keys(served: Served) -> None:
    """What Python reads and what compiled code writes are named in one place; the places do not overlap."""
    starts = list(served.key.values())
    assert starts[0] == 0 and starts == sorted(set(starts))
    assert list(served.key)[-1] == "TENSORS"
    assert served.key_words == starts[-1] + served.given * TENSOR_WORDS


def test_the_words_of_a_record() -> None:
    """A layer whose filter is reordered, so that it has a temporary: all its places lie inside."""
    image, weight = (1, 3, 8, 8), (4, 3, 3, 3)
    tensors = [Given(4, Tensor(FLOAT32, each, nchw_strides(each))) for each in (image, weight)]
    recipe = recipes.forward(
        tensors[0].tensor,
        tensors[1].tensor,
        None,
        recipes.Settings((1, 1), ((0, 0), (0, 0)), (1, 1), False, (0, 0), 1),
    )
    assert recipe is not None
    words, kept, nbytes = body(recipe, [*tensors, None], handler.SERVED.most_made)
    assert words[: len(RECORD)] == [2, 1, 0, 2]
    rows = words[len(RECORD) :]
    assert rows[:9] == [FLOAT32, 3, 192, FLOAT32, 3, 108, ABSENT, 0, 0]
    assert rows[9:19] == [4, FLOAT32, 1, 4, 6, 6, 144, 36, 6, 1]
    reorder, convolve = recipe.runs
    assert rows[9 + 2 * MADE_WORDS :] == [
        *(reorder.program.address, 2, 1, 4),
        *(convolve.program.address, 3, 0, 4, 3),
    ]
    assert kept is not None and nbytes > 0
    assert body(None, [], 0) == (UNSERVED, None, 0)
