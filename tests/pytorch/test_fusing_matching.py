"""`accelerate(fuse=True)`: which layers become a block, which are left alone, and the reasons it gives."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convgrad import torch as ours
from pytorch.fusing import assert_same, images, pair, step


class Chance(nn.Module):
    def __init__(self, do: str) -> None:
        super().__init__()
        self.conv, self.bn, self.do = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), do
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        return self.bn(self.conv(x))


def test_what_is_left_alone() -> None:
    import random

    class Random(Chance):
        def forward(self, x: Any) -> Any:
            return x if random.random() < 0.5 else self.bn(self.conv(x))

    class Stores(Chance):
        def forward(self, x: Any) -> Any:
            self.last = self.bn(self.conv(x))
            return self.last

    class Collects(Chance):
        def forward(self, x: Any) -> Any:
            self.seen.append(1)
            return self.bn(self.conv(x))

    class Block(Chance):
        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                return self.bn(self.conv(x))

    class Decorated(Chance):
        @torch.no_grad()
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x))

    class Optional(Chance):
        def forward(self, x: Any, mask: Any = None) -> Any:
            return self.bn(self.conv(x)) if mask is None else x

    class Asks(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if isinstance(x, Tensor) else x

    class Branches(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if x.sum() > 0 else x

    class Twice(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(self.bn(self.conv(x))))

    class Draws(Chance):
        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x)) if torch.rand(()) < 2 else x

    says = {
        Random: "calls random",
        Stores: "sets attributes",
        Collects: "calls append",
        Block: "has a block of `with`",
        Decorated: "is decorated",
        Optional: "an optional argument, mask",
        Asks: "calls isinstance",
        Branches: "cannot trace",
        Twice: "used in several places",
        Draws: "calls rand",
    }
    for kind, words in says.items():
        plain, fused, report = pair(nn.Sequential(kind("")).double())
        assert report.fused == {} and words in report.unfused["0.bn"], (kind, report.unfused)
        assert report.unfused["0.bn"] in str(report)
        random.seed(0)
        mine = step(fused, images())
        random.seed(0)
        assert_same(mine, step(plain, images()))
        assert fused[0].seen == plain[0].seen


def test_layers_that_are_left_alone() -> None:
    shared = nn.BatchNorm2d(3)

    class Own(nn.BatchNorm2d):
        pass

    for layers, says in (
        ((nn.Conv2d(3, 3, 1), shared, nn.Conv2d(3, 3, 1), shared), "it is used in several places"),
        ((nn.Conv2d(3, 3, 1), Own(3)), "Own is left to PyTorch"),
        ((nn.Conv2d(3, 3, 1), nn.SyncBatchNorm(3)), "SyncBatchNorm is left to PyTorch"),
        ((nn.Conv2d(3, 3, 1), nn.LazyBatchNorm2d()), "LazyBatchNorm2d is left to PyTorch"),
    ):
        report = ours.accelerate(nn.Sequential(*layers), fuse=True)
        assert report.fused == {} and set(report.unfused.values()) == {says}
    assert "there is no batch norm" in str(ours.accelerate(nn.Conv2d(1, 1, 1), fuse=True))
    # A sequence inside a module that cannot be traced is fused by itself.

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU())

        def forward(self, x: Any) -> Any:
            return self.inside(x) if x.shape[0] > 1 else x

    assert ours.accelerate(Outside(), fuse=True).fused == {
        "inside.0": "convolution + batch norm + relu"
    }


def test_writing_in_place_is_seen() -> None:
    """What stands between a block's layers may not change what they read."""

    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

        def forward(self, x: Any) -> Any:
            x = x * 1
            y = self.bn(self.conv(x))
            z = x.relu_()
            return y + z

    class Into(Between):
        def forward(self, x: Any) -> Any:
            x = x * 1
            y = x
            y += self.bn(self.conv(x.clone()))
            return y + x

    for kind in (Between, Into):
        plain, fused, report = pair(kind().double())
        assert report.fused == {"conv": "convolution + batch norm"}
        with torch.no_grad():
            torch.testing.assert_close(fused(images()), plain(images()))
    assert_same(step(fused, images()), step(plain, images()))


def test_residuals_of_another_shape() -> None:
    class Broadcast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

        def forward(self, x: Any) -> Any:
            return F.relu(self.bn(self.conv(x)) + x.mean((2, 3), keepdim=True))

    plain, fused, report = pair(Broadcast().double())
    assert report.fused == {"conv": "convolution + batch norm + residual + relu"}
    assert_same(step(fused, images()), step(plain, images()))
