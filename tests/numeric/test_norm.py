"""The passes between convolutions, task by task, against the formulas in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from calling import some_targets
from convgrad._base import config
from convgrad._base.dtypes import DOUBLE, FLOAT, FLOATING, HALF, DType, round_once
from convgrad._compiler.targets import Target
from convgrad._problem.norm import ACTIVATIONS, SAVED, Task, oracle
from norms import (
    SUM,
    Scalars,
    assert_within,
    back,
    backward_bounds,
    drawn,
    forward_bounds,
    image,
    place_of,
    rounding,
    run,
    unit,
    written,
)

LAYOUTS = ("NHWC", "NCHW")
RESIDUALS = ("", "before", "after")
CHANNELS = (1, 3, 7, 8, 17, 64, 100)
PIXELS = (1, 2, 49, 333)
IMAGES = (1, 2, 3)
PLACES = ("end", "end", "start", "shifted")
SCALARS = Scalars(unbiased=1.25)

each_dtype = pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def tasks(row: DType, layout: str) -> Iterator[tuple[int, Task]]:
    """Yield forward tasks: every activation; in float32 with a residual at each place, else at one or none."""
    pairs = [(a, r) for r in RESIDUALS for a in ACTIVATIONS]
    if row is not FLOAT:
        turn = LAYOUTS.index(layout) + FLOATING.index(row)
        pairs = [(a, RESIDUALS[(i + turn) % 3]) for i, a in enumerate(ACTIVATIONS)]
    for number, (activation, residual) in enumerate(pairs):
        sizes = (
            IMAGES[number % 3],
            PIXELS[number % 4],
            CHANNELS[(3 * number + FLOATING.index(row)) % 7],
        )
        yield number, Task("forward", row, layout, *sizes, activation, residual)


def random(*seed: int) -> np.random.Generator:
    return np.random.default_rng([20, *seed])


@each_dtype
@each_layout
def test_forward(row: DType, layout: str, checked: Any) -> None:
    """With statistics of the batch, with given ones, and with those that were saved."""
    for number, task in tasks(row, layout):
        parameters = (("weight", "bias"), ("weight",), ("bias",), ())[number % 5 % 4]
        given = drawn(task, random(number), SCALARS, 3 * number % 5, 1.5, parameters)
        if number % 4 == 3:
            del given["running_mean"], given["running_var"]
        got = run(task, given, PLACES[number % 4])
        assert_within(task, got, forward_bounds(task, given, SCALARS))
        if "running_mean" in given:
            frozen = replace(task, name="forward_frozen")
            got = run(frozen, given, PLACES[number % 4])
            assert_within(frozen, got, forward_bounds(frozen, given, SCALARS))
            again = run(frozen, given, onto={"y": "x"})
            assert again["y"].tobytes() == got["y"].tobytes(), f"{frozen} in place"
        apply = replace(task, name="apply")
        got = run(apply, given, PLACES[number % 4])
        assert_within(apply, got, forward_bounds(apply, given, SCALARS))
        again = run(apply, given, onto={"y": "x"})
        assert again["y"].tobytes() == got["y"].tobytes(), f"{apply} in place"
        checked["forward passes"] += 3


@each_dtype
@each_layout
def test_backward(row: DType, layout: str, checked: Any) -> None:
    for number, forward in tasks(row, layout):
        bent = forward.residual == "before" and forward.activation != "none"
        task = replace(
            forward,
            name=("backward", "backward", "backward_frozen")[number % 3],
            wants_x=number % 7 != 3,
            wants_parameters=number % 7 != 4,
            wants_residual=bent and number % 5 != 2,
        )
        given = drawn(task, random(number), SCALARS, 3 * number % 5, 1.5)
        got = run(task, given, PLACES[number % 4])
        assert got.keys() == set(written(task))
        assert_within(task, got, backward_bounds(task, given, SCALARS))
        checked["backward passes"] += 1


@each_dtype
@each_layout
@pytest.mark.parametrize("name", ["forward", "backward"])
def test_mean_1000_deviation_1(name: str, row: DType, layout: str) -> None:
    """No sum of squares is subtracted from another: that would leave nothing of a variance of 1 in float32."""
    for number, pixels in enumerate((2, 49, 333)):
        task = Task(name, row, layout, 3, pixels, 17, ("relu", "none", "silu")[number])
        given = drawn(task, random(number), SCALARS, 1000, 1)
        bounds = (forward_bounds if name == "forward" else backward_bounds)(task, given, SCALARS)
        got = run(task, given)
        assert_within(task, got, bounds)
        if name == "forward" and row is FLOAT:
            exact = bounds["saved"][0][1]
            np.testing.assert_allclose(got["saved"][1], exact, rtol=1e-6)


@each_layout
def test_a_constant_channel_has_no_variance(layout: str) -> None:
    """Then the result is act(bias), however large the constant is."""
    for constant in (0.0, 0.1, 1000.0, -3e4):
        task = Task("forward", FLOAT, layout, 3, 333, 17, "relu6")
        given = drawn(task, random(5), SCALARS)
        given["x"] = np.full(task.shape, constant, np.float32)
        got = run(task, given)
        assert_within(task, got, forward_bounds(task, given, SCALARS))
        assert (got["saved"][1] <= (8 * FLOAT.unit * constant) ** 2).all()


@each_layout
def test_one_value_per_channel(layout: str) -> None:
    """Its variance is 0, and so is its gradient: nothing that x does changes the result."""
    forward = Task("forward", FLOAT, layout, 1, 1, 17, "silu")
    given = drawn(forward, random(6), SCALARS, 5)
    got = run(forward, given)
    x = given["x"].ravel()
    np.testing.assert_array_equal(got["saved"][0], x)
    np.testing.assert_array_equal(got["saved"][1], 0)
    task = replace(forward, name="backward")
    given = drawn(task, random(6), SCALARS, 5) | {"saved": got["saved"]}
    found = run(task, given)
    np.testing.assert_array_equal(found["dx"], 0)
    np.testing.assert_array_equal(found["dweight"], 0)


KINKS = {
    "none": ([-1, 0, 6, 7], [1, 1, 1, 1]),
    "relu": ([-1, 0, 0.5, 7], [0, 0, 1, 1]),
    "relu6": ([0, 0.5, 6, 7], [0, 1, 0, 0]),
    "leaky_relu": ([-1, 0, 0.5, 7], [0.25, 0.25, 1, 1]),
    "hardswish": ([-3, -1.5, 0, 3], [0, 0, 0.5, 1]),
    "silu": ([0], [0.5]),
    "gelu": ([0], [0.5]),
    "gelu_tanh": ([0], [0.5]),
}
"""Arguments and derivatives, PyTorch's at the kinks: it is 0 at relu's 0 and relu6's 6, the slope at leaky_relu's 0."""


@each_dtype
@pytest.mark.parametrize("residual", ["", "before"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_at_the_kinks(activation: str, residual: Any, row: DType) -> None:
    """Where all is exact, a derivative is what PyTorch says it is."""
    points, slopes = KINKS[activation]
    task = Task("backward_frozen", row, "NHWC", 1, len(points), 3, activation, residual)
    parameter = place_of(task, "saved")[1]
    saved = np.array([0, 1, 1, 1, 0], parameter)[:, None].repeat(3, 1)
    u = np.array(points, np.float64)[None, :, None].repeat(3, 2)
    scalars = Scalars(slope=0.25)
    given = {"scalars": scalars.array(), "saved": saved}
    given["x"] = round_once(u - 1 if residual else u, row)
    given["grad"] = round_once(np.full(u.shape, 2.0), row)
    if task.beside == "y":
        given["beside"] = round_once(oracle.activated(activation, u, 0.25), row)
    elif task.beside:
        given["beside"] = round_once(np.ones(u.shape), row)
    got = run(task, given)["dx"].astype(np.float64)
    np.testing.assert_allclose(got, 2 * np.array(slopes)[None, :, None].repeat(3, 2), rtol=1e-6)


@each_layout
@pytest.mark.parametrize("name", ["forward", "backward"])
def test_the_same_bits_on_any_number_of_threads(name: str, layout: str) -> None:
    for row, sizes in ((FLOAT, (3, 3137, 24)), (FLOAT, (2, 49, 1280)), (HALF, (1, 9001, 7))):
        residual, activation = ("before", "silu") if row is FLOAT else ("", "relu")
        task = Task(name, row, layout, *sizes, activation, residual)
        task = replace(task, wants_residual=name == "backward" and residual == "before")
        given = drawn(task, random(8), SCALARS, 2)
        one, *others = (run(task, given, threads=threads) for threads in (1, 2, 5, 1))
        for other in others:
            for key, array in one.items():
                assert array.tobytes() == other[key].tobytes(), f"{task}: {key}"


@each_layout
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_channel(poison: float, layout: str) -> None:
    for number, activation in enumerate(("relu", "silu", "none")):
        task = Task("forward", FLOAT, layout, 2, 49, 17, activation)
        given = drawn(task, random(number), SCALARS)
        clean = run(task, given)
        spoiled = given | {"x": given["x"].copy()}
        channels_first(task, spoiled["x"])[1, 5, 7] = poison
        got = run(task, spoiled)
        other = np.arange(17) != 5
        assert np.isnan(channels_first(task, got["y"])[:, 5]).all()
        assert np.isnan(got["saved"][1, 5])
        np.testing.assert_array_equal(got["saved"][:, other], clean["saved"][:, other])
        np.testing.assert_array_equal(
            *(channels_first(task, each["y"])[:, other] for each in (got, clean))
        )

        back_task = replace(task, name="backward")
        given = drawn(back_task, random(number), SCALARS)
        clean = run(back_task, given)
        spoiled = given | {"grad": given["grad"].copy()}
        channels_first(task, spoiled["grad"])[1, 5, 7] = poison
        got = run(back_task, spoiled)
        assert np.isnan(got["dx"].astype(float)).any()
        assert not np.isfinite(got["dbias"][5]) and not np.isfinite(got["dweight"][5])
        for key in ("dweight", "dbias"):
            np.testing.assert_array_equal(got[key][other], clean[key][other])
        np.testing.assert_array_equal(
            *(channels_first(task, each["dx"])[:, other] for each in (got, clean))
        )


def channels_first(task: Task, array: Any) -> Any:
    """Return an image as [n, c, p], a view."""
    return array if task.data_format == "NCHW" else array.transpose(0, 2, 1)


def test_a_nan_passes_through_every_activation() -> None:
    """Comparisons with NaN are false, so a clamp written the wrong way round would swallow it."""
    for activation in ACTIVATIONS:
        task = Task("apply", FLOAT, "NHWC", 1, 9, 17, activation)
        given = drawn(task, random(9), SCALARS)
        given["x"][0, 3, 5] = np.nan
        got = run(task, given)["y"]
        expected = np.zeros(got.shape, bool)
        expected[0, 3, 5] = True
        np.testing.assert_array_equal(np.isnan(got), expected, activation)


@each_layout
@pytest.mark.parametrize("name", ["forward", "forward_frozen", "backward"])
def test_agrees_without_kernels(name: str, layout: str) -> None:
    for number, row in enumerate(FLOATING):
        task = Task(name, row, layout, 2, 49, 19, ACTIVATIONS[2 * number], "before")
        given = drawn(task, random(number), SCALARS, 1)
        with config.scope(kernels=False):
            plain = run(task, given)
        bounds = (backward_bounds if name == "backward" else forward_bounds)(task, given, SCALARS)
        assert_within(task, plain, bounds)
        for key, array in run(task, given).items():
            exact = plain[key].astype(np.float64)
            assert_within(task, {key: array}, {key: (exact, bounds[key][1])}, times=2)


@pytest.mark.parametrize("target", some_targets(1))
def test_on_other_targets(target: Target) -> None:
    """All rows this machine runs, at every width of vectors."""
    with config.scope(target=target.name, vector_bits=target.vector_bits):
        for number, layout in enumerate(LAYOUTS):
            row = FLOATING[(number + target.vector_bits // 128) % 4]
            task = Task("forward", row, layout, 2, 49, 19, "silu", "after")
            given = drawn(task, random(number), SCALARS, 1)
            assert_within(task, run(task, given), forward_bounds(task, given, SCALARS))
            task = Task("backward", row, layout, 2, 37, 19, "gelu")
            given = drawn(task, random(number), SCALARS, 1)
            assert_within(task, run(task, given), backward_bounds(task, given, SCALARS))


@each_dtype
@each_layout
def test_pooling_and_scaling(row: DType, layout: str) -> None:
    for number, (pixels, channels) in enumerate(((1, 8), (49, 17), (333, 3), (2, 100), (49, 64))):
        base = Task("pool", row, layout, IMAGES[number % 3], pixels, channels)
        rng = random(number)
        pair = (base.images, base.channels)
        given = {
            name: round_once(1 + rng.standard_normal(shape), row)
            for name, shape in {
                "x": base.shape,
                "grad": base.shape,
                "factor": pair,
                "dpooled": pair,
            }.items()
        }
        x, grad = (image(base, given[name]) for name in ("x", "grad"))
        factor, dpooled = (given[n].astype(np.float64)[:, :, None] for n in ("factor", "dpooled"))
        u, place = unit(base), PLACES[number % 4]

        exact = x.mean(axis=2)
        off = SUM * u * np.abs(x).mean(axis=2) + rounding(row, exact)
        assert_within(base, run(base, given, place), {"pooled": (exact, off)})

        task = replace(base, name="scale")
        exact = back(base, x * factor)
        bounds = {"y": (exact, 2 * u * np.abs(exact) + rounding(row, exact))}
        assert_within(task, run(task, given, place), bounds)

        task = replace(base, name="pool_gradient")
        for whole in (grad, None):
            terms = dpooled / pixels + (np.zeros_like(grad) if whole is None else whole)
            sizes = np.abs(dpooled / pixels) + (0 if whole is None else np.abs(whole))
            exact = back(base, terms)
            bounds = {"dx": (exact, back(base, 4 * u * sizes + rounding(row, terms)))}
            operands = {k: v for k, v in given.items() if k != "grad" or whole is not None}
            got = run(task, operands, place)
            assert_within(task, got, bounds)
            if whole is not None:
                again = run(task, operands, onto={"dx": "grad"})
                assert again["dx"].tobytes() == got["dx"].tobytes()

        task = replace(base, name="scale_gradient")
        exact, sums = back(base, grad * factor), (grad * x).sum(axis=2)
        bounds = {
            "dx": (exact, 2 * u * np.abs(exact) + rounding(row, exact)),
            "dfactor": (sums, SUM * u * np.abs(grad * x).sum(axis=2) + rounding(row, sums)),
        }
        assert_within(task, run(task, given, place), bounds)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_derivatives_of_the_formulas(activation: str) -> None:
    """By differences of the values: the oracle is judged by something else than itself."""
    u = np.array([-7.0, -3.5, -2.9, -1.0, -0.1, 0.1, 1.0, 2.9, 3.5, 5.9, 6.1, 9.0])
    step = 1e-6
    slope = oracle.derivative(activation, u, 0.2)
    above, below = (oracle.activated(activation, u + side, 0.2) for side in (step, -step))
    np.testing.assert_allclose(slope, (above - below) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_of_the_formulas(frozen: bool, residual: Any) -> None:
    """By differences of a sum of the results, through all that x changes."""
    shape = (2, 3, 4)
    rng = random(12)
    at = {"x": rng.standard_normal(shape), "residual": rng.standard_normal(shape)}
    at |= {"weight": rng.standard_normal(3), "bias": rng.standard_normal(3)}
    grad, fixed = rng.standard_normal(shape), oracle.moments(at["x"])

    def statistics(**changed: Any) -> oracle.Statistics:
        now = at | changed
        moments = fixed if frozen else oracle.moments(now["x"])
        return oracle.statistics(*moments, 1e-3, now["weight"], now["bias"])

    def total(**changed: Any) -> float:
        now = at | changed
        before = now["residual"] if residual == "before" else None
        y = oracle.activated("silu", oracle.argument(now["x"], statistics(**changed), before))
        return float((grad * (y + now["residual"] if residual == "after" else y)).sum())

    before = at["residual"] if residual == "before" else None
    inner = grad * oracle.derivative("silu", oracle.argument(at["x"], statistics(), before))
    found = oracle.gradients(at["x"], statistics(), inner, frozen)._asdict()
    for name in ("x", "weight", "bias", *(["residual"] if residual == "before" else [])):
        for place in np.ndindex(at[name].shape):
            step = np.zeros(at[name].shape)
            step[place] = 1e-6
            sides = (total(**{name: at[name] + sign * step}) for sign in (1, -1))
            above, below = sides
            assert found[name][place] == pytest.approx((above - below) / 2e-6, abs=1e-7), name


def test_saved_rows_are_those_described() -> None:
    """Backward passes of other people read them by number."""
    assert SAVED == ("mean", "variance", "inverse", "scale", "shift")
    task = Task("forward", DOUBLE, "NCHW", 1, 2, 1)
    given = {"x": np.array([[[1.0, 3.0]]]), "scalars": Scalars(epsilon=3.0).array()}
    given |= {"weight": np.array([4.0]), "bias": np.array([5.0])}
    with convgrad.threads(1):
        got = run(task, given)
    assert got["saved"].ravel().tolist() == [2.0, 1.0, 0.5, 2.0, 1.0]
    assert got["y"].ravel().tolist() == [3.0, 7.0]


@pytest.mark.parametrize("values", [135169, 204832, 250880, 320000, 725904])
def test_runs_that_do_not_come_out_even(values: int) -> None:
    """Shares of so many values are cut into 66 runs or more, of which the last must not be behind the end."""
    rng = np.random.default_rng(values)
    x = (rng.standard_normal((1, values, 2)) + 3).astype(np.float32)
    grad = rng.uniform(0, 1, x.shape).astype(np.float32)
    forward = Task("forward", FLOAT, "NHWC", 1, values, 2)
    saved = run(forward, {"x": x, "scalars": Scalars().array()})["saved"]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(saved[0], wide.mean(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(saved[1], wide.var(axis=(0, 1)), rtol=1e-5)
    backward = replace(forward, name="backward_frozen")
    given = {"x": x, "grad": grad, "saved": saved, "scalars": Scalars().array()}
    found = run(backward, given)["dbias"]
    np.testing.assert_allclose(found, grad.astype(np.float64).sum(axis=(0, 1)), rtol=1e-6)
    pooled = run(replace(forward, name="pool"), {"x": x})["pooled"]
    np.testing.assert_allclose(pooled, wide.mean(axis=1), rtol=1e-6)
