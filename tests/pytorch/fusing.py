"""Small models for the tests of fused blocks, and what a step of training leaves."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convgrad import torch as ours


class Residual(nn.Module):
    """A block of ResNet: the input is added before the last activation, in place."""

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )
        self.last = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.last(out)


class Excited(nn.Module):
    """A block of EfficientNet, with torchvision's way of squeezing."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.SiLU(inplace=True),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.narrow, self.widen = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)
        self.back = nn.Sequential(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels))
        self.drop = nn.Identity()

    def forward(self, x: Any) -> Any:
        y = self.front(x)
        gate = torch.sigmoid(self.widen(F.silu(self.narrow(self.pool(y)))))
        return x + self.drop(self.back(gate * y))


class PreActivation(nn.Module):
    """Batch norm and activation in front of the convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bn, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return torch.cat([x, self.conv(F.leaky_relu(self.bn(x), 0.1))], 1)


BLOCKS = {
    "0.0": "convolution + batch norm + relu6",
    "1.conv1": "convolution + batch norm + relu",
    "1.conv2": "convolution + batch norm + residual + relu",
    "2.conv1": "convolution + batch norm + relu",
    "2.conv2": "convolution + batch norm + residual + relu",
    "2.downsample.0": "convolution + batch norm",
    "3.front.0": "convolution + batch norm + silu",
    "3.back.0": "convolution + batch norm + residual",
    "3.pool": "pooling, and scaling by what follows",
    "4.bn": "batch norm + leaky_relu",
    "5": "convolution + batch norm + gelu_tanh",
}
"""What `accelerate(fuse=True)` says of `network`: its blocks, by their first layers."""


def network() -> nn.Sequential:
    """A model with a block of every kind."""
    torch.manual_seed(0)
    made = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU6(inplace=True)),
        Residual(6, 6),
        Residual(6, 10, 2),
        Excited(10),
        PreActivation(10),
        nn.Conv2d(20, 8, 1),
        nn.BatchNorm2d(8),
        nn.GELU(approximate="tanh"),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    with torch.no_grad():
        for each in made.modules():
            if isinstance(each, nn.BatchNorm2d):
                each.weight.normal_(1, 0.2)
                each.bias.normal_(0, 0.2)
    return made


def images(dtype: torch.dtype = torch.float64, seed: int = 4) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(4, 3, 16, 16, dtype=torch.float64, generator=source).to(dtype)


def pair(model: nn.Module, **how: Any) -> tuple[nn.Module, nn.Module, ours.Report]:
    """Return a model and a fused copy of it."""
    fused = copy.deepcopy(model)
    return model, fused, ours.accelerate(fused, fuse=True, **how)


def step(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Return what a forward and a backward pass leave: result, gradients, state."""
    model.zero_grad()
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = model(x)
    if y.requires_grad:
        y.square().mean().backward()
    made = {"result": y.detach(), "image": x.grad, **model.state_dict()}
    made |= {f"d {name}": each.grad for name, each in model.named_parameters()}
    return {name: each.clone() for name, each in made.items() if each is not None}


def assert_same(
    mine: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float = 1e-9
) -> None:
    """Compare all that two steps left, names and their order too."""
    assert list(mine) == list(theirs)
    for name, each in mine.items():
        how: dict[str, Any] = {"rtol": tolerance, "atol": tolerance}
        torch.testing.assert_close({name: each}, {name: theirs[name]}, **how)


def nodes(result: Tensor) -> set[str]:
    """Return the names of all nodes autograd has recorded for a result."""
    seen: set[Any] = set()
    left = [result.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [each for each, _ in node.next_functions]
    return {type(node).__name__ for node in seen}
