"""Every row of activations and dtypes on tensors of PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import convgrad
import new_row
import rows
from convgrad._base.dtypes import BFLOAT16, DTYPES, FLOATING, DType
from convgrad._bridges.torch import activations as layers
from convgrad._bridges.torch import composed, passes
from convgrad._problem import activations
from convgrad.torch import batch_norm_act


def tensor(array: Any) -> Any:
    if array.dtype == BFLOAT16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array(result: Any) -> Any:
    if result.dtype is torch.bfloat16:
        return result.view(torch.int16).numpy().view(BFLOAT16.numpy)
    return result.numpy()


def test_formulas() -> None:
    rows.check_formula(composed.activated, tensor)


@pytest.mark.parametrize(("name", "row"), rows.PAIRS)
def test_kernels(name: str, row: DType) -> None:
    def run(x: Any, scale: Any, offset: Any, activation: str, slope: float) -> Any:
        y = batch_norm_act(
            *(tensor(x).permute(0, 3, 1, 2), tensor(scale), tensor(offset)),
            training=True,
            eps=0.25,
            activation=activation,
            negative_slope=slope,
        )
        assert y.dtype is getattr(torch, row.numpy.name)
        return y.permute(0, 2, 3, 1).double().numpy()

    rows.check_door(name, row, run)


def test_layers_and_functions_are_known_by_their_rows() -> None:
    for row in activations.ROWS:
        settings = dict(row.torch_settings)
        if row.torch_layer:
            layer = getattr(nn, row.torch_layer)(**settings)
            assert layers.LAYERS[type(layer)](layer) == (row.name, 0.01 if row.has_slope else 0.0)
        if row.torch:
            found = layers.known_activation(getattr(F, row.torch), (), settings)
            assert found is not None and found.name == row.name


def test_the_numbers_of_dtypes() -> None:
    for row in DTYPES:
        assert torch.empty(1, dtype=getattr(torch, row.numpy.name)).element_size() == row.itemsize


def test_an_unknown_activation_is_refused() -> None:
    x = torch.ones(1, 1, 2, 2)
    rows.check_unknown(lambda name: batch_norm_act(x, activation=name, training=True))
    rows.check_unknown(lambda name: convgrad.batch_norm_act(x, activation=name))


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_dtype_is_taken(row: DType) -> None:
    rows.check_dtype(row, tensor, array)


def test_no_table_lacks_a_dtype() -> None:
    rows.check_tables("convgrad._bridges.torch", "convgrad._arrays")
    assert {*passes.PARAMETERS} == {getattr(torch, row.numpy.name) for row in FLOATING}
