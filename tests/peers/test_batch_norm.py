"""The oracle of batch norm against PyTorch's batch norm, activations and derivatives, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad._problem.norm import ACTIVATIONS

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")


def act(name: str, u: Any) -> Any:
    functional = torch.nn.functional
    return {
        "none": lambda: u,
        "leaky_relu": lambda: functional.leaky_relu(u, 0.2),
        "gelu_tanh": lambda: functional.gelu(u, approximate="tanh"),
    }.get(name, lambda: getattr(functional, name)(u))()


@pytest.mark.parametrize("position", [None, "before", "after"])
@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_pytorch(activation: str, is_training: bool, position: str | None) -> None:
    random = np.random.default_rng(7)
    x, r, dy = (2 * random.standard_normal((3, 4, 5, 2)) for _ in range(3))
    scale, offset, mean = (random.standard_normal(4) for _ in range(3))
    variance = random.uniform(0.5, 2, 4)
    leaves = [torch.tensor(each, requires_grad=True) for each in (x, scale, offset, r)]
    running = [torch.tensor(each) for each in (mean, variance)]
    u = torch.nn.functional.batch_norm(
        leaves[0], *running, leaves[1], leaves[2], is_training, 1.0, 1e-3
    )
    y = act(activation, u + leaves[3] if position == "before" else u)
    y = y + leaves[3] if position == "after" else y
    y.backward(torch.tensor(dy))

    settings: dict[str, Any] = {"activation": activation, "is_training": is_training}
    settings |= {"data_format": "NCHW", "negative_slope": 0.2}
    if position:
        settings |= {"residual": r, "residual_position": position}
    given = [None, None] if is_training else [mean, variance]
    result = reference.batch_norm_act(x, scale, offset, *given, **settings)
    close = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(result.y, y.detach().numpy(), **close)
    if is_training:  # what it keeps is divided by M - 1
        np.testing.assert_allclose(result.mean, running[0], **close)
        np.testing.assert_allclose(result.variance * 30 / 29, running[1], **close)
    found = reference.batch_norm_act_grad(
        dy, x, scale, offset, result.mean, result.variance, **settings
    )
    for mine, leaf in zip(found, leaves, strict=True):
        if mine is not None:
            np.testing.assert_allclose(mine, leaf.grad, **close)


def test_the_public_function_takes_tensors() -> None:
    x = torch.randn(3, 4, 5, 2, dtype=torch.float64)
    wanted = torch.nn.functional.relu(
        torch.nn.functional.batch_norm(x, None, None, None, None, True, 0.0, 1e-3)
    )
    found = convgrad.batch_norm_act(x, activation="relu", data_format="NCHW")
    assert isinstance(found.y, torch.Tensor)
    torch.testing.assert_close(found.y, wanted, rtol=1e-10, atol=1e-10)
