"""Derivatives of the list: against finite differences, to the second order, both ways, and under `torch.func`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from pytorch.configurations import CONFIGURATIONS, EDGES, Configuration, some
from pytorch.running import function, native, operands

SMALL = [
    each for each in CONFIGURATIONS if each.channels * each.made <= 36 and not each.left_to_pytorch
]
"""What finite differences go through in a moment: they take two calls per number."""
CHECKED = [*SMALL[::5], *(each for each in SMALL if each.uneven)]


def close(mine: Any, theirs: Any) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("configuration", CHECKED, ids=str)
def test_first_derivatives(configuration: Configuration) -> None:
    tensors = operands(configuration, torch.float64)
    assert gradcheck(
        function(configuration), tensors, nondet_tol=0, check_forward_ad=True, fast_mode=True
    )


@pytest.mark.parametrize("configuration", CHECKED, ids=str)
def test_second_derivatives(configuration: Configuration) -> None:
    tensors = operands(configuration, torch.float64)
    assert gradgradcheck(function(configuration), tensors, nondet_tol=0, fast_mode=True)


@pytest.mark.parametrize("configuration", CHECKED[::8], ids=str)
def test_whole_derivatives(configuration: Configuration) -> None:
    """Number by number, not along one direction; backwards also for many gradients at once."""
    tensors = [
        each[:1] if each.dim() == 4 and at == 0 else each
        for at, each in enumerate(operands(configuration, torch.float64))
    ]
    tensors = [each.detach().requires_grad_() for each in tensors]
    assert gradcheck(
        *(function(configuration), tensors),
        nondet_tol=0,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )


@pytest.mark.parametrize("configuration", some(40, seed=3), ids=str)
def test_directions(configuration: Configuration) -> None:
    tensors = tuple(each.detach() for each in operands(configuration, torch.float64))
    moves = tuple(each.detach() for each in operands(configuration, torch.float64, seed=1))
    mine, mine_moved = jvp(function(configuration), tensors, moves)
    theirs, theirs_moved = jvp(native(configuration), tensors, moves)
    close(mine, theirs)
    close(mine_moved, theirs_moved)
    close(
        vjp(function(configuration), *tensors)[1](mine),
        vjp(native(configuration), *tensors)[1](mine),
    )


@pytest.mark.parametrize("configuration", some(40, seed=4), ids=str)
def test_gradients_per_sample(configuration: Configuration) -> None:
    """What differential privacy and influence functions ask for."""
    image, *rest = (each.detach() for each in operands(configuration, torch.float64))
    samples = torch.stack([image, image * 2 + 1, image - 3])

    def of(call: Any) -> Any:
        def loss(weights: Any, sample: Tensor) -> Tensor:
            return call(sample, *weights).sin().sum()

        return vmap(grad(loss), in_dims=(None, 0))(tuple(rest), samples)

    close(of(function(configuration)), of(native(configuration)))


@pytest.mark.parametrize("configuration", some(24, seed=5), ids=str)
@pytest.mark.parametrize("which", ["images", "filters", "both"])
def test_vmap(configuration: Configuration, which: str) -> None:
    first, second = (
        [each.detach() for each in operands(configuration, torch.float64, seed)] for seed in (0, 1)
    )
    mapped = {"images": (0,), "filters": (1,), "both": (0, 1)}[which]
    stacked = [
        torch.stack([one, two], 1) if at in mapped else one
        for at, (one, two) in enumerate(zip(first, second, strict=True))
    ]
    dims = tuple(1 if at in mapped else None for at in range(len(stacked)))
    mine = vmap(function(configuration), dims)(*stacked)
    apart = [
        native(configuration)(
            *[each.select(1, at) if dim else each for each, dim in zip(stacked, dims, strict=True)]
        )
        for at in (0, 1)
    ]
    close(mine, torch.stack(apart))


TINY = [
    Configuration(batch=1, channels=2, size=(3, 3), made=2, kernel=(2, 2)),
    Configuration(batch=1, channels=2, size=(2, 3), made=2, kernel=(2, 2), padding="same"),
    Configuration(batch=1, channels=2, size=(2, 2), made=2, kernel=(2, 2), transposed=True),
    Configuration(batch=1, channels=2, size=(3, 3), made=4, groups=2, image="channels_last"),
]


@pytest.mark.parametrize("configuration", TINY, ids=str)
def test_jacobians_and_hessians(configuration: Configuration) -> None:
    tensors = tuple(each.detach() for each in operands(configuration, torch.float64))
    arguments = tuple(range(len(tensors)))
    for transform in (jacrev, jacfwd):
        mine, theirs = (
            transform(call(configuration), arguments)(*tensors) for call in (function, native)
        )
        close(mine, theirs)

    def squared(call: Any) -> Any:
        return lambda *operands: call(configuration)(*operands).pow(3).sum()

    close(
        hessian(squared(function), arguments)(*tensors),
        hessian(squared(native), arguments)(*tensors),
    )


def test_only_what_is_asked_for_is_computed() -> None:
    for configuration in EDGES[::9]:
        tensors = operands(configuration, torch.float64)
        for wanted in range(len(tensors)):
            for at, each in enumerate(tensors):
                each.requires_grad_(at == wanted)
            mine = torch.autograd.grad(function(configuration)(*tensors).sum(), tensors[wanted])
            theirs = torch.autograd.grad(native(configuration)(*tensors).sum(), tensors[wanted])
            close(mine, theirs)
