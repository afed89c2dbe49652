"""`convgrad.batch_norm_act` and its gradients on every kind of array, beside the same calls on NumPy's arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import convgrad
from convgrad._base.dtypes import BFLOAT16, DOUBLE, FLOAT, HALF, DType, accumulator, round_once
from convgrad.errors import ConvgradError

FORWARD, BACKWARD = convgrad.batch_norm_act, convgrad.batch_norm_act_grad
Make = Callable[[Any], Any]


class Case(NamedTuple):
    """A call, whatever its arrays are."""

    shape: tuple[int, int, int, int] = (3, 4, 5, 6)
    row: DType = FLOAT
    is_training: bool = True
    residual: str = ""
    activation: str = "relu"
    data_format: str = "NHWC"
    slope: float = 0.2
    epsilon: float = 0.01
    rows: str = "both"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "is_training": self.is_training,
            "activation": self.activation,
            "negative_slope": self.slope,
            "residual_position": self.residual or "before",
            "data_format": self.data_format,
        }

    def arrays(self) -> dict[str, Any]:
        """Draw the arrays of a forward call."""
        rng = np.random.default_rng(7)
        channels = self.shape[self.data_format.index("C")]

        def image() -> Any:
            return round_once(rng.standard_normal(self.shape), self.row)

        def row(low: float, high: float) -> Any:
            return round_once(rng.uniform(low, high, channels), accumulator(self.row))

        given = {"input": image()}
        if self.rows == "both":
            given |= {"scale": row(-1, 2), "offset": row(-1, 1)}
        if not self.is_training:
            given |= {"mean": row(-1, 1), "variance": row(0.5, 2)}
        if self.residual:
            given["residual"] = image()
        return given

    def out_backprop(self) -> Any:
        rng = np.random.default_rng(8)
        return round_once(rng.standard_normal(self.shape), self.row)


CASES = [
    *(
        Case(residual=residual, is_training=training, activation=word, data_format=layout)
        for residual, training, word, layout in product(
            ("", "before", "after"), (True, False), ("none", "relu", "silu"), ("NHWC", "NCHW")
        )
    ),
    *(Case(row=row, residual="before") for row in (HALF, BFLOAT16, DOUBLE)),
    *(Case(row=row, is_training=False) for row in (HALF, BFLOAT16, DOUBLE)),
    # Its result's sign tells nothing of the argument's.
    Case(activation="leaky_relu", slope=-0.3, residual="before"),
    Case(activation="leaky_relu", slope=-0.3, residual="before", row=DOUBLE, is_training=False),
    Case(activation="leaky_relu", residual="before"),
    Case(rows="none", activation="gelu", residual="after"),
    Case(shape=(1, 1, 1, 4)),
    Case(shape=(0, 2, 2, 3), residual="before"),
    Case(shape=(0, 2, 2, 3), is_training=False),
    Case(shape=(2, 2, 2, 0)),
    Case(epsilon=0.0),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[2:])))


def made(make: Make, given: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else make(value) for name, value in given.items()}


def gradient_arguments(case: Case, forward: Any) -> dict[str, Any]:
    """Return the arrays of a gradient, from those and the result of the forward call on NumPy's."""
    given = {"scale": None, "offset": None} | case.arrays()
    given |= {"mean": forward.mean, "variance": forward.variance}
    return {"out_backprop": case.out_backprop(), **given}


def check_case(case: Case, make: Make, back: Make, own: type) -> None:
    """Check both functions on arrays of a framework; `back` returns NumPy's, `own` is the framework's type."""
    given = case.arrays()
    want = FORWARD(**given, **case.settings)
    got = FORWARD(**made(make, given), **case.settings)
    assert type(got) is type(want)
    compare(case, want, got, back, own)
    arguments = gradient_arguments(case, want)
    want_back = BACKWARD(**arguments, **case.settings)
    got_back = BACKWARD(**made(make, arguments), **case.settings)
    assert type(got_back) is type(want_back)
    compare(case, want_back, got_back, back, own)


