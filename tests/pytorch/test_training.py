"""Training: after some steps an accelerated model has the parameters a plain one has, whichever optimizer is used."""

from __future__ import annotations

import copy
import gc
import itertools
import os
import pickle
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from convgrad import torch as ours
from convgrad._bridges.torch import weights

WAYS: dict[str, dict[str, Any]] = {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
OPTIMIZERS: dict[str, Any] = {
    **{
        f"{name} {way}": (getattr(torch.optim, name), {"lr": 0.01, **more, **WAYS[way]})
        for (name, more), way in itertools.product(
            (
                ("SGD", {"momentum": 0.9, "weight_decay": 0.01}),
                ("Adam", {"weight_decay": 0.01}),
                ("AdamW", {"amsgrad": True}),
            ),
            WAYS,
        )
    },
    "SGD plain": (torch.optim.SGD, {"lr": 0.01}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5}),
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "Adadelta": (torch.optim.Adadelta, {}),
    "LBFGS": (torch.optim.LBFGS, {"lr": 0.1, "max_iter": 4}),
}


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(6, 6, 3, groups=6),
        nn.Conv2d(6, 4, 1),
        nn.ConvTranspose2d(4, 2, 2, stride=2),
    ).double()


def batches(number: int) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(3)
    return [torch.randn(2, 3, 7, 7, dtype=torch.float64, generator=source) for _ in range(number)]


def step(model: nn.Module, optimizer: Any, x: torch.Tensor, clip: bool = False) -> None:
    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = model(x).square().mean()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        return value

    if isinstance(optimizer, torch.optim.LBFGS):
        optimizer.step(loss)
    else:
        loss()
        optimizer.step()


