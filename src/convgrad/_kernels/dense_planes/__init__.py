"""Dense and grouped convolutions of NCHW and their input gradients, with pixels in the lanes."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, pack, schedule, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.PlanesKernel: kernel.emit,
    pack.PlanesPackKernel: pack.emit,
}
