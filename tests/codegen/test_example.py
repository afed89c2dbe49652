"""The kernel in the package's docstring works as printed."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import convgrad._compiler.codegen
from calling import TARGETS, call, label
from guard import guarded


def _saxpy():
    names: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(convgrad._compiler.codegen.__doc__):
        if example.source.startswith(("from", "def")):
            exec(example.source, names)
    return names["saxpy"]


@pytest.mark.parametrize("target", TARGETS, ids=label)
@pytest.mark.parametrize("size", [0, 1, 7, 1023, 1024, 1025, 3000])
def test_saxpy(target, size):
    alpha = np.array([2.0], np.float32)
    x = guarded(np.arange(size, dtype=np.float32), "end")
    y = guarded(np.ones(size, np.float32), "end")
    items = -(-size // 1024)
    source = _saxpy()(target)
    call(source, target, alpha, x, y, size, end=items)
    assert (y == 2 * x + 1).all()
