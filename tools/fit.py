"""Fit what `src/convgrad/_compiler/costs` says work costs to measured times, and show how well it predicts.

Usage: python tools/fit.py measure [--row ROW] [--quick] [--only TEXT] [--seconds S] [--warm]
       python tools/fit.py fit [--row ROW] [--check]
       python tools/fit.py wrong [--row ROW] [--percent P] [--threads N] [--winograd SWITCH]

`measure` times every candidate of every algorithm on the benchmark lists, those of one problem in turns, on one thread
and on two, and appends to the row's measurements (ROW.csv). A problem is left out if what is chosen for it is in the
file, so a run can be continued, and new choices are measured after a fit; of two times the later one counts. `--warm`
only compiles. `fit` finds the prices that come nearest to the measured times, writes ROW.py and prints the error;
`--check` writes nothing and fails where the file says something else. `wrong` lists the problems for which the plan
that is chosen took more than 10% longer than the best one that was measured, and sums up.

Measure on a quiet machine of the row's kind. The fit is deterministic: the same file gives the same prices.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fit_times import FOLDER, Case, measure, rows

from convgrad._compiler import costs
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.dense_filter import choice

ENOUGH = 8
"""Candidates measured of a kind of work, for prices of its own."""
STRAY = 0.2
"""Errors above which a measurement counts less, in proportion."""
TURNS = 25
WRONG = 0.10


@contextmanager
def all_schedules() -> Iterator[None]:
    """Let `dense_filter` offer all it considers, unranked: which ones are best changes with the prices."""
    choice.schedules.cache_clear()
    unranked = mock.patch.object(choice, "Ranking", lambda *_: lambda schedule: 0.0)
    with mock.patch.object(choice, "OFFERED", 1 << 20), unranked:
        yield
    choice.schedules.cache_clear()


@dataclass(frozen=True)
class Sample:
    """One measured candidate: what it does, and how long that took."""

    case: Case
    algorithm: str
    label: str
    work: costs.Work
    times: dict[int, float]
    """Microseconds by threads."""


def samples(row: str) -> tuple[Target, list[Sample]]:
    """Return all measurements of a row with the work of their candidates, counted anew."""
    target, measured = rows(FOLDER / f"{row}.csv")
    if target is None:
        raise SystemExit(f"{row} has no measurements")
    found = []
    by_case: dict[Case, dict[tuple[str, str], dict[int, float]]] = defaultdict(dict)
    for r in measured:
        case = Case(r["problem"], r["op"], r["layout"], r["dtype"])
        times = {n: float(r[key]) for n, key in ((1, "one"), (2, "two")) if r[key]}
        by_case[case][r["algorithm"], r["candidate"]] = times
    with all_schedules():
        for case, times_of in by_case.items():
            for name in dict.fromkeys(name for name, _ in times_of):
                for each in ALGORITHMS[name].candidates(case.problem, target):
                    if (name, each.label) in times_of:
                        times = times_of[name, each.label]
                        found.append(Sample(case, name, each.label, each.work, times))
    return target, found


def prices(found: list[Sample]) -> dict[str, dict[str, float]]:
    """Return the prices of every algorithm, and of every kind of its work of which enough was measured."""
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for sample in found:
        kinds[sample.algorithm].append(sample)
    table = {name: _fitted(some, {}) for name, some in sorted(kinds.items())}
    for sample in found:
        kinds[sample.work.kind].append(sample)
    for kind, some in sorted(kinds.items()):
        if kind not in table and len(some) >= ENOUGH:
            table[kind] = _fitted(some, table[some[0].algorithm])
    return dict(sorted(table.items()))


def _fitted(some: list[Sample], usual: dict[str, float]) -> dict[str, float]:
    """Fit some samples: least squares of log(predicted / measured), no price below 0, outliers weighed down.

    What none of them does costs as usual. Each turn solves for predicted / measured = 1 with weights that make up for
    the difference between the two: twice too much and half are then equally wrong.
    """
    lines = [(s.work.counted(n), s.times[n]) for s in some for n in s.times]
    units = list(dict.fromkeys(unit for amounts, _ in lines for unit in amounts))
    matrix = np.array([[amounts.get(unit, 0.0) for unit in units] for amounts, _ in lines])
    matrix /= np.array([time_ * 1e3 for _, time_ in lines])[:, None]
    weights = np.ones(len(lines))
    for _ in range(TURNS):
        solution = _nonnegative(matrix * weights[:, None], weights)
        ratio = np.clip(matrix @ solution, 1e-3, 1e3)
        error = np.log(ratio)
        weights = np.where(abs(error) < 1e-3, 1.0, error / np.where(ratio == 1, 1.0, ratio - 1))
        weights *= np.sqrt(STRAY / np.maximum(abs(error), STRAY))
    fitted = {
        unit: float(f"{price:.4g}") if column.any() else usual.get(unit, 0.0)
        for unit, price, column in zip(units, solution, matrix.T, strict=True)
    }
    return {**usual, **fitted}


def _nonnegative(matrix: Any, wanted: Any) -> Any:
    """Return the least-squares solution without negative numbers (Lawson and Hanson); each column is scaled first."""
    scale = np.sqrt((matrix**2).sum(0))
    scale[scale == 0] = 1.0
    scaled = matrix / scale
    # A little of everything is preferred to much of one where columns say the same.
    gram = scaled.T @ scaled + 1e-6 * np.eye(scaled.shape[1])
    right = scaled.T @ wanted
    solution = np.zeros(len(right))
    passive = np.zeros(len(right), bool)
    for _ in range(20 * len(right)):
        gradient = right - gram @ solution
        gradient[passive] = -1.0
        if gradient.max() <= 1e-9:
            break
        passive[int(gradient.argmax())] = True
        while True:
            trial = np.zeros_like(solution)
            trial[passive] = np.linalg.solve(gram[np.ix_(passive, passive)], right[passive])
            if trial[passive].min() > 0:
                solution = trial
                break
            falling = passive & (trial <= 0)
            steps = solution[falling] / (solution[falling] - trial[falling])
            solution = solution + steps.min() * (trial - solution)
            passive &= solution > 1e-12
            solution[~passive] = 0.0
    return solution / scale


def errors(found: list[Sample], table: dict[str, dict[str, float]]) -> dict[str, list[float]]:
    """Return abs(predicted / measured - 1) of every measurement, by kind of work."""
    result: dict[str, list[float]] = defaultdict(list)
    for sample in found:
        for n, measured in sample.times.items():
            predicted = _predicted(sample.work, table, n)
            result[sample.work.kind].append(abs(predicted / measured - 1))
    return result


def _predicted(work: costs.Work, table: dict[str, dict[str, float]], count: int) -> float:
    known = table.get(work.kind) or table[work.kind.partition(" ")[0]]
    return sum(known.get(unit, 0.0) * a for unit, a in work.counted(count).items()) / 1e3


# What is chosen


@dataclass(frozen=True)
class Pick:
    """What is chosen for a case, beside the best that was measured."""

    case: Case
    chosen: tuple[str, str]
    best: tuple[str, str]
    chosen_time: float | None
    """None where it was not measured."""
    best_time: float

    @property
    def loss(self) -> float:
        return (self.chosen_time or 0.0) / self.best_time - 1


def picks(target: Target, found: list[Sample], count: int, winograd: str) -> list[Pick]:
    """Return what the planner chooses for every measured case, under the prices as they stand."""
    by_case: dict[Case, dict[tuple[str, str], float]] = defaultdict(dict)
    for sample in found:
        unasked = planner.unasked(sample.algorithm, sample.case.problem, winograd)
        if sample.times.get(count) and not unasked:
            by_case[sample.case][sample.algorithm, sample.label] = sample.times[count]
    result = []
    for case, times in by_case.items():
        name, candidate = planner.best(case.problem, target, winograd)
        best = min(times, key=lambda each: times[each])
        chosen = (name, candidate.label)
        result.append(Pick(case, chosen, best, times.get(chosen), times[best]))
    return result


def report_wrong(row: str, limit: float, count: int, winograd: str) -> int:
    """List the picks that lose more than a limit; return 1 if there are any."""
    found = picks(*samples(row), count, winograd)
    measured = [pick for pick in found if pick.chosen_time is not None]
    bad = sorted((p for p in measured if p.loss > limit), key=lambda p: -p.loss)
    for pick in bad:
        c = pick.case
        print(
            f"{100 * pick.loss:5.0f}%  {c.text} {c.op} {c.layout} {c.dtype}: {' '.join(pick.chosen)}"
            f" {pick.chosen_time:.0f} us, {' '.join(pick.best)} {pick.best_time:.0f} us"
        )
    chosen = sum(pick.chosen_time or 0.0 for pick in measured)
    best = sum(pick.best_time for pick in measured)
    print(
        f"{len(bad)} of {len(measured)} picks lose more than {100 * limit:.0f}%; {len(found) - len(measured)}"
        f" were not measured. All picks: {chosen / 1e3:.1f} ms, the best: {best / 1e3:.1f} ms,"
        f" {100 * (chosen / best - 1):.1f}% more, on {count} thread{'s' * (count > 1)}."
    )
    return int(bool(bad))


def written(row: str, table: dict[str, dict[str, float]], found: list[Sample]) -> str:
    """Return the text of a row's table."""
    wrong = sorted(error for errors_ in errors(found, table).values() for error in errors_)
    lines = [
        f'"""What work costs on the row {row}: written by ``tools/fit.py fit`` from {row}.csv, not by hand.',
        "",
        f"Predictions of {len(wrong)} measured times are wrong by {_percent(wrong, 0.5)} in the median and "
        f"{_percent(wrong, 0.9)} in the worst tenth.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "NANOSECONDS: dict[str, dict[str, float]] = {",
    ]
    for kind, known in table.items():
        lines.append(f'    "{kind}": {{')
        lines += [f'        "{unit}": {price!r},' for unit, price in known.items()]
        lines.append("    },")
    return "\n".join([*lines, "}", '"""By kind of work and unit."""', ""])


def _percent(sorted_errors: list[float], part: float) -> str:
    return (
        f"{100 * sorted_errors[min(len(sorted_errors) - 1, int(part * len(sorted_errors)))]:.0f}%"
    )


def fit(row: str, check: bool) -> int:
    """Fit, say how well, and write the table or compare with it."""
    _, found = samples(row)
    table = prices(found)
    wrong = errors(found, table)
    width = max(map(len, table))
    print(f"{'':{width}}  times  median error  90th percentile")
    for kind, known in sorted(wrong.items()):
        known.sort()
        print(
            f"{kind:{width}} {len(known):6} {_percent(known, 0.5):>13} {_percent(known, 0.9):>16}"
        )
    text = written(row, table, found)
    file = FOLDER / f"{row}.py"
    if check:
        same = file.read_text() == text
        print(f"{file.name} is {'what the fit gives' if same else 'not what the fit gives'}")
        return int(not same)
    file.write_text(text)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("measure", "fit", "wrong"):
        verb = verbs.add_parser(name)
        verb.add_argument("--row", default="avx2", help="row of `_compiler/targets`")
    measuring = verbs.choices["measure"].add_argument
    measuring("--quick", action="store_true", help="the quick lists, in float32 only")
    measuring("--only", default="", help="problems whose name has this text in it")
    measuring("--seconds", type=float, default=0.012, help="per candidate and number of threads")
    measuring("--warm", action="store_true", help="compile everything and time nothing")
    verbs.choices["fit"].add_argument("--check", action="store_true")
    verbs.choices["wrong"].add_argument("--percent", type=float, default=100 * WRONG)
    verbs.choices["wrong"].add_argument("--threads", type=int, default=costs.RANKED)
    verbs.choices["wrong"].add_argument("--winograd", default="auto", help="the switch")
    given = parser.parse_args()
    if given.verb == "measure":
        measure(given.row, given.quick, given.only, given.seconds, given.warm)
        return 0
    if given.verb == "fit":
        return fit(given.row, given.check)
    return report_wrong(given.row, given.percent / 100, given.threads, given.winograd)


if __name__ == "__main__":
    sys.exit(main())
