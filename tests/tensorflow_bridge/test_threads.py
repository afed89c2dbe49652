"""Threads: any number of ours gives the same bits, and any number of TensorFlow's or Python's may call at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
from cases import KINDS, Case, Data, run
from tensorflow_bridge.configurations import some
from tensorflow_bridge.running import bits, operands, tensors

LARGE = [
    Case(False, 4, (20, 20), 1, 24, 40, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(True, 4, (28, 28), 48, 1, 1, (3, 3), (2, 2), (1, 1), "SAME"),
    Case(False, 8, (14, 14), 1, 64, 32, (1, 1), (1, 1), (1, 1), "SAME", "NCHW", "bfloat16"),
]
"""Large enough that work is shared."""


def three(case: Case, given: Data) -> list[Any]:
    return [run(case, kind, given) for kind in KINDS]


@pytest.mark.parametrize("case", [*LARGE, *some(6, seed=8)], ids=str)
def test_bits_do_not_depend_on_threads(case: Case) -> None:
    """Eagerly and in a function that was traced once; nor on the run: each number is asked twice."""
    given = tensors(operands(case))
    function = tf.function(lambda x, f, g: three(case, Data(x, f, g)), autograph=False)
    seen = set()
    for number in (1, 2, 3, 2, 1):
        with convgrad.threads(number):
            seen.add(tuple(map(bits, three(case, given))))
            seen.add(tuple(map(bits, function(given.x, given.f, given.g))))
    assert len(seen) == 1


def test_many_callers_at_once() -> None:
    """Python's threads, eagerly, in one function and in several, on several shapes, some of them new to each."""
    cases = [*LARGE, *some(9, seed=9)]
    wanted = [tuple(bits(run(case, kind, operands(case))) for kind in KINDS) for case in cases]
    functions = [
        tf.function(lambda x, f, g, case=case: three(case, Data(x, f, g)), autograph=False)
        for case in cases
    ]

    def work(turn: int) -> bool:
        right = True
        for step in range(len(cases)):
            at = (turn * 5 + step) % len(cases)
            given = tensors(operands(cases[at]))
            made = (
                functions[at](given.x, given.f, given.g)
                if (turn + step) % 2
                else three(cases[at], given)
            )
            right &= tuple(map(bits, made)) == wanted[at]
        return right

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(12)))


def test_many_operations_of_one_graph_at_once() -> None:
    """Operations that do not wait for each other run side by side on TensorFlow's threads."""
    case = LARGE[1]
    given = tensors(operands(case))
    scales = [float(2**power) for power in range(8)]

    @tf.function(autograph=False)
    def function(x: Any, f: Any) -> Any:
        return [run(case, "forward", Data(x * scale, f, None)) for scale in scales]

    plain = np.asarray(run(case, "forward", operands(case)))
    for _ in range(5):
        for scale, made in zip(scales, function(given.x, given.f), strict=True):
            assert bits(made) == bits(plain * np.float32(scale))


def test_options_are_heeded() -> None:
    """Winograd on and off give other bits; a function computes as the block says it is called in."""
    case = Case(False, 2, (24, 24), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    data = operands(case)
    given = tensors(data)
    seen = {}
    for way in ("off", "fast"):
        with convgrad.options(winograd=way):
            seen[way] = bits(run(case, "forward", data))
            assert bits(run(case, "forward", given)) == seen[way]
            function = tf.function(
                lambda x, f: run(case, "forward", Data(x, f, None)), autograph=False
            )
            assert bits(function(given.x, given.f)) == seen[way]
    assert seen["off"] != seen["fast"]
