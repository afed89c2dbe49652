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


class Own(nn.BatchNorm2d):
    """A class of its own, as other libraries have them."""


class Cautious(nn.Module):
    def __init__(self, norm: type[nn.Module]) -> None:
        super().__init__()
        self.conv, self.bn, self.act = nn.Conv2d(3, 3, 1), norm(3), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x))) if isinstance(x, Tensor) else x


def test_equal_reasons_are_one_line() -> None:
    """And where no batch norm was fused the report says what can be done."""
    model = nn.Sequential(
        *(nn.Sequential(nn.Conv2d(3, 3, 1), Own(3)) for _ in range(30)),
        *(Cautious(nn.BatchNorm2d) for _ in range(20)),
    )
    report = ours.accelerate(model, fuse=True)
    assert len(report.unfused) == 50
    lines = str(report).splitlines()
    left = [line for line in lines if "left alone" in line]
    assert [line.split("  ")[0] for line in left] == ["0.1 and 29 more", "30.bn and 19 more"]
    assert "Own is left to PyTorch" in left[0] and "calls isinstance" in left[1]
    at = lines.index("No batch norm of this model is fused.")
    assert "Where Own stands for" in lines[at + 1] and "torch.nn.Sequential" in lines[at + 2]
    # Following it helps.
    helped = nn.Sequential(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU()), model)
    assert not any("No batch norm" in each for each in ours.accelerate(helped, fuse=True).advice)


def test_there_is_advice_for_every_reason() -> None:
    def shared() -> nn.Module:
        norm = nn.BatchNorm2d(3)
        return nn.Sequential(nn.Conv2d(3, 3, 1), norm, nn.Conv2d(3, 3, 1), norm)

    def hooked() -> nn.Module:
        model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
        model[1].register_forward_hook(lambda *_: None)
        return model

    def replaced(inside: bool) -> nn.Module:
        model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
        part: Any = model[1] if inside else model
        part.forward = part.forward
        return model

    class Unused(Cautious):
        def forward(self, x: Any) -> Any:
            return self.conv(x)

    for model, words in (
        (shared(), "a layer of its own"),
        (hooked(), "Remove the hooks"),
        (replaced(inside=True), "what replaced the forward"),
        (replaced(inside=False), "what replaced the forward"),
        (Unused(nn.BatchNorm2d), "into a torch.nn.Sequential"),
        (nn.Sequential(nn.Conv2d(3, 3, 1), nn.SyncBatchNorm(3)), "Only torch.nn.BatchNorm2d"),
        (Cautious(nn.SyncBatchNorm), "Where SyncBatchNorm stands"),
        (Cautious(nn.SyncBatchNorm), "into a torch.nn.Sequential"),
    ):
        report = ours.accelerate(model, fuse=True)
        assert len(report.unfused) == 1 and words in str(report), report.unfused
