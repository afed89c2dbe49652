"""Arrays of JAX and TensorFlow go in as they are, bfloat16 too; both give NumPy what ml_dtypes calls bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from convgrad._base.dtypes import FLOATING
from errors.doors import DOORS, EVERY, expected

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


def jax() -> Callable[[Any], Any]:
    module = pytest.importorskip("jax", reason="JAX is not installed")
    module.config.update("jax_enable_x64", True)
    convert: Callable[[Any], Any] = module.numpy.asarray
    return convert


def tensorflow() -> Callable[[Any], Any]:
    module = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    convert: Callable[[Any], Any] = module.constant
    return convert


def test_tensors_of_tensorflow_come_back() -> None:
    """From every door; the oracle answers in NumPy. All else about them is tested in `tests/tensorflow_bridge`."""
    convert = tensorflow()
    for door in EVERY:
        arguments = door.arguments()
        made = door.function(**arguments | {name: convert(arguments[name]) for name in door.arrays})
        assert isinstance(made, np.ndarray if door not in DOORS else type(convert(0))), door.id


@pytest.mark.parametrize("framework", [jax, tensorflow])
def test_arrays_go_through_every_door(framework: Any) -> None:
    convert = framework()
    for row in FLOATING:
        for door in EVERY:
            arguments = door.arguments(dtype=row.numpy)
            arguments |= {name: convert(arguments[name]) for name in door.arrays}
            result = door.function(**arguments)
            assert result.dtype == (row.numpy if door in DOORS else np.float64), (row, door.id)
            assert np.array_equal(result, expected(door)), (row, door.id)
            if framework is jax:  # arrays of its own, but for the oracle's answers
                assert isinstance(result, np.ndarray) is (door not in DOORS), (row, door.id)
