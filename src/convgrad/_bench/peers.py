"""The frameworks we compare with: one row each, imported only inside the process that runs them.

Every peer gets its operands in its own memory and in the layout it likes best, converted before the clock starts.
A peer that cannot do a case raises `Refused` or whatever its framework raises; the reason ends up in the JSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from .cases import Array, Case, operands_of


class Refused(Exception):
    """The peer cannot do this case, for the reason given."""


@dataclass(frozen=True)
class Prepared:
    """A case ready to be timed."""

    call: Callable[[], Any]
    """Runs the operation to its end and returns the result."""
    read: Callable[[Any], Array]
    """Turns a result into an array of the case's layout, for checking."""
    note: str = ""
    """What was arranged before the clock started."""


@dataclass(frozen=True)
class Peer:
    """One row: a way to run convolutions."""

    name: str
    module: str
    """What must be installed; also the name of the distribution."""
    process: str
    """Peers with the same process share one worker."""
    setup: Callable[[int], None]
    """Limits the framework to some threads, before its first use."""
    prepare: Callable[[Case], Prepared]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables the worker starts with; ``{threads}`` is filled in."""
    meaning: str = ""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


# PyTorch ---------------------------------------------------------------------------------------------------------


def _torch_setup(threads: int) -> None:
    torch = import_module("torch")

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def _torch(case: Case, *, channels_last: bool) -> Prepared:
    torch = import_module("torch")

    problem, arrays = case.problem, operands_of(case)
    (top, bottom), (left, right) = problem.pads
    # PyTorch pads both sides alike. Where SAME does not, the input is padded beforehand and padding is 0.
    before = (
        (top, bottom) if top != bottom else (0, 0),
        (left, right) if left != right else (0, 0),
    )
    padding = [0 if top != bottom else top, 0 if left != right else left]
    order = torch.channels_last if channels_last else torch.contiguous_format

    def tensor(array: Array, pad: bool = False) -> Any:
        if case.layout == "NHWC":
            array = array.transpose(0, 3, 1, 2)
        if pad and before != ((0, 0), (0, 0)):
            array = np.pad(array, ((0, 0), (0, 0), *before))
        return _torch_tensor(array).clone(memory_format=order)

    x, g = tensor(arrays.x, pad=True), tensor(arrays.g)
    kh, kw = problem.kernel_h, problem.kernel_w
    # [kh, kw, c, m] and [kh, kw, c / groups, k] -> [k, c / groups, kh, kw]
    if problem.is_dense:
        flat = arrays.f.transpose(3, 2, 0, 1)
    else:
        flat = arrays.f.reshape(kh, kw, 1, problem.out_c).transpose(3, 2, 0, 1)
    f = _torch_tensor(flat).clone(memory_format=order)
    stride, dilation, groups = [problem.stride] * 2, [problem.dilation] * 2, problem.group_count

    def backward(mask: list[bool]) -> Any:
        return torch.ops.aten.convolution_backward(
            g, x, f, None, stride, padding, dilation, False, [0, 0], groups, mask
        )

    def image(result: Any) -> Array:
        h, w = (before[0][0], before[1][0]) if case.op == "dx" else (0, 0)
        if case.op == "dx":
            result = result[:, :, h : h + problem.height, w : w + problem.width]
        array = _torch_array(result)
        return array if case.layout == "NCHW" else array.transpose(0, 2, 3, 1)

    def filters(result: Any) -> Array:
        last: Array = _torch_array(result).transpose(2, 3, 1, 0)
        return last.reshape(problem.filter_shape)

    note = "" if before == ((0, 0), (0, 0)) else "input padded beforehand (SAME is asymmetric)"
    if case.op == "fwd":
        conv2d = torch.nn.functional.conv2d
        return Prepared(lambda: conv2d(x, f, None, stride, padding, dilation, groups), image, note)
    if case.op == "dx":
        return Prepared(lambda: backward([True, False, False])[0], image, note)
    return Prepared(lambda: backward([False, True, False])[1], filters, note)


def _torch_tensor(array: Array) -> Any:
    torch = import_module("torch")

    array = np.ascontiguousarray(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _torch_array(tensor: Any) -> Array:
    torch = import_module("torch")

    wide = tensor.to(torch.float64) if tensor.dtype is torch.bfloat16 else tensor
    array: Array = wide.contiguous().numpy()
    return array


# TensorFlow ------------------------------------------------------------------------------------------------------


def _tensorflow_setup(threads: int) -> None:
    tf = import_module("tensorflow")

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def _tensorflow(case: Case, *, compiled: bool = False) -> Prepared:
    tf = import_module("tensorflow")

    problem = case.problem
    if problem.is_dense:
        names = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
    else:
        base = "DepthwiseConv2dNative"
        names = (base, f"{base}BackpropInput", f"{base}BackpropFilter")
    forward, input_gradient, filter_gradient = (getattr(tf.raw_ops, name) for name in names)
    middle = (1, 2) if case.layout == "NHWC" else (2, 3)
    how: dict[str, Any] = {
        "strides": [problem.stride if axis in middle else 1 for axis in range(4)],
        "padding": problem.padding,
        "data_format": case.layout,
        "dilations": [problem.dilation if axis in middle else 1 for axis in range(4)],
    }
    first, second = (tf.constant(a) for a in _pair(case))
    shape = problem.input_shape(case.layout) if case.op == "dx" else problem.filter_shape
    sizes = shape if compiled else tf.constant(shape, tf.int32)
    # The raw forward operation refuses dilations without XLA; this is the route TensorFlow documents.
    detour = case.op == "fwd" and not problem.is_dense and problem.dilation > 1 and not compiled
    note = "tf.nn.depthwise_conv2d, not the raw operation" if detour else ""

    def operation(first: Any, second: Any) -> Any:
        if detour:
            options = (how["strides"], how["padding"], how["data_format"], [problem.dilation] * 2)
            return tf.nn.depthwise_conv2d(first, second, *options)
        if case.op == "fwd":
            return forward(input=first, filter=second, **how)
        if case.op == "dx":
            return input_gradient(input_sizes=sizes, filter=first, out_backprop=second, **how)
        return filter_gradient(input=first, filter_sizes=sizes, out_backprop=second, **how)

    run: Any = operation
    if compiled:
        run = tf.function(operation, jit_compile=True)
    return Prepared(lambda: run(first, second), lambda result: np.asarray(result.numpy()), note)


# JAX -------------------------------------------------------------------------------------------------------------


def _jax_setup(threads: int) -> None:
    jax = import_module("jax")

    jax.config.update("jax_enable_x64", True)
    # XLA sizes its pool by NPROC, but is not bound to keep it in every version.
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if threads < len(cpus):
        os.sched_setaffinity(0, cpus[:threads])


def _jax(case: Case) -> Prepared:
    jax = import_module("jax")

    problem = case.problem
    kh, kw = problem.kernel_h, problem.kernel_w

    def conv(x: Any, f: Any) -> Any:
        if not problem.is_dense:
            f = f.reshape(kh, kw, 1, problem.out_c)
        return jax.lax.conv_general_dilated(
            x,
            f,
            (problem.stride,) * 2,
            problem.pads,
            rhs_dilation=(problem.dilation,) * 2,
            dimension_numbers=(case.layout, "HWIO", case.layout),
            feature_group_count=problem.group_count,
        )

    # The convolution is linear in either operand, so its gradient is its transpose: no forward pass is computed.
    first, second = (jax.device_put(a) for a in _pair(case))
    if case.op == "fwd":
        run = jax.jit(conv)
    elif case.op == "dx":
        like = jax.ShapeDtypeStruct(problem.input_shape(case.layout), first.dtype)
        run = jax.jit(lambda f, g: jax.linear_transpose(lambda x: conv(x, f), like)(g)[0])
    else:
        like = jax.ShapeDtypeStruct(problem.filter_shape, first.dtype)
        run = jax.jit(lambda x, g: jax.linear_transpose(lambda f: conv(x, f), like)(g)[0])
    return Prepared(lambda: run(first, second).block_until_ready(), np.asarray)


def _pair(case: Case) -> tuple[Array, Array]:
    arrays = operands_of(case)
    return {
        "fwd": (arrays.x, arrays.f),
        "dx": (arrays.f, arrays.g),
        "dw": (arrays.x, arrays.g),
    }[case.op]


_TF_LOG = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}

PEERS = (
    Peer(
        "torch-cl",
        "torch",
        "torch",
        _torch_setup,
        lambda case: _torch(case, channels_last=True),
        {"OMP_NUM_THREADS": "{threads}", "MKL_NUM_THREADS": "{threads}"},
        meaning="PyTorch, channels_last memory format",
    ),
    Peer(
        "torch-nchw",
        "torch",
        "torch",
        _torch_setup,
        lambda case: _torch(case, channels_last=False),
        {"OMP_NUM_THREADS": "{threads}", "MKL_NUM_THREADS": "{threads}"},
        meaning="PyTorch, contiguous NCHW tensors",
    ),
    Peer(
        "tf-eager",
        "tensorflow",
        "tf",
        _tensorflow_setup,
        _tensorflow,
        {"TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "{threads}", **_TF_LOG},
        meaning="TensorFlow raw operations, eager, without oneDNN",
    ),
    Peer(
        "tf-onednn",
        "tensorflow",
        "tf-onednn",
        _tensorflow_setup,
        _tensorflow,
        {"TF_ENABLE_ONEDNN_OPTS": "1", "OMP_NUM_THREADS": "{threads}", **_TF_LOG},
        meaning="TensorFlow raw operations, eager, TF_ENABLE_ONEDNN_OPTS=1",
    ),
    Peer(
        "tf-xla",
        "tensorflow",
        "tf",
        _tensorflow_setup,
        lambda case: _tensorflow(case, compiled=True),
        {"TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "{threads}", **_TF_LOG},
        meaning="TensorFlow raw operations in tf.function(jit_compile=True)",
    ),
    Peer(
        "jax-jit",
        "jax",
        "jax",
        _jax_setup,
        _jax,
        {"JAX_PLATFORMS": "cpu", "NPROC": "{threads}", "OMP_NUM_THREADS": "{threads}"},
        meaning="JAX conv_general_dilated and its linear transposes under jit",
    ),
)

BY_NAME = {peer.name: peer for peer in PEERS}


def select(text: str) -> list[Peer]:
    """Return the peers a list like ``torch,tf-eager`` names; a family name takes all of its rows."""
    if text in ("", "none"):
        return []
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen: list[Peer] = []
    for word in words:
        found = [p for p in PEERS if word in ("all", p.name, p.name.split("-")[0])]
        if not found:
            raise ValueError(
                f"no peer {word!r}; there are {', '.join(BY_NAME)}, and the families torch, tf, jax"
            )
        chosen += found
    return [peer for peer in PEERS if peer in chosen]
