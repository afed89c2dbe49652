"""Every NaN of the 16-bit floats, whatever its payload, comes out of every operation as a NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calling import seeds
from cases import whole_numbers
from convgrad._apps.bench.contests import Contest, Tensors, our_call
from convgrad._apps.bench.layers import LAYOUTS, OPS, parse
from convgrad._compiler import jit
from convgrad._engine import planner
from kernels import compute, expected_exactly, problem_of, random_case_for

HOST = jit.host_target()

LAYERS = ("9x10x32k3b2", "20x21x16k3s2b1", "12x12x24k5b1", "11x13x3k3b2", "8x9x16k3o32b1")
KINDS = {"half": (np.float16, 0x7C00), "bfloat16": (ml_dtypes.bfloat16, 0x7F80)}


def _operands(layer: Any, dtype: str, layout: str) -> Tensors:
    """Small whole numbers and, in one of 40 places of the images, a NaN: signalling and quiet, both signs, any payload.

    None in the filter, which kernels that read padding multiply by its zeros.
    """
    rng = np.random.default_rng(3)
    kind, infinity = KINDS[dtype]
    found = []
    for shape in (layer.input_shape(layout), layer.filter_shape, layer.output_shape(layout)):
        values = rng.integers(-3, 4, shape).astype(kind)
        bits, often = values.view(np.uint16), shape != layer.filter_shape
        nans = infinity + rng.integers(1, 0x8000 - infinity, shape)
        nans += 0x8000 * rng.integers(0, 2, shape)
        bits[...] = np.where((rng.integers(0, 40, shape) == 0) & often, nans, bits)
        found.append(values)
    return Tensors(*found)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("text", LAYERS)
def test_nans_stay_and_do_not_spread(text: str, dtype: str, layout: str) -> None:
    from convgrad import reference

    layer = parse(text)
    arrays = _operands(layer, dtype, layout)
    for op in OPS:
        contest = Contest(layer, op, dtype, layout)
        got = our_call(contest, arrays)().astype(np.float64)
        with np.errstate(all="ignore"):
            expected = our_call(contest, arrays, reference)().astype(np.float64)
        if op == "dw":  # where a NaN meets padding it may reach more sums of its channel
            assert np.isnan(got[np.isnan(expected)]).all()
            expected[np.isnan(got)] = np.nan
        np.testing.assert_array_equal(got, expected, err_msg=f"{text} {op} {dtype} {layout}")


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("dtype", KINDS)
def test_rows_read_in_place_are_exact(dtype: str, seed: int, checked: Any) -> None:
    """Planes wide enough to be read without copies, whose borders are loads of some lanes, beside forbidden pages."""
    rng = np.random.default_rng(200 + seed)
    name, in_place = "depthwise_plane", 0
    for turn in range(12):
        case, kinds = random_case_for(
            rng,
            name,
            HOST,
            depthwise=True,
            data_format="NCHW",
            dtype=dtype,
            size=(int(rng.integers(2, 12)), int(rng.choice([7, 17, 18, 23, 31, 32, 33, 47, 50]))),
            groups=2,
            window=(((3, 3), (3, 3), (1, 3), (7, 1), (2, 4), (3, 2))[int(rng.integers(6))]),
            strides=(int(rng.integers(1, 3)), (1, 1, 2)[turn % 3]),
        )
        data = whole_numbers(case, rng)
        for kind in kinds:
            kernel: Any = planner.choose_named(problem_of(case, kind), HOST, name).steps[0].kernel
            in_place += kernel.direct
            got = compute(name, HOST, case, kind, data, ("start", "end")[turn % 2])
            np.testing.assert_array_equal(
                got.astype(np.float64),
                expected_exactly(case, kind, data).astype(np.float64),
                str((case, kind)),
            )
            checked["planes of 16-bit floats on guarded memory, exact integers"] += 1
    assert in_place > 3 or HOST.name == "sse2" or HOST.architecture != "x86_64"
