"""What the kernels of `depthwise_plane` and `depthwise_flat` are told: identity when written, words when run."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.kernel import added_field
from ..._problem.convolution import Kind
from ..shared.gather import Tap

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "groups_h",
    "groups_w",
    "channels",
    "multiplier",
    "chunk",
    "chunks",
    "row_blocks",
    "units",
    "shares",
    "batch",
    "images",
    "image_parts",
    "bank",
    "block_rows",
    "grad_rows",
    "unit_rows",
    "slice_units",
)
"""The run-time words behind the three pointers and the bias. Columns are elements of a row. `bank` counts the elements
of the workspace in front of the rows, `block_rows` the source rows of a block, `grad_rows` the rows of out_backprop
that stand beside them (filter gradient), filled up to whole tiles; `unit_rows` and `images` are those of a unit, and
`slice_units` the units of a slice."""

FEW_TAPS = 9
"""Taps up to which all weights, or all sums, are in registers."""

Phases = tuple[tuple[Tap, ...], ...]


@dataclass(frozen=True)
class Windows:
    """The windows along an axis: what of a `Footprint` shapes code here. Offsets are in elements."""

    phases: Phases
    step: int
    across: int = 1
    """Elements of a cell."""

    @property
    def lowest(self) -> int:
        return min((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def highest(self) -> int:
        return max((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def longest(self) -> int:
        """Taps of the longest phase."""
        return max(map(len, self.phases))

    @property
    def spacing(self) -> int:
        """Distance from tap to tap of the only phase."""
        (taps,) = self.phases
        return (self.highest - self.lowest) // max(1, len(taps) - 1)

    @property
    def before(self) -> int:
        """Elements of padding in front of a row, per sub-row."""
        return self.place(0) - self.place(self.lowest) if self.lowest < 0 else 0

    def place(self, offset: int) -> int:
        """Return where in its sub-row a cell stands, from the first one on."""
        return offset // self.across // self.step * self.across


@dataclass(frozen=True)
class PlaneKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    kind: Kind
    dtype: str
    rows: Windows
    cols: Windows
    window: tuple[int, int]
    height: int
    """Groups of rows of a tile."""
    vectors: int
    """Vectors of columns of a tile (forward and input gradient)."""
    tap_cols: int
    """Tap columns whose sums are in registers together (filter gradient)."""
    pitch: int
    """Elements from sub-row to sub-row."""
    grad_pitch: int
    """Elements from row to row of out_backprop (filter gradient)."""
    source_width: int
    """Columns of the source if they are too few for a vector, else 0: known only at run time."""
    target_width: int
    """The same of the target."""
    direct: bool
    """Whether source rows are read in place, with masks at the borders, instead of padded copies of them."""
    single: int
    """Rows of the source if one tile covers all rows, else 0. Taps outside are then not even written."""
    slack: tuple[int, int]
    """What a tap may add to the last group of rows, and of columns, without leaving the source (direct)."""
    reserve: int
    """Groups by which a vector must stay before the last one to need no mask (direct)."""
    tail: int
    """Columns of a row behind the last whole piece of as many as there are chains: one at least (direct filter
    gradient)."""
    ragged: tuple[bool, bool]
    """Whether the last group of rows, and of columns, misses some of its phases."""
    several: bool
    """Whether the multiplier is not 1."""
    period: int = 0
    """Channels that alternate along the row, or 0."""
    repeat: int = 1
    """How often a channel stands in a row of alternating ones: the multiplier."""
    spread: bool = False
    """Whether it stands there once: a vector of one channel's outputs is spread from one element."""
    whole: bool = True
    """Filter gradient: whether one share makes the result."""
    alternate: bool = False
    """bfloat16 read in place: two vectors hold every other column each, cheaper to convert than neighbours."""
    turns: int = added_field(1)
    """Vectors that a row's chains take (filter gradient)."""
    cycle: int = added_field(0)
    """Elements of a row after which the same channel's first chain is met again: those of the chains of a tap
    (filter gradient)."""
    ahead: bool = added_field(False)
    """Whether rows are asked for before they are needed (direct filter gradient)."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result."""
    levels: int = added_field(0)
    """Levels above the chains of a sum: totals, and grand totals (forward and input gradient)."""

    @property
    def cell(self) -> int:
        """Elements of a pixel in the caller's source."""
        return (self.period or 1) // self.repeat

    @property
    def copies(self) -> int:
        """How often a channel is copied."""
        return 1 if self.spread else self.repeat

    @property
    def parts_pixels(self) -> bool:
        """Whether a row is copied pixel by pixel, to sub-rows or with repeated channels."""
        if self.period:
            return self.cols.step > 1 or self.copies > 1
        return self.cols.step > 2

    @property
    def weaves(self) -> bool:
        """Whether the phases of a row are written to sub-rows of the workspace first."""
        return len(self.cols.phases) > (1 if self.period else 2)
