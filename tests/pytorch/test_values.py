"""Results and gradients of the whole list: right in every dtype, with the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from pytorch.configurations import CONFIGURATIONS, Configuration
from pytorch.running import DTYPES, assert_right, bits, everything, function, native, operands


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_list_is_long_and_holds_nothing_twice() -> None:
    assert len(CONFIGURATIONS) >= 200
    assert len(set(CONFIGURATIONS)) == len(CONFIGURATIONS)
    assert all(each.fits for each in CONFIGURATIONS)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_values_and_gradients(configuration: Configuration) -> None:
    for dtype in DTYPES:
        if configuration.left_to_pytorch and dtype.itemsize < 4:
            continue  # PyTorch's own sums of 16-bit numbers err by more than ours may
        tensors = operands(configuration, dtype)
        assert_right(configuration, everything(function(configuration), tensors), tensors)


@pytest.mark.parametrize(
    "configuration", [each for each in CONFIGURATIONS if not each.left_to_pytorch], ids=str
)
def test_bits_do_not_depend_on_threads(configuration: Configuration, threads: None) -> None:
    """Nor on the run: each number of threads is asked twice."""
    tensors = operands(configuration, torch.float32)
    seen = set()
    for number in (1, 2, 3, 2, 1, 3):
        torch.set_num_threads(number)
        seen.add(bits(everything(function(configuration), tensors)))
    assert len(seen) == 1


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_tensors_lie_as_pytorchs_do(configuration: Configuration) -> None:
    """Strides decide which way the layers behind take, so they are part of the answer."""
    tensors = operands(configuration, torch.float32)
    # The image's gradient lies as the image; PyTorch's lies as the filter where that is channels_last.
    compared = 1 if configuration.weight == "OHWI" else 2
    mine = everything(function(configuration), tensors)[:compared]
    theirs = everything(native(configuration), tensors)[:compared]
    for ours, others in zip(mine, theirs, strict=True):
        for order in (torch.contiguous_format, torch.channels_last):
            if ours.dim() == 4:
                lies = ours.is_contiguous(memory_format=order)
                assert lies == others.is_contiguous(memory_format=order), ours.stride()
