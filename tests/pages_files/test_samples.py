"""The sample pages of enuSpace's repository give the numbers it stores, in every form of file.

Numbers are spelt as the description of the pages spells them. They must agree to half a unit of their last digit, and
for float32 a little more: sums are added in another order there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages.build import build
from convgrad._apps.pages.files import read_page
from convgrad._apps.pages.page import Page
from convgrad._apps.pages.run import PageRun, Results
from pages_files import samples, xor_samples
from pages_files.sample_parts import FORMS, store

NOISE = {"float32": 4 * np.finfo(np.float32).eps, "float64": 1e-13}

Runs = dict[int, Results]


def runs(page: Page, folder: Path, form: int | str, *wanted: int) -> Runs:
    """Write a page, read it, and return the results of some of its runs."""
    built = build(read_page(store(page, folder, form)))
    assert built.problems == {}
    run = PageRun(built)
    found = {}
    for number in range(1, max(wanted) + 1):
        results = run.step()
        if number in wanted:
            found[number] = results
    return found


def agree(results: Results, name: str, numbers: str) -> None:
    """Compare an output, flat, with numbers as they are printed."""
    id, _, pin = name.rpartition(".")
    got = results[id][pin].reshape(-1)
    words = numbers.split()
    noise = NOISE[got.dtype.name]
    assert len(words) <= got.size
    for value, word in zip(got, words, strict=False):
        digits = len(word.partition(".")[2])
        wanted = float(word)
        assert abs(value - wanted) <= 0.5 * 10.0**-digits + noise * max(1, abs(wanted)), name


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> int | str:
    return request.param


def test_basic(tmp_path: Path, form: int | str) -> None:
    results = runs(samples.basic(), tmp_path, form, 1, 2)
    for each in results.values():
        product = each["ID_MUL"]["product"]
        assert product.dtype == np.float64
        assert product.tolist() == [[19], [-3]]


def test_basic_of_the_newer_projects(tmp_path: Path, form: int | str) -> None:
    total = runs(samples.basic_sum(), tmp_path, form, 1)[1]["ID_ADD"]["z"]
    assert total.tolist() == [[2, 4], [6, 8]]


def test_one_hot_equals_its_dat(tmp_path: Path, form: int | str) -> None:
    got = runs(samples.one_hot(), tmp_path, form, 1)[1]["ID_HOT"]["output"]
    stored = (tmp_path / "one_hot.dat").read_bytes()
    assert got.dtype == np.int32 and got.shape == (100, 10)
    assert len(stored) == 4000 and got.astype("<i4").tobytes() == stored


def test_symbolic_gradients(tmp_path: Path, form: int | str) -> None:
    found = runs(samples.symbolic_gradients(), tmp_path, form, 1, 2, 11, 159)
    first = found[1]
    agree(first, "ID_Y3.y", "0.212221")
    agree(first, "ID_MSE.output", "0.620597")
    agree(first, "ID_SUM.sum", "2.689563")
    agree(first, "ID_1eYS8f0.z", "0.647492")
    agree(first, "ID_NEW_W3.out", "0.029897 0.104819")
    agree(first, "ID_NEW_B3.out", "0.134129")
    agree(first, "ID_NEW_B1.out", "0.364472 0.147363 0.165934")
    agree(first, "ID_NEW_W1.out", "0.001262 0.563555 0.193303")
    agree(found[2], "ID_1eYS8f0.z", "0.586747")
    agree(found[11], "ID_1eYS8f0.z", "0.292430")
    last = found[159]
    agree(last, "ID_Y3.y", "0.865981")
    agree(last, "ID_MSE.output", "0.017961")
    agree(last, "ID_SUM.sum", "2.812631")
    agree(last, "ID_1eYS8f0.z", "0.046087")
    agree(last, "ID_W3.ref", "0.404765 0.442603")
    agree(last, "ID_NEW_W3.out", "0.405389 0.443162")
    agree(last, "ID_B3.ref", "0.517211")
    agree(last, "ID_NEW_B3.out", "0.517881")


def test_regression(tmp_path: Path, form: int | str) -> None:
    found = runs(samples.regression(), tmp_path, form, 1, 2, 11, 817)
    first = found[1]
    agree(first, "ID_H.z", "30.0 76.0 110.0 176.0 87.0 167.0 91.5 93.5")
    agree(first, "ID_COST.output", "2790.3125")
    agree(first, "ID_DELTA_W.output", "-303.375 -235.4375 -1261.8125")
    agree(first, "ID_DELTA_B.output", "-31.25")
    agree(first, "ID_NEW_W.out", "1.803375 3.7354375 1.7618125")
    agree(first, "ID_NEW_B.out", "0.53125")
    agree(found[2], "ID_COST.output", "1151.510377")
    agree(found[11], "ID_COST.output", "22.844222")
    last = found[817]
    agree(last, "ID_W.ref", "1.059470 2.064962 3.078531")
    agree(last, "ID_B.ref", "0.726751")
    agree(last, "ID_COST.output", "1.060127")
    agree(last, "ID_NEW_W.out", "1.059467 2.064958 3.078526")
    agree(last, "ID_NEW_B.out", "0.726999")


def test_regression_first_numbers_exactly(tmp_path: Path, form: int | str) -> None:
    first = runs(samples.regression(), tmp_path, form, 1)[1]
    assert first["ID_H"]["z"].reshape(-1).tolist() == [30, 76, 110, 176, 87, 167, 91.5, 93.5]
    assert first["ID_DELTA_W"]["output"].tolist() == [[-303.375, -235.4375, -1261.8125]]


def test_slope_applied(tmp_path: Path, form: int | str) -> None:
    found = runs(samples.slope_applied(), tmp_path, form, 1, 2, 500)
    agree(found[1], "ID_COST.output", "45738.0")
    agree(found[1], "ID_DELTA.output", "462.0")
    agree(found[1], "ID_NEW.out", "99.9538")
    for number, results in found.items():
        exact = 1 + 99 * (1 - 0.0001 * 14 / 3) ** (number - 1)
        np.testing.assert_allclose(results["ID_W"]["ref"], exact, rtol=1e-12)


def test_slope_applied_to_its_stored_run(tmp_path: Path) -> None:
    last = runs(samples.slope_applied(), tmp_path, 3, 22312)[22312]
    agree(last, "ID_W.ref", "1.002970")
    agree(last, "ID_NEW.out", "1.002969")
    agree(last, "ID_COST.output", "0.000041")
    agree(last, "ID_DELTA.output", "0.013861")
    exact = 1 + 99 * (1 - 0.0001 * 14 / 3) ** 22311
    np.testing.assert_allclose(last["ID_W"]["ref"], exact, rtol=1e-12)


def test_slope_assigned(tmp_path: Path, form: int | str) -> None:
    found = runs(samples.slope_assigned(), tmp_path, form, 1, 28)
    agree(found[1], "ID_NEW.output_ref", "53.8")
    agree(found[1], "ID_COST.output", "45738.0")
    agree(found[28], "ID_W.ref", "1.000004")
    agree(found[28], "ID_NEW.output_ref", "1.000002")
    agree(found[28], "ID_DELTA.output", "0.000020")


def test_xor_from_the_stored_initial_values(tmp_path: Path, form: int | str) -> None:
    found = runs(xor_samples.xor(), tmp_path, form, 1, 2)
    agree(found[1], "ID_XOR_MEAN.output", "0.642011")
    agree(found[1], "ID_O.y", "0.621284 0.649362 0.649362 0.673432")
    agree(found[1], "ID_NEW_W1.out", "0.494933 0.493920 0.494933 0.493920")
    agree(found[1], "ID_NEW_B2.out", "-0.026353")
    agree(found[2], "ID_XOR_MEAN.output", "0.588635")


def test_xor_from_the_values_its_results_come_from(tmp_path: Path, form: int | str) -> None:
    page = xor_samples.xor("{{0.58,0.5},{0.55,0.45}}")
    last = runs(page, tmp_path, form, 11)[11]
    agree(last, "ID_XOR_MEAN.output", "0.483411")
    agree(last, "ID_O.y", "0.512099 0.522206 0.523091 0.532034")
    agree(last, "ID_W1.ref", "0.565679 0.478558 0.535895 0.428922")
    agree(last, "ID_W2.ref", "0.126752 0.225762")
    agree(last, "ID_B2.ref", "-0.126977")


def test_xor_squares(tmp_path: Path, form: int | str) -> None:
    found = runs(xor_samples.xor_squares(), tmp_path, form, 1, 2)
    agree(found[1], "ID_1eOxka1459.output", "0.361926")
    agree(found[1], "ID_O.y", "0.817727 0.840973 0.833704 0.852104")
    agree(found[1], "ID_NEW_W1.out", "0.000848 0.562615 0.192892 0.807706")
    agree(found[1], "ID_NEW_B1.out", "-0.000222 -0.000767")
    agree(found[1], "ID_NEW_W2.out", "0.183639 0.797020")
    agree(found[1], "ID_NEW_B2.out", "0.995376")
    agree(found[2], "ID_1eOxka1459.output", "0.360317")
    agree(found[2], "ID_O.y", "0.815408 0.838501 0.831295 0.849607")


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (samples.basic, "Const2 MatMul ClientSession"),
        (samples.one_hot, "Const OneHot ClientSession"),
        (
            samples.symbolic_gradients,
            "ClientSession Variable6 Const3 MatMul3 Add4 Tanh3 L2Loss3 InputList AddN Multiply Subtract Square Mean "
            "AddSymbolicGradients ApplyGradientDescent6",
        ),
        (
            samples.regression,
            "Variable4 MatMul Add Subtract Square Mean3 Multiply ApplyGradientDescent2 Const ClientSession "
            "SENSOR_TREND5 ARAAY_3_OUT",
        ),
        (
            samples.slope_applied,
            "Variable3 Multiply2 Subtract Square Mean2 ApplyGradientDescent Const ClientSession",
        ),
        (
            samples.slope_assigned,
            "Variable3 Multiply3 Subtract2 Square Mean2 Assign ClientSession",
        ),
        # Of the nine Multiply of the original, two are not described.
        (
            xor_samples.xor,
            "Const_ex4 Variable4 MatMul5 Add3 Sigmoid2 Log2 Negate Div2 Subtract5 Multiply7 Square Mean3 "
            "ApplyGradientDescent4 ClientSession",
        ),
        (
            xor_samples.xor_squares,
            "Const_ex4 Variable4 MatMul5 Add2 Sigmoid2 Subtract3 Multiply4 Square Mean3 ApplyGradientDescent4 "
            "ClientSession",
        ),
    ],
)
def test_pages_have_the_blocks_of_the_originals(make: Callable[[], Page], counts: str) -> None:
    found = Counter(each.symbol for each in make().blocks)
    words = [f"{name}{'' if count == 1 else count}" for name, count in found.items()]
    assert sorted(words) == sorted(counts.split())
