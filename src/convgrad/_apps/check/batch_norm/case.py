"""One problem for a batch norm under test: sizes, settings and data; and one observed call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .... import reference
from ...._base.dtypes import FLOATING, AnyArray, DType, accumulator, round_once
from ...._base.messages import is_plain
from ...._problem import activations
from ...._problem.norm.call import BatchNormGradients, BatchNormResult
from ..implementation import BROKEN, Kernel, Observation, error_line
from ..problems import Pair, generator

FORWARD, BACKWARD = "batch_norm_act", "batch_norm_act_grad"
OPS = (FORWARD, BACKWARD)
RESULTS: dict[str, tuple[str, ...]] = {
    FORWARD: BatchNormResult._fields,
    BACKWARD: BatchNormGradients._fields,
}
DTYPES = {row.name: row for row in FLOATING}

Data = Literal["normal", "far", "constant", "nan", "inf"]
"""`far` has mean 1000 and deviation 1, `constant` one value per channel; the last two put one such value somewhere."""
Arrays = dict[str, AnyArray]
"""By the names of the arguments."""


@dataclass(frozen=True)
class NormCase:
    """Sizes, settings and kind of data of one call."""

    op: str
    images: int
    size: Pair
    channels: int
    activation: str = "none"
    residual: str = ""
    """"before", "after" or none."""
    is_training: bool = True
    scale: bool = True
    offset: bool = True
    epsilon: float = 1e-3
    negative_slope: float = 0.2
    data_format: str = "NHWC"
    dtype: str = "float32"
    data: Data = "normal"

    @property
    def row(self) -> DType:
        return DTYPES[self.dtype]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        if self.data_format == "NHWC":
            return (self.images, *self.size, self.channels)
        return (self.images, self.channels, *self.size)

    @property
    def values(self) -> int:
        """How many numbers of each channel there are."""
        return self.images * self.size[0] * self.size[1]

    @property
    def spread(self) -> tuple[int, int, int]:
        """The axes that statistics are taken over."""
        return (0, 1, 2) if self.data_format == "NHWC" else (0, 2, 3)

    @property
    def settings(self) -> dict[str, Any]:
        """The keywords of the call, without the residual."""
        return {
            "epsilon": self.epsilon,
            "is_training": self.is_training,
            "activation": self.activation,
            "negative_slope": self.negative_slope,
            "residual_position": self.residual or "before",
            "data_format": self.data_format,
        }

    def call(self, function: Any, arrays: Arrays, **changed: Any) -> Any:
        """Call a function as the operation is called; changes replace arrays and settings by name."""
        given: dict[str, Any] = {**arrays, **self.settings, **changed}
        rows = [given.pop(name, None) for name in ("scale", "offset", "mean", "variance")]
        first = [given.pop("out_backprop")] if self.op == BACKWARD else []
        return function(*first, given.pop("input"), *rows, **given)

    def column(self, row: AnyArray) -> AnyArray:
        """Return one number per channel in a form that meets images."""
        return row if self.data_format == "NHWC" else row[:, None, None]


def draw(case: NormCase, seed: tuple[int, ...]) -> Arrays:
    """Draw the arrays of a case: sixty-fourths, which are short to write down.

    Gradients are 0 where the activation's argument is so close to a kink that its rounding would decide.
    """
    random = generator(*seed)
    row, parameter = case.row, accumulator(case.row)

    def normal(shape: tuple[int, ...], around: float = 0.0) -> AnyArray:
        numbers: AnyArray = np.rint(64 * random.standard_normal(shape)) / 64 + around
        return numbers

    x = normal(case.shape, 1000.0 if case.data == "far" else 0.0)
    if case.data == "constant":
        x = np.zeros(case.shape) + case.column(np.rint(normal((case.channels,)) * 20))
    if case.data in ("nan", "inf") and x.size:
        x.reshape(-1)[random.integers(x.size)] = np.nan if case.data == "nan" else np.inf
    arrays = {"input": round_once(x, row)}
    rows = {"scale": normal((case.channels,), 2.0), "offset": normal((case.channels,), 1.0)}
    arrays |= {name: round_once(rows[name], parameter) for name in rows if getattr(case, name)}
    if case.residual:
        arrays["residual"] = round_once(normal(case.shape), row)
    if not case.is_training:
        around = normal((case.channels,), 1000.0 if case.data == "far" else 0.0)
        arrays["mean"] = round_once(around, parameter)
        arrays["variance"] = round_once(np.abs(normal((case.channels,))) + 0.5, parameter)
    if case.op == BACKWARD:
        result = _right(case, arrays)
        for name in ("mean", "variance"):
            arrays[name] = round_once(getattr(result, name), parameter)
        grad = round_once(normal(case.shape), row)
        arrays["out_backprop"] = np.where(_close(case, arrays), np.zeros_like(grad), grad)
    return arrays


def _right(case: NormCase, arrays: Arrays, **changed: Any) -> BatchNormResult:
    forward = NormCase(**{**vars(case), "op": FORWARD})
    result: BatchNormResult = forward.call(reference.batch_norm_act, arrays, **changed)
    return result


def _close(case: NormCase, arrays: Arrays) -> AnyArray:
    """Tell where the activation's argument is close to a kink: within 64 units of the terms that make it."""
    plain: dict[str, Any] = {"activation": "none", "is_training": False}
    if case.residual == "after":
        plain["residual"] = None
    u = _right(case, arrays, **plain).y
    centre = case.column(np.abs(arrays["mean"].astype(np.float64)))
    steep = case.column(
        arrays["scale"].astype(np.float64) if case.scale else np.ones(case.channels)
    )
    steep = np.abs(steep) / np.sqrt(
        case.column(arrays["variance"].astype(np.float64)) + case.epsilon
    )
    with np.errstate(invalid="ignore"):
        doubt = 64 * accumulator(case.row).unit * (np.abs(u) + 1 + 2 * centre * steep)
        doubt = doubt + 8 * case.row.unit * (np.abs(u) + 1)
        close = np.zeros(case.shape, bool)
        for kink in activations.find(case.activation).kinks:
            close |= np.abs(u - kink) <= doubt
    return close


