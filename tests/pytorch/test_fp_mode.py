"""PyTorch's and the caller's floating-point mode: no subnormal number is lost, on our own threads and on OpenMP's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import convgrad
import fp_modes
from convgrad import torch as ours
from convgrad._runtime.state import OPENMP, OWN, STATE_BLOCK
from pytorch.running import bits, everything

pytestmark = pytest.mark.skipif(not fp_modes.AVAILABLE, reason="no fesetenv that we know here")

CHANNELS = 16


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


def _tensors() -> list[torch.Tensor]:
    """An image of subnormal numbers, and a filter whose sums of them stay subnormal and are not 0."""
    source = torch.Generator().manual_seed(1)
    image = torch.rand(2, CHANNELS, 24, 24, generator=source).add(1).mul(2.0**-140)
    weight = torch.rand(CHANNELS, 1, 3, 3, generator=source).add(1)
    return [each.requires_grad_() for each in (image, weight)]


def _call(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return ours.conv2d(image, weight, padding=1, groups=CHANNELS)


@pytest.mark.parametrize("pool", ["own", "openmp"])
def test_subnormals_are_kept_and_rounding_is_to_nearest(pool: str, threads: None) -> None:
    """By a caller who flushes, after `torch.set_flush_denormal`, and in every rounding mode; PyTorch's own are lost."""
    tensors = _tensors()
    rough = [torch.randn(each.shape).requires_grad_() for each in tensors]
    with convgrad.options(pool=pool):
        wanted, wanted_rough = bits(everything(_call, tensors)), bits(everything(_call, rough))
        assert STATE_BLOCK["POOL"] == (OWN if pool == "own" else OPENMP)
        result = _call(*tensors)
        assert result.abs().min() > 0 and result.max() < torch.finfo(torch.float32).tiny
        found, found_rough = [], []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            with convgrad.threads(number):
                assert torch.set_flush_denormal(True)
                found += [[each.clone() for each in everything(_call, tensors)] for _ in range(3)]
                assert float(tensors[0].detach().mul(1).max()) == 0
                torch.set_flush_denormal(False)
                for mode in fp_modes.MODES:
                    with fp_modes.set_to(mode):
                        found.append(everything(_call, tensors))
                        found_rough.append(everything(_call, rough))
    for made in found:
        assert int((made[0] == 0).sum()) == 0
        assert bits(made) == wanted
    assert {bits(each) for each in found_rough} == {wanted_rough}
