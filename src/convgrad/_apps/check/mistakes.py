"""Mistakes people make in convolution kernels, each as the numbers a kernel with that mistake would return.

A row predicts: given a problem and its operands it computes, with the oracle's own sums, what a kernel with the mistake
returns. It may have variants, since the same thought goes wrong in more than one way. `guess.py` compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._base.dtypes import AnyArray
from .mistaken_axes import (
    axes,
    both,
    cols_for_both,
    everything_exchanged,
    kept,
    pads_exchanged,
    remainder_dropped,
    rows_for_both,
    swapped,
)
from .mistaken_numbers import (
    all_zero,
    depth_transposed,
    filter_changed,
    first_groups_filter,
    flipped,
    groups_reversed,
    last_group,
    last_image,
    last_taps,
    negated,
    output_order,
    short_batch,
    some_images,
    special_lost,
    taps_transposed,
    whole_vectors,
    wrong_layout,
)
from .prediction import Predict
from .problems import Case


@dataclass(frozen=True)
class Mistake:
    """A row: what the report says about a kernel, and what such a kernel returns."""

    text: str
    predict: Predict


def _either(*predictions: Predict) -> Predict:
    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        for each in predictions:
            yield from each(case, first, second)

    return predict


MISTAKES = (
    Mistake("dilation ignored", axes(both(lambda axis: axis._replace(dilation=1)))),
    Mistake("stride ignored", axes(both(lambda axis: axis._replace(stride=1)))),
    Mistake(
        "stride and dilation look swapped",
        axes(both(lambda axis: axis._replace(stride=axis.dilation, dilation=axis.stride))),
    ),
    Mistake("last rows ignored when (n-k) % s != 0", remainder_dropped),
    Mistake(
        "the odd cell of the padding is on the wrong side (pads before and after exchanged)",
        kept(both(lambda axis: axis._replace(before=axis.after, after=axis.before))),
    ),
    Mistake(
        "padding taken as the same on both sides",
        kept(
            both(lambda axis: axis._replace(before=(axis.before + axis.after) // 2)),
            both(lambda axis: axis._replace(before=(axis.before + axis.after + 1) // 2)),
            both(lambda axis: axis._replace(before=axis.window // 2)),
        ),
    ),
    Mistake("padding ignored", kept(both(lambda axis: axis._replace(before=0)))),
    Mistake("row and column strides swapped", axes(swapped("stride"))),
    Mistake("row and column dilations swapped", axes(swapped("dilation"))),
    Mistake("row and column pads swapped", kept(pads_exchanged)),
    Mistake("row and column settings swapped", kept(everything_exchanged)),
    Mistake(
        "one stride used for rows and columns",
        _either(axes(rows_for_both("stride")), axes(cols_for_both("stride"))),
    ),
    Mistake(
        "one dilation used for rows and columns",
        _either(axes(rows_for_both("dilation")), axes(cols_for_both("dilation"))),
    ),
    Mistake("filter flipped (convolution instead of correlation)", filter_changed(flipped)),
    Mistake("filter rows and columns swapped", filter_changed(taps_transposed)),
    Mistake("filter depths swapped: [kh, kw, out, in]", filter_changed(depth_transposed)),
    Mistake("groups in reversed order", filter_changed(groups_reversed)),
    Mistake("every group uses the first group's filter", filter_changed(first_groups_filter)),
    Mistake("only the first group computed", last_group),
    Mistake("output channels in the order m*C + c instead of c*M + m", output_order),
    Mistake("one layout taken for the other (NCHW, NHWC)", wrong_layout),
    Mistake("only the first image counts", some_images),
    Mistake("the last image is left out", last_image),
    Mistake("the batch is counted in 8 or 16 bits", short_batch),
    Mistake("channels beyond the last whole vector left out", whole_vectors),
    Mistake("the last row and column of the filter left out", filter_changed(last_taps)),
    Mistake("NaN or infinity lost (terms skipped or clamped)", special_lost),
    Mistake("sign reversed", negated),
    Mistake("the result is all zeros", all_zero),
)
