"""What `explain` was given: shapes, or arrays of Dask in their place."""

from __future__ import annotations

from typing import Any

from ..._arrays import dask
from ..._base.dtypes import DType
from ..._base.errors import ArgumentError, shown
from ..._bridges.dask.traffic import Chunked
from ..._problem import convolution
from ..._problem.convolution import Call, Kind, Problem


class Lazy:
    """The arrays of Dask among what `explain` was given, in the place of shapes; None for the others."""

    def __init__(
        self, call: Call, allowed: tuple[DType, ...], image: Any, taps: Any, mixing: Any, grad: Any
    ) -> None:
        self.row: DType | None = None
        """Their dtype."""
        if grad is not None:
            if call.kind is Kind.FORWARD or call is convolution.CONV2D_TRANSPOSE:
                raise ArgumentError("explain: `out_backprop` is for gradients only.")
            if not dask.recognise(grad):
                raise ArgumentError(
                    f"explain: `out_backprop` must be an array of Dask, got {shown(grad)}."
                )
        found = []
        for argument, value in (
            ("input_shape", image),
            ("filter_shape", taps),
            ("pointwise_shape", mixing),
            ("out_backprop", grad),
        ):
            lazy = None
            if dask.recognise(value):
                borrowed = dask.borrow("explain", argument, value, allowed, self.row)
                lazy, self.row = value, borrowed.row
            found.append(lazy)
        self.image, self.taps, self.mixing, self.grad = found
        self.shapes = [
            given if lazy is None else lazy.shape
            for given, lazy in zip((image, taps, mixing), found, strict=False)
        ]

    def check(self, row: DType) -> None:
        """Refuse a dtype that was asked for and is not the arrays'."""
        if self.row is not None and row is not self.row:
            raise ArgumentError(
                f"explain: `dtype` must be that of the arrays, {self.row.name}, got {row.name}."
            )

    def tell(
        self, problem: Problem, first: Any, second: Any
    ) -> tuple[Problem, Chunked | None, Any]:
        """Return the problem to explain, what Dask makes of it, and an array with the result's chunks."""
        if self.row is None:
            return problem, None, None
        from ..._bridges.dask import story

        return story.tell(problem, first, second)
