"""`accelerate(fuse=True)`: a model stays what it was, with its hooks, children, attributes, copies and state."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from convgrad import torch as ours
from convgrad._bridges.torch.forwards import FusedForward
from pytorch.fusing import BLOCKS, Residual, assert_same, images, network, nodes, pair, step


@pytest.mark.parametrize("which", ["0.0", "0.1", "0.2", "0", "1", "3.pool", "3.drop"])
@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_hooks(which: str, kind: str, before: bool) -> None:
    """They are called as often and change as much as natively."""
    seen: list[str] = []
    counts = []
    found = []
    for name in ("plain", "fused"):
        model = network().double()
        for each in model.modules():
            if hasattr(each, "inplace"):
                each.inplace = False  # PyTorch refuses hooks on results that are written to

        def hook(layer: Any, *given: Any) -> Any:
            seen.append(type(layer).__name__)
            return given[-1] * 2 if kind == "forward" else None

        if name == "fused" and not before:
            ours.accelerate(model, fuse=True)
        handle = getattr(model.get_submodule(which), f"register_{kind}_hook")(hook)
        if name == "fused" and before:
            ours.accelerate(model, fuse=True)
        found.append(step(model, images()))
        counts.append(len(seen))
        handle.remove()
        found.append(step(model, images()))
        assert len(seen) == counts[-1]
        seen.clear()
    assert counts[0] == counts[1] > 0
    assert_same(found[2], found[0])
    assert_same(found[3], found[1])


@pytest.mark.parametrize("kind", ["forward", "forward_pre"])
def test_hooks_on_all_modules(kind: str) -> None:
    plain, fused, _ = pair(network().double())
    counts = []
    for model in (plain, fused):
        seen: list[Any] = []
        register = getattr(nn.modules.module, f"register_module_{kind}_hook")
        handle = register(lambda layer, *given, seen=seen: seen.append(layer))
        model(images())
        handle.remove()
        counts.append(len(seen))
    assert counts[0] == counts[1] > 20


def test_a_child_that_was_replaced() -> None:
    plain, fused, _ = pair(network().double())
    for model in (plain, fused):
        torch.manual_seed(3)
        model[1].bn1 = nn.GroupNorm(2, 6).double()
        model[1].relu = nn.Tanh()
        model[3].drop = nn.Dropout(0.5).eval()
        model[2].downsample[1] = nn.Identity()
        model[0].append(nn.Hardtanh())
        model[7] = nn.LeakyReLU(0.3)
    assert_same(step(fused, images()), step(plain, images()))


def test_settings_that_change_later() -> None:
    plain, fused, _ = pair(network().double())
    for model in (plain, fused):
        model[7].approximate = "none"
        model[0][1].eps, model[0][1].momentum = 0.1, 0.5
        model[0][0].stride, model[0][0].padding = (1, 1), "same"
        model[1].conv1.padding_mode = "reflect"
        model[2].downsample[0].padding = "valid"
    assert_same(step(fused, images()), step(plain, images()))


class Chosen(nn.Module):
    """Does one thing or another, as an attribute says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.adds, self.factor = True, 2.0

    def forward(self, x: Any) -> Any:
        y = self.bn(self.conv(x))
        if self.adds:
            y = y + x
        return y * self.factor if self.training else y


def test_attributes_that_change() -> None:
    plain, fused, report = pair(Chosen().double())
    assert report.fused == {"conv": "convolution + batch norm + residual"}
    x = images()
    assert_same(step(fused, x), step(plain, x))
    for change in ({"factor": 3.0}, {"adds": False}, {"training": False}, {"adds": True}):
        for model in (plain, fused):
            model.__dict__.update(change)
        assert_same(step(fused, x), step(plain, x))


def test_other_arguments() -> None:
    plain, fused, _ = pair(Chosen().double())
    x = images()
    torch.testing.assert_close(fused(x=x), plain(x=x))
    with pytest.raises(TypeError):
        fused(x, x)
    with pytest.raises(ValueError, match=r"expected 4D input \(got 3D input\)"):
        fused(x[0])
    with pytest.raises(RuntimeError, match=r"^Given groups=1, .*expected input"):
        fused(x[:, :2])
    one = torch.randn(1, 3, 1, 1, dtype=torch.float64)
    count = int(fused.bn.num_batches_tracked)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        fused(one)
    assert int(fused.bn.num_batches_tracked) == count + 1  # as PyTorch's


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_copies(way: str) -> None:
    plain, fused, _ = pair(network().double())
    step(fused, images())
    step(plain, images())
    if way == "deepcopy":
        copied = copy.deepcopy(fused)
    elif way == "pickle":
        copied = pickle.loads(pickle.dumps(fused))
    else:
        file = io.BytesIO()
        torch.save(fused, file)
        file.seek(0)
        copied = torch.load(file, weights_only=False)
    own = copied[1].__dict__["forward"]
    assert type(own) is FusedForward and own.module is copied[1]
    with torch.no_grad():  # the two share nothing
        for each in fused.parameters():
            each.zero_()
    assert_same(step(copied, images()), step(plain, images()))


def test_everything_stays_and_goes_back() -> None:
    plain, fused, report = pair(network().double(), restride=False)
    assert list(fused.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in fused.named_modules()] == [
        name for name, _ in plain.named_modules()
    ]
    assert type(fused[1]) is Residual and isinstance(fused[0], nn.Sequential)
    assert "11 of 11 blocks are computed as one." in str(report)
    fused.load_state_dict(plain.state_dict())
    x = images()
    alone = fused[1].bn1(fused[1].conv1(fused[0](x)))  # layers by themselves do what they did
    torch.testing.assert_close(alone, plain[1].bn1(plain[1].conv1(plain[0](x))))
    fused.load_state_dict(plain.state_dict())
    ours.restore(fused)
    assert not any("forward" in each.__dict__ for each in fused.modules())
    mine, theirs = step(fused, x), step(plain, x)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_one_call_after_another() -> None:
    fused = network().double()
    assert ours.accelerate(fused).blocks is None
    report = ours.accelerate(fused, fuse=True)
    assert report.fused == BLOCKS and {each.reason for each in report.layers} == {"already"}
    again = ours.accelerate(fused, fuse=True)
    assert again.fused == BLOCKS
    ours.accelerate(fused)
    assert "_BlockBackward" in nodes(copy.deepcopy(fused)(images()))
    assert_same(step(fused, images()), step(network().double(), images()))
