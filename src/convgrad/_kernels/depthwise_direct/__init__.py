"""Depthwise convolutions by register tiles over channels-last images, straight from and to the caller's memory."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.DirectKernel: kernel.emit,
}
