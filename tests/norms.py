"""Driving one task of batch norm on arrays placed where we want them, and how far its results may be off.

Errors are counted in `u`, the rounding unit of what a task computes in (float32, and float64 for float64), times the
magnitude of the terms that meet in a number. So cancellation among sums fails, which statistics of mean 1000 and
deviation 1 would show as errors a thousand times too large, and no order of additions does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import convgrad
from convgrad import _engine
from convgrad._base.dtypes import DOUBLE, DType, accumulator, round_once
from convgrad._problem import activations
from convgrad._problem.norm import PLACES, SAVED, SCALARS, Task, oracle
from guard import Room
from kernels import Place

ROWS = ("weight", "bias", "running_mean", "running_var", "dweight", "dbias")
PAIRS = ("pooled", "factor", "dpooled", "dfactor")
STEEPEST = {"hardswish": 1.5, "silu": 1.1, "gelu": 1.13, "gelu_tanh": 1.13}
"""The largest derivative of an activation, 1 for the others."""
BENT = {"hardswish": 1 / 3, "silu": 0.5, "gelu": 0.8, "gelu_tanh": 0.8}
"""The largest second derivative of an activation away from its kinks, 0 for the others."""

SUM = 16
"""Units that a sum may be off by, times the sum of magnitudes: two levels of 32 terms with random signs stay below."""
STEP = 4
"""Units that a few operations in a row may be off by, times the magnitudes of their operands."""
CURVE = 8
"""Units that an activation may be off by, times its argument, and its derivative, times one more than that: polynomials
for exp and erf, and 1 - gate where the gate is close to 1."""


@dataclass(frozen=True)
class Scalars:
    """The numbers of `_problem.norm.SCALARS`."""

    epsilon: float = 1e-3
    momentum: float = 0.1
    slope: float = 0.2
    unbiased: float = 1.0

    def array(self) -> Any:
        return np.array([getattr(self, name) for name in SCALARS])


def written(task: Task) -> tuple[str, ...]:
    """Return the places a task writes; what was in them is not read, but for running statistics."""
    if task.name in ("forward", "forward_frozen"):
        return ("y", "saved")
    if task.name in ("backward", "backward_frozen"):
        wanted = {"dx": task.wants_x, "dresidual": task.wants_residual}
        wanted |= {"dweight": task.wants_parameters, "dbias": task.wants_parameters}
        return tuple(name for name, asked in wanted.items() if asked)
    return {
        "apply": ("y",),
        "pool": ("pooled",),
        "pool_gradient": ("dx",),
        "scale": ("y",),
        "scale_gradient": ("dx", "dfactor"),
    }[task.name]


def place_of(task: Task, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of what lies at a place."""
    parameter = accumulator(task.dtype).numpy
    if name in ROWS:
        return (task.channels,), parameter
    if name == "saved":
        return (len(SAVED), task.channels), parameter
    if name == "scalars":
        return (len(SCALARS),), np.dtype(np.float64)
    if name in PAIRS:
        return (task.images, task.channels), task.dtype.numpy
    return task.shape, task.dtype.numpy


_rooms: dict[str, Room] = {}
"""By place: guarded memory that is used again by the next task."""


def put(name: str, values: Any, place: Place) -> Any:
    """Return a copy at a place in memory; the one before of that name is gone."""
    if place == "shifted":
        memory = np.empty(values.size + 3, values.dtype)
        result = memory[3:].reshape(values.shape)
        result[...] = values
        return result
    return _rooms.setdefault(name, Room()).put(values, place)


