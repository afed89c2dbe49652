"""Depthwise convolutions with vectors along the width: planes of NCHW, and rows of few channels taken as planes."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import flat, frame, kernel, schedule

ALGORITHMS: Algorithms = {schedule.NAME: schedule, flat.NAME: flat}
EMITTERS: Emitters = {
    frame.PlaneKernel: kernel.emit,
}
