"""What Keras pads and cuts: the one place where its `padding` becomes numbers. Integers in, integers out."""

from __future__ import annotations

Sides = tuple[int, int, int, int]
"""top, bottom, left, right"""
Two = tuple[int, int]


def pads(padding: str, image: Two, window: Two, strides: Two, dilation: Two) -> Sides:
    """Return what a convolution pads an image of some rows and columns with.

    >>> pads("same", (8, 7), (3, 3), (2, 2), (1, 1))
    (0, 1, 1, 1)
    """
    if padding == "valid":
        return (0, 0, 0, 0)
    sides: list[int] = []
    for axis in (0, 1):
        size, stride = image[axis], strides[axis]
        reach = (window[axis] - 1) * dilation[axis] + 1
        whole = max((-(-size // stride) - 1) * stride + reach - size, 0)
        sides += (whole // 2, whole - whole // 2)
    return (sides[0], sides[1], sides[2], sides[3])


def crops(
    padding: str, window: Two, strides: Two, dilation: Two, output_padding: Two | None
) -> Sides:
    """Return what a transposed convolution cuts off its whole result, `(size - 1) * stride + reach` cells.

    Less than 0 is added instead. "same" makes the result `size * stride`, or, with an output padding,
    `(size - 1) * stride + reach % 2 + output_padding`; "valid" makes it at least `size * stride`.

    >>> crops("same", (3, 4), (2, 2), (1, 1), None)
    (0, 1, 1, 1)
    >>> crops("valid", (1, 3), (2, 2), (1, 1), None)
    (0, -1, 0, 0)
    """
    sides: list[int] = []
    for axis in (0, 1):
        stride = strides[axis]
        reach = (window[axis] - 1) * dilation[axis] + 1
        if padding == "valid":
            more = max(reach, stride) - reach if output_padding is None else output_padding[axis]
            sides += (0, -more)
            continue
        more = stride - reach % 2 if output_padding is None else output_padding[axis]
        whole = reach - reach % 2 - more
        before = max(whole // 2, 0)
        sides += (before, whole - before)
    return (sides[0], sides[1], sides[2], sides[3])


def transposed_size(image: Two, window: Two, strides: Two, dilation: Two, sides: Sides) -> Two:
    """Return rows and columns of a transposed convolution with `sides` cut off; sizes may be symbols."""
    rows, columns = (
        (image[axis] - 1) * strides[axis]
        + (window[axis] - 1) * dilation[axis]
        + 1
        - (sides[2 * axis] + sides[2 * axis + 1])
        for axis in (0, 1)
    )
    return (rows, columns)


def is_empty(image: Two, window: Two, dilation: Two) -> bool:
    """Tell whether a convolution without padding has no result: the window is larger than the image."""
    return any(image[axis] < (window[axis] - 1) * dilation[axis] + 1 for axis in (0, 1))
