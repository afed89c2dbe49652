"""Random problems on random chunks against the same call on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import KINDS
from dask_bridge.chunkings import Trial, check, tiled, trials

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def tried(count: int) -> Callable[[Any], Any]:
    """The same examples each time: new ones are tried by `make test-dask`."""
    return settings(relaxed, max_examples=count, derandomize=True)


@tried(30)
@given(trials())
def test_a_call_on_chunks_is_the_call_on_the_whole(trial: Trial) -> None:
    check(trial)


@pytest.mark.parametrize("kind", KINDS)
@tried(8)
@given(data=st.data())
def test_tiles_are_computed_around_their_chunks(kind: str, data: st.DataObject) -> None:
    check(data.draw(tiled(kind)))


@pytest.mark.dask_long
@settings(relaxed, max_examples=3000)
@given(st.one_of(trials(), *map(tiled, KINDS)))
def test_three_thousand_calls_on_chunks(trial: Trial) -> None:
    check(trial)
