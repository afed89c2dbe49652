"""Dense 3x3 convolutions and their input gradients by Winograd's F(2,3), and by F(4,3) where asked for."""

from __future__ import annotations

from ..shared.table import Algorithms, Emitters
from . import fast, filter_transform, kernel, schedule, words

ALGORITHMS: Algorithms = {fast.NAME: fast, schedule.NAME: schedule}
EMITTERS: Emitters = {
    filter_transform.FilterTransformKernel: filter_transform.emit,
    words.WinogradKernel: kernel.emit,
}
