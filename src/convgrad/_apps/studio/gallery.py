"""Pages that open with one click. They are files beside this one; here is what they are called."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class GalleryPage:
    """A page of the gallery."""

    name: str
    """Of its file, without `.json`."""
    title: str
    summary: str


ENTRIES = (
    GalleryPage(
        "document",
        "The block of the document",
        "DepthwiseConv2dNativeBackpropFilter with image, sizes and gradient wired to it, fetched by a session.",
    ),
    GalleryPage(
        "dilated-gradient",
        "A dilated gradient, wrong and right",
        "TensorFlow's CPU kernels ignore the dilation and answer 6, 10, 10; the gradient is 3, 10, 9.",
    ),
    GalleryPage("conv2d", "Conv2D by hand", "A 2-D convolution of numbers small enough to follow."),
    GalleryPage(
        "conv2d-input",
        "Conv2DBackpropInput by hand",
        "Where every number of the gradient goes back to.",
    ),
    GalleryPage(
        "conv2d-filter",
        "Conv2DBackpropFilter by hand",
        "What every tap of the filter gets from every window.",
    ),
    GalleryPage(
        "depthwise",
        "DepthwiseConv2dNative by hand",
        "Every channel has a filter of its own, here two of them.",
    ),
    GalleryPage(
        "depthwise-input",
        "DepthwiseConv2dNativeBackpropInput by hand",
        "The way back to the image, channel by channel.",
    ),
    GalleryPage(
        "depthwise-filter",
        "DepthwiseConv2dNativeBackpropFilter by hand",
        "The way back to the filter, channel by channel.",
    ),
    GalleryPage(
        "playground",
        "Padding, stride and dilation",
        "One image and one filter, five settings side by side; change them and look at the shapes.",
    ),
    GalleryPage(
        "gradient-check",
        "Is the gradient right?",
        "A strided, dilated depthwise convolution, its gradient checked against differences.",
    ),
    GalleryPage(
        "digits",
        "Digits, trained on the page",
        "200 digits of 8 by 8 pixels, two convolutions, a loss, and its gradients: press run and watch it fall.",
    ),
)
"""In the order people meet them. The digits are from the UCI repository's test set, as scikit-learn has them."""


@cache
def page_text(name: str) -> str | None:
    """Return a page of the gallery as JSON text; None for names it does not have."""
    if name not in {entry.name for entry in ENTRIES}:
        return None
    return (files(__package__) / "pages" / f"{name}.json").read_text(encoding="utf-8")


def page(name: str) -> Any:
    """Return a page of the gallery as a document; None for names it does not have."""
    found = page_text(name)
    return None if found is None else json.loads(found)


def listed() -> list[dict[str, str]]:
    """Return the gallery for the start of the page."""
    return [
        {"name": entry.name, "title": entry.title, "summary": entry.summary} for entry in ENTRIES
    ]
