"""Depthwise convolutions with vectors along the width: planes of NCHW, and rows of few channels taken as planes."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import flat, kernel, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule, flat.NAME: flat}
EMITTERS: Emitters = {
    words.PlaneKernel: kernel.emit,
}