def observe(kernel: Kernel, case: NormCase, arrays: Arrays, twice: bool = False) -> Observation:
    """Call a kernel on copies of the arrays and note what it did to them."""
    mine = {name: each.copy() for name, each in arrays.items()}
    try:
        with np.errstate(all="ignore"):
            given = _results(case, case.call(kernel, mine))
            kept = [each.copy() for each in given]
            again = _results(case, case.call(kernel, mine)) if twice else None
    except BROKEN as error:
        return Observation(died=f"raised {error_line(error)}")
    except (Exception, SystemExit) as error:
        return Observation(refused=error_line(error))
    wrong = next((each for each in kept if not is_plain(each)), None)
    if wrong is not None:
        return Observation(died=f"returned an array of {wrong.dtype}")
    shared = any(np.shares_memory(one, each) for one in given for each in mine.values())
    return Observation(
        results=kept,
        written=any(mine[name].tobytes() != arrays[name].tobytes() for name in arrays),
        shared="an operand" if shared else None,
        repeated=again is None
        or all(a.tobytes() == b.tobytes() for a, b in zip(again, kept, strict=True)),
    )


def _results(case: NormCase, returned: Any) -> list[AnyArray]:
    """Return the arrays a kernel returned, in order; that of a residual only where there is one."""
    count = len(RESULTS[case.op])
    results = list(returned)
    if case.op == BACKWARD and not case.residual:
        results = results[: count - 1]
        count -= 1
    if len(results) != count:
        names = ", ".join(RESULTS[case.op][:count])
        raise AssertionError(f"{len(results)} results instead of {count}: {names}")
    return [np.asarray(each) for each in results]
