"""Random problems on random chunks against the same call on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dask_bridge.chunkings import Trial, check, tiled, trials

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def tried(count: int) -> Callable[[Any], Any]:
    """The same examples each time: new ones are tried by `make test-dask`."""
    return settings(relaxed, max_examples=count, derandomize=True)


@tried(70)
@given(trials())
def test_a_call_on_chunks_is_the_call_on_the_whole(trial: Trial) -> None:
    check(trial)


@tried(50)
@given(tiled())
def test_tiles_are_computed_around_their_chunks(trial: Trial) -> None:
    check(trial)


@pytest.mark.dask_long
@settings(relaxed, max_examples=3000)
@given(st.one_of(trials(), trials(), tiled()))
def test_three_thousand_calls_on_chunks(trial: Trial) -> None:
    check(trial)
