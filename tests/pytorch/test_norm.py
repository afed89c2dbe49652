"""`convgrad.torch.batch_norm_act`: values, derivatives, statistics, and what is left to PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from convgrad import torch as ours
from convgrad._base.errors import ConvgradError, InternalError
from convgrad._bridges.torch import activations, composed, passes
from convgrad._bridges.torch.norm_node import normalize
from convgrad._bridges.torch.passes import How
from pytorch.running import DTYPES, UNITS, image_as

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda u: u,
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda u: F.leaky_relu(u, 0.1),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "gelu": F.gelu,
    "gelu_tanh": lambda u: F.gelu(u, approximate="tanh"),
}
PLACES = ("", "before", "after")


class Case:
    """Tensors of a call, and the call by us and by PyTorch."""

    def __init__(
        self,
        activation: str = "relu",
        place: str = "",
        order: str = "channels_last",
        dtype: torch.dtype = torch.float64,
        training: bool = True,
        shape: tuple[int, ...] = (3, 5, 4, 6),
    ) -> None:
        source = torch.Generator().manual_seed(7)

        def numbers(*shape: int) -> Tensor:
            return torch.randn(shape, generator=source, dtype=torch.float64).to(dtype)

        self.activation, self.place, self.training = activation, place, training
        x = numbers(*shape)
        parts = [image_as(order, x) if len(shape) == 4 else x, numbers(shape[1]), numbers(shape[1])]
        if place:
            parts.append(numbers(*shape))
        self.tensors = [each.detach().requires_grad_() for each in parts]
        self.running = [numbers(shape[1]), numbers(shape[1]).abs() + 0.5]

    def mine(self, *tensors: Tensor, running: Any = None, **how: Any) -> Tensor:
        x, weight, bias, *residual = tensors
        mean, variance = running or [each.clone() for each in self.running]
        return ours.batch_norm_act(
            *(x, weight, bias, mean, variance),
            training=self.training,
            activation=self.activation,
            negative_slope=0.1,
            residual=residual[0] if residual else None,
            residual_position=self.place or "before",
            **how,
        )

    def theirs(self, *tensors: Tensor, running: Any = None) -> Tensor:
        x, weight, bias, *residual = tensors
        mean, variance = running or [each.to(x.dtype) for each in self.running]
        u = F.batch_norm(x, mean, variance, weight, bias, self.training)
        if self.place == "before":
            u = u + residual[0]
        y = ACTIVATIONS[self.activation](u)
        return y + residual[0] if self.place == "after" else y

    def wide(self) -> list[Tensor]:
        return [each.detach().double().requires_grad_() for each in self.tensors]


def everything(call: Any, tensors: list[Tensor]) -> list[Tensor]:
    y = call(*tensors)
    source = torch.Generator().manual_seed(1)
    whole = torch.randint(-2, 3, y.shape, generator=source, dtype=torch.float64).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, tensors, whole)]


@pytest.mark.parametrize("training", [True, False], ids=["training", "frozen"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_gradients_and_statistics(activation: str, place: str, training: bool) -> None:
    for order in ("contiguous", "channels_last", "sliced"):
        case = Case(activation, place, order, training=training)
        torch.testing.assert_close(
            everything(case.mine, case.tensors), everything(case.theirs, case.tensors)
        )
        changed = [[each.clone() for each in case.running] for _ in range(2)]
        mine = case.mine(*case.tensors, running=changed[0])
        theirs = case.theirs(*case.tensors, running=changed[1])
        torch.testing.assert_close(*changed)
        assert [each._version for each in changed[0]] == [each._version for each in changed[1]]
        assert mine.stride() == theirs.stride()


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("order", ["contiguous", "channels_last"])
def test_dtypes(order: str, dtype: torch.dtype) -> None:
    """Our errors against float64 are at most PyTorch's, or what rounding costs."""
    for activation, place in itertools.product(("relu6", "silu"), PLACES):
        case = Case(activation, place, order, dtype, shape=(4, 7, 9, 5))
        exact = everything(case.theirs, case.wide())
        mine = everything(case.mine, case.tensors)
        assert [each.dtype for each in mine] == [dtype] * len(mine)
        theirs = everything(case.theirs, case.tensors)
        for one, other, right in zip(mine, theirs, exact, strict=True):
            scale = float(right.abs().max())
            worst = float((one.double() - right).abs().max()) / scale
            native = float((other.double() - right).abs().max()) / scale
            assert worst <= max(2 * native, 8 * UNITS[dtype])


