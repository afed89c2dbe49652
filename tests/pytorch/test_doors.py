"""TensorFlow's functions with tensors: tensors come back, with the numbers NumPy gets and gradients recorded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import convgrad
from convgrad._arrays import torch as adapter
from convgrad._bridges.torch import kernels
from convgrad.errors import ArgumentError, ArgumentTypeError, DTypeError
from errors.doors import DOORS, REFERENCE, Door, expected

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    torch.float16: np.float16,
    torch.bfloat16: BFLOAT16,
    torch.float32: np.float32,
    torch.float64: np.float64,
}
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)


def tensor(array: Any) -> torch.Tensor:
    array = np.array(array)
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def given(door: Door, dtype: Any = np.float32, change: Any = tensor, **more: Any) -> dict[str, Any]:
    """Return the arguments of a call whose arrays have become something else."""
    arguments = door.arguments(dtype=dtype, **more)
    return arguments | {name: change(arguments[name]) for name in door.arrays}


@every_door
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_comes_back(door: Door, dtype: torch.dtype) -> None:
    for layout in ("NHWC", "NCHW"):
        arguments = door.arguments(dtype=DTYPES[dtype], layout=layout)
        result = door.function(**given(door, DTYPES[dtype], layout=layout))
        assert type(result) is torch.Tensor and result.dtype == dtype
        assert not result.requires_grad
        theirs = door.function(**arguments)
        assert tuple(result.shape) == theirs.shape
        assert np.array_equal(adapter.as_ndarray(result), theirs)
        assert np.array_equal(adapter.as_ndarray(result), expected(door, layout=layout))


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.takes_int32], ids=lambda door: door.id
)
def test_integers(door: Door) -> None:
    result = door.function(**given(door, np.int32))
    assert result.dtype == torch.int32 and np.array_equal(result, expected(door))


@every_door
def test_bits_are_those_of_the_numpy_call(door: Door) -> None:
    """Random numbers round: the same kernels must have run."""
    rng = np.random.default_rng(1)
    for layout in ("NHWC", "NCHW"):
        arguments = door.arguments(layout=layout)
        for name in door.arrays:
            arguments[name] = rng.standard_normal(arguments[name].shape).astype(np.float32)
        tensors = {name: tensor(arguments[name]) for name in door.arrays}
        result = door.function(**arguments | tensors)
        assert result.numpy().tobytes() == door.function(**arguments).tobytes() or (
            np.array_equal(result.numpy(), door.function(**arguments))
        )


@every_door
def test_gradients(door: Door) -> None:
    """Against finite differences in float64, to the second order."""
    arguments = given(door, np.float64)
    names = [name for name in door.arrays if not (door.like and name in _only_shapes(door))]
    operands = [arguments[name].requires_grad_() for name in names]

    def call(*tensors: Any) -> Any:
        return door.function(**arguments | dict(zip(names, tensors, strict=True)))

    assert torch.autograd.gradcheck(
        call, operands, nondet_tol=0, check_forward_ad=True, fast_mode=True
    )
    assert torch.autograd.gradgradcheck(call, operands, nondet_tol=0, fast_mode=True)


def _only_shapes(door: Door) -> tuple[str, ...]:
    """The array whose shape alone is read: the V2 raw ops have one."""
    return (door.input,) if door.op.endswith("_input") else (door.filter,)


@every_door
def test_a_tensor_beside_other_arrays(door: Door) -> None:
    """One tensor makes the result one, whichever argument it is; lists and arrays become tensors."""
    for first in door.arrays:
        for other in (np.asarray, lambda array: array.tolist()):
            arguments = given(door, np.float32, other)
            arguments[first] = tensor(door.arguments()[first])
            result = door.function(**arguments)
            assert type(result) is torch.Tensor, (first, type(result))
            assert result.dtype == torch.float32
            assert np.array_equal(result.numpy(), expected(door))


def test_an_array_that_must_not_be_written_to() -> None:
    image = np.ones((1, 2, 2, 1), np.float32)
    image.flags.writeable = False
    assert convgrad.conv2d(image, torch.ones(2, 2, 1, 1), 1, "VALID").item() == 4


VIEWS = {
    "as it is": lambda x: x,
    "axes reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "every second": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "NCHW memory": lambda x: x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1),
    "behind others": lambda x: torch.cat([torch.zeros_like(x[:1]), x])[1:],
    "expanded": lambda x: x[:1].expand_as(x) if bool((x == x[:1]).all()) else x,
    "negated late": lambda x: torch._neg_view(-x),
}


@every_door
@pytest.mark.parametrize("view", VIEWS)
def test_views(door: Door, view: str) -> None:
    arguments = given(door, change=lambda array: VIEWS[view](tensor(array)))
    assert np.array_equal(door.function(**arguments), expected(door))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_readable_memory_is_not_copied(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    """Programs are run on the addresses of the tensors themselves: NHWC and NCHW, and NHWC views of NCHW memory."""
    seen: list[int] = []
    original = kernels.carry_out

    def watch(function: str, recipe: Any, operands: Any) -> Any:
        seen.extend(each.data_ptr() for each in operands if each is not None)
        return original(function, recipe, operands)

    monkeypatch.setattr(kernels, "carry_out", watch)
    weight = torch.ones(3, 3, 4, 4, dtype=dtype)
    nhwc, nchw = torch.ones(2, 5, 6, 4, dtype=dtype), torch.ones(2, 4, 5, 6, dtype=dtype)
    for image, layout in ((nhwc, "NHWC"), (nchw, "NCHW"), (nchw.permute(0, 2, 3, 1), "NHWC")):
        seen.clear()
        result = convgrad.conv2d(image, weight, 1, "SAME", data_format=layout)
        assert set(seen) == {image.data_ptr(), weight.data_ptr()}
        convgrad.conv2d_backprop_input(image.shape, weight, result, 1, "SAME", data_format=layout)
        assert result.data_ptr() in seen
        convgrad.conv2d_backprop_filter(image, weight.shape, result, 1, "SAME", data_format=layout)
        assert seen.count(image.data_ptr()) == 2 and seen.count(result.data_ptr()) == 2
        assert len(seen) == 6
    # A view that is neither must be copied: the test above can fail.
    seen.clear()
    convgrad.conv2d(nhwc[:, ::2], weight, 1, "SAME")
    assert nhwc.data_ptr() not in seen


def test_where_gradients_are_recorded() -> None:
    image = torch.ones(1, 3, 3, 1, requires_grad=True)
    weight = torch.ones(2, 2, 1, 1)
    assert convgrad.conv2d(image, weight, 1, "SAME").requires_grad
    assert convgrad.conv2d(image, weight, 1, "SAME").grad_fn is not None
    assert not convgrad.conv2d(image.detach(), weight, 1, "SAME").requires_grad
    with torch.no_grad():
        assert not convgrad.conv2d(image, weight, 1, "SAME").requires_grad
    with torch.inference_mode():
        made = convgrad.conv2d(image, weight, 1, "SAME")
        assert made.is_inference() and not made.requires_grad


def test_autocast() -> None:
    image, weight = torch.randn(2, 6, 6, 4), torch.randn(3, 3, 4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = convgrad.conv2d(image, weight, 1, "SAME")
        double = convgrad.conv2d(image.double(), weight.double(), 1, "SAME")
    assert made.dtype == torch.bfloat16 and double.dtype == torch.float64
    again = convgrad.conv2d(image.bfloat16(), weight.bfloat16(), 1, "SAME")
    assert torch.equal(made, again)


@every_door
def test_tensors_without_numbers(door: Door) -> None:
    """Meta tensors and fake ones have a shape and a dtype, and so has the result."""
    shape = tuple(np.shape(expected(door)))
    result = door.function(**given(door, change=lambda array: tensor(array).to("meta")))
    assert result.device.type == "meta" and tuple(result.shape) == shape
    with FakeTensorMode() as mode:
        arguments = given(door, change=lambda array: mode.from_tensor(tensor(array)))
        result = door.function(**arguments)
        assert tuple(result.shape) == shape and result.dtype == torch.float32


class Marked(torch.Tensor):
    """A subclass that keeps PyTorch's own rules: operations give the subclass again."""


