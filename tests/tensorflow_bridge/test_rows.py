"""Every row of activations and dtypes on tensors of TensorFlow, eagerly and in graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
import new_row
import rows
from convgrad._base.dtypes import DTYPES, DType
from convgrad._bridges.tensorflow import formulas
from convgrad.tensorflow import batch_norm_act


def test_formulas() -> None:
    rows.check_formula(formulas.activated, tf.constant)


def test_formulas_in_a_graph() -> None:
    def activated(name: str, u: Any, slope: float) -> Any:
        return tf.function(lambda u: formulas.activated(name, u, slope), autograph=False)(u)

    rows.check_formula(activated, tf.constant)


@pytest.mark.parametrize(("name", "row"), rows.PAIRS)
def test_kernels(name: str, row: DType) -> None:
    def run(x: Any, scale: Any, offset: Any, activation: str, slope: float) -> Any:
        y, *_ = batch_norm_act(
            *map(tf.constant, (x, scale, offset)),
            epsilon=0.25,
            activation=activation,
            negative_slope=slope,
        )
        assert y.dtype.as_numpy_dtype == row.numpy.type
        return y.numpy().astype(np.float64)

    rows.check_door(name, row, run)


def test_the_numbers_of_dtypes() -> None:
    for row in DTYPES:
        found = tf.dtypes.as_dtype(row.numpy.name)
        assert found.as_datatype_enum == row.tensorflow
        assert tf.dtypes.as_dtype(row.tensorflow_name) == found


def test_an_unknown_activation_is_refused() -> None:
    x = tf.ones((1, 2, 2, 1))
    for function in (batch_norm_act, convgrad.batch_norm_act):
        rows.check_unknown(lambda name, function=function: function(x, activation=name))
        rows.check_unknown(
            lambda name, function=function: tf.function(
                lambda x: function(x, activation=name)[0], autograph=False
            )(x)
        )


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_dtype_is_taken(row: DType) -> None:
    rows.check_dtype(row, tf.constant, lambda tensor: tensor.numpy())
    graph = tf.function(lambda x, f: convgrad.conv2d(x, f, 1, "SAME"), autograph=False)
    one = np.ones((1, 2, 2, 1), row.numpy)
    assert graph(one, one.reshape(2, 2, 1, 1)).numpy().ravel().tolist() == [4, 2, 2, 1]


def test_no_table_lacks_a_dtype() -> None:
    rows.check_tables("convgrad._bridges.tensorflow", "convgrad._arrays")
