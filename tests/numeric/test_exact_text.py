"""Texts of kernels let LLVM change no rounding, and it changes none: products and sums are fused where we say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from biases import SIDES, biased
from convgrad import _kernels
from convgrad._base.dtypes import BFLOAT16, DOUBLE, FLOAT
from convgrad._compiler.jit import llvm
from convgrad._compiler.targets import ALL, Target, find
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.norm import plan as norm_plan
from convgrad._problem.norm import ACTIVATIONS, PLACES, Task
from kernels import problem_of, random_case_for

NAMES = [name for name in ALGORITHMS if name != "reference"]
LOOSE = re.compile(
    r"\b(fast|contract|reassoc|afn|arcp|nnan|ninf|nsz)\b|fmuladd|vector\.reduce|unsafe-fp|fp-contract"
)
"""What would let LLVM round otherwise than the text says, or add lanes in an order of its own."""
FUSED = re.compile(r"^\s+(vfn?m(?:add|sub)[a-z0-9]*)\b", re.MULTILINE)


@pytest.fixture(autouse=True)
def _all_algorithms() -> Iterator[None]:
    with convgrad.options(winograd="fast"):
        yield


def of_algorithm(name: str, target: Target, seed: int) -> Iterator[Any]:
    """Yield the texts of a plan of each operation an algorithm takes, with the gradient of a bias."""
    rng = np.random.default_rng([seed, *name.encode()])
    case, kinds = random_case_for(rng, name, target, whole=False)
    for kind in kinds:
        for problem in (problem_of(case, kind), biased(case, kind, SIDES[kind][-1])):
            plan = planner.choose_named(problem, target, name)
            for kernel in {step.kernel for step in plan.steps}:
                yield _kernels.emit(kernel, target)


def of_norm(target: Target) -> Iterator[Any]:
    """Yield the texts of all tasks of batch norm, activations in turns."""
    for number, name in enumerate(PLACES):
        for turn, layout in enumerate(("NHWC", "NCHW")):
            row = (FLOAT, DOUBLE, BFLOAT16)[(number + turn) % 3]
            acts = name.startswith(("forward", "backward", "apply"))
            for activation in ACTIVATIONS[number % 2 :: 2] if acts else ("none",):
                task = Task(name, row, layout, 2, 49, 17, activation)  # type: ignore[arg-type]
                for step in norm_plan.plan(task, target).steps:
                    yield norm_plan.emit(step.kernel, target)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_no_text_lets_llvm_round_otherwise(row: Target) -> None:
    texts = [*of_norm(row)]
    for name in NAMES:
        texts += of_algorithm(name, row, 1)
    for source in texts:
        found = LOOSE.search(source.ir)
        assert not found, (source.symbol, found)
    assert len(texts) > 100
    fused = sum(source.ir.count("@llvm.fma.") for source in texts)
    assert (fused > 0) is row.has_fma


@pytest.mark.parametrize("name", [*NAMES, "norm"])
def test_llvm_fuses_nothing_of_its_own(name: str) -> None:
    """Written as products and sums, for a CPU that could fuse them: not one instruction does."""
    if llvm.missing(find("avx2").triple):
        pytest.skip("this LLVM compiles nothing for x86")
    target = replace(find("avx2"), has_fma=False)
    sources = [*of_norm(target)][::5] if name == "norm" else [*of_algorithm(name, target, 2)][:4]
    for source in sources:
        text = llvm.assembly(source.ir, target, triple=target.triple)
        assert not FUSED.search(text), (source.symbol, FUSED.findall(text))


def test_what_is_fused_can_be_seen() -> None:
    """Or the test above would show nothing."""
    target = find("avx2")
    if llvm.missing(target.triple):
        pytest.skip("this LLVM compiles nothing for x86")
    sources = [*of_algorithm("dense_direct", target, 2)]
    texts = [llvm.assembly(source.ir, target, triple=target.triple) for source in sources]
    assert any(FUSED.search(text) for text in texts)