def test_subclasses() -> None:
    image, weight = torch.randn(1, 4, 4, 2), torch.randn(2, 2, 2, 3)
    plain = convgrad.conv2d(image, weight, 1, "SAME")
    for operands in (
        (image.as_subclass(Marked), weight),
        (image, torch.nn.Parameter(weight)),
        (torch.nn.Parameter(image), weight.as_subclass(Marked)),
    ):
        made = convgrad.conv2d(*operands, 1, "SAME")
        assert isinstance(made, torch.Tensor)
        assert torch.equal(made.detach().as_subclass(torch.Tensor), plain)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_empty_tensors(requires_grad: bool) -> None:
    for shape, window, made in (
        ((0, 4, 4, 2), (3, 3, 2, 5), (0, 4, 4, 5)),
        ((2, 0, 4, 2), (3, 3, 2, 5), (2, 0, 4, 5)),
        ((2, 4, 4, 2), (3, 3, 2, 0), (2, 4, 4, 0)),
    ):
        image = torch.ones(shape, requires_grad=requires_grad)
        weight = torch.ones(window, requires_grad=requires_grad)
        result = convgrad.conv2d(image, weight, 1, "SAME")
        assert tuple(result.shape) == made and not result.detach().any()
        if requires_grad:
            result.sum().backward()
            for each in (image, weight):
                assert each.grad is not None and each.grad.shape == each.shape
                assert not each.grad.any()


