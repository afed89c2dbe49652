"""Dense and grouped filter gradients: tiles of channels times channels, a chunk of pixels at a time."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, merge, schedule

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    kernel.FilterKernel: kernel.emit,
    merge.MergeKernel: merge.emit,
}
