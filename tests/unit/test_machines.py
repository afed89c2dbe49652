"""Other machines than this one: the switch for caches, and `explain` for a row that cannot run here."""

from __future__ import annotations

import re

import numpy as np
import pytest

import convgrad
from convgrad._base import config
from convgrad._base.errors import ArgumentError
from convgrad._compiler import jit
from convgrad._compiler.jit import host
from convgrad._compiler.targets import ALL, find
from convgrad._engine import probe, program
from convgrad._problem.text import read
from machines import MACHINES

LINE = "conv2d 8x56x56x64 3x3x64x64 dtype=bfloat16"
SMALL, LARGE = (config.read_caches(text) for text in ("32K,256K,2M", "48K,2M,32M"))


def sizes(target):
    return target.l1_bytes, target.l2_bytes, target.l3_bytes


def test_caches_of_the_switch_are_those_of_the_target(monkeypatch):
    with config.scope(cpu_caches=LARGE):
        assert sizes(jit.host_target()) == LARGE
    with config.scope(cpu_caches=config.read_caches("row")):
        assert sizes(jit.host_target()) == sizes(find(jit.host_target().name))
    monkeypatch.setattr(host, "cache_sizes", lambda: (3 << 10, 4 << 10, 5 << 10))
    host._choose.cache_clear()
    try:
        with config.scope(cpu_caches=None):
            assert sizes(jit.host_target()) == (3 << 10, 4 << 10, 5 << 10)
    finally:
        monkeypatch.undo()
        host._choose.cache_clear()


def test_a_plan_that_is_remembered_is_not_taken_for_other_caches():
    """One program per size: the switch is part of all keys, which are made of `deciding`."""
    found = []
    for caches in (SMALL, LARGE, SMALL, LARGE):
        with config.scope(cpu_caches=caches):
            assert caches in config.deciding()
            found.append(program(read(LINE)))
    assert found[0] is found[2] and found[1] is found[3]
    assert found[0] is not found[1]
    with config.scope(cpu_caches=SMALL):
        small = convgrad.explain(LINE)
    with config.scope(cpu_caches=LARGE):
        large = convgrad.explain(LINE)
    assert small.plan.steps != large.plan.steps


@pytest.mark.parametrize("text", ["48K,2M,32M", "49153,2M,100000000", "row"])
def test_the_text_of_caches_is_read_back(text):
    """Bridges to JAX and Dask send the switches that are not at their defaults elsewhere, as words and pickled."""
    caches = config.read_caches(text)
    with config.scope(cpu_caches=caches):
        assert config.unusual()["cpu_caches"] == caches
        word = f"{config.unusual()['cpu_caches']}"
    assert word == text and " " not in word
    assert config.SWITCHES["cpu_caches"].parse(word) == caches


def test_dask_computes_with_the_caches_of_the_call():
    da = pytest.importorskip("dask.array")
    from convgrad._bridges.dask import graph

    x, f = np.ones((2, 8, 8, 4), np.float32), np.ones((3, 3, 4, 4), np.float32)
    names = set()
    for caches in (SMALL, LARGE):
        with config.scope(cpu_caches=caches):
            assert ("cpu_caches", caches) in graph.switches()
            lazy = convgrad.conv2d(da.from_array(x, chunks=(1, 8, 8, 4)), f, 1, "SAME")
        names.add(lazy.name)
        assert float(lazy.compute(scheduler="sync").max()) == 36
    assert len(names) == 2


@pytest.mark.parametrize("row", [row.name for row in ALL])
def test_every_row_can_be_explained_anywhere(row, monkeypatch):
    """Nothing is run or measured for it, and its kernels can be written down."""
    monkeypatch.setattr(probe, "roof", None)
    story = convgrad.explain("depthwise_conv2d 1x9x9x32 3x3x32x1", target=row)
    assert story.target == find(row) and story.algorithm != "reference"
    assert story.roof is story.roofline_seconds is None
    told = story.to_dict()
    assert told["target"] == find(row).label and told["cache_bytes"] == list(sizes(find(row)))
    assert told["roofline_ms"] is told["roof_gflops"] is told["roof_gb_per_second"] is None
    assert "at best" not in str(story) and f"target {find(row).label}, caches " in str(story)
    assert all(find(row).label in source.symbol for source in story.sources())


def test_what_is_left_out_is_this_machines():
    """A row that is named has its usual caches."""
    here = jit.host_target()
    line = "conv2d 1x9x9x32 3x3x32x32"
    assert convgrad.explain(line).target == here
    assert convgrad.explain(line, caches=(48 << 10, 2 << 20, 32 << 20)).target == (
        here.with_caches(*LARGE)
    )
    assert convgrad.explain(line, caches="row").target == find(here.name).with_vector_bits(
        here.vector_bits
    )
    assert convgrad.explain(line, vector_bits=128).target == here.with_vector_bits(128)
    both = convgrad.explain(line, target="sse2", vector_bits=512, caches="48k,2m,32m")
    assert both.target == find("sse2").with_caches(*LARGE).with_vector_bits(512)


def test_a_separable_convolution_is_explained_for_one_machine():
    story = convgrad.explain(
        *("separable_conv2d", (1, 9, 9, 8), (3, 3, 8, 1)),
        pointwise_shape=(1, 1, 8, 8),
        target="neon",
    )
    assert story.then is not None and story.target == story.then.target == find("neon")
    assert story.to_dict()["roofline_ms"] is None and "at best" not in str(story)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "avx3"}, "`target` must be one of avx512, .*, got 'avx3'; did you mean"),
        ({"target": 512}, "`target` must be one of avx512, .*, got 512."),
        ({"vector_bits": 64}, "`vector_bits` must be one of 128, 256, 512, got 64."),
        ({"vector_bits": "256"}, "`vector_bits` must be one of 128, 256, 512, got '256'."),
        ({"caches": "32K,1M"}, "`caches` must be the sizes of three levels .*, got '32K,1M'."),
        ({"caches": (1 << 20, 32 << 10, 1 << 20)}, "none smaller than the one before.*, got "),
        ({"caches": 32768}, "`caches` must be text such as '32K,1M,32M', or three numbers, got"),
        ({"caches": ("32K", "1M", "32M")}, "`caches` must be text such as"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_mistakes_are_named(given, message):
    with pytest.raises(ArgumentError, match=f"^explain: .*{message}") as caught:
        convgrad.explain(LINE, **given)
    assert "\n" not in str(caught.value)


def test_the_machines_of_the_tests_are_what_their_names_say():
    """One has wide vectors and a server's caches, one has narrow vectors and small caches."""
    server, small, tuned = (MACHINES[name].target for name in ("server", "small", "zen3"))
    assert server.vector_bits == 512 and sizes(server) == LARGE
    assert small.vector_bits == 128 and sizes(small) == SMALL
    assert tuned.name == "avx2" and sizes(tuned) == (32 << 10, 512 << 10, 32 << 20)
    for machine in MACHINES.values():
        assert set(machine.variables) == {"CONVGRAD_VECTOR_BITS", "CONVGRAD_CPU_CACHES"}
        assert re.fullmatch(r"\d+K,\d+[KM],\d+M", machine.caches)