def compare(case: Case, want: Any, got: Any, back: Make, own: type) -> None:
    """Compare results by name: in accumulators' units, and one more of the images'."""
    for name, one, other in zip(want._fields, want, got, strict=True):
        if one is None:
            assert other is None, name
            continue
        assert isinstance(other, own), name
        array = back(other)
        assert (array.shape, array.dtype) == (one.shape, one.dtype), name
        unit = 64 * accumulator(case.row).unit + (2 * case.row.unit if one.ndim == 4 else 0)
        np.testing.assert_allclose(
            array.astype(np.float64), one.astype(np.float64), rtol=unit, atol=4 * unit, err_msg=name
        )


def check_mixed(make: Make, back: Make, own: type) -> None:
    """Check that one array of a framework is enough, wherever it stands, beside arrays and lists of NumPy's."""
    case = Case(is_training=False, residual="before")
    given = case.arrays()
    want = FORWARD(**given, **case.settings)
    arguments = gradient_arguments(case, want)
    want_back = BACKWARD(**arguments, **case.settings)
    for name in given:
        one = {**given, "offset": given["offset"].tolist(), name: make(given[name])}
        compare(case, want, FORWARD(**one, **case.settings), back, own)
    for name in arguments:
        one = {**arguments, "offset": arguments["offset"].tolist(), name: make(arguments[name])}
        compare(case, want_back, BACKWARD(**one, **case.settings), back, own)


X = np.ones((2, 3, 4, 5), np.float32)
ROW = np.ones(5, np.float32)
GIVEN = {
    FORWARD: {"input": X, "scale": ROW, "offset": ROW},
    BACKWARD: {
        "out_backprop": X,
        "input": X,
        "scale": ROW,
        "offset": ROW,
        "mean": ROW,
        "variance": ROW,
    },
}
BOTH: list[dict[str, Any]] = [
    {"epsilon": -1.0},
    {"epsilon": "small"},
    {"is_training": 1},
    {"activation": "swoosh"},
    {"activation": 3},
    {"negative_slope": np.inf},
    {"residual_position": "middle"},
    {"data_format": "CHW"},
    {"data_format": "NCHW"},
    {"input": X[0]},
    {"input": None},
    {"residual": X[:1]},
    {"residual": X.astype(np.float64)},
    {"scale": ROW[:3]},
    {"scale": ROW.astype(np.float16)},
    {"offset": np.ones((5, 1), np.float32)},
    {"input": X.astype(np.int32)},
    {"input": X.astype(np.float64)},
]
MISTAKES: list[tuple[Any, dict[str, Any]]] = [
    *((function, change) for function in (FORWARD, BACKWARD) for change in BOTH),
    (FORWARD, {"mean": ROW, "variance": ROW}),
    (FORWARD, {"is_training": False, "mean": ROW}),
    (BACKWARD, {"variance": None}),
    (BACKWARD, {"out_backprop": X[..., :4]}),
    (BACKWARD, {"out_backprop": None}),
]
"""Calls that are wrong, on every kind of array in the same way."""


def refusal(function: Any, arguments: dict[str, Any]) -> tuple[type, str]:
    with pytest.raises(ConvgradError) as caught:
        function(**arguments)
    told = str(caught.value)
    # What frameworks call a dtype, a type, or a conversion.
    told = re.sub(r"got (torch|tf|jax)\.(\w+)", r"got \2", told)
    told = re.sub(r"because the batch's own is used; got \w+", "", told)
    return type(caught.value), re.sub(r"convert one of them with `[^`]*`", "convert", told)


def check_mistakes(make: Make) -> None:
    """Check that arrays of a framework are refused as NumPy's are: the same kind of error in the same words."""
    for function, change in MISTAKES:
        plain = {**GIVEN[function], **change}
        theirs = {
            name: make(value) if isinstance(value, np.ndarray) else value
            for name, value in plain.items()
        }
        assert refusal(function, theirs) == refusal(function, plain), change
