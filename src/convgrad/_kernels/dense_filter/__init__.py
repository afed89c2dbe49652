"""Dense and grouped filter gradients: tiles of channels times channels, a chunk of pixels at a time."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, merge, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.DenseFilterKernel: kernel.emit,
    merge.MergeKernel: merge.emit,
}
