"""Batch norm and what belongs to it have the same bits on every row, width and cache size: those written down here."""

from __future__ import annotations

import hashlib

import pytest

from convgrad._compiler import jit
from norm_bits import digests, draw
from same_bits import machines

pytestmark = pytest.mark.skipif(
    not jit.host_target().has_fma, reason="no promise without fused multiply-add"
)

TASKS = 40
KNOWN = {"NHWC": "6f40ff14cdc6261d", "NCHW": "b939e8a70c628be4"}
"""Digest of all results of a layout's tasks. A change of it is one of the contract, and of its version."""


@pytest.mark.parametrize("layout", sorted(KNOWN))
def test_every_machine_gives_the_same_bits(layout: str) -> None:
    all_ = hashlib.sha256()
    for number in range(TASKS):
        task, operands = draw(3, number, layout=layout)
        found = digests(task, operands, machines())
        assert len(set(found.values())) == 1, (task, found)
        all_.update(found.popitem()[1].encode())
    assert all_.hexdigest()[:16] == KNOWN[layout]
