"""The whole list as layers of a model, in both memory formats: by themselves, under `torch.func`, and in a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import jvp, vmap

from convgrad import torch as ours
from pytorch.configurations import CONFIGURATIONS, Configuration
from pytorch.running import assert_right, everything, layers, per_example

FORMATS = pytest.mark.parametrize(
    "order", [torch.contiguous_format, torch.channels_last], ids=["contiguous", "channels_last"]
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Waking threads takes longer than these layers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def close(configuration: Configuration, mine: Any, theirs: Any) -> None:
    torch.testing.assert_close(
        *(mine, theirs), rtol=1e-10, atol=1e-10, msg=lambda said: f"{configuration}: {said}"
    )


@FORMATS
def test_values_and_gradients(order: torch.memory_format) -> None:
    for each in CONFIGURATIONS:
        mine, theirs, image = layers(each, order)
        image.requires_grad_()
        parameters = [*mine.parameters()]
        found = everything(lambda *tensors, mine=mine: mine(tensors[0]), [image, *parameters])
        assert_right(each, found, [image, *theirs.parameters()])
        wanted = theirs(image).is_contiguous(memory_format=order)
        assert found[0].is_contiguous(memory_format=order) == wanted, str(each)


@FORMATS
@pytest.mark.filterwarnings("ignore:Using padding='same'", "ignore:There is a performance drop")
def test_under_torch_func(order: torch.memory_format) -> None:
    """Several images at once, gradients of each example, and forward mode."""
    for each in CONFIGURATIONS:
        mine, theirs, image = layers(each, order)
        images = torch.stack([image, image * 2 + 1])
        close(each, vmap(mine)(images), vmap(theirs)(images))
        close(each, per_example(mine, images), per_example(theirs, images))
        close(each, *(jvp(layer, (image,), (image.cos(),)) for layer in (mine, theirs)))


@pytest.mark.parametrize("shape", [(2, 1, 6, 7), (2, 4, 1, 1)], ids=["one channel", "one pixel"])
def test_a_layer_in_channels_last_answers_in_it(shape: tuple[int, ...]) -> None:
    """Also where the image lies in both formats, and its strides say that it is contiguous."""
    layer = nn.ConvTranspose2d(shape[1], 6, 3).to(memory_format=torch.channels_last)
    image = torch.randn(shape, requires_grad=True)
    wanted = layer(image)
    ours.accelerate(layer)
    made = layer(image)
    torch.testing.assert_close(made, wanted)
    assert wanted.is_contiguous(memory_format=torch.channels_last)
    assert made.is_contiguous(memory_format=torch.channels_last)
    made.sum().backward()
    assert image.grad is not None and image.grad.shape == image.shape
