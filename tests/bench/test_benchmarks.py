"""The benchmark harness, without any framework: what it measures and how it reckons."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench.rows import GB, flat, judged, row
from convgrad._apps.bench import (
    busy,
    machine,
    measure,
    networks,
    peers,
    report,
    runner,
    step,
    tables,
    winograd,
    worker,
)
from convgrad._apps.bench.contests import Contest, expect, operands_of, our_call
from convgrad._apps.bench.layers import OPS, Layer, deduplicate, parse
from convgrad._base import messages
from convgrad._base.errors import InternalError
from convgrad._problem import text as problem_text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("8x56x56x144k3s2", "56x56x144k3s2b8"),
        ("56x56x144k3s2b8", "56x56x144k3s2b8"),
        ("mb2:112x112x32k3s1b8", "mb2:112x112x32k3s1b8"),
        ("7x7x960k3", "7x7x960k3s1b1"),
        ("2x9x9x4k1x7d2m3v", None),
        ("28x28x60k1x7d2m3b2", "28x28x60k1x7s1d2m3b2"),
        ("8X56X56X128K3O128G32V", "56x56x128k3s1o128g32vb8"),
    ],
)
def test_problem_text(text: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(ValueError, match="window is larger"):
            parse(text)
        return
    assert parse(text).name == name
    assert parse(name) == parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("56x56", "no window"),
        ("56x56k3", "3 or 4 sizes before the window, not 2"),
        ("56x56x8k3z2", "'z2' means nothing"),
        ("56xx8k3", "not a list of sizes"),
        ("", "no sizes"),
        ("56x56x8k", "window has no size"),
        ("8x56x56x144", "cannot read"),
        ("8x56x56x144k3b8", "batch is given twice"),
        ("56x56x144k3s1s2", "`s` is given twice"),
        ("56x56x0k3", "at least 1"),
        ("56x56x8k3o0", "`o`"),
        ("56x56x8k3g2", "`g` needs `o`"),
        ("56x56x8k3m2o8", "`m` is for depthwise"),
        ("56x56x9k3o8g4", "groups must divide"),
    ],
)
def test_problem_text_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


def test_sizes_agree_with_the_library() -> None:
    for text in ("2x9x8x3k3s2", "1x7x5x2k4s3m2", "1x9x9x4k3d2v", "1x9x8x4k3x2s2o6g2"):
        layer = parse(text)
        for op in OPS:
            contest = Contest(layer, op)
            shape = our_call(contest, operands_of(contest))().shape
            wanted = {
                "fwd": layer.output_shape(),
                "dx": layer.input_shape(),
                "dw": layer.filter_shape,
            }
            assert shape == wanted[op]


def test_effective_flops_count_taps_inside_the_image() -> None:
    layer = parse("1x5x5x1k3")
    assert layer.flops(effective=False) == 2 * 25 * 9
    assert layer.flops() == 2 * (5 * 3 - 2) ** 2
    assert parse("1x5x5x1k3v").flops() == 2 * 9 * 9
    assert parse("1x5x5x4k1o6g2").flops() == 2 * 25 * 2 * 6


def test_traffic_counts_every_array_once() -> None:
    layer = parse("2x4x4x8k3s2")
    x, f, y = 2 * 16 * 8, 9 * 8, 2 * 4 * 8
    assert layer.traffic("fwd", "float32") == (4 * (x + f), 4 * y)
    assert layer.traffic("dx", "half") == (2 * (y + f), 2 * x)
    assert layer.traffic("dw", "float64") == (8 * (x + y), 8 * f)


@pytest.mark.parametrize("suite", list(tables.SUITES))
def test_tables_hold_every_problem_once(suite: str) -> None:
    layers, quick = tables.SUITES[suite].layers, tables.SUITES[suite].quick
    assert len({p.text for p in layers}) == len(layers) > 80
    assert len({p.name for p in quick}) == len(quick) == 10
    assert {p.text for p in quick} <= {p.text for p in layers}
    assert all(parse(p.name).text == p.text for p in layers)
    assert {p.batch for p in layers} >= {1, 8, 32}
    assert all(p.is_dense == (suite == "dense") for p in layers)


def test_deduplicate_keeps_all_labels() -> None:
    (only,) = deduplicate([parse("a:7x7x8k3b8"), parse("b:8x7x7x8k3"), parse("a:7x7x8k3s1b8")])
    assert only.name == "a:7x7x8k3s1b8"
    assert only.labels == ("a", "b")


def test_select_finds_shared_layers_under_every_network() -> None:
    assert any(p.labels[0] != "ef0" for p in tables.find_layers("depthwise", pattern="^ef0"))
    assert len(tables.find_layers("all", quick=True)) == 20


def test_peers_by_row_and_family() -> None:
    assert [p.name for p in peers.select("torch")] == ["torch-cl", "torch-nchw"]
    assert [p.name for p in peers.select("jax-jit,tf-eager,tf-eager")] == ["tf-eager", "jax-jit"]
    assert peers.select("none") == []
    with pytest.raises(ValueError, match="no peer 'caffe'"):
        peers.select("caffe")


def test_roofline_is_the_slower_of_arithmetic_and_traffic() -> None:
    layer = parse("1x64x64x64k1v")
    x = 64**3 * 4
    weights = 64 * 4
    assert flat(peak=1e6).roofline(layer, "fwd", "float32") == layer.flops() / 1e6
    # x and y pair up at copy speed, the filter is read beside them
    wanted = 2 * x / (50 * GB) + weights / (80 * GB)
    assert math.isclose(flat(peak=1e15).roofline(layer, "fwd", "float32"), wanted)
    # filter gradient: almost everything is read
    wanted = 2 * weights / (50 * GB) + (2 * x - weights) / (80 * GB)
    assert math.isclose(flat(peak=1e15).roofline(layer, "dw", "float32"), wanted)
    # input gradient of stride 2: more written than read
    halved = replace(layer, stride=2)
    read, written = halved.traffic("dx", "float32")
    wanted = 2 * read / (50 * GB) + (written - read) / (20 * GB)
    assert math.isclose(flat(peak=1e15).roofline(halved, "dx", "float32"), wanted)


def test_a_problem_needs_few_footprints() -> None:
    """Measuring all of them took 25 s of the 30 s that one problem took."""
    problem = parse("8x56x56x64k3s1o64")
    cases = [(problem, op) for op in OPS]
    wanted = machine.footprints(cases, "float32")
    assert sum(map(len, wanted.values())) <= 10
    assert {0, len(machine.FOOTPRINTS) - 1} <= set(wanted["copy"])
    # Nothing else is looked at: the roofline is the same whatever the other footprints would have shown.
    speeds = {
        name: [50 * GB if at in places else math.nan for at in range(len(machine.FOOTPRINTS))]
        for name, places in wanted.items()
    }
    known = machine.Machine(1e18, {name: tuple(each) for name, each in speeds.items()}, 2e-6, {})
    for _, op in cases:
        moved = sum(problem.traffic(op, "float32"))
        assert known.roofline(problem, op, "float32") == pytest.approx(moved / (50 * GB))
    everything = [(parse(f"1x{size}x{size}x64k3"), "fwd") for size in range(4, 600, 10)]
    assert len(machine.footprints(everything, "float32")["copy"]) == len(machine.FOOTPRINTS)


def test_what_lies_between_footprints_is_interpolated() -> None:
    last = len(machine.FOOTPRINTS) - 1
    speeds = machine._between([0, last], [90.0, 10.0])
    assert (speeds[0], speeds[-1]) == (90.0, 10.0)
    assert sorted(speeds, reverse=True) == speeds and len(set(speeds)) == last + 1
    assert machine._between([0, 1, last], [80.0, 90.0, 10.0])[0] == 90.0


def test_bandwidth_is_interpolated_and_best_of_two_runs_counts() -> None:
    slow, fast = flat(), flat(peak=120e9, copy=60 * GB, read=70 * GB)
    both = slow.best_of(fast)
    assert both.peak == 120e9
    assert both.bandwidth("copy", 1) == 60 * GB
    assert both.bandwidth("read", 1e12) == 80 * GB


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("text", ["3x6x5x40k3s2m2", "3x6x5x48k3o40", "3x6x5x60k3o40g20"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_partial_check_accepts_right_and_sees_wrong(
    op: str, text: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convgrad._apps.bench.contests.FULL_CHECK", 0)
    contest = Contest(parse(text), op, "float64", layout)
    expected = expect(contest)
    result = our_call(contest, operands_of(contest))()
    assert expected.values.size < result.size
    assert expected.error(contest, result) < 1e-13
    assert expected.error(contest, result + 1) > 1e-3
    assert math.isnan(expected.error(contest, np.full_like(result, np.nan)))


def test_everybody_calls_twice_in_turn_and_the_second_call_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    now = 0.0

    def call(name: str) -> Callable[[], None]:
        def inside() -> None:
            nonlocal now
            order.append(name)
            now += 5.0 if order.count(name) % 2 else 1.0  # the first of two is slow

        return inside

    clock = SimpleNamespace(perf_counter=lambda: now, process_time=lambda: now)
    monkeypatch.setattr(measure, "time", clock)
    turns = measure.take_turns({name: call(name) for name in "abc"}, 7.0)
    assert "".join(order) == "aabbccbbccaa"  # 18 s a sweep, and 21 s for three
    assert {name: turn.times for name, turn in turns.items()} == {n: [1.0, 1.0] for n in "abc"}


def test_slow_ones_call_once_and_kept_results_stay() -> None:
    made: list[int] = []
    turn = measure.take_turns({"a": lambda: made.append(1)}, 0.0, keep=2, slow={"a"})["a"]
    assert len(turn.times) == 1 and len(made) == 3
    assert measure.slow_ones({"a": measure.Turn([0.1], 0.0, 1.0)}) == set()
    assert measure.slow_ones({"a": measure.Turn([9.0], 0.0, 1.0)}) == {"a"}


class FakeRoom:
    """Contestants with fixed times; 0 is one that dies."""

    def __init__(self, name: str, order: list[str], **seconds: float) -> None:
        self.name, self.order, self.seconds = name, order, seconds
        self.ours, self.peers = ["ours"], [each for each in seconds if each != "ours"]

    def turns(self, names: Sequence[str], seconds: float) -> dict[str, measure.Turn]:
        self.order.append(f"{self.name}: {' '.join(names)}")
        return {
            name: measure.Turn([self.seconds[name]], 0.0, 1.0)
            for name in names
            if self.seconds[name]
        }


def test_rooms_take_turns_and_drop_the_hopeless() -> None:
    order: list[str] = []
    rooms = [FakeRoom("x", order, ours=1.0, a=1.0, dead=0.0), FakeRoom("y", order, ours=1.0, b=9.0)]
    times = measure.race(rooms, rounds=4, seconds=4, gap=0)
    # The order rotates; `dead` is not asked again, and nobody is left in y after two rounds.
    wanted = ["x: ours a dead", "y: ours b", "y: ours b", "x: ours a", "x: ours a", "x: ours a"]
    assert order == wanted
    assert times["x", "a"].summary()["calls"] == 4
    assert times["y", "ours"].summary()["calls"] == 2
    assert times["x", "dead"].summary() == {}


def test_a_race_of_slow_calls_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(measure, "PATIENCE", 0.0)
    measure.race([FakeRoom("x", order, ours=1.0)], rounds=9, seconds=1, gap=0)
    assert len(order) == measure.FEWEST


def test_both_layouts_have_the_same_numbers() -> None:
    for op in OPS:
        last = Contest(parse("2x5x4x6k3s2o4g2"), op)
        first = replace(last, layout="NCHW")
        assert np.array_equal(operands_of(first).x, operands_of(last).x.transpose(0, 3, 1, 2))
        moved, wanted = expect(last).in_layout(last, "NCHW"), expect(first)
        assert moved.values.shape == wanted.values.shape
        assert np.allclose(moved.values, wanted.values)


def test_report_names_best_peer_means_and_losses() -> None:
    wrong = {"status": "wrong", "reason": "wrong result: error 1", "error": 1.0}
    refused = {"status": "refused", "reason": "NotImplemented: no"}
    results = judged(
        row("net:8x7x7x64k3", "fwd", 1.0, {"a": 4.0, "b": 2.0}),
        row("net:8x7x7x64k3", "dx", 1.0, {"a": 0.5}, b=wrong),
        row("8x9x9x64k3", "fwd", 1.0, {"a": 8.0}, b=refused),
    )
    text = report.render(results)
    assert [line[4] for line in report.table(results["rows"])[1]] == ["b", "a", "a"]
    assert [r["best_peer"] for r in results["rows"]] == ["b", "a", "a"]
    assert re.search(r"^fwd +2 +4.00 +0 +0 +4.00 +0 +0 +4.00$", text, re.MULTILINE)
    assert re.search(r"^all +3 +2.00 +1 +1 +2.00 +1 +1 +2.00$", text, re.MULTILINE)
    assert "Of 3 rows, minima: 1 below 0.97, 1 below 1" in text
    assert "Of 3 rows, medians: 1 below 0.97, 1 below 1" in text
    assert "b: wrong result" in text
    assert [r["flags"] for r in results["rows"]] == ["", "x", "r"]


def test_rows_below_in_medians_only_are_listed_too() -> None:
    each = row("8x7x7x64k3", "fwd", 1.0, {"a": 1.2})
    each["ours"]["median_ms"] = 1.5
    results = judged(each)
    assert (each["ratio"], each["median_ratio"]) == (1.2, pytest.approx(0.8))
    text = report.render(results)
    assert "  1.20 (0.80)  7x7x64k3s1b8 fwd" in text
    assert "medians: 1 below 0.97" in text and "minima: 0 below 0.97" in text


def test_layouts_stand_beside_each_other() -> None:
    pair = [row("8x7x7x64k3", "fwd", ms, {"a": 2.0}) for ms in (1.0, 1.25)]
    pair[1].update(layout="NCHW", to_other_layout={"min_ms": 1.25, "median_ms": 1.3})
    text = report.render(judged(*pair))
    assert re.search(r"^depthwise +fwd +1 +1.25 +1.30 +1 +1.30 +7x7x64k3s1b8 fwd$", text, re.M)
    assert re.search(r"^fwd NHWC +1 +2.00 ", text, re.M)
    assert re.search(r"^fwd NCHW +1 +1.60 ", text, re.M)
    assert re.search(r"^depthwise +all +NCHW +fwd +1 +1.60 ", text, re.M)


def test_faults_that_inflate_a_time_are_flagged() -> None:
    each = row("8x7x7x64k3", "dx", 1.0, {"a": 15.0})
    each["peers"]["a"]["faults"] = 5000.0
    results = judged(each)
    assert each["flags"] == "F"
    assert "5000 page faults per call, about 10.00 of 15.00 ms" in report.render(results)


def test_problem_is_plain_data() -> None:
    assert Layer(1, 2, 2, 3, 1, 1) == parse("2x2x3k1")


def test_one_page_says_parts_lowest_rows_and_counts() -> None:
    results = judged(
        row("rn50:8x7x7x64k3o64", "fwd", 1.0, {"a": 4.0}),
        row("rn50:8x7x7x64k1o64", "fwd", 1.0, {"a": 0.98}),
        row("g4:8x7x7x64k3o64g16", "fwd", 1.0, {"a": 0.5}),
        row("8x7x7x64k3", "fwd", 1.0, {"a": 2.0}),
    )
    found = {(r["suite"], r["part"]): r for r in report.summarise(results["rows"])}
    assert {key: r["rows"] for key, r in found.items()} == {
        ("depthwise", "all"): 1,
        ("dense", "all"): 3,
        ("dense", "3x3 stride 1"): 1,
        ("dense", "others"): 1,
        ("dense", "groups"): 1,
    }
    assert found["dense", "all"]["below"] == {"0.97": 1, "1.0": 2}
    assert found["dense", "all"]["lowest_row"] == "g4:7x7x64k3s1o64g16b8"
    text = report.page(results)
    assert re.search(
        r"^dense +3x3 stride 1 +fwd +1 +4.00 +0 +0 +4.00 +0 +0 +4.00 +rn50", text, re.MULTILINE
    )
    assert len(text.splitlines()) < 60
    assert re.search(r"^g4 +1 +0.50 +0.50 +g4:", report.render(results), re.MULTILINE)


def test_networks_have_their_layers() -> None:
    """A step has three calls per layer but one: the image needs no gradient."""
    for network, count, depthwise in (("resnet50", 53, 0), ("mobilenet_v2", 52, 17)):
        layers = networks.NETWORKS[network].layers(8)
        assert (len(layers), sum(not p.is_dense for p in layers)) == (count, depthwise)
        assert len(list(networks.training_step(network, 8))) == 3 * count - 1
        known = {p.text for suite in tables.SUITES.values() for p in suite.layers}
        assert {p.text for p in layers} <= known


def test_step_runs_cold_and_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network of two layers, in this process: what children answer."""
    small = networks.Network("Small", lambda: ["6x6x3k3o4", "6x6x4k3"])
    monkeypatch.setitem(networks.NETWORKS, "small", small)
    answer = step._child("small", 1, 1, "float32", "NHWC")
    assert answer["calls"] == 5
    shown = step.render({"rows": [{"network": "small", "state": "cold", **answer}]})
    assert re.search(r"^Small +cold +5 ", shown, re.MULTILINE)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot pin processes here")
