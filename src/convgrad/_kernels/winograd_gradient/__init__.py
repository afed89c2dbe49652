"""Dense 3x3 filter gradients by Winograd's F(3,2)."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, merge, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.GradientKernel: kernel.emit,
    merge.TapsKernel: merge.emit,
}
