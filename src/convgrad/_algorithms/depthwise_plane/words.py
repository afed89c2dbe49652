"""What the kernels of `depthwise_plane` and `depthwise_flat` are told: identity when written, words when run."""

from __future__ import annotations

from dataclasses import dataclass

from ..._problem import Kind
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
)
"""The run-time words behind the three pointers. Columns are elements of a row. `bank` counts the elements of the
workspace in front of the rows, `block_rows` the source rows of a block, `grad_rows` the rows of out_backprop that
stand beside them (filter gradient), filled up to whole tiles."""

Phases = tuple[tuple[Tap, ...], ...]


@dataclass(frozen=True)
class Windows:
    """The windows along an axis: what of a `Footprint` shapes code here. Offsets are in elements."""

    phases: Phases
    step: int

    @property
    def lowest(self) -> int:
        return min((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def highest(self) -> int:
        return max((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def spacing(self) -> int:
        """Distance from tap to tap of the only phase."""
        (taps,) = self.phases
        return (self.highest - self.lowest) // max(1, len(taps) - 1)

    @property
    def before(self) -> int:
        """Elements of padding in front of a row, per sub-row."""
        return max(0, -(self.lowest // self.step))


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
    tap_rows: int
    """Tap rows of them."""
    col_chunk: int
    """Columns that all taps meet before the next ones do, or 0: all of a row (filter gradient)."""
    pitch: int
    """Elements from sub-row to sub-row."""
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
    together: int
    """Images of one block of rows that are added up in one go (direct filter gradient)."""
    tail: int
    """Columns that the last vector does not share with the one before (direct filter gradient)."""
    ragged: tuple[bool, bool]
    """Whether the last group of rows, and of columns, misses some of its phases."""
    several: bool
    """Whether the multiplier is not 1."""
    period: int = 0
    """Channels that alternate along the row, or 0."""
    whole: bool = True
    """Filter gradient: whether one share makes the result."""
