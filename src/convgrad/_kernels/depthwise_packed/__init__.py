"""Depthwise convolutions over zero-padded rows that were copied into scratch: any geometry, any layout."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.PackedKernel: kernel.emit,
}