def test_busy_compares_medians() -> None:
    how = runner.RunSettings(ops=("fwd",), rounds=1, seconds=0.001)
    results = busy.measure_all([parse("1x4x4x3k3")], [], how)
    assert results["rows"][0]["medians"]["convgrad"]["busy_ms"] > 0
    assert "geometric mean" in busy.render(results)


def test_data_of_the_winograd_table() -> None:
    contest = Contest(parse("1x9x9x16k3o16"), "fwd")
    whole = winograd.draw_operands(contest, "whole")
    assert (whole.x == whole.x.round()).all()
    heavy = winograd.draw_operands(contest, "heavy-tailed").x
    assert np.abs(heavy).max() > 1000 * np.median(np.abs(heavy))
    assert np.isfinite(
        winograd.draw_operands(replace(contest, dtype="half"), "heavy-tailed").x
    ).all()
    assert winograd.is_candidate(contest.layer)
    assert not winograd.is_candidate(parse("1x9x9x16k3s2o16"))


def test_peers_start_side_by_side_and_say_later_what_is_wrong() -> None:
    stranger: Any = SimpleNamespace(name="nobody", environment=lambda threads: {})
    ours = [worker.Worker([stranger], 1, 0, False, 60.0) for _ in range(2)]
    try:
        for each in ours:
            each.launch()
        assert all(each._process is not None for each in ours)
        for each in ours:
            each.await_start()
            with pytest.raises(worker.Refused, match="KeyError: 'nobody'"):
                each.ask("turns", ["nobody"], 0.1, [])
            assert each._process is None  # it is started again for the next question
    finally:
        for each in ours:
            each.stop()