def test_parameters_of_a_wider_dtype() -> None:
    case = Case("relu", dtype=torch.bfloat16)
    x, weight, bias = case.tensors
    wide = [each.detach().float().requires_grad_() for each in (weight, bias)]
    running = [[each.float() for each in case.running] for _ in range(2)]
    mine = case.mine(x, *wide, running=running[0])
    theirs = case.theirs(x, *wide, running=running[1])
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(running[0], running[1])
    gradients = torch.autograd.grad(mine.float().sum(), [x, *wide])
    assert [each.dtype for each in gradients] == [torch.bfloat16, torch.float32, torch.float32]


def test_a_mean_far_from_zero() -> None:
    x = (1000 + torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))).float()
    mine = ours.batch_norm_act(x, training=True)
    exact = F.batch_norm(x.double(), None, None, training=True)
    assert float((mine.double() - exact).abs().max()) < 2e-4


@pytest.mark.parametrize("activation", ["none", "relu6", "leaky_relu", "silu", "hardswish"])
@pytest.mark.parametrize("place", PLACES)
def test_second_derivatives(activation: str, place: str) -> None:
    for training in (True, False):
        case = Case(activation, place, shape=(2, 2, 2, 2), training=training)
        assert torch.autograd.gradcheck(case.mine, case.tensors)
        assert torch.autograd.gradgradcheck(case.mine, case.tensors)


def test_an_input_made_from_another_one() -> None:
    """A derivative of a derivative counts each way once."""
    x = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)

    def through(call: Any) -> Any:
        weight = x.mean((0, 2)).exp()
        y = call(x, weight)
        (first,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)

    torch.testing.assert_close(
        through(lambda x, w: ours.batch_norm_act(x, w, training=True, activation="silu")),
        through(lambda x, w: F.silu(F.batch_norm(x, None, None, w, training=True))),
    )


def test_a_parameter_that_changes_in_between() -> None:
    case = Case("silu")
    y = case.mine(*case.tensors)
    with torch.no_grad():
        case.tensors[1].add_(1)
    torch.autograd.grad(y.sum(), case.tensors, retain_graph=True)  # statistics have what it needs
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), case.tensors, create_graph=True)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 2, 3, 4), (1, 3, 1, 2), (5, 1, 1, 1)])
def test_any_rank(shape: tuple[int, ...]) -> None:
    for place in ("", "before"):
        case = Case("silu", place, "contiguous", shape=shape)
        torch.testing.assert_close(
            everything(case.mine, case.tensors), everything(case.theirs, case.tensors)
        )


def test_channels_last_of_volumes_stays() -> None:
    x = torch.randn(2, 3, 2, 4, 5).contiguous(memory_format=torch.channels_last_3d)
    y = ours.batch_norm_act(x, training=True)
    assert y.stride() == F.batch_norm(x, None, None, training=True).stride()


@pytest.mark.parametrize("wanted", list(itertools.product([False, True], repeat=4)), ids=str)
def test_only_what_is_wanted(wanted: tuple[bool, ...]) -> None:
    case = Case("silu", "before")
    for each, wants in zip(case.tensors, wanted, strict=True):
        each.requires_grad_(wants)
    mine, theirs = case.mine(*case.tensors), case.theirs(*case.tensors)
    assert mine.requires_grad == theirs.requires_grad == any(wanted)
    leaves = [each for each, wants in zip(case.tensors, wanted, strict=True) if wants]
    if leaves:
        grad = torch.ones(()).double().expand(mine.shape)  # a gradient without memory of its own
        torch.testing.assert_close(
            torch.autograd.grad(mine, leaves, grad), torch.autograd.grad(theirs, leaves, grad)
        )


def test_transforms_and_modes() -> None:
    case = Case("silu", "before")
    x, weight, bias, residual = (each.detach() for each in case.tensors)

    def mine(x: Tensor) -> Tensor:
        return ours.batch_norm_act(
            x, weight, bias, training=True, activation="silu", residual=residual
        )

    def theirs(x: Tensor) -> Tensor:
        return F.silu(F.batch_norm(x, None, None, weight, bias, True) + residual)

    batch = torch.stack([x, 2 * x])
    torch.testing.assert_close(torch.func.vmap(mine)(batch), torch.func.vmap(theirs)(batch))
    for call in (
        lambda f: torch.func.grad(lambda x: f(x).square().sum())(x),
        lambda f: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
        lambda f: torch.autograd.functional.jacobian(f, x, vectorize=True),
    ):
        torch.testing.assert_close(call(mine), call(theirs))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(mine(x), theirs(x))
    with torch.device("meta"):  # a default for what is made, not for what is there
        torch.testing.assert_close(mine(x), theirs(x))


