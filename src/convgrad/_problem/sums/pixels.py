"""Filter gradients and the gradients of a bias: sums over the pixels of all images, added up as a tree.

Outputs are cut into *units*, boxes of at most 400 pixels, and these into *runs* of at most 50, both in the order n, p,
q. A run is one chain over its pixels, a unit adds its runs in order. Units are the leaves of a binary tree: unit 2i and
unit 2i + 1 make node i of the next level, and so on; a node without a right half is its left half. So work may be cut
at every node, among any number of threads, and pairs of sums of equal length keep errors small without wider numbers.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from ..convolution import Problem
from ..geometry import Axis
from .gather import LINE, is_coarse, sum_bytes

UNIT = 400
"""Pixels of a unit, at most: a multiple of 7 x 7, 14 x 14, 28 x 28 and 56 x 56 lies just below."""
PIXELS = 50
"""Pixels of a run, at most: an image of 7 x 7, and 28 where rows have 28 or 56. With 64, which are 56 there, a filter
gradient of 8 x 28 x 28 errs by 2.57 u, where 2.5 u are promised; a step is 1% faster."""
NARROW = 8
"""Channels of a group up to which a result has two chains: pixels take turns."""
FLAT = 1 << 20
"""Pixels of an image that are seen as one row, at most, where each has a window of its own."""


BAND = 2
"""Rows that are walked together where chains lie along rows: of more rows at a time, large planes are streams that are
read twice as slowly; of one, each row of the input is loaded half as often again."""
FLAT_BAND = 4
"""The same for several channels in a row, which are copied first: each row is loaded less often."""
FLAT_PIXELS = 64
"""Pixels of a chain of them, at most: 8 rows of 112 columns of 3 channels."""
FEW_TAPS = 9
"""Taps of a depthwise window up to which chains lie along rows in NCHW; of larger ones only where rows are wide."""
WIDE = 64
"""Columns of such rows, at least."""
MOST_ROWS = 10
MOST_TAPS = 128
"""Of a large window whose chains lie along rows."""
MOST_WRITTEN = 64
"""Rows of it, at most, where there are fewer channels than chains, and nothing else would fill a vector."""
MOST_LISTED = 1 << 14
"""Taps of it, at most: kernels list them to plan it."""
MOST_BESIDE = 64
"""Channels of the output in NHWC whose chains lie along rows, at most."""
LEAST_CHAINS = 8
"""Of a channel of those: with 4, units end so often that 96 x 96 x 4 takes 14% longer (Zen 5)."""
NEAR = 1 << 16
"""Elements of the input under a unit whose chains lie along rows, at most: they are copied together."""


class PixelBox(NamedTuple):
    """Images, rows and columns of outputs."""

    images: int
    rows: int
    cols: int


class PixelContract(NamedTuple):
    """The order in which the products of one result of a filter gradient are added."""

    out: PixelBox
    """All outputs, as they are cut."""
    unit: PixelBox
    run: PixelBox
    chains: int
    """Chains of a run, added halves onto halves in the end. Pixels take turns, those whose tap lies in the padding not
    counted."""
    band: int = 0
    """If not 0, they lie along rows instead: the pixel at column q belongs to chain q % chains (`along_rows`,
    `bias_contract`), and so many rows are walked together."""

    @property
    def units(self) -> int:
        """Leaves of the tree."""
        counts = [-(-all_ // each) for all_, each in zip(self.out, self.unit, strict=True)]
        return counts[0] * counts[1] * counts[2]


def pixel_contract(problem: Problem) -> PixelContract:
    """Return how the products of a filter gradient are added."""
    if along_rows(problem):
        unit = _unit_along_rows(problem)
        out = PixelBox(problem.batch, problem.rows.out, problem.cols.out)
        return PixelContract(out, unit, unit, _chains_along_rows(problem), band_along_rows(problem))
    out = PixelBox(problem.batch, problem.rows.out, problem.cols.out)
    if is_flat(problem):
        out = PixelBox(problem.batch, 1, out.rows * out.cols)
    unit = box(out, UNIT)
    run = unit if is_coarse(problem) else box(unit, PIXELS)
    narrow = problem.groups > 1 and max(problem.group_in, problem.group_out) <= NARROW
    return PixelContract(out, unit, run, 2 if narrow and problem.group_in > 1 else 1)


def along_rows(problem: Problem) -> bool:
    """Tell whether a filter gradient has chains for columns: depthwise, NCHW, or NHWC of few channels.

    The pixel at column q of its row belongs to chain q % L. In NCHW L is V, the sums in 64 bytes: there a vector holds
    neighbours of a plane, and one, two or four of them make the V chains. In NHWC a row is one vector of pixels times
    channels, C of them, which meets the same channel in the same lane again after lcm(V, C) elements. So L is
    V / gcd(V, C), 16 for 3 channels in float32, or twice, four or eight times as many, to be 8 at least. One channel is
    the same in both.

    A run is a unit, a box in which no chain has more than 50 pixels, or 64 of several channels in a row. Each of its
    images is walked in bands of two rows, or of four, a band in pieces of L columns side by side, a piece row by row.
    Then chains are added halves onto halves, (0 + L/2), (1 + L/2 + 1) and so on, and units are added as ever.

    Larger windows are for channels in the lanes, as in NHWC: 5x5 and 7x7 windows on planes of 28 x 28 and less take
    half to two thirds of the time so, though rows are transposed first.
    """
    rows, cols = problem.rows, problem.cols
    taps = rows.window * cols.window
    # Both layouts of one channel are the same, and so is a dense convolution.
    one = problem.in_c == problem.out_c == 1
    if not one and (problem.group_in != 1 or problem.groups == 1):
        return False
    beside = beside_each_other(problem)
    if beside > 1 and (problem.in_c * sum_bytes(problem) >= LINE or beside > MOST_BESIDE):
        return False
    if problem.dtype.is_integer or cols.stride > (2 if beside == 1 else 4) or problem.is_empty:
        return False
    if cols.out > PIXELS * _chains_along_rows(problem):
        return False
    large = cols.out >= WIDE and rows.window <= MOST_ROWS and taps <= MOST_TAPS
    if problem.out_c * sum_bytes(problem) < LINE:
        large = rows.window <= MOST_WRITTEN
    height = (_unit_along_rows(problem).rows - 1) * rows.stride + _span(rows)
    near = height * (cols.size + _span(cols)) * beside <= NEAR
    return (taps <= FEW_TAPS or (large and taps <= MOST_LISTED)) and near


def beside_each_other(problem: Problem) -> int:
    """Return how many channels of the output are neighbours in a row: 1 where a row has one channel."""
    return problem.out_c if problem.data_format == "NHWC" else 1


def band_along_rows(problem: Problem) -> int:
    """Return how many rows are walked together where chains lie along rows."""
    return BAND if beside_each_other(problem) == 1 else FLAT_BAND


def _chains_along_rows(problem: Problem) -> int:
    wide = LINE // sum_bytes(problem)
    return max(LEAST_CHAINS, wide // gcd(wide, beside_each_other(problem)))


def _unit_along_rows(problem: Problem) -> PixelBox:
    """Return a box of whole bands in which a chain has at most as many pixels as a run."""
    wide = _chains_along_rows(problem)
    rows, cols = problem.rows.out, problem.cols.out
    most = PIXELS if beside_each_other(problem) == 1 else FLAT_PIXELS
    images, height, _ = box(PixelBox(problem.batch, rows, -(-cols // wide)), most)
    band = band_along_rows(problem)
    if band < height < rows:
        height -= height % band
    return PixelBox(images, height, cols)


def _span(axis: Axis) -> int:
    return (axis.window - 1) * axis.dilation + 1


def bias_contract(problem: Problem) -> PixelContract:
    """Return how the pixels of a channel are added for the gradient of a bias: plain additions.

    NHWC: as in a filter gradient whose other image is 1 everywhere. In NCHW a channel's pixels are neighbours, and the
    lanes of a vector are as many chains: an image is one row, a unit is one run, and pixel i of an image in it, counted
    from the run's first one there, belongs to chain i % chains. Images follow each other in the chains.
    """
    inner = problem.bias == "input"
    rows, cols = ((axis.size if inner else axis.out) for axis in (problem.rows, problem.cols))
    out = PixelBox(problem.batch, rows, cols)
    if problem.data_format == "NCHW":
        out = PixelBox(problem.batch, 1, rows * cols)
        chains = LINE // sum_bytes(problem)
        unit = box(out, PIXELS * chains)
        return PixelContract(out, unit, unit, chains, 1)
    if is_flat(problem):
        out = PixelBox(problem.batch, 1, rows * cols)
    unit = box(out, UNIT)
    return PixelContract(out, unit, unit if is_coarse(problem) else box(unit, PIXELS), 1)


class Cut(NamedTuple):
    """How pixels in the order n, p, q are cut: every `span` of them into pieces of `length`, the last one shorter."""

    span: int
    length: int


def cut(out: PixelBox, piece: PixelBox) -> Cut:
    """Return where the boxes of some outputs begin and end in the order of their pixels.

    >>> cut(PixelBox(8, 56, 56), PixelBox(1, 7, 56)), cut(PixelBox(8, 7, 7), PixelBox(3, 7, 7))
    (Cut(span=3136, length=392), Cut(span=392, length=147))
    """
    images, rows, cols = out
    if piece.cols < cols:
        return Cut(cols, piece.cols)
    if piece.rows < rows:
        return Cut(rows * cols, piece.rows * cols)
    return Cut(images * rows * cols, piece.images * rows * cols)


def is_flat(problem: Problem) -> bool:
    """Tell whether the pixels of an image are one row: each has a window of its own."""
    axes = (problem.rows, problem.cols)
    return all(map(_plain, axes)) and problem.rows.out * problem.cols.out <= FLAT


def one_row(problem: Problem) -> tuple[Axis, Axis]:
    """Return rows and columns of an image that is seen as one row: see `is_flat`."""
    rows, cols = problem.rows, problem.cols
    pixels = rows.out * cols.out
    return rows._replace(size=1, out=1), cols._replace(size=pixels, out=pixels)


def _plain(axis: Axis) -> bool:
    return axis.window == axis.stride == 1 and axis.size == axis.out


def box(out: PixelBox, most: int) -> PixelBox:
    """Cut outputs into equal boxes of at most `most`: whole images, else whole rows, else pieces of a row."""
    images, rows, cols = out
    if rows * cols <= most:
        return PixelBox(even(images, most // max(1, rows * cols)), rows, cols)
    if cols <= most:
        return PixelBox(1, even(rows, most // cols), cols)
    return PixelBox(1, 1, even(cols, most))


def even(total: int, most: int) -> int:
    """Return the size of equal pieces of at most `most`."""
    pieces = max(1, -(-total // max(1, most)))
    return max(1, -(-total // pieces))
