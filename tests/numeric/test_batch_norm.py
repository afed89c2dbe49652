"""`batch_norm_act` and its gradients on arrays: every way an array may lie, empty ones, lists, and the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad._base.dtypes import FLOATING, DType, accumulator, round_once
from convgrad._problem.norm import ACTIVATIONS
from layouts import LAYOUTS

SHAPES = {"NHWC": (2, 5, 7, 6), "NCHW": (2, 6, 5, 7)}
ROWS = ("scale", "offset", "mean", "variance")
each_dtype = pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)


def arrays(row: DType, shape: tuple[int, ...], channels: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng([21, seed])
    images = {
        name: round_once(rng.standard_normal(shape), row) for name in ("input", "residual", "grad")
    }
    rows = {
        name: round_once(rng.uniform(0.5, 2, channels), accumulator(row))
        for name in ("scale", "offset", "mean", "variance")
    }
    return images | rows


def both(of: Any, given: dict[str, Any], **settings: Any) -> tuple[Any, Any]:
    """Return the result and the gradients; mean and variance are given where the batch's are not used."""
    rows = [given.get(name) for name in ROWS]
    statistics = [None, None] if settings.get("is_training", True) else rows[2:]
    result = of.batch_norm_act(given["input"], *rows[:2], *statistics, **settings)
    gradients = of.batch_norm_act_grad(
        given["grad"], given["input"], *rows[:2], result.mean, result.variance, **settings
    )
    return result, gradients


def assert_like_the_oracle(row: DType, mine: Any, right: Any, message: str = "") -> None:
    """Within some units of numbers around 1; tests of the passes are stricter, and away from the kinks."""
    for name, exact in right._asdict().items():
        got = getattr(mine, name)
        if exact is None:
            assert got is None
            continue
        unit = max(row.unit, 2.0**-24) if got.ndim == 4 else accumulator(row).unit
        assert got.shape == exact.shape and got.flags.c_contiguous, (name, message)
        assert got.dtype == (row if got.ndim == 4 else accumulator(row)).numpy
        wide = got.astype(np.float64)
        # Sums of all values of a channel are as large as the largest of them says, and so are their roundings.
        allowed = 64 * unit * max(1.0, float(np.abs(exact).max(initial=0)))
        np.testing.assert_allclose(wide, exact, rtol=0, atol=allowed, err_msg=message)


@each_dtype
@pytest.mark.parametrize("data_format", SHAPES)
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_agrees_with_the_oracle(row: DType, data_format: str, part: int) -> None:
    """Every activation in every part, and a third of them with each position of a residual."""
    for number, activation in enumerate(ACTIVATIONS):
        turn = number + FLOATING.index(row) + list(SHAPES).index(data_format) + part
        position = (None, "before", "after")[turn % 3]
        given = arrays(row, SHAPES[data_format], 6, number)
        settings: dict[str, Any] = {"activation": activation, "data_format": data_format}
        settings |= {"is_training": number % 3 != 1, "epsilon": 0.01}
        if position is not None:
            settings |= {"residual": given["residual"], "residual_position": position}
        _smooth(given, settings)
        for mine, right in zip(
            both(convgrad, given, **settings), both(reference, given, **settings), strict=True
        ):
            assert_like_the_oracle(row, mine, right, f"{activation} {position}")


