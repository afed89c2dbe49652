"""Compiled functions of fused blocks: hooks, threads and tensors that are not what they seem."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import convgrad
from convgrad import torch as ours
from convgrad._bridges.torch import install
from pytorch.blocks import Spy, Unit, picture, step, unit

pytestmark = pytest.mark.skipif(
    install.handlers() is None, reason="this PyTorch has no functions for compiled handlers"
)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def test_nothing_is_kept_of_calls_that_are_over():
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    other = torch.randn(3, 6, 10, 8).transpose(2, 3)  # declined
    for each in (x, other):
        step(model, each)
        gc.collect()
        before = sum(1 for found in gc.get_objects() if type(found) is Tensor)
        storage = each.untyped_storage()
        uses = torch._C._storage_Use_Count(storage._cdata)
        for _ in range(20):
            step(model, each)
        gc.collect()
        assert sum(1 for found in gc.get_objects() if type(found) is Tensor) == before
        assert torch._C._storage_Use_Count(storage._cdata) == uses


def test_handles_of_tensors_are_deleted():
    """Memory of tensors that only compiled code saw does not grow either."""
    model, x = (
        unit(torch.float32, True, "1x1", "relu6", ""),
        picture(torch.float32, True, (8, 6, 64, 64)),
    )

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(20):
        step(model, x)
    before = resident()
    for _ in range(200):
        step(model, x)
    # Each step makes eight images of 786 kB.
    assert resident() - before < 50e6


def test_many_threads_at_once():
    made: list[Any] = []
    right: dict[int, Tensor] = {}

    models = [unit(torch.float32, True, "depthwise", "relu6", "after") for _ in range(6)]

    def run(seed: int) -> None:
        model = models[seed]
        x = torch.randn(2, 6, 5 + seed, 7).to(memory_format=torch.channels_last)
        for _ in range(10):
            model.bn.reset_running_stats()
            made.append((seed, step(model, x)["image"]))

    workers = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(made) == 60
    for seed, each in made:
        assert torch.equal(right.setdefault(seed, each), each)


class Hooks:
    """Gives tensors back that a backward pass did not save."""

    def __init__(self, change: Any, of: int) -> None:
        self.change, self.dimensions = change, of

    def __enter__(self) -> None:
        def unpack(tensor: Tensor) -> Tensor:
            return self.change(tensor) if tensor.dim() == self.dimensions else tensor

        self._hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack)
        self._hooks.__enter__()

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)


def spread(vector: Tensor) -> Tensor:
    """Return the same numbers with gaps between them."""
    wide = torch.zeros(2 * len(vector), dtype=vector.dtype)
    wide[::2] = vector
    return wide[::2]


@pytest.mark.parametrize("recompute", [False, True])
def test_statistics_that_are_given_back_with_gaps(recompute):
    model = nn.Sequential(
        *(nn.Sequential(nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6), nn.SiLU()) for _ in range(2))
    )
    ours.accelerate(model, fuse=True, recompute=recompute)
    x = picture(torch.float32, False)
    right = step(model, x)
    with Hooks(spread, of=1):
        found = step(model, x)
    for name in right:
        if name == "image" or name.startswith("d "):
            assert torch.equal(found[name], right[name]), name


@pytest.mark.parametrize(
    ("change", "dimensions"),
    [
        (lambda each: each.double(), 1),
        (lambda each: each.half(), 1),
        (lambda each: each[:1], 1),
        (lambda each: each.double(), 4),
        (lambda each: each[:, :, :3], 4),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_what_no_forward_pass_has_left_is_refused(change, dimensions, alone):
    x = picture(torch.float32, True)
    if alone:
        given = x.clone().requires_grad_()
        weight = torch.ones(6, requires_grad=True)

        def call() -> Tensor:
            return ours.batch_norm_act(given, weight, training=True, activation="silu")
    else:
        model = unit(torch.float32, True, "1x1", "silu", "")

        def call() -> Tensor:
            return model(x)

    with Hooks(change, of=dimensions):
        made = call()
        with pytest.raises(RuntimeError):
            made.sum().backward()


@pytest.mark.parametrize("which", ["image", "filter", "weight", "mean", "residual"])
@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("window", ["1x1", "grouped"])
def test_tensors_robbed_of_their_memory_are_refused(which, fuse, window):
    """Those who shard or offload models take it away, and bring it back before it is needed."""
    torch.manual_seed(3)
    model = Unit(window, "relu6", "before").to(memory_format=torch.channels_last)
    ours.accelerate(model, fuse=fuse)
    x = picture(torch.float32, True)
    model(x)
    robbed = {
        "image": x,
        "filter": model.conv.weight,
        "weight": model.bn.weight,
        "mean": model.bn.running_mean,
        "residual": x,
    }[which]
    if not fuse and which in ("weight", "mean"):
        return  # PyTorch's own layer
    with torch.no_grad():
        robbed.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=r"not allocated|storage"):
        model(x)


def test_a_count_that_cannot_be_written_changes_nothing(spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", ""), picture(torch.float32, True)
    with torch.inference_mode():
        model.bn._buffers["num_batches_tracked"] = torch.tensor(5)
    before = model.bn.running_mean.clone()
    with pytest.raises(RuntimeError, match=r"[Ii]nference"):
        model(x)
    assert torch.equal(model.bn.running_mean, before)
    assert spy.calls == 0


def test_a_batch_is_counted_once_where_layers_run_one_by_one(spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", ""), picture(torch.float32, True)
    model.bn.eps = float("inf")  # left to PyTorch
    model(x)
    assert int(model.bn.num_batches_tracked) == 1
    with pytest.raises(RuntimeError, match="channels"):
        model(x[:, :5])
    assert int(model.bn.num_batches_tracked) == 1
    assert spy.calls == 0


def test_switches_of_two_threads_do_not_mix():
    """Each thread's calls have the bits of its own switches, whichever thread looked at them last."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
    )
    model = model.to(memory_format=torch.channels_last)
    ours.accelerate(model, fuse=True)
    model[1].momentum = 0.0
    x = torch.randn(1, 64, 24, 24).to(memory_format=torch.channels_last)
    right: dict[str, Tensor] = {}
    wrong: list[str] = []

    def run(winograd: str, count: int) -> None:
        with convgrad.options(winograd=winograd), torch.no_grad():
            for _ in range(count):
                made = model(x)
                if not torch.equal(right.setdefault(winograd, made), made):
                    wrong.append(winograd)

    run("off", 1)
    run("fast", 1)
    assert not torch.equal(right["off"], right["fast"])
    workers = [threading.Thread(target=run, args=(each, 400)) for each in right]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert not wrong
