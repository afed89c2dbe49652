"""Random problems, each on every row, width and cache size this machine can run, by every algorithm: one digest.

``python tests/same_bits.py --problems 500 [--seed S] [--algorithms A,B] [--kinds forward,input,filter] [--threads N]``
prints what differs, by algorithm, and exits with status 1. The tests draw fewer from the same generator. With --json
one digest per problem is written, to be compared with another machine's. With --specification small problems are also
computed without kernels, and only these are tried.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "src")]

import convgrad
from cases import KINDS, Case, Data, normal, random_case
from convgrad._apps.check.draws import ONE, Each, Families, Mix, Value
from convgrad._compiler import jit, targets
from convgrad._compiler.jit import host
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.plan import Plan
from convgrad._problem.convolution import Problem
from convgrad._problem.sums import specification
from convgrad._runtime.run import run as run_program
from kernels import families, problem_of

MOST_PRODUCTS = 20_000_000
CANDIDATES = 3
"""Of one algorithm, at most: the best and the next."""

_SIZES = (4, 7, 8, 10, 14, 16, 20, 28, 57)
_CHANNELS = (8, 16, 24, 32, 48, 64, 96, 100, 128, 160, 192, 256)
_LAYER = {
    "batch": (1, 2, 4, 9),
    "size": Each(_SIZES),
    "window": Mix(
        (0.3, Value((1, 1))), (0.4, Value((3, 3))), (0.2, Value((5, 5))), (0.1, Value((7, 7)))
    ),
    "strides": Mix((0.7, ONE), (0.3, Value((2, 2)))),
    "dilations": Mix((0.9, ONE), (0.1, Value((2, 2)))),
    "padding": Mix((0.8, "SAME"), (0.2, "VALID")),
    "data_format": ("NHWC", "NHWC", "NCHW"),
    "dtype": ("float32", "float32", "float32", "float64", "half", "bfloat16"),
}
_DEPTHWISE = _LAYER | {
    "depthwise": True,
    "groups": _CHANNELS,
    "group_in": 1,
    "group_out": (1, 1, 1, 2),
}
_LARGE = {"window": Mix((0.5, Value((13, 13))), (0.5, Each((9, 15, 17)))), "groups": (3, 8, 20)}
_DENSE = _LAYER | {
    "depthwise": False,
    "groups": (1, 1, 1, 1, 2, 8),
    "group_in": (3, *_CHANNELS),
    "group_out": (3, *_CHANNELS),
}
_GROUPED = _DENSE | {"groups": (8, 16, 32), "group_in": (2, 4, 8, 10), "group_out": (2, 4, 8, 10)}


def drawn() -> Families:
    """Return what is drawn: half small odd shapes, half layers of networks."""
    small = [(0.5 * share, each) for share, each in families(24, 0.45)]
    layers = ((0.18, _DEPTHWISE), (0.02, _DEPTHWISE | _LARGE), (0.22, _DENSE), (0.08, _GROUPED))
    return (*small, *layers)


def draw(seed: int, number: int, **fixed: Any) -> Case:
    """Return the case of a number."""
    rng = np.random.default_rng([2032, seed, number])
    for _ in range(10_000):
        case = random_case(rng, drawn(), **fixed)
        if case.is_empty or case.products > MOST_PRODUCTS or case.dtype == "int32":
            continue
        return case
    raise AssertionError(f"nothing is drawn with {fixed}")


def machines() -> dict[str, Target]:
    """Return the rows, widths and caches to compute for: all that this machine can run and that have an exact fma."""
    here = host.cache_sizes()
    small = (32 << 10, 256 << 10, 4 << 20)
    found = {}
    for row in targets.runnable(host.architecture(), host.features()):
        if not row.has_fma:
            continue
        found[row.name] = row.with_caches(*here)
        found[f"{row.name}, small caches"] = row.with_caches(*small)
        for bits in (128, 256, 512):
            if bits != row.vector_bits:
                found[f"{row.name}, {bits} bits"] = row.with_caches(*here).with_vector_bits(bits)
    return found


def numerical_class(name: str) -> str:
    """Return what an algorithm's numbers are: those of plain sums, or of a transform."""
    return name if "winograd" in name else "sums"


@dataclass
class Found:
    """The digests of one problem: by class, then who gave each."""

    digests: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    plans: int = 0

    @property
    def same(self) -> bool:
        return all(len(each) == 1 for each in self.digests.values())

    def add(self, kind: str, digest: str, who: str) -> None:
        self.digests.setdefault(kind, {}).setdefault(digest, []).append(who)
        self.plans += 1


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def operands(kind: str, data: Data) -> tuple[Any, Any]:
    pairs = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    first, second = pairs[kind]
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def run_plan(plan: Plan, target: Target, first: Any, second: Any, threads: int = 1) -> Any:
    result = np.full(plan.problem.result_shape, 77, plan.problem.dtype.numpy)
    with convgrad.threads(threads):
        bound = prepare.bind(plan, target)
        run_program(bound, *(each.ctypes.data for each in (first, second, result)))
    return result