def _smooth(given: dict[str, Any], settings: dict[str, Any]) -> None:
    """Set the gradient to 0 where rounding decides on a derivative."""
    plain = {**settings, "activation": "none"}
    if settings.get("residual_position") == "after":
        plain.pop("residual")
    u = both(reference, given, **plain)[0].y
    close = np.abs(u[..., None] - np.array([-3, 0, 3, 6])).min(axis=-1) < 0.05
    given["grad"] = np.where(close, np.zeros_like(given["grad"]), given["grad"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("row", FLOATING[::-1], ids=lambda row: row.name)
def test_arrays_may_lie_as_they_like(layout: str, row: DType) -> None:
    """The same bits as from plain arrays, and nothing of the caller's is written to."""
    given = arrays(row, SHAPES["NHWC"], 6)
    settings = {"activation": "silu"}
    expected = both(convgrad, given, **settings, residual=given["residual"])
    laid = {name: LAYOUTS[layout](each) if each.ndim == 4 else each for name, each in given.items()}
    before = {name: each.tobytes() for name, each in given.items()}
    found = both(convgrad, laid, **settings, residual=laid["residual"])
    for mine, right in zip(found, expected, strict=True):
        for got, want in zip(mine, right, strict=True):
            assert type(got) is np.ndarray and got.tobytes() == want.tobytes()
            assert not any(np.may_share_memory(got, each) for each in laid.values())
    for name, each in laid.items():
        kept = np.ascontiguousarray(each.view(np.ndarray)).astype(
            given[name].dtype.newbyteorder("=")
        )
        assert kept.tobytes() == before[name]


def test_rows_may_lie_as_they_like() -> None:
    given = arrays(FLOATING[2], SHAPES["NHWC"], 6)
    expected = both(convgrad, given, is_training=False)
    for change in (
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(x.dtype.newbyteorder()),
        lambda x: x.tolist(),
    ):
        changed = given | {name: change(given[name]) for name in ROWS}
        for mine, right in zip(both(convgrad, changed, is_training=False), expected, strict=True):
            for got, want in zip(mine[:3], right[:3], strict=True):
                assert got.tobytes() == want.tobytes()


def test_lists_become_float32() -> None:
    result = convgrad.batch_norm_act([[[[1.0], [3.0]]]], [2], epsilon=3)
    assert result.y.dtype == np.float32 and result.y.ravel().tolist() == [-1.0, 1.0]
    found = convgrad.batch_norm_act_grad(
        [[[[1.0], [3.0]]]], [[[[1.0], [3.0]]]], None, None, [2], [1], epsilon=3
    )
    assert found.input.ravel().tolist() == [-0.375, 0.375] and found.residual is None


@pytest.mark.parametrize("of", [convgrad, reference])
@pytest.mark.parametrize("shape", [(0, 2, 2, 3), (2, 0, 2, 3), (2, 2, 2, 0), (0, 0, 0, 0)])
def test_empty_images(shape: tuple[int, ...], of: Any) -> None:
    """Statistics of no values are NaN and sums of none are 0, as in TensorFlow; those that are given stay."""
    given = arrays(FLOATING[2], shape, shape[3])
    for position in ("before", "after"):
        settings = {"residual": given["residual"], "residual_position": position}
        result, gradients = both(of, given, **settings, activation="relu")
        assert result.y.shape == gradients.input.shape == gradients.residual.shape == shape
        np.testing.assert_array_equal(result.mean, np.full(shape[3], np.nan))
        np.testing.assert_array_equal(result.variance, np.full(shape[3], np.nan))
        result, gradients = both(of, given, **settings, is_training=False)
        np.testing.assert_array_equal(result.mean, given["mean"])
        np.testing.assert_array_equal(result.variance, given["variance"])
        np.testing.assert_array_equal(gradients.scale, np.zeros(shape[3]))
        np.testing.assert_array_equal(gradients.offset, np.zeros(shape[3]))


def test_one_value_per_channel() -> None:
    x = np.array([3.0, -1.0], np.float32).reshape(1, 1, 1, 2)
    result, gradients = both(
        convgrad, {"input": x, "grad": x, "offset": np.array([0.5, -1], np.float32)}
    )
    # x * scale + shift, where scale is 1 / sqrt(epsilon): 3 * 32 has an error of some 2^-19.
    np.testing.assert_allclose(result.y.ravel(), [0.5, -1.0], atol=2.0**-17)
    assert result.variance.tolist() == [0.0, 0.0]
    assert gradients.input.ravel().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("slope", [-0.5, 0.0, 2.0])
@pytest.mark.parametrize("position", [None, "before", "after"])
def test_slopes_of_any_sign(position: str | None, slope: float) -> None:
    """With a negative one the result does not tell where the argument was below 0."""
    given = arrays(FLOATING[2], SHAPES["NHWC"], 6, 3)
    settings: dict[str, Any] = {"activation": "leaky_relu", "negative_slope": slope}
    if position:
        settings |= {"residual": given["residual"], "residual_position": position}
    _smooth(given, settings)
    for mine, right in zip(
        both(convgrad, given, **settings), both(reference, given, **settings), strict=True
    ):
        assert_like_the_oracle(FLOATING[2], mine, right)


def test_the_same_bits_on_any_number_of_threads() -> None:
    given = arrays(FLOATING[2], (4, 31, 29, 24), 24)
    settings = {"activation": "gelu", "residual": given["residual"]}
    found = []
    for threads in (1, 2, 5):
        with convgrad.threads(threads):
            pair = both(convgrad, given, **settings)
        found.append([each.tobytes() for result in pair for each in result])
    assert found[0] == found[1] == found[2]


def test_gradients_follow_from_differences() -> None:
    """The public functions in float64: a step of each array changes the result as its gradient says."""
    given = arrays(FLOATING[3], (2, 2, 3, 2), 2, 5)
    settings = {"activation": "silu", "epsilon": 0.1}
    gradients = both(convgrad, given, **settings, residual=given["residual"])[1]._asdict()
    for name, gradient in gradients.items():
        for place in np.ndindex(gradient.shape):
            sums = []
            for step in (1e-6, -1e-6):
                changed = given | {name: given[name].copy()}
                changed[name][place] += step
                y = both(convgrad, changed, **settings, residual=changed["residual"])[0].y
                sums.append(float((y * given["grad"]).sum()))
            slope = (sums[0] - sums[1]) / 2e-6
            assert gradient[place] == pytest.approx(slope, abs=1e-7), name
