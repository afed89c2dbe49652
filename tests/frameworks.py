"""A case as PyTorch, JAX or TensorFlow computes it. The pads are those of the tests' own geometry."""

from __future__ import annotations

from typing import Any

from cases import KINDS, Case, Data, pads
from convgrad._bridges.peers import FRAMEWORKS, Wanted
from convgrad._problem.convolution import Kind


def wanted(case: Case, kind: str) -> Wanted:
    """Return one of the three problems of a case as frameworks are asked for it."""
    return Wanted(
        kind=dict(zip(KINDS, Kind, strict=True))[kind],
        depthwise=case.depthwise,
        layout=case.data_format,
        input_shape=case.input_shape,
        filter_shape=case.filter_shape,
        strides=case.strides,
        dilations=case.dilations,
        padding=case.padding,
        pads=(pads(*case.axis(0)), pads(*case.axis(1))),
    )


def ask(framework: str, case: Case, kind: str, data: Data, **way: Any) -> Any:
    """Return one of the three results of a case; `way` is the framework's own."""
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    return FRAMEWORKS[framework].compute(wanted(case, kind), *operands[kind], **way)
