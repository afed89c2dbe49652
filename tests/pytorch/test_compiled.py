"""Graphs: `torch.compile`, `torch.export`, `make_fx`, and PyTorch's own tests of our operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

import convgrad
from convgrad import torch as ours
from pytorch.configurations import Configuration, some
from pytorch.running import assert_right, everything, function, gradient_for, operands

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

HOW = ([2, 1], [1, 0, 2, 1], [1, 2], 2)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def calls(last: bool) -> dict[str, tuple[Any, ...]]:
    """Return a call of each operator, on contiguous tensors or on channels_last ones."""

    def tensor(*shape: int) -> Any:
        made = torch.randn(shape, dtype=torch.float64)
        order = torch.channels_last if last else torch.contiguous_format
        return made.contiguous(memory_format=order).requires_grad_()

    x, f = tensor(2, 4, 7, 6), tensor(6, 2, 3, 2)
    y = torch.ops.convgrad.forward(x, f, *HOW)
    g = torch.randn_like(y).requires_grad_()
    return {
        "forward": (x, f, *HOW),
        "input_gradient": (f, g, [7, 6], *HOW),
        "filter_gradient": (x, g, [3, 2], *HOW, False),
    }


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("name", ["forward", "input_gradient", "filter_gradient"])
def test_operators_keep_pytorchs_rules(name: str, last: bool) -> None:
    operator = getattr(torch.ops.convgrad, name).default
    results = torch.library.opcheck(operator, calls(last)[name])
    assert set(results.values()) == {"SUCCESS"} and len(results) >= 4


@pytest.mark.parametrize("configuration", some(30, seed=7), ids=str)
def test_traced_graphs(configuration: Configuration) -> None:
    """Forwards and backwards as one list of operators, run again on other numbers."""
    tensors = operands(configuration, torch.float64)
    arriving = gradient_for(function(configuration)(*tensors))

    def both(arriving: Any, *tensors: Any) -> Any:
        result = function(configuration)(*tensors)
        return [result, *torch.autograd.grad(result, tensors, arriving)]

    graph = make_fx(both)(arriving, *tensors)
    others = operands(configuration, torch.float64, seed=2)
    assert_right(configuration, graph(arriving, *others), others)
    text = graph.code
    if not configuration.left_to_pytorch:
        assert "convolution_overrideable" in text or "convgrad" in text


@pytest.mark.parametrize("configuration", some(40, seed=8), ids=str)
def test_compiled_without_a_break(configuration: Configuration) -> None:
    compiled = torch.compile(function(configuration), fullgraph=True, backend="aot_eager")
    tensors = operands(configuration, torch.float64)
    assert_right(configuration, everything(compiled, tensors), tensors)


@pytest.mark.parametrize("configuration", some(5, seed=9), ids=str)
def test_compiled_by_inductor(configuration: Configuration) -> None:
    call = function(configuration)
    compiled = torch.compile(lambda *operands: call(*operands) * 1, fullgraph=True)
    tensors = operands(configuration, torch.float32)
    assert_right(configuration, everything(compiled, tensors), tensors)


def test_shapes_that_change() -> None:
    """One graph for images of all sizes."""
    weight = torch.randn(4, 3, 3, 3, dtype=torch.float64)
    compiled = torch.compile(
        lambda image: ours.conv2d(image, weight, padding=1),
        fullgraph=True,
        backend="aot_eager",
        dynamic=True,
    )
    for size in (5, 8, 9):
        image = torch.randn(2, 3, size, size + 1, dtype=torch.float64)
        torch.testing.assert_close(compiled(image), F.conv2d(image, weight, padding=1))


@pytest.mark.parametrize("configuration", some(10, seed=10), ids=str)
def test_exported(configuration: Configuration) -> None:
    class Layer(torch.nn.Module):
        def forward(self, *operands: Any) -> Any:
            return function(configuration)(*operands)

    tensors = tuple(each.detach() for each in operands(configuration, torch.float64))
    program = torch.export.export(Layer(), tensors)
    others = [each.detach() for each in operands(configuration, torch.float64, seed=3)]
    torch.testing.assert_close(program.module()(*others), function(configuration)(*others))


def test_an_accelerated_model_is_exported_and_compiled() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 4, 3, groups=4),
        torch.nn.ConvTranspose2d(4, 2, 2, stride=2),
    ).double()
    image = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    wanted = model(image)
    ours.accelerate(model)
    torch.testing.assert_close(torch.export.export(model, (image,)).module()(image), wanted)
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(compiled(image), wanted)
    compiled(image).sum().backward()
    mine = [each.grad.clone() for each in model.parameters()]
    ours.restore(model)
    model.zero_grad()
    model(image).sum().backward()
    torch.testing.assert_close(mine, [each.grad for each in model.parameters()])


def test_tensorflows_functions_stand_in_graphs() -> None:
    image = torch.randn(1, 5, 6, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 2, 4, 2, dtype=torch.float64, requires_grad=True)

    def call(x: Any, f: Any) -> Any:
        return convgrad.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME") + 1

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    mine, theirs = (everything(each, (image, weight)) for each in (compiled, call))
    torch.testing.assert_close(mine, theirs)
