"""Random problems on random chunks, as hypothesis draws and shrinks them, and the check that all of them must pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
from hypothesis import strategies as st

from cases import DOORS, DTYPES, KINDS, Case, Data, normal, run, whole_numbers
from convgrad._bridges.dask import halo, plan
from tolerance import assert_close

Chunks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Trial:
    """A problem, how its operands are chunked (None: an array of NumPy), and limits at which a plan changes."""

    case: Case
    kind: str
    door: str
    x: Chunks | None
    f: Chunks | None
    g: Chunks | None
    limits: tuple[tuple[str, int], ...]
    seed: int


def cut_axis(draw: Any, size: int) -> tuple[int, ...]:
    """Cut an axis anywhere: whole, in equal parts, cell by cell, or with parts that have no cells."""
    how = draw(st.sampled_from(("whole", "equal", "anywhere", "anywhere", "with empty ones")))
    if how == "whole" or size == 0:
        return (size,)
    if how == "equal":
        part = draw(st.integers(1, size))
        return tuple(min(part, size - at) for at in range(0, size, part))
    cuts = draw(st.lists(st.integers(0, size), max_size=4))
    edges = [0, *sorted(cuts), size]
    parts = tuple(end - begin for begin, end in pairwise(edges))
    return parts if how == "with empty ones" else tuple(part for part in parts if part)


def cut_all(draw: Any, shape: tuple[int, ...]) -> Chunks:
    return tuple(cut_axis(draw, size) for size in shape)


@st.composite
def trials(draw: Any, kinds: tuple[str, ...] = KINDS) -> Trial:
    """Problems with every documented setting, small enough that thousands are tried."""
    pair = lambda least, most: st.tuples(st.integers(least, most), st.integers(least, most))  # noqa: E731
    depthwise = draw(st.booleans())
    case = draw(
        st.builds(
            Case,
            st.just(depthwise),
            st.sampled_from((3, 1, 2, 4, 5, 6, 7, 8, 3, 4, 5, 0)),
            pair(1, 12),
            st.integers(1, 6) if depthwise else st.sampled_from((1, 1, 1, 2, 3)),
            st.just(1) if depthwise else st.integers(1, 6),
            st.sampled_from((2, 1, 3, 1, 2, 3, 4, 0) if depthwise else (3, 1, 2, 4, 5, 6, 7, 8, 0)),
            st.one_of(pair(1, 5), pair(1, 2)),
            pair(1, 5),
            pair(1, 3),
            st.one_of(st.sampled_from(("SAME", "VALID")), st.tuples(pair(0, 6), pair(0, 6))),
            st.sampled_from(("NHWC", "NCHW")),
            st.sampled_from((*DTYPES, "float32")),
        ).filter(lambda case: case.legal)
    )
    kind = draw(st.sampled_from(kinds))
    chunked = [cut_all(draw, each) for each in (case.input_shape, case.filter_shape)]
    grad = cut_all(draw, case.output_shape)
    plain = draw(st.sampled_from(("", "", "", "f", "f", "x", "g")))
    if kind != "filter" and plain != "f":
        plain = ""  # an image is the only other operand: one of the two must be Dask's
    limits = {
        "SMALLEST": st.sampled_from((0, 64, 1 << 20)),
        "LARGEST": st.sampled_from((16, 256, 128 << 20)),
        "GATHERED": st.sampled_from((1, 64, 64 << 20)),
        "FAN_IN": st.sampled_from((2, 3, 8)),
        "LEAST": st.sampled_from((0, 0, 4 << 20)),
        "MOST_FLOPS": st.just(1 << 30),
        "MOST_AREA": st.sampled_from((1, 4)),
    }
    return Trial(
        case=case,
        kind=kind,
        door=draw(st.sampled_from(DOORS)),
        x=None if plain == "x" else chunked[0],
        f=None if plain == "f" else chunked[1],
        g=None if plain == "g" else grad,
        limits=tuple((name, draw(values)) for name, values in limits.items()),
        seed=draw(st.integers(0, 2**31)),
    )


@st.composite
def tiled(draw: Any, kind: str) -> Trial:
    """Images cut into tiles larger than their windows, which are computed around their chunks."""
    pair = lambda least, most: st.tuples(st.integers(least, most), st.integers(least, most))  # noqa: E731
    depthwise, channels = draw(st.booleans()), st.integers(1, 3)
    case = draw(
        st.builds(
            Case,
            st.just(depthwise),
            st.integers(1, 3),
            pair(12, 30),
            channels if depthwise else st.integers(1, 2),
            st.just(1) if depthwise else channels,
            channels,
            pair(1, 4),
            st.one_of(st.just((1, 1)), pair(1, 3), pair(3, 6)),
            pair(1, 2),
            st.one_of(st.sampled_from(("SAME", "VALID")), st.tuples(pair(0, 4), pair(0, 4))),
            st.sampled_from(("NHWC", "NCHW")),
            st.sampled_from((*DTYPES, "float32")),
        ).filter(lambda case: case.legal)
    )

    def tiles(shape: tuple[int, ...], spatial: tuple[int, int]) -> Chunks:
        def cut(axis: int, size: int) -> tuple[int, ...]:
            if axis not in spatial:
                return (size,) if axis else (1,) * size
            part = draw(st.integers(5, 12))
            return tuple(min(part, size - at) for at in range(0, size, part)) or (0,)

        return tuple(cut(axis, size) for axis, size in enumerate(shape))

    spatial = (1, 2) if case.data_format == "NHWC" else (2, 3)
    limits = {"SMALLEST": 0, "LARGEST": 128 << 20, "GATHERED": 64 << 20, "FAN_IN": 8}
    limits |= {"LEAST": 0, "MOST_FLOPS": 1 << 30, "MOST_AREA": 1}
    return Trial(
        case=case,
        kind=kind,
        door="friendly",
        x=tiles(case.input_shape, spatial),
        f=None,
        g=tiles(case.output_shape, spatial),
        limits=tuple(limits.items()),
        seed=draw(st.integers(0, 2**31)),
    )


@contextmanager
def limited(trial: Trial) -> Iterator[None]:
    """Change the plan at the trial's limits: the real ones would need arrays of megabytes."""
    limits = dict(trial.limits)
    of_halo = {name: limits.pop(name) for name in ("LEAST", "MOST_FLOPS", "MOST_AREA")}
    with mock.patch.multiple(plan, **limits), mock.patch.multiple(halo, **of_halo):
        yield


