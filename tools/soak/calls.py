"""The mixed calls. Every thread draws what it does next.

New shapes all the time and old ones again, all operations, dtypes and layouts, other numbers of threads, Winograd on
and off, explanations, refused calls, results kept and dropped, a kernel cache that is emptied, children that are
forked. A problem computed again must give the same bits as the first time; some results are compared with the oracle.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import traceback
from collections import Counter
from math import prod
from typing import Any

import numpy as np

import convgrad
from cases import DOORS, KINDS, normal, random_case, run, whole_numbers
from convgrad._compiler import jit
from kernels import families
from tolerance import assert_close

REMEMBERED = 3000
"""Problems whose bits are remembered; the oldest make room, so that this program does not grow either."""
MAXIMUM_KEPT = 64 << 20
"""Bytes of results the threads hold on to, all together."""


class Soak:
    """What the threads share."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.bits: dict[Any, bytes] = {}
        self.forking = threading.Lock()
        self.over = threading.Event()

    def note(self, what: str) -> None:
        self.counts[what] += 1

    def work(self, number: int, until: float) -> None:
        """Draw and do until the time is over, or somebody has failed too often."""
        rng = np.random.default_rng((self.seed, number))
        known: list[tuple[Any, str, int, str]] = []
        kept: list[Any] = []
        while time.monotonic() < until and not self.over.is_set():
            try:
                self.step(rng, known, kept)
            except Exception:
                self.fail(traceback.format_exc(limit=6))

    def fail(self, text: str) -> None:
        self.failures.append(text)
        if len(self.failures) >= 20:
            self.over.set()

    def step(self, rng: np.random.Generator, known: list[Any], kept: list[Any]) -> None:

        dice = rng.random()
        if dice < 0.02:
            convgrad.set_num_threads(int(rng.integers(1, 5)))
            self.note("set_num_threads")
        elif dice < 0.04:
            self.refused(rng)
        elif dice < 0.05:
            self.explain(rng)
        elif dice < 0.052:
            jit.clear()
            self.note("cache cleared")
        elif dice < 0.054:
            self.fork(rng, known)
        elif dice < 0.06:
            kept.clear()
        else:
            self.call(rng, known, kept)

    def call(self, rng: np.random.Generator, known: list[Any], kept: list[Any]) -> None:
        """Compute a problem, half the time one that was computed before."""

        if known and rng.random() < 0.6:
            problem = known[int(rng.integers(len(known)))]
            self.note("calls again")
        else:
            case = draw(rng)
            kind = KINDS[int(rng.integers(2 if case.dtype == "int32" else 3))]
            problem = (
                case,
                kind,
                int(rng.integers(1 << 30)),
                str(rng.choice(["off", "auto", "auto", "fast"])),
            )
            if len(known) < REMEMBERED // 4:
                known.append(problem)
            else:
                known[int(rng.integers(len(known)))] = problem
            self.note("calls new")
        case, kind, seed, winograd = problem
        self.note(f"dtype {case.dtype}")
        data = numbers(case, seed)
        with convgrad.options(winograd=winograd):
            if rng.random() < 0.2:
                with convgrad.threads(int(rng.integers(1, 5))):
                    result = run_through(case, kind, data, rng)
            else:
                result = run_through(case, kind, data, rng)
        self.compare(problem, result)
        if rng.random() < 0.03 and winograd != "fast":
            self.check(case, kind, data, result)
        if rng.random() < 0.2:
            kept.append(result)
            while sum(each.nbytes for each in kept) > MAXIMUM_KEPT // 8:
                kept.pop(int(rng.integers(len(kept))))

    def compare(self, problem: Any, result: Any) -> None:
        """Say so if a problem gives other bits than the first time."""
        digest = hashlib.blake2b(
            np.ascontiguousarray(result).view(np.uint8), digest_size=16
        ).digest()
        before = self.bits.get(problem)
        if before is None:
            while len(self.bits) >= REMEMBERED:
                self.bits.pop(next(iter(self.bits)), None)
            self.bits[problem] = digest
        elif before != digest:
            self.fail(f"the bits changed: {problem}")
        else:
            self.note("bits compared")

    def check(self, case: Any, kind: str, data: Any, result: Any) -> None:

        if case.dtype == "int32" or case.products > 4_000_000:
            return  # the oracle would need more memory than all the rest
        assert_close(case, kind, data, result)
        self.note("oracle compared")

    def refused(self, rng: np.random.Generator) -> None:
        """Make a mistake; the answer must be our error."""

        x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
        mistakes: list[Any] = [
            lambda: convgrad.conv2d(x, f, 0, "SAME"),
            lambda: convgrad.conv2d(x, f[0], 1, "SAME"),
            lambda: convgrad.conv2d(x, f, 1, "SOME"),
            lambda: convgrad.conv2d(x, f.astype(np.float64), 1, "SAME"),
            lambda: convgrad.conv2d_backprop_input(
                (1, 4, int(rng.integers(5, 9**9)), 2), f, x, 1, "SAME"
            ),
            lambda: convgrad.depthwise_conv2d_backprop_filter(x, (3, 3, -1, 1), x, 1, "SAME"),
            lambda: convgrad.set_num_threads(0),
        ]
        try:
            mistakes[int(rng.integers(len(mistakes)))]()
        except (ValueError, TypeError):
            self.note("refused")
        else:
            self.fail("a mistake was not refused")

    def explain(self, rng: np.random.Generator) -> None:

        side = int(rng.integers(3, 200))
        str(convgrad.explain("conv2d", (1, side, side, 8), (3, 3, 8, 8), 1, "SAME"))
        self.note("explained")

    def fork(self, rng: np.random.Generator, known: list[Any]) -> None:
        """Compute something old in a forked child, which must get the same bits."""
        if not known or not hasattr(os, "fork"):
            return
        case, kind, seed, winograd = problem = known[int(rng.integers(len(known)))]
        expected = self.bits.get(problem)
        with self.forking:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = _in_child(case, kind, seed, winograd, expected)
                finally:
                    os._exit(status)
        deadline = time.monotonic() + 120
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.kill(child, 9)
                os.waitpid(child, 0)
                self.fail(f"a forked child hung on {problem}")
                return
            time.sleep(0.01)
        if status:
            self.fail(f"a forked child ended with status {status} on {problem}")
        self.note("forked")


def _in_child(case: Any, kind: str, seed: int, winograd: str, expected: bytes | None) -> int:

    with convgrad.options(winograd=winograd):
        result = run(case, kind, numbers(case, seed))
    digest = hashlib.blake2b(np.ascontiguousarray(result).view(np.uint8), digest_size=16).digest()
    return 0 if expected in (None, digest) else 2


def draw(rng: np.random.Generator) -> Any:
    """Draw a geometry: mostly small, now and then one whose result comes from the pool of blocks."""

    while True:
        case = random_case(rng, families(64 if rng.random() < 0.05 else 20, depthwise=0.5))
        elements = prod(case.input_shape) + prod(case.output_shape) + prod(case.filter_shape)
        if case.products <= 60_000_000 and elements <= 1_500_000:
            return case


def numbers(case: Any, seed: int) -> Any:

    rng = np.random.default_rng(seed)
    return whole_numbers(case, rng) if case.dtype == "int32" else normal(case, rng)


def run_through(case: Any, kind: str, data: Any, rng: np.random.Generator) -> Any:

    return run(case, kind, data, str(rng.choice(DOORS)))