def run(
    task: Task,
    given: dict[str, Any],
    place: Place = "end",
    threads: int | None = None,
    onto: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Carry out a task; returns what it wrote, running statistics with it. Results start as NaN.

    `onto` names results that are to lie in the memory of an operand. All operands must be what they were.
    """
    onto = onto or {}
    arrays: dict[str, Any] = {}
    for name in PLACES[task.name]:
        shape, dtype = place_of(task, name)
        if name in written(task):
            if name not in onto:
                arrays[name] = put(name, np.full(shape, np.nan, dtype), place)
        elif name in given:
            assert (given[name].shape, given[name].dtype) == (shape, dtype), name
            arrays[name] = put(name, given[name], place)
    arrays |= {result: arrays[operand] for result, operand in onto.items()}
    addresses = [arrays[n].ctypes.data if n in arrays else 0 for n in PLACES[task.name]]
    if threads is None:
        _engine.run(task, *addresses)
    else:
        with convgrad.threads(threads):
            _engine.run(task, *addresses)
    changes = {*written(task), *onto.values()}
    if task.name == "forward":
        changes |= {"running_mean", "running_var"} & arrays.keys()
    for name, array in arrays.items():
        if name not in changes:
            assert array.tobytes() == given[name].tobytes(), f"{task}: {name} was written to"
    return {name: arrays[name].copy() for name in changes if name in arrays}


def drawn(
    task: Task,
    rng: np.random.Generator,
    scalars: Scalars,
    mean: float = 0.0,
    deviation: float = 1.0,
    parameters: tuple[str, ...] = ("weight", "bias"),
) -> dict[str, Any]:
    """Draw what a forward or backward task reads; `saved` is that of x, rounded, and `beside` what belongs to both."""
    row, parameter = task.dtype, accumulator(task.dtype)

    def rounded(values: Any, to: DType = row) -> Any:
        return round_once(np.asarray(values), to)

    given: dict[str, Any] = {"scalars": scalars.array()}
    given["x"] = rounded(mean + deviation * rng.standard_normal(task.shape))
    for name, around in (("weight", 1.0), ("bias", 0.5)):
        if name in parameters:
            given[name] = rounded(around + rng.standard_normal(task.channels), parameter)
    given["running_mean"] = rounded(mean + rng.standard_normal(task.channels), parameter)
    given["running_var"] = rounded(rng.uniform(0.5, 2, task.channels), parameter)
    if task.residual:
        given["residual"] = rounded(rng.standard_normal(task.shape))
    frozen = task.name.endswith("frozen")
    found = statistics(task, given, scalars, frozen)
    given["saved"] = rounded(np.stack(found), parameter)
    if task.name.startswith("backward"):
        u = argument(task, given, oracle.Statistics(*given["saved"].astype(np.float64)))
        given["grad"] = _away_from_kinks(task, given, u, rounded(rng.standard_normal(task.shape)))
        if task.beside == "y":
            y = oracle.activated(task.activation, u, scalars.slope)
            given["beside"] = rounded(back(task, y))
        elif task.beside:
            given["beside"] = given["residual"]
    return given


def _away_from_kinks(task: Task, given: dict[str, Any], u: Any, grad: Any) -> Any:
    """Return the gradient, zero where a rounding of u could change the activation's derivative."""
    close = np.zeros(u.shape, bool)
    for kink in activations.find(task.activation).kinks:
        doubt = 4 * task.dtype.unit * (abs(kink) + 0.01) + 2 * error_of_argument(task, given)
        close |= np.abs(u - kink) <= doubt
    return np.where(back(task, close), np.zeros_like(grad), grad)


def image(task: Task, values: Any) -> Any:
    """Return an image as [n, c, p] in float64."""
    wide = values.astype(np.float64)
    return wide if task.data_format == "NCHW" else wide.transpose(0, 2, 1)


def back(task: Task, values: Any) -> Any:
    """Return [n, c, p] as the task has it in memory."""
    return values if task.data_format == "NCHW" else values.transpose(0, 2, 1)


def row_of(given: dict[str, Any], name: str) -> Any:
    return given[name].astype(np.float64) if name in given else None


def statistics(
    task: Task, given: dict[str, Any], scalars: Scalars, frozen: bool
) -> oracle.Statistics:
    """Return the exact statistics of x, or what follows from those that are given."""
    moments = (
        (row_of(given, "running_mean"), row_of(given, "running_var"))
        if frozen
        else oracle.moments(image(task, given["x"]))
    )
    return oracle.statistics(
        *moments, scalars.epsilon, row_of(given, "weight"), row_of(given, "bias")
    )


def argument(task: Task, given: dict[str, Any], found: oracle.Statistics) -> Any:
    before = image(task, given["residual"]) if task.residual == "before" else None
    return oracle.argument(image(task, given["x"]), found, before)


def unit(task: Task) -> float:
    return accumulator(task.dtype).unit


def error_of_argument(task: Task, given: dict[str, Any]) -> Any:
    """Return by how much the activation's argument may be off, the statistics being those that were saved."""
    saved = oracle.Statistics(*(each[:, None] for each in given["saved"].astype(np.float64)))
    terms = np.abs(image(task, given["x"]) * saved.scale) + np.abs(saved.mean * saved.scale)
    terms = terms + np.abs(saved.shift + saved.mean * saved.scale)
    if task.residual == "before":
        terms = terms + np.abs(image(task, given["residual"]))
    return STEP * unit(task) * terms


Bounds = dict[str, tuple[Any, Any]]
"""By place: the exact result as the task lays it out, and the error allowed for each number."""


def rounding(row: DType, exact: Any) -> Any:
    """Return the error of one rounding."""
    return row.unit * np.abs(exact) * 1.0001 + row.underflow


def forward_bounds(task: Task, given: dict[str, Any], scalars: Scalars) -> Bounds:
    """Return what a forward task may write."""
    u, parameter = unit(task), accumulator(task.dtype)
    frozen = task.name != "forward"
    found = (
        oracle.Statistics(*given["saved"].astype(np.float64))
        if task.name == "apply"
        else statistics(task, given, scalars, frozen)
    )
    # Zero where statistics are given: then they are exact.
    off_mean = np.zeros(task.channels)
    off_variance = np.zeros(task.channels)
    if not frozen:
        # Means of runs and shares are joined in float64, as they are: each join rounds at their size.
        joins = SUM * DOUBLE.unit * np.abs(found.mean)
        off_mean = u * (STEP * np.abs(found.mean) + SUM * np.sqrt(found.variance)) + joins
        off_variance = SUM * u * found.variance + off_mean**2 + 2 * joins * np.sqrt(found.variance)
    off_inverse = found.inverse * (off_variance / 2 * found.inverse**2 + STEP * u)
    off_scale = np.abs(found.scale) * (off_inverse / found.inverse + STEP * u)
    centre = found.shift + found.mean * found.scale
    off_shift = np.abs(found.mean) * off_scale + np.abs(found.scale) * off_mean
    off_shift += STEP * u * (np.abs(found.mean * found.scale) + np.abs(centre))
    offs = (off_mean, off_variance, off_inverse, off_scale, off_shift)
    bounds: Bounds = {}
    if task.name != "apply":
        exact = np.stack(found)
        bounds["saved"] = exact, np.stack(offs) + rounding(parameter, exact)
    if task.name == "forward" and "running_mean" in given:
        keep, momentum = 1 - scalars.momentum, scalars.momentum
        news = {"running_mean": (found.mean, off_mean)}
        news["running_var"] = (
            found.variance * scalars.unbiased,
            off_variance * scalars.unbiased,
        )
        for name, (new, off) in news.items():
            old = row_of(given, name)
            exact = keep * old + momentum * new
            allowed = momentum * off + STEP * u * (np.abs(keep * old) + np.abs(momentum * new))
            bounds[name] = exact, allowed + rounding(parameter, exact)
    x = image(task, given["x"])
    beside = image(task, given["residual"]) if task.residual else np.zeros_like(x)
    inner = oracle.argument(x, found, beside if task.residual == "before" else None)
    column = {name: each[:, None] for name, each in zip(SAVED, found, strict=True)}
    terms = np.abs(x * column["scale"]) + np.abs(column["mean"] * column["scale"])
    terms = terms + np.abs(centre[:, None])
    if task.residual == "before":
        terms = terms + np.abs(beside)
    off_u = STEP * u * terms + np.abs(column["scale"]) * off_mean[:, None]
    off_u += np.abs(x - column["mean"]) * off_scale[:, None]
    y = oracle.activated(task.activation, inner, scalars.slope)
    steepest = STEEPEST.get(task.activation, max(1.0, abs(scalars.slope)))
    off_y = steepest * off_u + CURVE * u * np.abs(inner)
    if task.residual == "after":
        off_y = off_y + STEP * u * (np.abs(y) + np.abs(beside))
        y = y + beside
    bounds["y"] = back(task, y), back(task, off_y + rounding(task.dtype, y))
    return bounds


def backward_bounds(task: Task, given: dict[str, Any], scalars: Scalars) -> Bounds:
    """Return what a backward task may write, from what was saved as it was rounded."""
    u, parameter = unit(task), accumulator(task.dtype)
    frozen = task.name == "backward_frozen"
    saved = oracle.Statistics(*given["saved"].astype(np.float64))
    column = oracle.Statistics(*(each[:, None] for each in saved))
    x, grad = image(task, given["x"]), image(task, given["grad"])
    inner = argument(task, given, saved)
    slopes = oracle.derivative(task.activation, inner, scalars.slope)
    found = oracle.gradients(x, saved, grad * slopes, frozen)
    # Of the gradient of the argument: by the argument, where the derivative changes with it, and by its own rounding.
    off_g = np.abs(grad) * BENT.get(task.activation, 0.0) * error_of_argument(task, given)
    if task.activation != "none":
        off_g = off_g + CURVE * u * np.abs(grad) * (1 + np.abs(inner))
    away = np.abs(x - column.mean) * column.inverse
    sizes = np.abs(grad * slopes)
    off_bias = (off_g + SUM * u * sizes).sum(axis=(0, 2))
    off_weight = (away * (off_g + SUM * u * sizes)).sum(axis=(0, 2))
    bounds: Bounds = {
        "dbias": (found.bias, off_bias + rounding(parameter, found.bias)),
        "dweight": (found.weight, off_weight + rounding(parameter, found.weight)),
        "dresidual": (
            back(task, found.residual),
            back(task, off_g + rounding(task.dtype, found.residual)),
        ),
    }
    off_x = off_g + STEP * u * sizes
    if not frozen:
        # dx = scale * (g - dbias/M - away*dweight/M), or the same as a*g + b*x + c, whose last two terms may be large.
        far = (np.abs(x) + np.abs(column.mean)) * column.inverse
        off_x = off_x + (off_bias + STEP * u * np.abs(found.bias))[:, None] / task.values
        off_x += (away * off_weight[:, None] + STEP * u * far * np.abs(found.weight)[:, None]) / (
            task.values
        )
    off_x = np.abs(column.scale) * off_x
    bounds["dx"] = back(task, found.x), back(task, off_x + rounding(task.dtype, found.x))
    return bounds


def assert_within(what: object, got: dict[str, Any], bounds: Bounds, times: float = 1.0) -> None:
    """Check all that was written against its bounds; a NaN is always too far."""
    for name, array in got.items():
        exact, allowed = bounds[name]
        assert array.shape == exact.shape, (what, name, array.shape)
        error = np.abs(array.astype(np.float64) - exact)
        good = error <= times * allowed
        if not good.all():
            worst = np.unravel_index(int(np.argmax(np.where(good, 0, error / allowed))), good.shape)
            at = tuple(int(i) for i in worst)
            raise AssertionError(
                f"{what}: {name}{list(at)} is {array[at]}, must be {exact[at]:.9g} +- {allowed[at]:.3g}; "
                f"{int((~good).sum())} of {good.size} are wrong"
            )