def test_a_room_calls_us_beside_its_framework() -> None:
    """What a worker answers, without a process: we are prepared, checked and take turns in both layouts."""
    last = Contest(parse("1x5x4x3k3o2"), "fwd")
    first = replace(last, layout="NCHW")
    expected = expect(last)
    names = [worker.ours_in(each.layout) for each in (last, first)]
    asked, answers = io.BytesIO(), io.BytesIO()
    for name, each in zip(names, (last, first), strict=True):
        moved = expected.in_layout(last, each.layout)
        messages.write(asked, ("prepare", name, each, moved))
    messages.write(asked, ("turns", names, 0.001, []))
    messages.write(asked, ("turns", ["torch-cl"], 0.001, []))
    asked.seek(0)
    worker._serve(asked, answers)
    answers.seek(0)
    told = [messages.read(answers, measure.Turn) for _ in range(4)]
    assert [kind for kind, _ in told] == ["ok", "ok", "ok", "refused"]
    assert all(each["error"] < 1e-6 and each["note"] == "pool own" for _, each in told[:2])
    assert list(told[2][1]) == names and all(turn.times for turn in told[2][1].values())


def test_a_room_that_fails_says_so_for_everybody_in_it() -> None:
    answers: list[Any] = [
        {"error": 0.0, "first_ms": 1.0, "note": ""},
        {"error": 0.5, "first_ms": 1.0, "note": ""},
        {"error": 0.0, "first_ms": 1.0, "note": ""},
    ]

    def ask(*request: Any) -> Any:
        if request[0] == "turns":
            raise worker.WorkerFailed("process ended with code -6: abort")
        return answers.pop(0)

    room = worker.Remote("torch", cast(worker.Worker, SimpleNamespace(ask=ask)))
    contest = Contest(parse("1x5x4x3k3o2"), "fwd")
    expected = expect(contest)
    for name in ("torch-cl", "torch-nchw", worker.ours_in("NHWC")):
        room.prepare(name, contest, expected)
    assert (room.peers, room.ours) == (["torch-cl"], ["convgrad NHWC"])
    assert room.records["torch-nchw"]["status"] == "wrong"
    assert room.turns(["torch-cl", "convgrad NHWC"], 0.1) == {}
    assert room.peers == room.ours == []
    assert "code -6" in room.records["torch-cl"]["reason"]


