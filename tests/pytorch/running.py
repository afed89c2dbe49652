"""A configuration with numbers, computed by us and by PyTorch, and how far the two may be apart."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from convgrad import torch as ours
from pytorch.configurations import Configuration

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
UNITS = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.bfloat16: 2.0**-8,
    torch.float16: 2.0**-11,
}
"""Half the distance from 1 to the next number."""
TINY = {torch.float16: 2.0**-24}
"""What is lost where a result underflows; far below anything here in the other dtypes."""

Call = Callable[..., Tensor]


def operands(configuration: Configuration, dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    """Return image, filter and, if there is one, bias: leaves that ask for gradients, in their orders of memory."""
    source = torch.Generator().manual_seed(seed)

    def numbers(shape: Sequence[int]) -> Tensor:
        return torch.randn(tuple(shape), generator=source, dtype=torch.float64).to(dtype)

    image = image_as(configuration.image, numbers(configuration.image_shape))
    made = [image[0] if configuration.unbatched else image]
    made.append(weight_as(configuration.weight, numbers(configuration.weight_shape)))
    if configuration.bias:
        made.append(numbers((configuration.made,)))
    return [each.detach().requires_grad_() for each in made]


def image_as(order: str, image: Tensor) -> Tensor:
    """Return an image with the same numbers in another order of memory."""
    n, c, h, w = image.shape
    if order == "channels_last":
        return torch.empty_strided(image.shape, (h * w * c, 1, w * c, c), dtype=image.dtype).copy_(
            image
        )
    if order == "strided":
        wide = torch.zeros(n, c, h, 2 * w + 1, dtype=image.dtype)
        wide[..., 1::2] = image
        return wide[..., 1::2]
    if order == "sliced":
        deep = torch.zeros(n, h, w, c + 3, dtype=image.dtype)
        deep[..., 1 : c + 1] = image.permute(0, 2, 3, 1)
        return deep[..., 1 : c + 1].permute(0, 3, 1, 2)
    assert order == "contiguous", order
    return image


def weight_as(order: str, weight: Tensor) -> Tensor:
    """Return a filter with the same numbers in another order of memory."""
    if order == "OHWI":
        return image_as("channels_last", weight)
    if order == "HWIO":
        return weight.permute(2, 3, 1, 0).contiguous().permute(3, 2, 0, 1)
    if order == "sliced":
        return F.pad(weight, (1, 1, 1, 0))[..., 1:, 1:-1]
    assert order == "OIHW", order
    return weight


def settings(configuration: Configuration) -> dict[str, Any]:
    """Return the keyword arguments of a call that are not tensors."""
    made: dict[str, Any] = {
        name: getattr(configuration, name) for name in ("stride", "padding", "dilation", "groups")
    }
    if configuration.transposed:
        made["output_padding"] = configuration.output_padding
    return made


def function(configuration: Configuration) -> Call:
    """Return the call of ours as a function of its tensors."""
    call = ours.conv_transpose2d if configuration.transposed else ours.conv2d
    how = settings(configuration)
    return lambda image, weight, bias=None: call(image, weight, bias, **how)


def native(configuration: Configuration) -> Call:
    """Return PyTorch's own call."""
    call = F.conv_transpose2d if configuration.transposed else F.conv2d
    how = settings(configuration)

    def run(image: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that 'same' with an even window costs it a copy
            return call(image, weight, bias, **how)

    return run


def gradient_for(result: Tensor, seed: int = 9) -> Tensor:
    """Return what arrives at a result backwards: exact in every dtype, in the result's memory format."""
    source = torch.Generator().manual_seed(seed)
    whole = torch.randint(-2, 3, result.shape, generator=source, dtype=torch.float64)
    return torch.empty_like(result, requires_grad=False).copy_(whole)


def everything(call: Call, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return a result and the gradients of all operands."""
    result = call(*tensors)
    gradients = torch.autograd.grad(result, tensors, gradient_for(result))
    return [result.detach(), *gradients]


def exact(configuration: Configuration, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the same by PyTorch, in float64."""
    return everything(native(configuration), [_wide(each) for each in tensors])


def allowed(configuration: Configuration, tensors: Sequence[Tensor], dtype: Any) -> list[Tensor]:
    """Return how far each number of `everything` may be from the exact one.

    A sum of t products in precision a errs by at most t * a * sum|products|, and rounding it to precision u adds
    u * |result|. The sums of absolute products are the same convolution of absolute numbers.
    """
    call = native(configuration)
    positive = [_wide(each).abs().detach().requires_grad_() for each in tensors]
    result = call(*positive)
    moved = gradient_for(result).abs()
    sums = [result.detach(), *torch.autograd.grad(result, positive, moved)]
    window = configuration.kernel[0] * configuration.kernel[1]
    channels = configuration.channels, configuration.made
    inner = min(UNITS[torch.float32], UNITS[dtype])
    terms = [window * channels[0] + 1, window * channels[1]]
    pixels = max(result[0].numel() // max(configuration.made, 1), tensors[0][0].numel())
    terms += [configuration.batch * pixels] * 2
    return [
        count * 2 * inner * total + TINY.get(dtype, 2.0**-133)
        for count, total in zip(terms, sums, strict=False)
    ]


def assert_right(
    configuration: Configuration, got: Sequence[Tensor], tensors: Sequence[Tensor]
) -> None:
    """Compare a result and its gradients with PyTorch's in float64, within the bounds of a plain sum."""
    dtype = got[0].dtype
    bounds = allowed(configuration, tensors, dtype)
    if configuration.uneven and configuration.bias:
        # Where sides differ the bias is added to a result that is rounded already.
        bounds[0] = bounds[0] + UNITS[dtype] * (
            exact(configuration, tensors)[0].abs() + tensors[2].abs().max()
        )
    names = ("result", "image's gradient", "weight's gradient", "bias's gradient")
    for name, mine, theirs, more in zip(
        names, got, exact(configuration, tensors), bounds, strict=False
    ):
        assert mine.shape == theirs.shape, (str(configuration), name, mine.shape)
        assert mine.dtype == dtype, (str(configuration), name, mine.dtype)
        error = (mine.double() - theirs).abs()
        limit = UNITS[dtype] * theirs.abs() * 1.0001 + more
        assert (error <= limit).all(), (str(configuration), name, (error - limit).max().item())


def layers(configuration: Configuration, order: torch.memory_format) -> tuple[Any, Any, Any]:
    """Return an accelerated layer, PyTorch's own and an image."""
    image, weight, *bias = (each.detach() for each in operands(configuration, torch.float64))
    kind = nn.ConvTranspose2d if configuration.transposed else nn.Conv2d
    channels = (configuration.channels, configuration.made)
    theirs: Any = kind(
        *(*channels, configuration.kernel), bias=bool(bias), **settings(configuration)
    )
    theirs.to(torch.float64)
    with torch.no_grad():
        theirs.weight.copy_(weight)
        if bias:
            theirs.bias.copy_(bias[0])
    theirs.to(memory_format=order)
    mine = copy.deepcopy(theirs)
    ours.accelerate(mine)
    return mine, theirs, image


def per_example(layer: Any, images: Any) -> Any:
    """Return the gradients of a layer's parameters for each image."""

    def loss(parameters: Any, image: Any) -> Any:
        return functional_call(layer, parameters, (image,)).sin().sum()

    parameters = {name: value.detach() for name, value in layer.named_parameters()}
    return vmap(grad(loss), (None, 0))(parameters, images)


def bits(tensors: Sequence[Tensor]) -> bytes:
    """Return numbers as bytes, whatever the order of memory."""
    flat = (each.detach().reshape(-1) for each in tensors)
    whole = [each.clone(memory_format=torch.contiguous_format) for each in flat]
    return b"".join(each.view(torch.uint8).numpy().tobytes() for each in whole)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.detach().double().contiguous().requires_grad_()
