"""Problems for hypothesis: a case of any kind, or of the kind TensorFlow's own kernels compute right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from cases import DTYPES, Case
from tensorflow_bridge.configurations import taken_by_tensorflow


def _pairs(low: int, high: int) -> st.SearchStrategy[Any]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


@st.composite
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    """Draw a legal case; it shrinks to one pixel, one channel, stride 1."""
    depthwise = draw(st.booleans())
    chosen: dict[str, Any] = {
        "depthwise": depthwise,
        "batch": draw(st.integers(0, 3)),
        "size": draw(_pairs(1, 9)),
        "groups": draw(st.integers(1, 5 if depthwise else 3)),
        "group_in": 1 if depthwise else draw(st.integers(1, 4)),
        "group_out": draw(st.integers(1, 4)),
        "window": draw(_pairs(1, 5)),
        "strides": draw(_pairs(1, 4)),
        "dilations": draw(_pairs(1, 3)),
        "padding": draw(
            st.one_of(st.sampled_from(("VALID", "SAME")), st.tuples(_pairs(0, 5), _pairs(0, 5)))
        ),
        "data_format": draw(st.sampled_from(("NHWC", "NCHW"))),
        "dtype": draw(st.sampled_from(tuple(DTYPES))),
    }
    case = Case(**chosen | fixed)
    if not case.legal:
        case = Case(**chosen | fixed | {"padding": "SAME"})
    return case


def theirs() -> st.SearchStrategy[Case]:
    """Cases of float64 that TensorFlow's CPU kernels compute right, oneDNN on or off."""
    equal = st.builds(lambda stride: (stride, stride), st.integers(1, 4))
    return (
        equal.flatmap(
            lambda strides: cases(
                data_format="NHWC", dilations=(1, 1), dtype="float64", strides=strides
            )
        )
        .map(_ungrouped)
        .filter(taken_by_tensorflow)
    )


def _ungrouped(case: Case) -> Case:
    return case if case.depthwise else replace(case, groups=1)
