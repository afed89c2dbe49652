"""The tool that divides the work of a plan among threads that are not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convgrad._compiler import jit
from convgrad._engine import planner

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import threads  # noqa: E402
from fit_times import Case  # noqa: E402


def piece(*seconds: float) -> threads.Piece:
    return threads.Piece("SomeKernel", len(seconds), 1, list(seconds))


def test_a_free_thread_takes_the_next_piece() -> None:
    assert threads.finish([1.0] * 16, 8) == [2.0] * 8
    assert threads.finish([1.0] * 9, 8)[-1] == 2.0
    assert threads.finish([5.0, 1.0, 1.0], 16) == [1.0, 1.0, 5.0]


def test_launches_wait_for_each_other() -> None:
    """A merge of one piece on one thread limits everybody, as Amdahl says."""
    found = threads.simulated([piece(*[1.0] * 64), piece(4.0)], 16)
    assert found.speedup == pytest.approx(68 / (4 + 4))
    assert found.largest == pytest.approx(1 / 16)
    assert found.limits == "SomeKernel: 1 pieces of 1 items, 6% of the time"
    assert threads.simulated([piece(1.0, 1.0)], 16, serial=True).speedup == 1.0


def test_pieces_that_noise_hit_are_timed_again() -> None:
    calls: list[tuple[int, int]] = []

    def call(begin: int, end: int) -> float:
        calls.append((begin, end))
        return 9.0 if begin == 2 and calls.count((2, 3)) < 4 else 1.0

    assert threads._least(call, [(at, at + 1) for at in range(5)], 2) == [1.0] * 5
    assert (1, 2) in calls[10:]  # behind its neighbour


@pytest.mark.parametrize("op", ["fwd", "dx", "dw"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("text", ["8x8x16k3s1o24b2", "9x7x24k3s2b3", "8x8x32k3s1o32g4b2"])
def test_a_plan_is_cut_as_threads_claim_it(text: str, layout: str, op: str) -> None:
    case = Case(text, op, layout, "float32")
    found = threads.row(case, (8, 16), 1)
    plan = planner.choose(case.problem, jit.host_target())
    assert found.items == [step.items for step in plan.steps]
    assert len(found.pieces) == len(plan.steps)
    assert found.milliseconds > 0
    assert all(1 <= share.speedup <= share.threads + 1e-9 for share in found.shares)


def test_pieces_together_do_what_a_call_does() -> None:
    """Kernels get their pointers, tables and words as the runtime gives them: ones give the right sums."""
    case = Case("6x6x8k1s1o8b1", "fwd", "NHWC", "float32")
    plan = planner.choose(case.problem, jit.host_target())
    seen: dict[str, Any] = {}
    original = threads._memory

    def filled(plan: Any) -> dict[str, Any]:
        seen.update(original(plan))
        for name in ("first", "second"):
            seen[name][: seen[name].size // 4 * 4].view(np.float32)[...] = 1.0
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_memory", filled)
        threads.timed(plan, jit.host_target(), 1, [16])
    result = seen["result"].view(np.float32)[: 6 * 6 * 8]
    assert (result == 8.0).all()


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    target = tmp_path / "rows.json"
    words = ["7x7x16k1o32b1", "--threads", "2,16", "--repeat", "1", "--all", "--json", str(target)]
    assert threads.main(words) == 0
    printed = capsys.readouterr().out
    assert "share 16" in printed and "0 of 0 above 100 MFlop are below 12 on 16" in printed
    rows = json.loads(target.read_text())
    assert len(rows) == 6 and rows[0]["shares"][1]["threads"] == 16
    with pytest.raises(SystemExit):
        threads.main(["--threads", "many"])
    with pytest.raises(SystemExit, match="no list 'sparse'"):
        threads.main(["sparse"])


def test_large_rows_behind_are_listed() -> None:
    share = threads.Share(16, 6.5, 0.15, "SomeKernel: 8 pieces of 1 items")
    sizes = ([8], [8], 1024, 0, 0)
    rows = [
        threads.Row("7x7x8k1s1o8b1", "dw", "NHWC", "dense_filter", mflop, 1.0, *sizes, [share])
        for mflop in (99.0, 101.0)
    ]
    assert threads.behind(rows) == [rows[1]]
    assert "1 of 1 above 100 MFlop are below 12 on 16" in threads.summary(rows, [16])
