"""Compiled functions of fused blocks: the same bits as step by step, and what they leave to Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

import convgrad
from convgrad._bridges.torch import install
from convgrad._bridges.torch.passes import How
from pytorch.blocks import (
    ACTIVATIONS,
    CONVOLUTIONS,
    Spy,
    assert_equal,
    picture,
    step,
    step_by_step,
    unit,
)
from pytorch.fusing import assert_same, images, network, pair
from pytorch.fusing import step as mean_step

pytestmark = pytest.mark.skipif(
    install.handlers() is None, reason="this PyTorch has no functions for compiled handlers"
)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("place", ["", "before", "after"])
def test_a_step_has_the_bits_of_its_parts(convolution, activation, place, monkeypatch, spy):
    if place and convolution == "3x3":
        place = ""  # its result is smaller
    for dtype, last in itertools.product((torch.float32, torch.float64), (True, False)):
        model, x = unit(dtype, last, convolution, activation, place), picture(dtype, last)
        initial = {name: each.clone() for name, each in model.state_dict().items()}
        theirs = step_by_step(monkeypatch, model, x)
        model.load_state_dict(initial)
        spy.calls = spy.served = 0
        mine = step(model, x)
        assert (spy.calls, spy.served) == (2, 2)
        assert_equal(mine, theirs)
        assert int(mine["bn.num_batches_tracked"]) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_of_another_dtype_than_the_image(dtype, monkeypatch, spy):
    model = unit(dtype, True, "1x1", "relu6", "")
    model.bn.float()
    x = picture(dtype, True)
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    theirs = step_by_step(monkeypatch, model, x)
    model.load_state_dict(initial)
    assert_equal(step(model, x), theirs)
    assert spy.served == 2
    # Parameters in the image's own narrow dtype are converted first.
    model.bn.to(dtype)
    step(model, x)
    assert (spy.calls, spy.served) == (4, 3)


def test_an_image_that_fits_no_cache(monkeypatch, spy):
    model, x = (
        unit(torch.float32, True, "1x1", "relu6", ""),
        picture(torch.float32, True, (4, 6, 160, 160)),
    )
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    theirs = step_by_step(monkeypatch, model, x)
    model.load_state_dict(initial)
    assert_equal(step(model, x), theirs)
    assert spy.served == 2


@pytest.mark.parametrize("grad", [True, False])
def test_frozen_statistics(grad, monkeypatch, spy):
    model, x = (
        unit(torch.float32, True, "depthwise", "silu", "after").eval(),
        picture(torch.float32, True),
    )
    with torch.set_grad_enabled(grad):
        theirs = step_by_step(monkeypatch, model, x)
        assert_equal(step(model, x), theirs)
    assert spy.served == 1 + grad


def test_training_statistics_without_gradients(monkeypatch, spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    initial = {name: each.clone() for name, each in model.state_dict().items()}
    with torch.no_grad():
        theirs = step_by_step(monkeypatch, model, x)
        model.load_state_dict(initial)
        assert_equal(step(model, x), theirs)
    assert spy.served == 1


@pytest.mark.parametrize("wanted", list(itertools.product([False, True], repeat=4)))
def test_only_wanted_gradients(wanted, monkeypatch, spy):
    model, x = unit(torch.float32, True, "1x1", "relu6", "before"), picture(torch.float32, True)
    parameters = (model.conv.weight, model.conv.bias, model.bn.weight, model.bn.bias)
    for each, asked in zip(parameters, wanted, strict=True):
        each.requires_grad_(asked)
    theirs = step_by_step(monkeypatch, model, x)
    model.bn.reset_running_stats()
    mine = step(model, x)
    theirs |= {name: each for name, each in mine.items() if "running" in name or "batches" in name}
    assert_equal(mine, theirs)
    assert spy.served == 2


def test_norms_without_parameters_or_statistics(monkeypatch, spy):
    for norm in ({"affine": False}, {"track_running_stats": False}):
        model, x = (
            unit(torch.float32, True, "1x1", "silu", "", **norm),
            picture(torch.float32, True),
        )
        theirs = step_by_step(monkeypatch, model, x)
        if model.bn.track_running_stats:
            model.bn.reset_running_stats()
        mine = step(model, x)
        assert_equal(mine, {**theirs, **{each: mine[each] for each in mine if "bn." in each}})
    assert spy.served == 4


def test_a_cumulative_average(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "", momentum=None)
    x = picture(torch.float32, True)
    with torch.no_grad():
        z = model.conv(x)
    step(model, x)
    step(model, x)
    torch.testing.assert_close(model.bn.running_mean, z.mean((0, 2, 3)))
    assert int(model.bn.num_batches_tracked) == 2
    assert spy.served == spy.calls == 4


def test_tensors_that_must_be_copied_first(spy):
    model = unit(torch.float64, True, "1x1", "relu6", "")
    x = picture(torch.float64, True)
    right = step(model, x)
    model.bn.reset_running_stats()
    wide = torch.zeros(3, 6, 8, 20, dtype=x.dtype)
    wide[..., ::2] = x
    model.zero_grad()
    result = model(wide[..., ::2])
    torch.testing.assert_close(result, right["result"])
    # A gradient in another order than the result's.
    crooked = torch.randn(3, 6, 10, 8, dtype=x.dtype).transpose(2, 3)
    before = (spy.calls, spy.served)
    result.backward(crooked)
    assert (spy.calls, spy.served) == (before[0] + 2, before[1] + 1)
    torch.testing.assert_close(model.bn.bias.grad, _relu6_bias(result, crooked))


def _relu6_bias(result: Tensor, grad: Tensor) -> Tensor:
    return (grad * ((result > 0) & (result < 6))).sum((0, 2, 3))


def test_gradients_that_are_expanded(spy):
    model, x = unit(torch.float64, True, "1x1", "none", ""), picture(torch.float64, True)
    model(x).sum().backward()
    torch.testing.assert_close(model.bn.bias.grad, torch.full((6,), 240.0, dtype=x.dtype))


def test_a_network_and_its_layers_agree(spy):
    model, fused, _ = pair(network().double())
    assert_same(mean_step(fused, images()), mean_step(model, images()))
    assert spy.served == spy.calls > 10


def test_one_value_per_channel_is_pytorchs_error(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "")
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        model(torch.randn(1, 6, 1, 1))
    assert spy.served == 0
    assert int(model.bn.num_batches_tracked) == 1  # as natively


def test_images_without_pixels_or_of_other_channels(spy):
    model = unit(torch.float32, True, "1x1", "relu6", "")
    assert model(torch.randn(0, 6, 4, 4)).shape == (0, 6, 4, 4)
    with pytest.raises(RuntimeError, match="channels"):
        model(torch.randn(2, 5, 4, 4))
    assert spy.served == 0


def test_switches_decide_which_record_is_found(spy):
    model, x = unit(torch.float32, True, "3x3", "relu6", ""), picture(torch.float32, True)
    handlers = install.handlers()
    assert handlers is not None

    def records_and_step() -> Any:
        model.bn.reset_running_stats()
        before = len(handlers.fused_table)
        left = step(model, x)
        return len(handlers.fused_table) - before, left

    _, right = records_and_step()
    assert records_and_step()[0] == 0
    with convgrad.threads(1):
        found, single = records_and_step()
    assert found == 0
    assert_equal(single, right)
    with convgrad.options(winograd="off"):
        found, other = records_and_step()
    assert found == 2
    assert_equal(other, right)  # no algorithm of Winograd's takes strides
    assert spy.served == spy.calls == 8


def test_numbers_our_passes_do_not_compute():
    how = How("leaky_relu", "before", False, 1e-5, 0.1)
    assert how.computable
    assert not how._replace(epsilon=0.0).computable
    assert not how._replace(slope=-0.1).computable
    assert how._replace(slope=-0.1, residual="").computable
    settings = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    assert install.fused_row(settings, how) is not None
    assert install.fused_row(settings, how._replace(epsilon=0.0)) is None
