"""Convolutions on PyTorch's tensors, below autograd: recipes carried out by Python.

These compute the calls that compiled handlers decline, and all calls where there are no handlers. Tensors in an order
that kernels cannot read are copied first. What we do not compute at all (1-D and 3-D images, complex numbers, empty
tensors, shapes that do not fit) is left to PyTorch's own kernel, which also knows PyTorch's own words for errors.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor as AnyTensor

from ... import _engine
from ..._base import config
from ..._base.errors import AllocationError, ArgumentError
from ..records import NOWHERE, Made
from . import recipes
from .plain import there
from .recipes import OUTPUTS, Recipe, Settings, hwio_strides
from .tensors import DTYPES, Tensor, layout, lies_as, prefers_channels_last

_TORCH: dict[int, torch.dtype] = {
    number: getattr(torch, row.numpy.name) for number, row in DTYPES.items()
}
_NUMBERS = {dtype: number for number, dtype in _TORCH.items()}
_UNKNOWN = -2

Mask = tuple[bool, bool, bool]

_native_forward = torch.library.get_kernel("aten::convolution", "CPU")
_native_backward = torch.library.get_kernel("aten::convolution_backward", "CPU")
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def describe(tensor: AnyTensor) -> Tensor:
    """Return what matters of a tensor; that of a vector is written as if it had four dimensions."""
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    if len(sizes) == 1:
        sizes, strides = (*sizes, 0, 0, 0), (*strides, 0, 0, 0)
    return Tensor(_NUMBERS.get(tensor.dtype, _UNKNOWN), sizes, strides)


def forward(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, settings: Settings
) -> AnyTensor | None:
    """Return the result of a layer, or None where it is not for us."""
    if image.dim() != 4 or weight.dim() != 4 or (bias is not None and bias.dim() != 1):
        return None
    _require(image=image, weight=weight, bias=bias)
    if recipes.sides(describe(image).sizes, describe(weight).sizes, settings) is None:
        return None
    recipe = _known_forward(image, weight, bias, settings)
    if recipe is None:
        last = prefers_channels_last(describe(image)) or prefers_channels_last(describe(weight))
        image, weight = _readable(image, last), _readable_filter(weight)
        bias = None if bias is None else bias.contiguous()
        recipe = _known_forward(image, weight, bias, settings)
    if recipe is None:
        return None
    return carry_out("convolution", recipe, (image, weight, bias))[0]


def backward(
    grad: AnyTensor, image: AnyTensor, weight: AnyTensor, settings: Settings, mask: Mask
) -> list[AnyTensor | None] | None:
    """Return the gradients of a layer's input, weight and bias, those of `mask`, or None where it is not for us."""
    if not image.dim() == weight.dim() == grad.dim() == 4:
        return None
    _require(grad=grad, image=image, weight=weight)
    if recipes.sides(describe(image).sizes, describe(weight).sizes, settings) is None:
        return None
    recipe = _known_backward(grad, image, weight, settings, mask)
    if recipe is None:
        # As the image lies, or as it is nearest to: the gradient may have come in another order.
        last = prefers_channels_last(describe(image)) or layout(describe(image)) == "NHWC"
        image, grad = _readable(image, last), _readable(grad, last)
        weight = _readable_filter(weight)
        recipe = _known_backward(grad, image, weight, settings, mask)
    if recipe is None:
        return None
    return carry_out("convolution_backward", recipe, (image, weight, grad))


def gradient(
    grad: AnyTensor, image: Any, weight: Any, settings: Settings, which: int
) -> AnyTensor | None:
    """Return one gradient, of the input (0) or the weight (1), which is given by its description only."""
    missing: Any = (image, weight)[which]
    known = (weight, image)[which]
    mask = (which == 0, which == 1, False)

    def recipe(grad: AnyTensor, known: AnyTensor, missing: Tensor) -> Recipe | None:
        there = describe(known)
        pair = (missing, there) if which == 0 else (there, missing)
        key = (describe(grad), *pair, settings, mask, config.deciding())
        return _known("backward", key, lambda: recipes.backward(*key[:5]))

    found = recipe(grad, known, missing)
    if found is None:
        last = prefers_channels_last(missing if which == 0 else describe(known))
        grad = _readable(grad, last)
        known = _readable(known, last) if which else _readable_filter(known)
        found = recipe(grad, known, missing)
    if found is None:
        return None
    given = (None, known, grad) if which == 0 else (known, None, grad)
    return carry_out("gradient", found, given)[which]


def _require(**tensors: AnyTensor | None) -> None:
    """Raise for tensors without memory. PyTorch's own kernels do, but a copy to another order reads it unasked."""
    for name, each in tensors.items():
        if each is not None and not there(each):
            raise RuntimeError(
                f"the {name} of a convolution has elements, but its data is not allocated: "
                "its storage was resized"
            )


def _readable(tensor: AnyTensor, last: bool | None = None) -> AnyTensor:
    """Return a tensor that lies contiguous: in the wanted memory format, or in that which it is nearest to."""
    if last is None:
        if layout(describe(tensor)):
            return tensor
        last = prefers_channels_last(describe(tensor))
    wanted = torch.channels_last if last else torch.contiguous_format
    copied = tensor.contiguous(memory_format=wanted)
    if copied.data_ptr() % copied.element_size():
        copied = copied.clone(memory_format=wanted)
    return copied


