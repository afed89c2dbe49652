"""Named geometries that take a path of their own in some kernel, and some too large to run here."""

from __future__ import annotations

from typing import Any

from cases import Case

SHAPES = {
    "ConvNeXt": Case(True, 2, (14, 14), 40, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "small image": Case(True, 2, (7, 7), 24, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "two uneven tiles": Case(True, 1, (9, 11), 16, 1, 1, (5, 5), (1, 1), (1, 1), "SAME"),
    "RepLKNet": Case(True, 1, (20, 20), 16, 1, 1, (31, 31), (1, 1), (1, 1), "SAME"),
    "column blocks": Case(True, 1, (12, 61), 72, 1, 1, (9, 7), (1, 1), (1, 1), "SAME"),
    "strided column blocks": Case(True, 1, (30, 121), 33, 1, 1, (7, 7), (2, 3), (1, 1), "SAME"),
    "large image": Case(True, 1, (34, 90), 65, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "stride above window": Case(True, 2, (23, 29), 9, 1, 1, (2, 3), (5, 7), (1, 1), "VALID"),
    "stride above image": Case(True, 1, (5, 6), 9, 1, 1, (2, 3), (50, 70), (1, 1), "SAME"),
    "dilated by more than the image": Case(
        True, 1, (6, 5), 8, 1, 1, (3, 3), (1, 1), (2**30, 2**30), "SAME"
    ),
    "pads above the window": Case(
        True, 1, (4, 5), 8, 1, 1, (3, 2), (1, 2), (1, 1), ((9, 4), (3, 20))
    ),
    "atrous": Case(True, 1, (33, 33), 16, 1, 1, (3, 3), (1, 1), (12, 12), "SAME"),
    "one long row": Case(True, 1, (1, 700), 9, 1, 1, (1, 9), (1, 1), (1, 3), "SAME"),
    "one long row with holes": Case(True, 1, (2, 700), 9, 1, 1, (7, 2), (1, 5), (1, 1), "SAME"),
    "one long column": Case(True, 1, (900, 2), 9, 1, 1, (9, 1), (2, 1), (1, 1), "SAME"),
    "multiplier 2": Case(True, 1, (9, 20), 37, 1, 2, (3, 3), (1, 1), (1, 1), "SAME"),
    "multiplier 3": Case(True, 1, (9, 20), 33, 1, 3, (3, 3), (2, 2), (1, 1), "SAME"),
    "multiplier 4": Case(True, 1, (9, 9), 64, 1, 4, (3, 3), (1, 1), (1, 1), "SAME"),
    "one channel, many results": Case(True, 2, (9, 9), 1, 1, 40, (3, 3), (1, 1), (1, 1), "SAME"),
}


def dense(*values: Any) -> Case:
    """Batch, size, groups, group_in, group_out, window, strides, dilations, padding."""
    return Case(False, *values)


DENSE_SHAPES = {
    "first layer": dense(2, (31, 33), 1, 3, 64, (7, 7), (2, 2), (1, 1), "SAME"),
    "first layer of patches": dense(1, (32, 32), 1, 3, 40, (4, 4), (4, 4), (1, 1), "VALID"),
    "first layer, one channel": dense(2, (28, 28), 1, 1, 33, (5, 5), (1, 1), (1, 1), "SAME"),
    "one result channel": dense(2, (15, 14), 1, 64, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    **{
        f"{few} {what}, {window}x{window}": dense(
            2, (5, 7), 1, *channels, (window, window), (1, 1), (1, 1), "SAME"
        )
        for few in (2, 3, 4)
        for what, channels in (("results", (40, few)), ("sources", (few, 40)))
        for window in (1, 3)
    },
    "one of everything": dense(1, (1, 1), 1, 1, 1, (1, 1), (1, 1), (1, 1), "VALID"),
    "fully connected": dense(5, (1, 1), 1, 300, 101, (1, 1), (1, 1), (1, 1), "VALID"),
    "fully connected, one image": dense(1, (1, 1), 1, 512, 10, (1, 1), (1, 1), (1, 1), "VALID"),
    "window as large as the image": dense(3, (7, 7), 1, 40, 24, (7, 7), (1, 1), (1, 1), "VALID"),
    "window larger than the image": dense(2, (3, 2), 1, 12, 20, (7, 5), (1, 1), (1, 1), "SAME"),
    "pointwise": dense(2, (14, 14), 1, 96, 72, (1, 1), (1, 1), (1, 1), "SAME"),
    "strided projection": dense(2, (15, 14), 1, 64, 96, (1, 1), (2, 2), (1, 1), "SAME"),
    "small image": dense(3, (7, 7), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"),
    "even image": dense(1, (28, 28), 1, 32, 32, (3, 3), (1, 1), (1, 1), "SAME"),
    "odd image, odd pads": dense(2, (13, 11), 1, 36, 48, (3, 3), (1, 1), (1, 1), ((0, 2), (3, 1))),
    "very wide channels": dense(1, (2, 3), 1, 1500, 700, (1, 1), (1, 1), (1, 1), "VALID"),
    "very deep channels": dense(1, (3, 3), 1, 2050, 9, (3, 3), (1, 1), (1, 1), "SAME"),
    "very many results": dense(1, (3, 3), 1, 9, 2050, (3, 3), (1, 1), (1, 1), "SAME"),
    "one long row": dense(1, (1, 3000), 1, 8, 17, (1, 7), (1, 1), (1, 1), "SAME"),
    "one long row, strided": dense(1, (1, 3001), 1, 17, 8, (1, 5), (1, 3), (1, 2), "SAME"),
    "one long column": dense(1, (3000, 1), 1, 8, 17, (7, 1), (1, 1), (1, 1), "SAME"),
    "large image": dense(1, (120, 130), 1, 4, 8, (3, 3), (1, 1), (1, 1), "SAME"),
    "stride above window": dense(2, (23, 29), 1, 9, 20, (2, 3), (5, 7), (1, 1), "VALID"),
    "stride above image": dense(1, (5, 6), 1, 9, 20, (2, 3), (50, 70), (1, 1), "SAME"),
    "dilated": dense(1, (17, 19), 1, 32, 33, (3, 3), (1, 1), (6, 4), "SAME"),
    "dilated and strided": dense(2, (17, 19), 1, 20, 16, (3, 2), (2, 3), (3, 2), "SAME"),
    "dilated by more than the image": dense(
        1, (6, 5), 1, 16, 24, (3, 3), (1, 1), (2**30, 2**30), "SAME"
    ),
    "pads above the window": dense(1, (4, 5), 1, 20, 17, (3, 2), (1, 2), (1, 1), ((9, 4), (3, 20))),
    "ResNeXt 4d": dense(1, (9, 9), 32, 4, 4, (3, 3), (1, 1), (1, 1), "SAME"),
    "ResNeXt 8d, strided": dense(1, (9, 9), 32, 8, 8, (3, 3), (2, 2), (1, 1), "SAME"),
    "groups of 16": dense(1, (9, 9), 5, 16, 16, (3, 3), (1, 1), (1, 1), "SAME"),
    "uneven groups": dense(2, (8, 9), 3, 5, 33, (3, 2), (1, 1), (1, 1), "SAME"),
    "more in than out": dense(2, (8, 9), 7, 12, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "depthwise in all but name": dense(1, (9, 9), 20, 1, 2, (3, 3), (1, 1), (1, 1), "SAME"),
    "large batch of dots": dense(300, (1, 2), 1, 17, 9, (1, 1), (1, 1), (1, 1), "VALID"),
}

LARGE = {
    "huge image": dense(1, (4096, 4096), 1, 3, 64, (3, 3), (1, 1), (1, 1), "SAME"),
    "huge image, strided first layer": dense(
        2, (4097, 4095), 1, 3, 64, (7, 7), (2, 2), (1, 1), "SAME"
    ),
    "one row of a million": dense(1, (1, 1_000_003), 1, 64, 64, (1, 9), (1, 1), (1, 1), "SAME"),
    "one column of a million": dense(1, (1_000_003, 1), 1, 64, 64, (9, 1), (1, 1), (1, 1), "SAME"),
    "batch of a million": dense(1_000_003, (1, 1), 1, 64, 64, (1, 1), (1, 1), (1, 1), "VALID"),
    "batch of small images": dense(100_000, (7, 7), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"),
    "more than 2**31 numbers": dense(700, (224, 224), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"),
    "more than 2**31 numbers in one image": dense(
        1, (8192, 8192), 1, 64, 64, (1, 1), (1, 1), (1, 1), "SAME"
    ),
    "wide and deep": dense(8, (14, 14), 1, 4096, 4096, (3, 3), (1, 1), (1, 1), "SAME"),
    "fully connected": dense(8, (1, 1), 1, 25088, 4096, (1, 1), (1, 1), (1, 1), "VALID"),
    "large window": dense(1, (224, 224), 1, 16, 16, (31, 31), (1, 1), (1, 1), "SAME"),
    "dilated": dense(1, (513, 513), 1, 256, 256, (3, 3), (1, 1), (36, 36), "SAME"),
    "strided": dense(1, (2049, 2049), 1, 16, 16, (5, 5), (7, 7), (1, 1), "SAME"),
    "many groups": dense(8, (56, 56), 2048, 4, 4, (3, 3), (1, 1), (1, 1), "SAME"),
}
"""Looked at by the planner only."""
