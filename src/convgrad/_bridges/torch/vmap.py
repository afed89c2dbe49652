"""A batch of calls as one call: how `torch.vmap` maps the three sums over further dimensions.

Examples of images only are more images of the batch. Where filters differ between examples, each example becomes a
group: channels of the examples stand side by side, and a group sees its own channels only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor as AnyTensor

Sum = Callable[..., AnyTensor]


def fold_forward(sum_: Sum, dims: Any, x: AnyTensor, f: AnyTensor, *how: Any) -> Any:
    """Map `forward` over dimensions of its operands."""
    x_dim, f_dim = dims[:2]
    if f_dim is None:
        x = x.movedim(x_dim, 0)
        y = sum_(x.flatten(0, 1), f, *how)
        return y.unflatten(0, x.shape[:2]), 0
    *rest, groups = how
    f = f.movedim(f_dim, 0)
    examples = f.shape[0]
    x = _beside(x, x_dim, examples)
    y = sum_(x, f.flatten(0, 1), *rest, groups * examples)
    return _apart(y, examples), 0


def fold_input_gradient(
    sum_: Sum, dims: Any, f: AnyTensor, g: AnyTensor, size: Any, *how: Any
) -> Any:
    """Map `input_gradient` over dimensions of its operands."""
    f_dim, g_dim = dims[:2]
    if f_dim is None:
        g = g.movedim(g_dim, 0)
        x = sum_(f, g.flatten(0, 1), size, *how)
        return x.unflatten(0, g.shape[:2]), 0
    *rest, groups = how
    f = f.movedim(f_dim, 0)
    examples = f.shape[0]
    x = sum_(f.flatten(0, 1), _beside(g, g_dim, examples), size, *rest, groups * examples)
    return _apart(x, examples), 0


def fold_filter_gradient(
    sum_: Sum, dims: Any, x: AnyTensor, g: AnyTensor, window: Any, *how: Any
) -> Any:
    """Map `filter_gradient` over dimensions of its operands: gradients per example."""
    x_dim, g_dim = dims[:2]
    *rest, groups, by_output = how
    examples = (x if x_dim is not None else g).shape[x_dim if x_dim is not None else g_dim]
    x, g = _beside(x, x_dim, examples), _beside(g, g_dim, examples)
    f = sum_(x, g, window, *rest, groups * examples, by_output=by_output and examples == 1)
    return f.unflatten(0, (examples, -1)), 0


def _beside(image: AnyTensor, dim: int | None, examples: int) -> AnyTensor:
    """Return the examples' images [e, n, c, h, w] as one with all their channels, [n, e*c, h, w]."""
    if dim is None:
        image = image.unsqueeze(0).expand(examples, *image.shape)
        dim = 0
    return image.movedim(dim, 1).flatten(1, 2)


def _apart(image: AnyTensor, examples: int) -> AnyTensor:
    """Return what `_beside` put together, [e, n, c, h, w]."""
    return image.unflatten(1, (examples, -1)).movedim(1, 0)
