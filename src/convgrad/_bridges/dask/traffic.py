"""What a graph does beside computing blocks, counted: tasks, and bytes that move between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Traffic:
    """Tasks of one call on arrays of Dask, and what they hand to each other."""

    blocks: int = 0
    """Calls of kernels."""
    strips: int = 0
    """Tasks that cut strips of neighbours."""
    sums: int = 0
    """Tasks that add partial sums."""
    joins: int = 0
    """Tasks that put chunks together, of a result whose blocks are small, or of a filter."""
    strip_bytes: int = 0
    """Bytes of strips, chunks and filters that blocks take beside the largest chunk each."""
    sum_bytes: int = 0
    """Bytes of partial sums."""
    join_bytes: int = 0
    """Bytes of what is put together."""

    @property
    def tasks(self) -> int:
        return self.blocks + self.strips + self.sums + self.joins

    @property
    def bytes_moved(self) -> int:
        """Bytes tasks take from others, of which those move that were made by another worker."""
        return self.strip_bytes + self.sum_bytes + self.join_bytes


@dataclass(frozen=True)
class Chunked:
    """How a call on arrays of Dask is cut, for people and machines."""

    shape: tuple[int, ...]
    """Of the result."""
    chunks: tuple[tuple[int, ...], ...]
    """Of the result."""
    partial_sums: int
    """Of each number of the result; 1 where nothing is added up."""
    traffic: Traffic

    def lines(self) -> list[str]:
        """Return the story for people."""
        t = self.traffic
        counts = " x ".join(str(len(each)) for each in self.chunks)
        largest = [max(each) for each in self.chunks]
        sums = f", {self.partial_sums} partial sums each" if self.partial_sums > 1 else ""
        return [
            f"on arrays of Dask: result {list(self.shape)} in {counts} chunks of at most {largest}{sums}",
            f"  {t.tasks:,} tasks: {t.blocks:,} blocks, {t.strips:,} strips of neighbours, {t.sums:,} sums,"
            f" {t.joins:,} put together",
            f"  at most {t.bytes_moved / 1e6:,.2f} MB move between them: strips and second operands"
            f" {t.strip_bytes / 1e6:,.2f}, partial sums {t.sum_bytes / 1e6:,.2f},"
            f" put together {t.join_bytes / 1e6:,.2f}",
            "  of the blocks the one with most work:",
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "result_shape": list(self.shape),
            "result_chunks": [list(each) for each in self.chunks],
            "partial_sums": self.partial_sums,
            "tasks": self.traffic.tasks,
            "bytes_moved": self.traffic.bytes_moved,
            **asdict(self.traffic),
        }
