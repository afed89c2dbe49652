"""Depthwise convolutions over zero-padded rows that were copied into scratch: any geometry, any layout."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, schedule

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    kernel.PackedKernel: kernel.emit,
}