def test_a_layout_of_ours_that_nobody_timed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A room times nobody whose result is wrong; the row once ended in a bare KeyError."""
    monkeypatch.setattr(runner, "race", lambda rooms, **how: {})
    how = runner.RunSettings(ops=("fwd",), rounds=1, seconds=0.001)
    with pytest.raises(InternalError, match="convgrad in NHWC beside"):
        runner._measure(Contest(parse("4x4x8k3o8b1"), "fwd"), [], {}, how)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("8x9x7x4k3s2x1d1x2", "9x7x4k3s2x1d1x2b8"),
        ("8x9x7x4k3s2x2", "9x7x4k3s2b8"),
        ("8x9x7x4k3p0x1x2x0o8", "9x7x4k3s1o8p0x1x2x0b8"),
        ("8x9x7x4k3p1", "9x7x4k3s1b8"),  # which is SAME
        ("8x9x7x4k3p0", "9x7x4k3s1vb8"),
        ("8x9x7x4k3p2x0", "9x7x4k3s1p2x2x0x0b8"),
    ],
)
def test_layers_with_steps_and_pads_of_their_own(text: str, canonical: str) -> None:
    layer = parse(text)
    assert layer.text == canonical
    assert parse(layer.text) == layer
    problem, *_ = (line.problem for line in problem_text.parse(text))
    assert layer.input_shape() == problem.input_shape
    assert layer.output_shape() == problem.output_shape
    assert layer.filter_shape == problem.filter_shape
    assert layer.flops(effective=False) == problem.flops
