"""The child process of `accuracy.py`: one framework, the problems it is sent, one file per result.

Usage: python accuracy_peers.py torch|tensorflow|jax FOLDER < problems.json

A result is saved as float64, which holds every narrower number; a problem the framework refuses becomes a text.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from accuracy_problems import Problem, operands


def pytorch(problem: Problem) -> Any:
    """Call aten's convolution or its backward, in channels-last memory where the data is NHWC."""
    torch = importlib.import_module("torch")
    last = problem.layout == "NHWC"

    def tensor(array: Any, axes: tuple[int, ...] | None = None) -> Any:
        array = np.ascontiguousarray(array if axes is None else array.transpose(axes))
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    x, f, g = operands(problem)
    before, after = problem.pads
    order = torch.channels_last if last else torch.contiguous_format
    images = (0, 3, 1, 2) if last else None
    one = torch.nn.functional.pad(tensor(x, images), (before, after) * 2).contiguous(
        memory_format=order
    )
    two = tensor(f.reshape(problem.window, problem.window, -1, problem.out_c), (3, 2, 0, 1))
    two = two.contiguous(memory_format=order)
    grad = tensor(g, images).contiguous(memory_format=order)
    groups = problem.in_c if problem.depthwise else 1
    stride = [problem.stride] * 2
    if problem.kind == "forward":
        result = torch.nn.functional.conv2d(one, two, None, stride, 0, 1, groups)
        return _last(result.double().numpy(), last)
    wanted = [problem.kind == "input", problem.kind == "filter", False]
    arguments = (grad, one, two, None, stride, [0, 0], [1, 1], False, [0, 0], groups, wanted)
    dx, df, _ = torch.ops.aten.convolution_backward(*arguments)
    if problem.kind == "input":
        inside = slice(before, before + problem.side)
        return _last(dx[:, :, inside, inside].double().numpy(), last)
    return df.double().numpy().transpose(2, 3, 1, 0).reshape(problem.filter_shape)


def _last(image: Any, last: bool) -> Any:
    return image.transpose(0, 2, 3, 1) if last else image


def tensorflow(problem: Problem) -> Any:
    """Call the raw operation of the same name."""
    tf = importlib.import_module("tensorflow")
    x, f, g = operands(problem)
    name = "DepthwiseConv2dNative" if problem.depthwise else "Conv2D"
    spatial = (1, 2) if problem.layout == "NHWC" else (2, 3)
    how: dict[str, Any] = {
        "strides": [problem.stride if axis in spatial else 1 for axis in range(4)],
        "padding": "SAME",
        "data_format": problem.layout,
    }
    if problem.kind == "forward":
        result = getattr(tf.raw_ops, name)(input=x, filter=f, **how)
    elif problem.kind == "input":
        result = getattr(tf.raw_ops, name + "BackpropInput")(
            input_sizes=problem.input_shape, filter=f, out_backprop=g, **how
        )
    else:
        result = getattr(tf.raw_ops, name + "BackpropFilter")(
            input=x, filter_sizes=problem.filter_shape, out_backprop=g, **how
        )
    return result.numpy()


def jax(problem: Problem) -> Any:
    """Differentiate `conv_general_dilated`."""
    module = importlib.import_module("jax")
    module.config.update("jax_enable_x64", True)
    x, f, g = operands(problem)
    groups = problem.in_c if problem.depthwise else 1

    def convolve(one: Any, two: Any) -> Any:
        return module.lax.conv_general_dilated(
            one,
            two.reshape(problem.window, problem.window, -1, problem.out_c),
            (problem.stride,) * 2,
            (problem.pads,) * 2,
            dimension_numbers=(problem.layout, "HWIO", problem.layout),
            feature_group_count=groups,
        )

    def backward(one: Any, two: Any, grad: Any) -> Any:
        _, pull = module.vjp(convolve, one, two)
        return pull(grad)[0 if problem.kind == "input" else 1]

    if problem.kind == "forward":
        return np.asarray(module.jit(convolve)(x, f))
    return np.asarray(module.jit(backward)(x, f, g))


PEERS: dict[str, Callable[[Problem], Any]] = {
    "torch": pytorch,
    "tensorflow": tensorflow,
    "jax": jax,
}


def main(peer: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    for number, values in json.load(sys.stdin):
        place = folder / f"{peer}.{number}"
        try:
            result = np.asarray(PEERS[peer](Problem(**values))).astype(np.float64)
        except ModuleNotFoundError:
            Path(f"{place}.txt").write_text("not installed", encoding="utf-8")
        except Exception:
            Path(f"{place}.txt").write_text("refused", encoding="utf-8")
        else:
            np.save(f"{place}.npy", result)
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