def plans(
    problem: Problem, names: Sequence[str], where: dict[str, Target]
) -> Iterator[tuple[str, str, Target, Plan]]:
    """Yield who computes a problem, each plan once: the algorithm, words for a person, the machine, the plan."""
    seen = set()
    for machine, target in where.items():
        for name in names:
            for number, (_, candidate) in enumerate(
                planner.candidates(problem, target, name)[:CANDIDATES]
            ):
                plan = candidate.plan()
                key = (target.name, target.vector_bits, plan)
                if key not in seen:
                    seen.add(key)
                    yield name, f"{name} {number} ({machine})", target, plan


def compare(
    case: Case, kind: str, names: Sequence[str], where: dict[str, Target], most_threads: int = 3
) -> Found:
    """Compute one problem in every way."""
    problem, found = problem_of(case, kind), Found()
    first, second = operands(kind, normal(case, np.random.default_rng(7)))
    for turn, (name, who, target, plan) in enumerate(plans(problem, names, where)):
        threads = 1 + turn % most_threads
        found.add(
            numerical_class(name), digest(run_plan(plan, target, first, second, threads)), who
        )
    if kind != "filter" and case.batch > 1 and found.digests:
        _image_by_image(case, kind, (first, second), names, found)
    return found


def _image_by_image(
    case: Case, kind: str, pair: tuple[Any, Any], names: Sequence[str], found: Found
) -> None:
    """Compute single images, by what the planner would take among the algorithms."""
    target, single = jit.host_target(), problem_of(replace(case, batch=1), kind)
    offered = [
        (rank, name, each)
        for name in names
        for rank, each in planner.candidates(single, target, name)
    ]
    for numbers in {numerical_class(name) for _, name, _ in offered}:
        _, name, candidate = min(
            (each for each in offered if numerical_class(each[1]) == numbers),
            key=lambda row: row[0],
        )
        plan, images = candidate.plan(), []
        for number in range(case.batch):
            some = [np.ascontiguousarray(each[number : number + 1]) for each in pair]
            first, second = (some[0], pair[1]) if kind == "forward" else (pair[0], some[1])
            images.append(run_plan(plan, target, first, second))
        found.add(numbers, digest(np.concatenate(images)), f"{name}, image by image")


def specify(case: Case, kind: str, found: Found) -> bool:
    """Add what the specification gives; False where that takes too long."""
    problem = problem_of(case, kind)
    wanted = [numbers for numbers in found.digests if specification.is_quick(problem, numbers)]
    first, second = operands(kind, normal(case, np.random.default_rng(7)))
    for numbers in wanted:
        result, _ = specification.compute(problem, first, second, None, numbers)
        found.add(numbers, digest(result), "specification")
    return bool(wanted)


def main() -> int:
    """Try as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--algorithms", default="", help="names with commas between them; all if not given"
    )
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument(
        "--fixed", default="", help="what is not drawn, such as depthwise=True,data_format='NCHW'"
    )
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--specification", action="store_true", help="compare with it too")
    parser.add_argument("--json", help="a file for the digests")
    given = parser.parse_args()
    names = (
        given.algorithms.split(",")
        if given.algorithms
        else [n for n in ALGORITHMS if n != "reference"]
    )
    names = [name for name in names if not planner.switched_off(name, "auto")]
    fixed = eval(f"dict({given.fixed})", {})
    kinds, where = given.kinds.split(","), machines()
    began, tried, several, all_plans, differ = time.monotonic(), 0, 0, 0, 0
    digests = {}
    for number in range(given.first, given.first + given.problems):
        case = draw(given.seed, number, **fixed)
        kind = kinds[number % len(kinds)]
        if given.specification and case.products > specification.MOST_PRODUCTS:
            continue
        found = compare(case, kind, names, where, given.threads)
        if not found.plans or (given.specification and not specify(case, kind, found)):
            continue
        tried += 1
        all_plans += found.plans
        who = {
            each.split()[0]
            for by in found.digests.values()
            for some in by.values()
            for each in some
        }
        several += len(who) > 1
        digests[number] = {numbers: sorted(by) for numbers, by in found.digests.items()}
        if not found.same:
            differ += 1
            print(f"\n{number}: {kind} of {case}")
            for by in found.digests.values():
                for each, some in by.items() if len(by) > 1 else ():
                    print(f"  {each}: {'; '.join(some)}")
        if tried % 100 == 0:
            print(
                f"{tried} problems, {all_plans} plans, {differ} differ, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    print(
        f"{tried} problems, {several} by several algorithms, {all_plans} plans on {len(where)} machines,"
        f" {differ} differ, {time.monotonic() - began:.0f} s"
    )
    if given.json:
        Path(given.json).write_text(json.dumps(digests))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
