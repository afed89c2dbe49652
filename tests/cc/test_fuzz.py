"""Random wrong calls of the C++ API under sanitizers; see `fuzz.cc`."""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest

from cc_programs import Builds, found, run, setting

MINUTES = os.environ.get("CC_FUZZ_MINUTES", "1")
QUICK = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=32",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls_always_end_in_a_status(
    seed: int, compiler: str, builds: Builds, checked: Counter[str]
) -> None:
    program = builds.all_together(setting(compiler, "sanitized"))
    done = run(program, "fuzz", str(seed), "400", environment=QUICK)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    graphs, refusals = map(int, re.findall(r"\d+", done.stdout))
    assert graphs == 400
    assert refusals > 100
    checked["graphs of random C++ calls"] += graphs


@pytest.mark.cc_long
def test_random_calls_for_minutes(builds: Builds) -> None:
    program = builds.all_together(setting(found()[0], "sanitized"))
    seed = str(int.from_bytes(os.urandom(4), "little"))
    done = run(program, "fuzz", seed, "0", MINUTES, environment=QUICK)
    assert done.returncode == 0, f"seed {seed}\n" + done.stdout[-2000:] + done.stderr[-6000:]