def chunked(trial: Trial, data: Data) -> Data:
    """Return operands as arrays of Dask, in the trial's chunks."""
    return Data(
        *(
            array if chunks is None else da.from_array(array, chunks=chunks)
            for array, chunks in ((data.x, trial.x), (data.f, trial.f), (data.g, trial.g))
        )
    )


def made(trial: Trial, data: Data) -> Any:
    """Return the array of Dask a trial makes."""
    with limited(trial):
        result = run(trial.case, trial.kind, chunked(trial, data), trial.door)
    assert isinstance(result, da.Array)
    return result


def check(trial: Trial) -> None:
    """Compare with the call on NumPy arrays: exactly on whole numbers, within the promised bounds on others."""
    case, kind = trial.case, trial.kind
    rng = np.random.default_rng(trial.seed)
    with dask.config.set(scheduler="sync"):
        exact = whole_numbers(case, rng)
        lazy, wanted = made(trial, exact), run(case, kind, exact, trial.door)
        found = lazy.compute()
        assert lazy.shape == found.shape == wanted.shape
        assert lazy.dtype == found.dtype == wanted.dtype
        assert lazy.chunks == tuple(tuple(map(int, each)) for each in lazy.chunks)
        assert np.array_equal(found, wanted)
        rough = normal(case, rng)
        lazy = made(trial, rough)
        assert_close(case, kind, rough, lazy.compute())
        # Each block has the shape it was promised.
        for place in np.ndindex(*lazy.numblocks):
            sizes = tuple(chunks[at] for chunks, at in zip(lazy.chunks, place, strict=True))
            assert lazy.blocks[place].compute().shape == sizes
