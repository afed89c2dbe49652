"""`convgrad.batch_norm_act` and its gradients on tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import norm_doors
from convgrad._base.dtypes import BFLOAT16, DOUBLE
from convgrad.errors import ArgumentTypeError
from norm_doors import BACKWARD, FORWARD, Case


def make(array: Any) -> Any:
    if array.dtype == BFLOAT16.numpy:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def back(tensor: Any) -> Any:
    if tensor.dtype is torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy().view(BFLOAT16.numpy)
    return tensor.detach().numpy()


@norm_doors.every_case
def test_values(case: Case) -> None:
    norm_doors.check_case(case, make, back, torch.Tensor)


def test_mixed_with_arrays_of_numpy() -> None:
    norm_doors.check_mixed(make, back, torch.Tensor)


def test_mistakes() -> None:
    norm_doors.check_mistakes(make)


def leaves(case: Case) -> dict[str, Any]:
    return {name: make(array).requires_grad_() for name, array in case.arrays().items()}


@norm_doors.every_case
def test_autograd(case: Case) -> None:
    """Gradients that autograd finds are those of `batch_norm_act_grad`."""
    given = leaves(case)
    statistics = {
        name: each.detach() for name, each in given.items() if name in ("mean", "variance")
    }
    result = FORWARD(**{**given, **statistics}, **case.settings)
    grad = case.out_backprop()
    result.y.backward(make(grad))
    want = BACKWARD(
        **norm_doors.gradient_arguments(case, FORWARD(**case.arrays(), **case.settings)),
        **case.settings,
    )
    absent = [name for name in want._fields if name not in given]
    got = want._replace(**{name: each.grad for name, each in given.items() if name in want._fields})
    nothing = dict.fromkeys(absent)
    norm_doors.compare(
        *(case, want._replace(**nothing), got._replace(**nothing)), back, torch.Tensor
    )


WIDE = [
    Case((2, 2, 3, 3), DOUBLE, training, residual, "silu", layout)
    for training in (True, False)
    for residual in ("", "before", "after")
    for layout in ("NHWC", "NCHW")
]


@pytest.mark.parametrize("case", WIDE, ids=str)
def test_first_and_second_derivatives(case: Case) -> None:
    """Also those of given statistics, and of the gradient function itself."""
    given = leaves(case)
    names = tuple(given)

    def forward(*tensors: Any) -> Any:
        return FORWARD(**dict(zip(names, tensors, strict=True)), **case.settings).y

    assert torch.autograd.gradcheck(forward, tuple(given.values()), atol=1e-6)
    assert torch.autograd.gradgradcheck(forward, tuple(given.values()), atol=1e-5)
    grad = make(case.out_backprop()).requires_grad_()

    def backward(grad: Any, *tensors: Any) -> Any:
        every = dict(zip(names, tensors, strict=True))
        if case.is_training:
            found = FORWARD(**every, **case.settings)
            every |= {"mean": found.mean, "variance": found.variance}
        got = BACKWARD(grad, **every, **case.settings)
        return tuple(each for each in got if each is not None)

    assert torch.autograd.gradcheck(backward, (grad, *given.values()), atol=1e-6)


def test_the_batchs_statistics_have_no_gradient() -> None:
    x = torch.ones(2, 2, 2, 1, requires_grad=True)
    result = FORWARD(x)
    assert result.y.requires_grad and not result.mean.requires_grad
    assert not result.variance.requires_grad


def test_without_a_tape_the_bits_are_the_same() -> None:
    case = Case(residual="before")
    with torch.no_grad():
        one = FORWARD(**leaves(case), **case.settings)
    other = FORWARD(**leaves(case), **case.settings)
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b.detach()) and not a.requires_grad


def test_transforms_and_shapes_without_memory() -> None:
    case = Case(is_training=True)
    given = made = {name: make(each) for name, each in case.arrays().items()}
    want = FORWARD(**given, **case.settings).y

    def forward(x: Any) -> Any:
        return FORWARD(x, made["scale"], made["offset"], **case.settings).y

    batch = torch.stack([given["input"]] * 3)
    torch.testing.assert_close(torch.vmap(forward)(batch), want.expand(3, *want.shape))
    pulled = torch.func.grad(lambda x: forward(x).square().sum())(given["input"])
    x = given["input"].clone().requires_grad_()
    forward(x).square().sum().backward()
    torch.testing.assert_close(pulled, x.grad, atol=1e-5, rtol=1e-5)
    assert FORWARD(given["input"].to("meta")).y.shape == want.shape
    with torch.autocast("cpu", torch.bfloat16):
        assert forward(given["input"]).dtype is torch.float32


def test_in_a_compiled_function() -> None:
    case = Case(residual="before")
    given = {name: make(each) for name, each in case.arrays().items()}
    want = FORWARD(**given, **case.settings)
    compiled = torch.compile(
        lambda every: tuple(FORWARD(**every, **case.settings)), backend="aot_eager"
    )
    for a, b in zip(compiled(given), want, strict=True):
        torch.testing.assert_close(a, b)


def test_a_tensor_elsewhere_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="batch_norm_act: `input` must be a dense"):
        FORWARD(torch.ones(2, 2, 2, 1).to_sparse())
