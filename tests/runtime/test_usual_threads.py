"""The tests of this folder see as many threads as users do, though test processes have one each (tests/conftest.py)."""

from __future__ import annotations

import os

import pytest

import convgrad
from convgrad._runtime.cpus import available_cpus


@pytest.fixture(scope="module")
def seen_by_a_fixture() -> int:
    return convgrad.get_num_threads()


def test_nobody_has_said_a_number(seen_by_a_fixture):
    if "CONVGRAD_NUM_THREADS" in os.environ:
        pytest.skip("the environment of the tests says how many")
    assert convgrad.get_num_threads() == seen_by_a_fixture == available_cpus()