def _readable_filter(weight: AnyTensor) -> AnyTensor:
    """Return a filter that lies contiguous in one of the three orders there are programs for."""
    there = describe(weight)
    return weight if lies_as(there, hwio_strides(there.sizes)) else _readable(weight)


def _known_forward(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, settings: Settings
) -> Recipe | None:
    key = (
        *(describe(image), describe(weight)),
        *(None if bias is None else describe(bias), settings, config.deciding()),
    )
    return _known("forward", key, lambda: recipes.forward(*key[:4]))


def _known_backward(
    grad: AnyTensor, image: AnyTensor, weight: AnyTensor, settings: Settings, mask: Mask
) -> Recipe | None:
    key = (describe(grad), describe(image), describe(weight), settings, mask, config.deciding())
    return _known("backward", key, lambda: recipes.backward(*key[:5]))


def _known(which: str, key: tuple[Any, ...], make: Any) -> Recipe | None:
    name = ("torch", which, *key)
    found: Recipe | None = _engine.memory.get(name)
    if found is None:
        found = make()
        if found is not None:
            _engine.remember(name, found)
    return found


def carry_out(
    function: str, recipe: Recipe, given: Sequence[AnyTensor | None]
) -> list[AnyTensor | None]:
    """Make what a recipe wants, run its programs, and return its outputs."""
    made = [None if each is None else _new(each) for each in recipe.made]
    places: dict[int, int] = {NOWHERE: 0}
    for first, tensors in ((0, given), (OUTPUTS, made)):
        for place, tensor in enumerate(tensors, first):
            if tensor is not None:
                places[place] = tensor.data_ptr()
    try:
        for run in recipe.runs:
            _engine.execute(run.program, *(places[each] for each in run.places))
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None
    return made[: len(recipe.outputs)]


def _new(made: Made) -> AnyTensor:
    return torch.empty_strided(made.sizes, made.strides, dtype=_TORCH[made.dtype], device="cpu")


def settings_of(
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Settings | None:
    """Return the settings of an operator of PyTorch, or None where they are not those of a 2-D convolution."""
    pairs = [tuple(each) for each in (stride, padding, dilation, output_padding)]
    if any(len(each) != 2 for each in pairs):
        return None
    strides, pads, dilations, output_pads = pairs
    return Settings(
        strides,  # type: ignore[arg-type]
        tuple((pad, pad) for pad in pads),  # type: ignore[arg-type]
        dilations,  # type: ignore[arg-type]
        transposed,
        output_pads,  # type: ignore[arg-type]
        groups,
    )


class _Errors(threading.local):
    message: Any = None


_errors = _Errors()


def last_error() -> int:
    """Return the address of the text of this thread's last error, which a handler raises again."""
    if _errors.message is None:
        _errors.message = ctypes.create_string_buffer(b"a convolution failed")
    return ctypes.addressof(_errors.message)


def _keeping_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the words of an error for the handler that will raise it: what reaches it has lines of ours added."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            # PyTorch's own errors are RuntimeErrors, as is what the handler raises.
            name = "" if type(error) is RuntimeError else f"{type(error).__name__}: "
            _errors.message = ctypes.create_string_buffer(f"{name}{error}".encode())
            raise

    return call


@_keeping_words
def declined_forward(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    *settings: Any,
) -> AnyTensor:
    """Compute what `aten::convolution` would."""
    known = settings_of(*settings)
    if known is not None:
        result = forward(image, weight, bias, known)
        if result is not None:
            return result
    return _native_forward.call_boxed(_CPU, image, weight, bias, *settings)


LAYERS: dict[tuple[Any, ...], int] = {}
"""Settings of `convgrad::numbered_layer`, as `aten::convolution` takes them, and the numbers of their rows."""


@_keeping_words
def declined_layer(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, number: int
) -> AnyTensor:
    """Compute what `convgrad::numbered_layer` would."""
    rows = list(LAYERS)
    if not 0 <= number < len(rows):
        raise ArgumentError(
            f"layer: the number of a row of settings must be below {len(rows)}, got {number}."
        )
    return declined_forward(image, weight, bias, *rows[number])


@_keeping_words
def declined_backward(
    grad: AnyTensor, image: AnyTensor, weight: AnyTensor, *settings: Any
) -> tuple[AnyTensor | None, ...]:
    """Compute what `aten::convolution_backward_overrideable` is asked for."""
    made = weight.shape[1] * settings[5] if settings[3] else weight.shape[0]
    return declined_aten_backward(grad, image, weight, [made], *settings)


@_keeping_words
def declined_aten_backward(
    grad: AnyTensor, image: AnyTensor, weight: AnyTensor, bias_sizes: Any, *settings: Any
) -> tuple[AnyTensor | None, ...]:
    """Compute what `aten::convolution_backward` would."""
    mask: Any = tuple(bool(wanted) for wanted in settings[6])
    known = settings_of(*settings[:6])
    if known is not None and any(mask):
        result = backward(grad, image, weight, known, mask)
        if result is not None:
            return tuple(result)
    return tuple(_native_backward.call_boxed(_CPU, grad, image, weight, bias_sizes, *settings))
