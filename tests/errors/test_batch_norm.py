"""What `batch_norm_act` and its gradient refuse, in words that name function, argument, rule and value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad.errors import AllocationError, ArgumentError, ArgumentTypeError, DTypeError

X = np.ones((2, 3, 4, 5), np.float32)
ROW = np.ones(5, np.float32)
FORWARD = {"input": X, "scale": ROW, "offset": ROW}
BACKWARD = {"out_backprop": X, **FORWARD, "mean": ROW, "variance": ROW}
CALLS = {
    "batch_norm_act": (convgrad.batch_norm_act, FORWARD),
    "batch_norm_act_grad": (convgrad.batch_norm_act_grad, BACKWARD),
    "reference.batch_norm_act": (reference.batch_norm_act, FORWARD),
    "reference.batch_norm_act_grad": (reference.batch_norm_act_grad, BACKWARD),
}
every_call = pytest.mark.parametrize("name", CALLS)


def refusal(name: str, kind: type[Exception], **changes: Any) -> str:
    function, given = CALLS[name]
    with pytest.raises(kind) as caught:
        function(**{**given, **changes})
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.startswith(f"{name}: ") and message[-1] in ".?", message
    return message.removeprefix(f"{name}: ")


WORDS = "'none', 'relu', 'relu6', 'leaky_relu', 'silu', 'hardswish', 'gelu', 'gelu_tanh'"
SETTINGS = [
    (ArgumentError, {"epsilon": -1e-5}, "`epsilon` must be at least 0, got -1e-05."),
    (ArgumentError, {"epsilon": np.nan}, "`epsilon` must be finite, got nan."),
    (ArgumentError, {"epsilon": 10**400}, "`epsilon` must be finite, got 10000"),
    (ArgumentTypeError, {"epsilon": "1e-3"}, "`epsilon` must be a number, got '1e-3'."),
    (ArgumentTypeError, {"epsilon": True}, "`epsilon` must be a number, got True."),
    (ArgumentTypeError, {"epsilon": None}, "`epsilon` must be a number, got None."),
    (ArgumentError, {"negative_slope": np.inf}, "`negative_slope` must be finite, got inf."),
    (ArgumentTypeError, {"negative_slope": []}, "`negative_slope` must be a number, got []."),
    (ArgumentTypeError, {"is_training": 1}, "`is_training` must be True or False, got 1."),
    (
        ArgumentError,
        {"activation": "relu66"},
        f"`activation` must be one of {WORDS}, got 'relu66'; did you mean 'relu6'?",
    ),
    (ArgumentTypeError, {"activation": 3}, f"`activation` must be one of {WORDS}, got 3."),
    (
        ArgumentError,
        {"residual_position": "middle"},
        "`residual_position` must be one of 'before', 'after', got 'middle'.",
    ),
    (ArgumentError, {"data_format": "CHW"}, "`data_format` must be 'NHWC' or 'NCHW', got 'CHW'."),
    (
        ArgumentError,
        {"input": X[0]},
        "`input` must have 4 dimensions (NHWC), got 3: shape [3, 4, 5].",
    ),
    (
        ArgumentError,
        {"residual": X[:1]},
        "`residual` must have the shape of `input`, [2, 3, 4, 5], got [1, 3, 4, 5].",
    ),
    (
        ArgumentError,
        {"scale": np.ones(3, np.float32)},
        "`scale` must have one number per channel of `input`, [5] (NHWC), got shape [3].",
    ),
    (
        ArgumentError,
        {"data_format": "NCHW"},
        "`scale` must have one number per channel of `input`, [3] (NCHW), got shape [5].",
    ),
    (ArgumentError, {"input": None}, "`input` must be an array, got None."),
]


@every_call
@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: f"{next(iter(row[1]))}-{row[2][-20:]}")
def test_settings_and_shapes(name: str, row: Any) -> None:
    kind, changes, message = row
    assert refusal(name, kind, **changes).startswith(message)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.endswith("_grad")])
def test_statistics_are_given_where_they_are_used(name: str) -> None:
    rule = "`mean` must be None when `is_training` is True, because the batch's own is used; got ndarray."
    assert refusal(name, ArgumentError, mean=ROW, variance=ROW) == rule
    rule = "`variance` must be given when `is_training` is False, got None."
    assert refusal(name, ArgumentError, is_training=False, mean=ROW) == rule


@pytest.mark.parametrize("name", [name for name in CALLS if name.endswith("_grad")])
def test_gradients_are_told_the_statistics(name: str) -> None:
    forward = name.removesuffix("_grad")
    rule = f"`variance` must be the one that {forward} returned, got None."
    assert refusal(name, ArgumentError, variance=None) == rule
    shape = "`out_backprop` must have the shape of `input`, [2, 3, 4, 5], got [2, 3, 4, 4]."
    assert refusal(name, ArgumentError, out_backprop=X[..., :4]) == shape


@pytest.mark.parametrize("name", ["batch_norm_act", "batch_norm_act_grad"])
def test_dtypes(name: str) -> None:
    """Rows are float32, and float64 where images are: TensorFlow's rule for its second type."""
    rule = "`{}` must have one of the dtypes half, bfloat16, float32, float64, got int64."
    first = "input" if name == "batch_norm_act" else "out_backprop"
    assert refusal(name, DTypeError, **{first: X.astype(int)}) == rule.format(first)
    rule = "`scale` must have the dtype float32, got float16."
    assert refusal(name, DTypeError, scale=ROW.astype(np.float16)) == rule
    rule = "`residual` must have the dtype of the arrays before it, float32, got float64; convert one of them"
    assert refusal(name, DTypeError, residual=X.astype(float)).startswith(rule)
    wide = {key: X.astype(float) for key in ("input", "out_backprop") if key in CALLS[name][1]}
    rule = "`scale` must have the dtype float64, got float32."
    assert refusal(name, DTypeError, **wide) == rule


@every_call
def test_the_oracle_and_the_functions_want_numbers(name: str) -> None:
    message = refusal(name, ArgumentError, input=np.full((1, 1, 1, 5), object()))
    assert message.startswith("`input` must be an array of numbers, got Python objects")


def test_memory_that_is_not_there() -> None:
    """Named, before anything is read: the result's size is known."""
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 10, 1 << 10, 5))
    with pytest.raises((AllocationError, MemoryError)):
        convgrad.batch_norm_act(huge)
