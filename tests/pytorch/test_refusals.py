"""Forwards that a graph cannot repeat are left alone, and what fused forwards return can be changed as ever."""

from __future__ import annotations

import copy
import types
from collections import OrderedDict
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from convgrad import torch as ours

SEEN: list[Any] = []


class Base(nn.Module):
    """A block, and something peculiar in its subclasses."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.log: dict[str, list[Any]] = {"f": []}
        self.flags = [True]

    def block(self, image: Any) -> Any:
        return F.relu(self.norm(self.conv(image)))


class IsTensor(Base):
    def forward(self, image: Any) -> Any:
        return self.block(image * 10 if torch.is_tensor(image) else image)


class OfType(Base):
    def forward(self, image: Any) -> Any:
        return self.block(image * 10 if type(image) is torch.Tensor else image)


class Matches(Base):
    def forward(self, image: Any) -> Any:
        match image:
            case torch.Tensor():
                image = image * 10
        return self.block(image)


class Checkpointed(Base):
    def forward(self, image: Any) -> Any:
        return checkpoint(self.block, image, use_reentrant=False)


class AppendsToGlobal(Base):
    def forward(self, image: Any) -> Any:
        made = self.block(image)
        SEEN.append(made)
        return made


class AppendsInside(Base):
    def forward(self, image: Any) -> Any:
        made = self.block(image)
        self.log["f"].append(made.shape)
        return made


class WritesItem(Base):
    def forward(self, image: Any) -> Any:
        made = self.block(image)
        self.log["g"] = made
        return made


class Ordered(Base):
    def forward(self, image: Any) -> Any:
        return OrderedDict(out=self.block(image))


REFUSED = (
    *(IsTensor, OfType, Matches, Checkpointed, AppendsToGlobal, AppendsInside, WritesItem, Ordered),
)


def value(found: Any) -> Any:
    return found["out"] if isinstance(found, dict) else found


@pytest.mark.parametrize("kind", REFUSED)
def test_left_alone(kind: type[Base]) -> None:
    torch.manual_seed(0)
    model, image = kind().double(), torch.randn(2, 4, 3, 3, dtype=torch.float64)
    right = copy.deepcopy(model)
    SEEN.clear()
    report = ours.accelerate(model, fuse=True)
    assert not report.fused and "norm" in report.unfused, report.unfused
    assert SEEN == [] and model.log == {"f": []}
    found, expected = model(image), right(image)
    assert type(found) is type(expected)
    torch.testing.assert_close(value(found), value(expected))
    assert len(model.log["f"]) == len(right.log["f"])


class Lists(Base):
    def forward(self, image: Any) -> Any:
        made = []
        made.append(self.block(image))
        return {"all": made, "pair": (image, made[0])}


def test_what_is_returned_can_be_changed() -> None:
    model = Lists()
    report = ours.accelerate(model, fuse=True)
    assert report.fused
    found = model(torch.randn(2, 4, 3, 3))
    found["all"].append(1)
    found["more"] = 2
    assert type(found) is dict and type(found["all"]) is list and type(found["pair"]) is tuple


class Flagged(Base):
    def forward(self, image: Any) -> Any:
        made = self.block(image)
        return made * 2 if self.flags[0] else made


def test_a_changed_list_is_noticed() -> None:
    model, image = Flagged().eval(), torch.randn(2, 4, 3, 3)
    assert ours.accelerate(model, fuse=True).fused
    twice = model(image)
    model.flags[0] = False
    torch.testing.assert_close(model(image) * 2, twice)


class Optional(Base):
    def __init__(self) -> None:
        super().__init__()
        self.drop: nn.Module | None = nn.Dropout(0.0)

    def forward(self, image: Any) -> Any:
        made = self.block(image)
        return made if self.drop is None else self.drop(made)


def test_a_child_that_became_none() -> None:
    model, image = Optional(), torch.randn(2, 4, 3, 3)
    assert ours.accelerate(model, fuse=True).fused
    model.drop = None
    assert model(image).shape == image.shape


def test_a_replaced_forward_of_a_sequence() -> None:
    inner = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
    model, image = nn.Sequential(nn.Identity(), inner).eval(), torch.randn(2, 4, 3, 3)
    ours.accelerate(model, fuse=True)
    once = model(image)
    inner.forward = types.MethodType(  # type: ignore[method-assign]
        lambda self, x: 5 * nn.Sequential.forward(self, x), inner
    )
    torch.testing.assert_close(model(image), 5 * once)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.SiLU])
def test_saved_tensors_in_another_order(activation: Any) -> None:
    """Hooks that store what is saved may give it back with other strides."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), activation()).double()
    model = model.to(memory_format=torch.channels_last)
    image = torch.randn(2, 3, 6, 6, dtype=torch.float64).to(memory_format=torch.channels_last)
    right = copy.deepcopy(model)
    assert ours.accelerate(model, fuse=True).fused

    def pack(tensor: Any) -> Any:
        return tensor.clone(memory_format=torch.contiguous_format)

    for each in (model, right):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            made = each(image)
        made.square().sum().backward()
    for a, b in zip(model.parameters(), right.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-9, atol=1e-9)
