"""Dense and grouped convolutions and their input gradients: tiles of pixels times panels of channels."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import kernel, pack, schedule, turn, words

ALGORITHMS: Algorithms = {schedule.NAME: schedule}
EMITTERS: Emitters = {
    words.DirectDenseKernel: kernel.emit,
    pack.PackKernel: pack.emit,
    turn.TurnKernel: turn.emit,
}