def test_sparse_tensors_are_refused() -> None:
    sparse = torch.ones(1, 3, 3, 1).to_sparse()
    with pytest.raises(
        ArgumentTypeError, match=r"conv2d: `input` must be a dense tensor.*to_dense"
    ):
        convgrad.conv2d(sparse, torch.ones(2, 2, 1, 1), 1, "SAME")
    with pytest.raises(ArgumentTypeError, match=r"conv2d: `filters` must be a dense tensor"):
        convgrad.conv2d(torch.ones(1, 3, 3, 1), torch.ones(2, 2, 1, 1).to_sparse(), 1, "SAME")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.uint8])
def test_other_dtypes_are_refused(dtype: torch.dtype) -> None:
    image, weight = torch.ones(1, 3, 3, 1, dtype=dtype), torch.ones(2, 2, 1, 1, dtype=dtype)
    with pytest.raises(DTypeError, match=f"conv2d: `input` must have one of .*got {dtype}"):
        convgrad.conv2d(image, weight, 1, "SAME")


def test_dtypes_are_not_mixed() -> None:
    image, weight = torch.ones(1, 1, 1, 1, dtype=torch.bfloat16), torch.ones(1, 1, 1, 1)
    with pytest.raises(DTypeError, match=r"`filters` must have the dtype .* bfloat16, got float32"):
        convgrad.conv2d(image, weight, 1, "SAME")
    with pytest.raises(DTypeError, match=r"`filters` must have the dtype"):
        convgrad.conv2d(image, np.ones((1, 1, 1, 1)), 1, "SAME")


def test_shapes_are_checked_as_for_arrays() -> None:
    with pytest.raises(ArgumentError) as of_tensors:
        convgrad.conv2d(torch.ones(1, 3, 3, 2), torch.ones(2, 2, 3, 1), 1, "SAME")
    with pytest.raises(ArgumentError) as of_arrays:
        convgrad.conv2d(np.ones((1, 3, 3, 2)), np.ones((2, 2, 3, 1)), 1, "SAME")
    assert str(of_tensors.value) == str(of_arrays.value)


@pytest.mark.parametrize("door", REFERENCE, ids=lambda door: door.id)
def test_the_oracle_answers_in_numpy(door: Door) -> None:
    result = door.function(**given(door))
    assert type(result) is np.ndarray and result.dtype == np.float64
    assert np.array_equal(result, expected(door))
    arguments = given(door, change=lambda array: tensor(array).requires_grad_())
    with pytest.raises(ArgumentTypeError, match="requires grad"):
        door.function(**arguments)
