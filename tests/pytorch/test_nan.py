"""Where a NaN goes in a model: to the same numbers as natively, in results, gradients and running statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from convgrad import torch as ours

NAN = float("nan")


class _Derived(torch.autograd.Function):
    """`relu6` or `hardswish` with one derivative at a NaN.

    PyTorch's own depends on where a number lies: its vectors and what is left over behind them differ there.
    """

    @staticmethod
    def forward(ctx: Any, u: Any, six: bool) -> Any:
        ctx.save_for_backward(u)
        ctx.six = six
        return F.relu6(u) if six else F.hardswish(u)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (u,), (grad,) = ctx.saved_tensors, grads
        if ctx.six:
            return grad.masked_fill((u <= 0) | (u >= 6), 0), None
        rising = torch.where(u >= 3, grad, grad * (u / 3 + 0.5))
        return rising.masked_fill(u <= -3, 0), None


class Derived(nn.Module):
    def __init__(self, six: bool) -> None:
        super().__init__()
        self.six = six

    def forward(self, u: Any) -> Any:
        return _Derived.apply(u, self.six)


ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "none": (nn.Identity, nn.Identity),
    "relu": (nn.ReLU, nn.ReLU),
    "relu6": (nn.ReLU6, lambda: Derived(six=True)),
    "leaky_relu": (nn.LeakyReLU, nn.LeakyReLU),
    "silu": (nn.SiLU, nn.SiLU),
    "hardswish": (nn.Hardswish, lambda: Derived(six=False)),
    "gelu": (nn.GELU, nn.GELU),
}
"""Activations as models have them, and as fused ones are compared with."""


class Model(nn.Module):
    """Three blocks, of which the second has a residual."""

    def __init__(self, activation: Any) -> None:
        super().__init__()
        self.conv1, self.norm1, self.act1 = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), activation()
        self.conv2, self.norm2, self.act2 = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), activation()
        self.conv3 = nn.Conv2d(4, 4, 3, groups=4, bias=False)
        self.norm3, self.act3 = nn.BatchNorm2d(4), activation()

    def forward(self, image: Any) -> Any:
        image = self.act1(self.norm1(self.conv1(image)))
        image = self.act2(self.norm2(self.conv2(image)) + image)
        return self.act3(self.norm3(self.conv3(image)))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Waking threads takes longer than these layers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


PLANTED = ("image", "filter", "weight", "bias", "gradient")


def spoiled(where: str, model: Any, image: Any, arriving: Any) -> None:
    with torch.no_grad():
        if where == "image":
            image[0, 1, 2, 3] = NAN
        elif where == "filter":
            model.conv2.weight[1, 2, 0, 0] = NAN
        elif where == "gradient":
            arriving[0] = NAN
        else:
            getattr(model.norm1, where)[1] = NAN


def everything(model: Any, image: Any, arriving: Any) -> dict[str, Any]:
    image = image.clone().requires_grad_()
    result = model(image)
    result.backward(arriving)
    found = {"result": result.detach(), "image": image.grad}
    found |= {name: each.grad for name, each in model.named_parameters()}
    return found | dict(model.named_buffers())


@pytest.mark.parametrize("fuse", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_nan_goes_where_it_goes_natively(activation: str, fuse: bool) -> None:
    for where in PLANTED:
        for training in (True, False):
            torch.manual_seed(1)
            native, compared = ACTIVATIONS[activation]
            mine = Model(native).train(training)
            theirs = Model(compared if fuse else native).train(training)
            image, arriving = torch.randn(2, 3, 8, 9), torch.randn(2, 4, 4, 5)
            spoiled(where, mine, image, arriving)
            theirs.load_state_dict(mine.state_dict())
            assert bool(ours.accelerate(mine, fuse=fuse).fused) is fuse
            found, wanted = (everything(each, image, arriving) for each in (mine, theirs))
            for name, value in wanted.items():
                alike = torch.equal(found[name].isnan(), value.isnan())
                assert alike, (where, "training" if training else "evaluation", name)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_gradient_that_is_not_a_number_where_nothing_passes(activation: str) -> None:
    """Where the derivative is 0, PyTorch chooses 0, which is not what NaN times 0 is."""
    u = torch.linspace(-8, 8, 64).reshape(1, 1, 8, 8)
    statistics = torch.zeros(1), torch.ones(1)
    arriving = torch.full_like(u, NAN)
    found, wanted = (u.clone().requires_grad_() for _ in range(2))
    made = ours.batch_norm_act(found, None, None, *statistics, activation=activation)
    assert "Normalize" in str(made.grad_fn)
    made.backward(arriving)
    ACTIVATIONS[activation][0]()(wanted).backward(arriving)
    assert found.grad is not None and wanted.grad is not None
    assert torch.equal(found.grad.isnan(), wanted.grad.isnan())
