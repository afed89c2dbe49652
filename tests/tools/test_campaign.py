"""The campaign's own parts: drawing, the second oracle, what counts as wrong, shrinking, saving and going on."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import naive
from cases import KINDS, Case, Data, random_case, run, whole_numbers

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools" / "campaign").is_dir():
    pytest.skip("the campaign is not part of this distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from tools.campaign import checks, draw, oracle, shrink, state, steps, summary  # noqa: E402
from tools.campaign.runner import Campaign, Limits  # noqa: E402
from tools.campaign.trial import OPS, Trial, targets  # noqa: E402
from tools.campaign.worker import try_job  # noqa: E402

CASE = Case(False, 2, (5, 6), 1, 3, 4, (3, 2), (1, 2), (1, 1), "SAME")
TRIAL = Trial(
    op="conv2d",
    case=CASE,
    mixing=0,
    data="whole",
    seed=1,
    target=targets()[0],
    winograd="auto",
    door="friendly",
    layouts=("C", "C"),
    named=("dense_direct",),
    place="end",
    threads=(1, 2),
)


def test_a_trial_is_a_function_of_seed_and_number() -> None:
    for index in range(20):
        assert draw.trial(5, index) == draw.trial(5, index)
    assert draw.trial(5, 0) != draw.trial(6, 0)
    some = [draw.trial(5, index) for index in range(40)]
    assert len({each.problem for each in some}) == 40


def test_trials_survive_being_saved() -> None:
    for index in range(40):
        trial = draw.trial(1, index)
        assert Trial.from_json(json.loads(json.dumps(trial.to_json()))) == trial


def test_draws_cover_the_matrix() -> None:
    some = [draw.trial(2, index) for index in range(400)]
    ops = Counter(each.op for each in some)
    assert set(ops) == set(OPS)
    assert {each.case.dtype for each in some} == {*draw.DTYPES}
    assert {each.target for each in some} == {*targets()}
    assert {each.data for each in some} == {"whole", "wrapping", "normal", "special"}
    named = {name for each in some for name in each.named}
    assert {"dense_direct", "dense_filter", "depthwise_packed", "winograd"} <= named
    assert any(0 in each.case.output_shape for each in some)
    assert any(each.case.strides[0] != each.case.strides[1] for each in some)


@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_agrees_with_the_other_two(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, dtype="float64")
    data = whole_numbers(case, rng)
    for kind in KINDS:
        ours = oracle.compute(case, kind, data)
        np.testing.assert_array_equal(ours, run(case, kind, data, "reference"))
        np.testing.assert_array_equal(ours, naive.compute(case, kind, data))


@pytest.mark.parametrize("kind", KINDS)
def test_where_padding_meets_infinity(kind: str) -> None:
    """The sum with real zeros around the image has its extra NaNs there and nowhere else."""
    rng = np.random.default_rng(3)
    case = Case(False, 1, (4, 5), 1, 2, 2, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)))
    data = whole_numbers(case, rng)
    x, f, g = (each.astype(np.float64) for each in (data.x, data.f, data.g))
    f[0, 2, 1, 0] = np.inf
    g[0, 0, 3, 1] = np.nan
    data = Data(x, f, g)
    skipped, free = (
        oracle.compute(case, kind, data),
        oracle.padding_meets_infinity(case, kind, data),
    )
    padded = replace(case, size=(6, 7), padding="VALID")
    with np.errstate(invalid="ignore"):
        around = ((0, 0), (1, 1), (1, 1), (0, 0))
        if kind == "input":  # outputs that do not exist are the zeros here
            full = replace(case, size=(8, 9), padding="VALID")
            wide = Data(None, f, np.pad(g, around))
            zeros = naive.compute(full, "input", replace(wide, x=np.zeros(full.input_shape)))
            zeros = zeros[:, 2:6, 2:7]
        else:
            zeros = naive.compute(padded, kind, Data(np.pad(x, around), f, g))
    np.testing.assert_array_equal(np.isnan(zeros) & ~np.isnan(skipped), free & ~np.isnan(skipped))


def wrongly(change: Any) -> Any:
    """Patch the named algorithms so that their result is changed."""
    real = steps.call_named

    def call(trial: Trial, name: str, data: Data) -> Any:
        got = real(trial, name, data)
        change(got)
        return got

    return mock.patch.object(checks, "call_named", call)


def test_a_wrong_number_is_noticed() -> None:
    assert checks.attempt(TRIAL).algorithms == ["dense_direct", "dense_direct"]

    def change(got: Any) -> None:
        got.flat[7] += 1

    for data in ("whole", "normal"):
        with wrongly(change), pytest.raises(checks.Wrong):
            checks.attempt(replace(TRIAL, data=data, threads=(1,)))


def test_other_bits_and_other_classes_are_noticed() -> None:
    turn = iter(range(10))

    def change(got: Any) -> None:
        if next(turn):
            got.flat[0] = np.nextafter(got.flat[0], np.float32(9))

    with wrongly(change), pytest.raises(checks.Wrong, match="other bits"):
        checks.attempt(replace(TRIAL, data="normal"))

    def spread(got: Any) -> None:
        got.flat[0] = np.nan

    with wrongly(spread), pytest.raises(checks.Wrong, match="nan instead"):
        checks.attempt(replace(TRIAL, data="special", seed=4, threads=(1,)))


def test_a_changed_operand_is_noticed() -> None:
    real = checks.call_door

    def call(trial: Trial, operands: Any, mixing: Any) -> Any:
        got = real(trial, operands, mixing)
        operands[0].flat[0] += 1
        return got

    with mock.patch.object(checks, "call_door", call), pytest.raises(checks.Wrong, match="changed"):
        checks.attempt(replace(TRIAL, layouts=("end", "C")))


def test_failures_are_shrunk_and_saved(tmp_path: Path) -> None:
    """The smallest case that still fails: here, all with two rows or more and an odd column."""

    def fails(trial: Trial, worker: Any) -> str:
        return "wrong: x" if trial.case.size[0] > 1 and trial.case.size[1] % 2 else ""

    big = replace(TRIAL, case=replace(CASE, batch=7, size=(40, 31), group_in=33, dilations=(2, 2)))
    with mock.patch.object(shrink, "fails", fails):
        small, failure = shrink.shrink(big, "wrong: y", mock.Mock())
    case = small.case
    assert failure == "wrong: x" and case.size[0] <= 3 and case.size[1] == 1
    assert (case.batch, case.group_in, case.window, case.dilations) == (1, 1, (1, 1), (1, 1))
    path = shrink.save(small, failure, 1, 2, tmp_path)
    assert shrink.read(path) == small
    assert try_job({"trial": small.to_json()})["failure"] == ""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are watched by select")
def test_a_short_campaign_stops_and_goes_on(tmp_path: Path, capfd: Any) -> None:
    with mock.patch.object(state, "FOLDER", tmp_path):
        for problems in (4, 8):
            found = state.State.load(9)
            Campaign(found, Limits(3, problems), 1, 0.0, tmp_path).run()
            assert len(found.problems) >= problems and not found.failures
            assert len(found.problems) == found.done
        again = state.State.load(9)
        assert again.done == found.done and again.cells == found.cells
        assert sum(again.cells.values()) == again.done
    assert "distinct problems" in summary.text(summary.summary(again))
    capfd.readouterr()
