"""What the turns of `convgrad bench train` say: medians, fair comparisons, disturbances, wrong losses."""

from __future__ import annotations

import pytest

from bench.train_runs import a_row, a_run, usual
from benchmarks.train import ratios, report
from benchmarks.train.ratios import Spread


def test_medians_and_quartiles() -> None:
    assert ratios.spread([]) is None
    assert ratios.spread([3.0]) == Spread(3.0, 3.0, 3.0, 1)
    assert ratios.spread([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(3.0, 2.0, 4.0, 5)


def test_a_machine_that_slows_down_does_not_touch_a_ratio() -> None:
    base, other = a_row("native", 10.0, 20.0, 40.0), a_row("ours", 5.0, 10.0, 20.0)
    assert ratios.spread(ratios.paired(base, other)) == Spread(2.0, 2.0, 2.0, 3)


def test_only_rounds_with_both_are_compared() -> None:
    base, other = a_row("native", 10.0, 20.0, 30.0), a_row("ours", 5.0, 5.0, 5.0)
    del base["turns"][1]
    assert ratios.paired(base, other) == [2.0, 6.0]
    other["turns"] = []
    assert ratios.paired(base, other) == []


def test_a_turn_counts_by_its_median_step() -> None:
    base, other = a_row("native", 8.0), a_row("ours", 1.0)
    other["turns"][0]["steps"] = [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [50.0, 50.0, 0.0]]
    assert ratios.paired(base, other) == [2.0]
    assert ratios.steps(other) == [2.0, 4.0, 100.0]
    assert ratios.part(other, "backward") == 2.0


def test_best_native_is_the_best_layout_of_a_memory_setting() -> None:
    rows = usual()
    assert ratios.best(rows, "native", memory=False)["label"] == "native_cl"  # type: ignore[index]
    assert ratios.best(rows, "native", memory=True)["label"] == "native_memory"  # type: ignore[index]
    assert ratios.best(rows, "compiled", memory=False) is None
    twin = a_row("native_cl_memory#2", 1.0)
    assert ratios.best([*rows, twin], "native", memory=True)["label"] == "native_memory"  # type: ignore[index]


def test_comparisons_are_fair() -> None:
    found = a_run(*usual())["comparisons"]
    assert [(each["what"], each["base"], each["other"], each["median"]) for each in found] == [
        ("control", "native_cl_memory", "native_cl_memory#2", pytest.approx(200 / 210)),
        ("ours", "native_cl", "ours", pytest.approx(280 / 240)),
        ("compiled", "native_memory", "compile_cl_memory", pytest.approx(190 / 160)),
        ("ours", "native_memory", "ours_memory", pytest.approx(1.9)),
    ]


def test_every_row_of_ours_is_compared() -> None:
    """A second way of ours, such as fused layers, does not hide the first."""
    another = a_row("ours_memory", 50.0, 100.0, 50.0)
    another["label"] = "fused_memory"
    found = a_run(*usual(), another)["comparisons"]
    assert {each["other"]: each["median"] for each in found if each["base"] == "native_memory"} == {
        "compile_cl_memory": pytest.approx(190 / 160),
        "ours_memory": pytest.approx(1.9),
        "fused_memory": pytest.approx(3.8),
    }


def test_who_failed_is_not_compared() -> None:
    rows = usual()
    rows[2].update(status="failed", reason="died")
    found = a_run(*rows)["comparisons"]
    assert [each["base"] for each in found if each["other"] == "ours_memory"] == [
        "native_cl_memory"
    ]


def test_a_disturbed_run_says_so() -> None:
    rows = usual()
    assert not any("DISTURBED" in line for line in report.conclusions(a_run(*rows), "mobilenet_v2"))
    for turn in rows[6]["turns"]:
        turn["others"] = 0.4
    lines = report.conclusions(a_run(*rows), "mobilenet_v2")
    assert lines[0].startswith("DISTURBED: other programs had up to 40% of the processors")
    assert report.table(a_run(*rows), "mobilenet_v2")[6][8] == "40%"
    for row in rows:  # a system that does not say
        for turn in row["turns"]:
            turn["others"] = None
    assert ratios.disturbed(rows) is None
    assert report.table(a_run(*rows), "mobilenet_v2")[6][8] == "-"


def test_wholes_beside_parts() -> None:
    """A run may have both; a whole has a line where its parts would be."""
    rows = usual()
    for turn in rows[0]["turns"]:
        turn["steps"] = [[300.0]]
    run = a_run(*rows)
    assert report.columns(run, "mobilenet_v2")[3:6] == list(ratios.PARTS)
    first, second, *_ = report.table(run, "mobilenet_v2")
    assert first[1:6] == ["300", "300 300", "-", "-", "-"]
    assert second[3:6] == ["140", "70.0", "70.0"]


def test_losses_may_differ_as_those_of_native_layouts_do() -> None:
    native = [a_row("native", 1.0), a_row("native_cl", 1.0, losses=[6.88])]
    for loss, odd in ((6.83, False), (6.81, True)):
        ours = a_row("ours", 1.0, losses=[loss])
        assert ratios.odd_losses([*native, ours]) == ([ours] if odd else [])
