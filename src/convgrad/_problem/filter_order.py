"""`FilterOrder`: a filter brought from a framework's order into the kernels', or back; a description without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FilterOrder:
    """What is reordered: the first place is read, the second written."""

    sizes: tuple[int, int, int, int]
    """Outputs, inputs, rows and columns of the window."""
    order: Literal["OIHW", "OHWI"]
    """The framework's order; the kernels' is HWIO."""
    size: int
    """Bytes of an element."""
    back: bool
    """Whether it goes from the kernels' order to the framework's."""

    @property
    def places(self) -> tuple[str, ...]:
        return ("first", "result")
