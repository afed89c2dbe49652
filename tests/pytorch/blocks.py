"""One fused block for the tests of its compiled functions, and what looks on at these."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from convgrad import torch as ours
from convgrad._bridges.torch import blocks

CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "1x1": {"kernel_size": 1},
    "3x3": {"kernel_size": 3, "padding": 1, "stride": 2},
    "depthwise": {"kernel_size": 3, "padding": 1, "groups": 6},
    "grouped": {"kernel_size": (1, 3), "groups": 2, "dilation": 2, "padding": (0, 2)},
}
ACTIVATIONS = {
    "none": nn.Identity,
    "relu6": nn.ReLU6,
    "leaky": lambda: nn.LeakyReLU(0.3),
    "silu": nn.SiLU,
}


class Unit(nn.Module):
    """One block, with the image itself as a residual where there is one."""

    def __init__(self, convolution: str, activation: str, place: str, **norm: Any) -> None:
        super().__init__()
        how = CONVOLUTIONS[convolution]
        self.conv = nn.Conv2d(6, 6, bias=place == "before", **how)
        self.bn = nn.BatchNorm2d(6, **norm)
        self.act = ACTIVATIONS[activation]()
        self.place = place

    def forward(self, x: Any) -> Any:
        u = self.bn(self.conv(x))
        if self.place == "before":
            return self.act(u + x)
        return self.act(u) + x if self.place == "after" else self.act(u)


class Spy:
    """Counts the calls of both functions, and those that were served."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.served = 0
        for name in ("_fused", "_fused_backward"):
            monkeypatch.setattr(blocks, name, self._watched(getattr(blocks, name)))

    def _watched(self, function: Any) -> Any:
        def call(*args: Any) -> Any:
            made = function(*args)
            self.calls += 1
            self.served += any(each is not None for each in made)
            return made

        return call


def step(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Return what a forward and a backward pass leave, of a gradient that lies as the result does."""
    model.zero_grad()
    x = x.detach().requires_grad_()
    y = model(x)
    if y.requires_grad:
        y.backward(torch.sin(y.detach() * 7))
    made = {"result": y.detach(), "image": x.grad, **model.state_dict()}
    made |= {f"d {name}": each.grad for name, each in model.named_parameters()}
    return {
        name: each.clone(memory_format=torch.preserve_format)
        for name, each in made.items()
        if each is not None
    }


def step_by_step(monkeypatch: pytest.MonkeyPatch, model: nn.Module, x: Tensor) -> Any:
    """Return what a step leaves without compiled functions."""
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "_fused", lambda *_: (None,) * 3)
        patch.setattr(blocks, "_fused_backward", lambda *_: (None,) * 6)
        return step(model, x)


def assert_equal(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert list(mine) == list(theirs)
    for name, each in mine.items():
        assert torch.equal(each, theirs[name]), name
        assert each.stride() == theirs[name].stride(), name


def unit(dtype: torch.dtype, last: bool, *what: str, **norm: Any) -> nn.Module:
    torch.manual_seed(3)
    made = Unit(*what, **norm).to(dtype)
    if last:
        made = made.to(memory_format=torch.channels_last)
    report = ours.accelerate(made, fuse=True)
    assert len(report.blocks) == 1, report
    return made


def picture(dtype: torch.dtype, last: bool, size: tuple[int, ...] = (3, 6, 8, 10)) -> Tensor:
    made = torch.randn(size, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return made.to(dtype, memory_format=torch.channels_last if last else torch.contiguous_format)
