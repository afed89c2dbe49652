"""Grouped convolutions and their gradients: as many groups side by side as a vector has lanes."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import filter_gradient, kernel, pack, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.GroupedKernel: kernel.emit,
    pack.GroupedPackKernel: pack.emit,
    filter_gradient.GroupedFilterKernel: filter_gradient.emit,
}
