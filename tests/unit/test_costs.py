"""Predicted times: there is one for everything that can be computed, and it alone decides."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite
from typing import Any

import numpy as np
import pytest

import convgrad
from cases import KINDS, Case, random_case
from convgrad._base import config
from convgrad._compiler import costs, jit
from convgrad._compiler.targets import ALL, VECTOR_BITS
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS, reference
from convgrad._kernels.dense_filter import choice, schedule
from convgrad._problem.convolution import Problem
from kernels import families, problem_of

HOST = jit.host_target()


def problems(seed: int, count: int, largest: int = 40) -> list[Problem]:
    """Draw problems of every operation, dtype and layout that add something up."""
    rng = np.random.default_rng(seed)
    found: list[Problem] = []
    sorts = families(largest, depthwise=0.5)
    while len(found) < count:
        case = random_case(rng, sorts)
        kinds = KINDS[:2] if case.dtype == "int32" else KINDS
        if case.legal and 0 not in (*case.input_shape, *case.output_shape):
            found.append(problem_of(case, kinds[int(rng.integers(len(kinds)))]))
    return found


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_whatever_is_not_refused_has_a_candidate_and_a_predicted_time(row: Any) -> None:
    """On every row, at every width: no unit of work may lack a price."""
    for number, problem in enumerate(problems(1, 80)):
        target = row.with_vector_bits(VECTOR_BITS[number % 3])
        for name in ALGORITHMS:
            if ALGORITHMS[name].why_not(problem, target) is not None:
                continue
            offered = ALGORITHMS[name].candidates(problem, target)
            assert offered, (name, problem)
            assert len({each.label for each in offered}) == len(offered), name
            for each in offered:
                assert each.work.items >= 1 and each.work.launches >= 1
                assert all(0 <= amount < inf for amount in each.work.amounts.values()), each
                for threads in (1, 2, 8):
                    predicted = costs.microseconds(each.work, target, threads)
                    assert isfinite(predicted) and predicted > 0, (each, problem)


def test_every_row_has_a_table_and_says_whether_it_is_a_guess() -> None:
    assert set(costs.TABLES) == {row.name for row in ALL}
    assert set(costs.FITTED) <= set(costs.TABLES)
    for table in costs.TABLES.values():
        assert {kind.partition(" ")[0] for kind in table} == set(ALGORITHMS)
        for known in table.values():
            assert all(0 <= price < inf for price in known.values())
            assert {costs.LAUNCH, costs.WAKE} <= set(known)


def test_more_images_take_longer() -> None:
    for case in (
        Case(True, 1, (28, 28), 96, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(True, 1, (14, 14), 64, 1, 2, (5, 5), (2, 2), (1, 1), "SAME"),
        Case(False, 1, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(False, 1, (56, 56), 4, 16, 24, (1, 1), (1, 1), (1, 1), "SAME"),
    ):
        for kind in KINDS:
            for data_format in ("NHWC", "NCHW"):
                for name in ALGORITHMS:
                    times = []
                    for batch in (1, 4, 16, 64, 256):
                        at = replace(case, batch=batch, data_format=data_format)
                        found = planner.candidates(problem_of(at, kind), HOST, name)
                        times += [costs.microseconds(found[0][1].work, HOST, 1)] if found else []
                    assert all(a < b for a, b in pairwise(times)), (name, case, kind, times)


def test_neither_a_clock_nor_the_threads_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    some = problems(2, 60)
    before = [planner.best(problem, HOST, "auto") for problem in some]
    for clock in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
        for name in (clock, f"{clock}_ns"):
            monkeypatch.setattr(time, name, lambda: pytest.fail("a clock was asked"))
    choice.schedules.cache_clear()
    for count in (1, 3):
        with convgrad.threads(count):
            assert [planner.best(problem, HOST, "auto") for problem in some] == before


def test_the_cheapest_is_chosen_and_the_reference_only_if_nothing_else_can() -> None:
    for problem in problems(3, 80):
        ranked = [
            (rank, name)
            for name in ALGORITHMS
            if not planner.switched_off(name, "auto")
            for rank, _ in planner.candidates(problem, HOST, name)
        ]
        kernels = [pair for pair in ranked if pair[1] != reference.NAME]
        chosen = planner.choose(problem, HOST).algorithm
        assert chosen == min(kernels or ranked, key=lambda pair: pair[0])[1], problem


def test_a_bound_is_one() -> None:
    """`dense_filter` is not asked where its bound is above what others take."""
    asked = [problem for problem in problems(4, 120) if problem.kind.name == "FILTER_GRADIENT"]
    for problem in asked:
        for rank, _ in planner.candidates(problem, HOST, schedule.NAME):
            assert schedule.at_least(problem, HOST) <= rank, problem


def test_the_switch_holds_back_what_is_cheaper() -> None:
    case = Case(False, 8, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    problem = problem_of(case, "forward")
    found = {value: planner.best(problem, HOST, value)[0] for value in config.WINOGRAD}
    assert found == {"off": "dense_direct", "auto": "winograd", "fast": "winograd_fast"}


def test_threads_share_the_items() -> None:
    work = costs.Work("any", {"products": 100.0}, items=4)
    assert [work.share(n) for n in (1, 2, 3, 8)] == [1, 1 / 2, 1 / 2, 1 / 4]
    assert work.counted(2) == {"products": 50, "launch": 1, "wake": 1}
    alone = replace(work, serial=True)
    assert alone.counted(8) == {"products": 100, "launch": 1, "wake": 0}
