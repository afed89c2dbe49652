"""Results of fused blocks that are computed anew in the backward pass instead of kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from convgrad import errors
from convgrad import torch as ours


def test_results_computed_anew() -> None:
    """The same bits with less memory: a result that goes straight into the next block is not kept."""
    torch.manual_seed(3)
    layers = [
        *(nn.Conv2d(4, 16, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU()),
        *(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.BatchNorm2d(16), nn.ReLU6()),
        *(nn.Conv2d(16, 8, 1), nn.BatchNorm2d(8)),
    ]
    model = nn.Sequential(*layers).to(memory_format=torch.channels_last)
    image = torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last)
    found = []
    for recompute in (False, True):
        each = copy.deepcopy(model)
        ours.accelerate(each, fuse=True, recompute=recompute)
        kept: dict[int, int] = {}

        def pack(tensor: Any, kept: dict[int, int] = kept) -> Any:
            kept[tensor.data_ptr()] = tensor.numel()
            return tensor

        given = image.clone(memory_format=torch.channels_last).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = each(given)
        result.square().sum().backward()
        grads = [given.grad, *(parameter.grad for parameter in each.parameters())]
        found.append((sum(kept.values()), [result, *grads]))
    (plain, first), (less, second) = found
    assert plain - less == 2 * 2 * 16 * 9 * 9
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def test_computed_anew_only_what_is_unchanged() -> None:
    """A result that was written to before the next block is kept as it is then."""

    class Changed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8), nn.SiLU())
            self.second = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))

        def forward(self, image: Any) -> Any:
            middle = self.first(image)
            middle.mul_(2.0)
            return self.second(middle)

    torch.manual_seed(4)
    model, image = Changed().double(), torch.randn(2, 4, 5, 5, dtype=torch.float64)
    right = copy.deepcopy(model)
    ours.accelerate(model, fuse=True, recompute=True)
    for each in (model, right):
        each(image).square().sum().backward()
    for a, b in zip(model.parameters(), right.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-8, atol=1e-9)


def test_recompute_refuses_by_name() -> None:
    with pytest.raises(errors.ArgumentError, match="accelerate: `recompute`"):
        ours.accelerate(nn.Sequential(nn.Conv2d(1, 1, 1)), recompute=True)
    model = nn.Sequential(
        *(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.SiLU(), nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)),
    ).double()
    ours.accelerate(model, fuse=True, recompute=True)
    image = torch.randn(2, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="recompute=True"):
        torch.autograd.grad(model(image).square().sum(), image, create_graph=True)
