"""What is done with tensors before PyTorch is asked: they are recognised, and the oracle reads them as arrays.

A stand-in takes PyTorch's place where it is absent. Tensors that are computed with are tested in `tests/pytorch`.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from convgrad import _arrays, reference
from convgrad._arrays import torch as adapter
from convgrad._base.dtypes import FLOATING
from convgrad.errors import ArgumentTypeError
from errors.doors import REFERENCE, expected

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Tensor:
    """As much of a tensor as matters: no array of it where the dtype is bfloat16 or a gradient would be lost."""

    def __init__(self, array: Any, requires_grad: bool = False, device: str = "cpu") -> None:
        self.array, self.requires_grad, self.device = array, requires_grad, device

    @property
    def dtype(self) -> Any:
        return "torch.bfloat16" if self.array.dtype == BFLOAT16 else self.array.dtype

    def detach(self) -> Tensor:
        return Tensor(self.array, device=self.device)

    def view(self, dtype: Any) -> Tensor:
        return Tensor(
            self.array.view(dtype), device=self.device
        )  # without a gradient, as PyTorch's

    def numpy(self) -> Any:
        if self.requires_grad and sys.modules["torch"].is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu":
            raise TypeError(f"can't convert {self.device} device type tensor to numpy.")
        if self.array.dtype == BFLOAT16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("torch")
    module.Tensor, module.int16 = Tensor, np.int16
    module.bfloat16 = "torch.bfloat16"
    module.is_grad_enabled = lambda: True
    monkeypatch.setitem(sys.modules, "torch", module)
    return SimpleNamespace(
        module=module,
        tensor=Tensor,
        with_grad=lambda array: Tensor(array, requires_grad=True),
        elsewhere=lambda array: Tensor(array, device="cuda:0"),
    )


@pytest.fixture
def real() -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def tensor(array: Any) -> Any:
        array = np.ascontiguousarray(array)
        if array.dtype == BFLOAT16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return SimpleNamespace(
        module=torch,
        tensor=tensor,
        with_grad=lambda array: tensor(array).requires_grad_(),
        elsewhere=lambda array: tensor(array).to("meta"),
    )


@pytest.fixture(params=["stand_in", pytest.param("real", marks=pytest.mark.peers)])
def torch(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
def test_the_oracle_takes_tensors_as_arrays(torch: Any, row: Any) -> None:
    for door in REFERENCE:
        arguments = door.arguments(dtype=row.numpy)
        arguments |= {name: torch.tensor(arguments[name]) for name in door.arrays}
        result = door.function(**arguments)
        assert type(result) is np.ndarray and result.dtype == np.float64, door.id
        assert np.array_equal(result, expected(door)), door.id


def test_the_memory_is_the_tensors_own(torch: Any) -> None:
    array = np.arange(24, dtype=np.float32).astype(BFLOAT16).reshape(2, 3, 4)
    tensor = torch.tensor(array)
    assert adapter.recognise(tensor)
    seen = adapter.as_ndarray(tensor)
    assert seen.dtype == BFLOAT16 and seen.shape == array.shape
    assert np.shares_memory(seen, array)
    assert np.array_equal(seen, array)


def test_a_gradient_that_would_be_lost_is_refused(torch: Any) -> None:
    """By the oracle, which has none: in every dtype alike, and as PyTorch does it."""
    one = np.ones((1, 1, 1, 1))
    for dtype in np.float32, BFLOAT16:
        array = one.astype(dtype)
        with pytest.raises(ArgumentTypeError, match=r"conv2d: `input` .*requires grad"):
            reference.conv2d(torch.with_grad(array), array, 1, "SAME")
        assert reference.conv2d(torch.with_grad(array).detach(), array, 1, "SAME").item() == 1


def test_a_gradient_nobody_asks_for_is_not_missed(stand_in: Any) -> None:
    stand_in.module.is_grad_enabled = lambda: False
    for dtype in np.float32, BFLOAT16:
        array = np.ones((1, 1, 1, 1), dtype)
        assert reference.conv2d(stand_in.with_grad(array), array, 1, "SAME").item() == 1


@pytest.mark.peers
def test_no_grad(real: Any) -> None:
    array = np.ones((1, 1, 1, 1), BFLOAT16)
    with real.module.no_grad():
        assert reference.conv2d(real.with_grad(array), array, 1, "SAME").item() == 1


def test_the_oracle_refuses_memory_of_another_device(torch: Any) -> None:
    for dtype in np.float32, BFLOAT16:
        array = np.ones((1, 1, 1, 1), dtype)
        with pytest.raises(ArgumentTypeError, match=r"conv2d: `filters` .*device type tensor"):
            reference.conv2d(array, torch.elsewhere(array), 1, "SAME")


@pytest.mark.peers
@pytest.mark.parametrize("change", ["transposed", "every second", "repeated", "a number"])
def test_views(real: Any, change: str) -> None:
    tensor = real.tensor(np.arange(36, dtype=np.float32).astype(BFLOAT16).reshape(3, 3, 2, 2))
    tensor = {
        "transposed": lambda: tensor.permute(3, 2, 0, 1),
        "every second": lambda: tensor[..., ::2],
        "repeated": lambda: tensor[:, :1].expand(3, 5, 2, 2),
        "a number": lambda: tensor[1, 1, 1, 1],
    }[change]()
    assert np.array_equal(adapter.as_ndarray(tensor), tensor.float().numpy())


@pytest.mark.peers
def test_the_oracle_refuses_bits_that_are_applied_late(real: Any) -> None:
    """A tensor may be marked as negated without having been touched; PyTorch refuses arrays of such."""
    array = np.ones((1, 1, 1, 1), BFLOAT16)
    with pytest.raises(ArgumentTypeError, match="negative bit"):
        reference.conv2d(real.module._neg_view(real.tensor(array)), array, 1, "SAME")


@pytest.mark.parametrize("module", [None, ModuleType("torch"), SimpleNamespace(Tensor="none")])
def test_what_is_called_torch_need_not_be_it(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", module)
    assert not adapter.recognise(Tensor(np.ones(1)))
    assert _arrays.borrow_any("f", "x", Tensor(np.ones(1))).shape == (1,)


def test_without_torch_nothing_is_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not adapter.recognise(Tensor(np.ones(1)))
    assert "torch" not in sys.modules