def test_on_meta() -> None:
    x = torch.empty(2, 3, 4, 4, device="meta")
    assert ours.batch_norm_act(x, training=True, activation="gelu").device.type == "meta"


def test_compiled() -> None:
    case = Case("silu", "before")
    torch._dynamo.reset()
    compiled = torch.compile(case.mine, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(
        everything(compiled, case.tensors), everything(case.theirs, case.tensors)
    )


def test_a_subclass_sees_the_call() -> None:
    seen = []

    class Watched(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    ours.batch_norm_act(torch.randn(2, 3, 4, 4).as_subclass(Watched), training=True)
    assert seen[0] is ours.batch_norm_act


def test_errors_are_pytorchs_or_name_the_argument() -> None:
    x = torch.randn(2, 3, 4, 4)
    for how, kind, says in (
        ({"activation": "swish"}, ValueError, "`activation` must be one of none, relu"),
        ({"residual_position": "beside"}, ValueError, "`residual_position` must be 'before' or"),
        ({"residual": x[:, :2]}, ValueError, "`residual` must have the input's shape"),
        ({"residual": x.double()}, ValueError, "dtype torch.float32"),
        ({"training": False}, RuntimeError, "running_mean must be defined in evaluation mode"),
        ({"weight": torch.ones(4)}, RuntimeError, "weight should contain 3 elements not 4"),
        (
            {"running_mean": torch.ones(2), "running_var": torch.ones(2)},
            RuntimeError,
            "running_mean",
        ),
        ({"eps": -1.0}, ValueError, "eps must be positive during training"),
        ({"weight": torch.ones(3).double()}, RuntimeError, "scalar type|dtype"),
    ):
        arguments: dict[str, Any] = {"training": True, **how}
        with pytest.raises(kind, match=says):
            ours.batch_norm_act(x, **arguments)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        ours.batch_norm_act(torch.randn(1, 3, 1, 1), training=True)


def test_an_unknown_activation_is_refused_everywhere() -> None:
    """Computing none instead would be silently wrong."""
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    how = How("swish", "", True, 1e-5, 0.0)
    running = (torch.zeros(3), torch.ones(3))
    with pytest.raises(InternalError, match="unknown activation 'swish'"):
        composed.natively(x, None, None, None, running, False, 0.1, how)
    for result in (None, x.detach()):
        with pytest.raises(InternalError, match="unknown activation 'swish'"):
            composed.gradients(
                x, (x, None, None, None), (True,) * 4, lambda x: x, running, result, how
            )
    with pytest.raises((AssertionError, ConvgradError), match="swish"):
        normalize(x, None, None, None, running, lambda: 0.1, how)
    assert (
        activations.known_activation(F.celu, (), {}) is None
        and activations.known_activation("swish", (), {}) is None
    )


def test_a_planted_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part in a thousand of one gradient."""
    true = passes.Norm.backward

    def wrong(self: Any, *arguments: Any) -> Any:
        dx, *others = true(self, *arguments)
        return (None if dx is None else dx * 1.001, *others)

    monkeypatch.setattr(passes.Norm, "backward", wrong)
    with pytest.raises(AssertionError, match="not close"):
        test_values_gradients_and_statistics("relu", "", True)


def test_what_is_kept() -> None:
    """Bytes autograd holds for a backward pass: the image, and five numbers per channel."""
    x = torch.randn(2, 16, 8, 8, requires_grad=True)
    weight, bias = torch.ones(16, requires_grad=True), torch.zeros(16, requires_grad=True)
    kept: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        ours.batch_norm_act(x, weight, bias, training=True, activation="silu")
        mine = sum(kept)
        kept.clear()
        F.silu(F.batch_norm(x, None, None, weight, bias, True))
        theirs = sum(kept)
    assert mine == x.nbytes + 5 * 16 * 4
    assert theirs > 2 * x.nbytes
