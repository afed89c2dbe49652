"""What is known of shapes while a graph is built: checks that can be made already, and the shape of a result.

A size that is not known is None, and so is a shape whose rank is not. In a `tf.function` and in Keras models that is
the rule for the batch. What cannot be checked here is checked by the kernel, when there are tensors.
"""

from __future__ import annotations

from ..._base.dtypes import DType
from ..._problem import convolution, geometry
from ..._problem.convolution import Call, Kind, Settings, Shape

Partial = tuple[int | None, ...] | None


def known(shape: Partial) -> Shape | None:
    """Return a shape if all of it is known."""
    if shape is None:
        return None
    sizes = tuple(size for size in shape if size is not None)
    return sizes if len(sizes) == len(shape) else None


def result_shape(
    call: Call,
    settings: Settings,
    dtype: DType,
    image: Partial,
    taps: Partial,
    grad: Partial,
) -> Partial:
    """Check what is known of a call's shapes, as `convolution.build` does, and return what is known of its result's."""
    if call.kind is Kind.INPUT_GRADIENT and image is not None and len(image) == 2:
        image = _completed(settings, image, taps, grad)
    _check_ranks(call, image, taps, grad)
    batches = [shape[0] for shape in (image, grad) if shape]
    batch = next((size for size in batches if size is not None), 1)
    whole_image, whole_taps = known(_with_batch(image, batch)), known(taps)
    if call.kind is Kind.FORWARD:
        if whole_image is None and image is not None and whole_taps is not None:
            # Of an image as small as may be; what is wrong with the channels is wrong with any size.
            whole_image = known(_with_batch(_smallest(settings, image, whole_taps), batch))
        if whole_image is not None and whole_taps is not None:
            convolution.build(call, settings, dtype, whole_image, whole_taps, None)
        return _forward(call, settings, image, taps)
    whole_grad = known(_with_batch(grad, batch))
    if whole_image is not None and whole_taps is not None and whole_grad is not None:
        convolution.build(call, settings, dtype, whole_image, whole_taps, whole_grad)
    wanted = image if call.kind is Kind.INPUT_GRADIENT else taps
    if call.kind is Kind.INPUT_GRADIENT and grad:
        rest = wanted[1:] if wanted else (None, None, None)
        first = wanted[0] if wanted else None
        return (grad[0] if first is None else first, *rest)
    return wanted or (None, None, None, None)


def _check_ranks(call: Call, image: Partial, taps: Partial, grad: Partial) -> None:
    for argument, shape in ((call.input, image), (call.filter, taps), (call.grad, grad)):
        if shape is not None and len(shape) != 4:
            convolution.check_rank(call.function, argument, tuple(size or 0 for size in shape))


def _completed(settings: Settings, rows_cols: Partial, taps: Partial, grad: Partial) -> Partial:
    """Return the whole shape that a size vector of rows and columns stands for."""
    assert rows_cols is not None
    batch = grad[0] if grad else None
    channels = taps[2] if taps and len(taps) == 4 else None
    if settings.data_format == "NHWC":
        return (batch, *rows_cols, channels)
    return (batch, channels, *rows_cols)


def _with_batch(shape: Partial, batch: int) -> Partial:
    return (batch, *shape[1:]) if shape and shape[0] is None else shape


def _axes(settings: Settings) -> tuple[int, int, int]:
    """Return where rows, columns and channels are."""
    return (1, 2, 3) if settings.data_format == "NHWC" else (2, 3, 1)


def _smallest(settings: Settings, image: Partial, taps: Shape) -> Partial:
    assert image is not None
    sizes = list(image)
    for axis in (0, 1):
        at = _axes(settings)[axis]
        if sizes[at] is None:
            sizes[at] = max(1, geometry.reach(max(taps[axis], 1), settings.dilations[axis]))
    return tuple(sizes)


def _forward(call: Call, settings: Settings, image: Partial, taps: Partial) -> Partial:
    made: list[int | None] = [image[0] if image else None, None, None, None]
    rows, cols, channels = _axes(settings)
    for axis, at in ((0, rows), (1, cols)):
        size = image[at] if image else None
        window = taps[axis] if taps else None
        if size is not None and window is not None:
            padding = settings.padding
            pads = padding if isinstance(padding, str) else padding[axis]
            stride, dilation = settings.strides[axis], settings.dilations[axis]
            made[at] = geometry.solve(size, window, stride, dilation, pads).out
    if taps:
        depth, last = taps[2:]
        if not call.depthwise:
            made[channels] = last
        elif depth is not None and last is not None:
            made[channels] = depth * last
    return tuple(made)