def assert_equal(model: nn.Module, plain: nn.Module) -> None:
    for (name, mine), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(
            mine, theirs, rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("steps_before", [0, 2], ids=["fresh", "with state"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str, steps_before: int, order: Any) -> None:
    kind, settings = OPTIMIZERS[name]
    if kind is torch.optim.LBFGS:
        order = torch.contiguous_format  # it refuses all others, with native layers too
    plain = network().to(memory_format=order)
    model = copy.deepcopy(plain)
    pairs = [(each, kind(each.parameters(), **settings)) for each in (model, plain)]
    data = batches(steps_before + 5)
    for x in data[:steps_before]:
        for each, optimizer in pairs:
            step(each, optimizer, x)
    start = [p.clone() for p in plain.parameters()]
    ours.accelerate(model)
    for x in data[steps_before:]:
        for each, optimizer in pairs:
            step(each, optimizer, x)
    assert_equal(model, plain)
    assert all(not torch.equal(a, b) for a, b in zip(start, plain.parameters(), strict=True))
    # And on, after the model is PyTorch's again.
    ours.restore(model)
    for each, optimizer in pairs:
        step(each, optimizer, data[0])
    assert_equal(model, plain)


def test_an_optimizers_state_is_saved_and_loaded() -> None:
    plain = network()
    model = copy.deepcopy(plain)
    pairs = [(each, torch.optim.Adam(each.parameters(), lr=0.01)) for each in (model, plain)]
    ours.accelerate(model)
    for each, optimizer in pairs:
        step(each, optimizer, batches(1)[0])
    # The plain optimizer goes on with our state, and ours with that of the plain one.
    states = [copy.deepcopy(optimizer.state_dict()) for _, optimizer in pairs]
    for (_, optimizer), state in zip(pairs, reversed(states), strict=True):
        optimizer.load_state_dict(state)
    for x in batches(4):
        for each, optimizer in pairs:
            step(each, optimizer, x)
    assert_equal(model, plain)


@pytest.mark.parametrize("name", ["SGD fused", "Adam fused", "AdamW fused"])
def test_a_fused_state_that_is_loaded_later(name: str) -> None:
    """Fused optimizers read memory as it lies, so what is loaded must lie as the parameter does."""
    kind, settings = OPTIMIZERS[name]
    plain = network()
    model = copy.deepcopy(plain)
    pairs = [(each, kind(each.parameters(), **settings)) for each in (model, plain)]
    ours.accelerate(model)
    for x in batches(2):
        for each, optimizer in pairs:
            step(each, optimizer, x)
    pairs[0][1].load_state_dict(copy.deepcopy(pairs[1][1].state_dict()))
    for x in batches(3):
        for each, optimizer in pairs:
            step(each, optimizer, x)
    assert_equal(model, plain)


class Own(torch.optim.Optimizer):
    """An optimizer that reads parameters as flat memory, as some libraries do."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.view(-1).sub_(p.grad.view(-1), alpha=0.1)


def test_an_optimizer_nobody_knows_sees_the_old_order() -> None:
    plain = network()
    model = copy.deepcopy(plain)
    pairs = [(each, Own(each.parameters())) for each in (model, plain)]
    ours.accelerate(model)
    assert any(not p.is_contiguous() for p in model.parameters())
    for x in batches(3):
        for each, optimizer in pairs:
            step(each, optimizer, x)
    assert all(p.is_contiguous() for p in model.parameters())
    assert_equal(model, plain)


def test_copies_are_optimized_as_the_original_is() -> None:
    """A copy has our strides too, and an optimizer that refuses them must not meet them."""
    plain = network()
    original = copy.deepcopy(plain)
    ours.accelerate(original)
    for model in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        other = copy.deepcopy(plain)
        for each in (model, other):
            optimizer = torch.optim.LBFGS(each.parameters(), lr=0.1, max_iter=3)
            for x in batches(2):
                step(each, optimizer, x)
        assert_equal(model, other)


def test_accumulation_and_clipping() -> None:
    plain = network()
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    for each in (model, plain):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        for x in batches(3):
            each(x).square().mean().backward()
        nn.utils.clip_grad_value_(each.parameters(), 0.01)
        optimizer.step()
        for x in batches(2):
            step(each, optimizer, x, clip=True)
    assert_equal(model, plain)


def test_gradients_that_are_there_already() -> None:
    """`accelerate` between backward and step: the gradient moves with its parameter."""
    plain = network()
    model = copy.deepcopy(plain)
    for each in (model, plain):
        each(batches(1)[0]).square().mean().backward()
        if each is model:
            ours.accelerate(each)
            for p in each.parameters():
                assert p.grad is not None and p.grad.stride() == p.stride()
        torch.optim.SGD(each.parameters(), lr=0.1).step()
    assert_equal(model, plain)


def test_averaged_models() -> None:
    plain = network()
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    averages = []
    for each in (model, plain):
        average = torch.optim.swa_utils.AveragedModel(
            each, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5)
        )
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        for x in batches(3):
            step(each, optimizer, x)
            average.update_parameters(each)
        averages.append(average)
    torch.testing.assert_close(*(a(batches(1)[0]) for a in averages), rtol=1e-9, atol=1e-9)
    assert [type(m) for m in averages[0].module.modules()] == [type(m) for m in model.modules()]


def test_parameters_that_are_gone_are_forgotten() -> None:
    before = len(weights._orders)
    model = network()
    ours.accelerate(model)
    assert len(weights._orders) > before
    del model
    assert len(weights._orders) == before


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _member(rank: int, world: int, port: int) -> None:
    """Train a replica in a group of processes.

    The replica must be gone before the group is: its reducer would else be the last that knows the group, and ends it
    with Python's lock held, for which the group's own thread may be waiting (PyTorch 2.13).
    """
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    try:
        _train_replica(rank, world)
        gc.collect()
    finally:
        dist.destroy_process_group()


def _train_replica(rank: int, world: int) -> None:
    """Train a replica on its part of the batches, and compare with one model on the whole of them."""
    plain = network()
    model = copy.deepcopy(plain)
    ours.accelerate(model)
    replica = DistributedDataParallel(model)
    mine = torch.optim.SGD(replica.parameters(), lr=0.1, momentum=0.9)
    theirs = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for x in batches(4):
        step(replica, mine, x.chunk(world)[rank])
        step(plain, theirs, x)
    assert_equal(model, plain)


@pytest.fixture
def alone() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings(
    "ignore"
)  # PyTorch warns of strides of its buckets, and of its own calls
def test_distributed_in_one_process(alone: None) -> None:
    _member(0, 1, _port())


def test_distributed_in_two_processes() -> None:
    members = mp.spawn(_member, (2, _port()), nprocs=2, join=False)
    until = time.monotonic() + 300
    try:
        while not members.join(timeout=10):
            assert time.monotonic() < until, "a member never ended"
    finally:
        for each in members.processes:
            each.kill()
