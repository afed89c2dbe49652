"""Running a kernel: its arguments, its threads, its workspace, and the memory of its result.

A kernel is ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)`` at an address. What it
computes is unknown here, and how a thread comes to call it is unknown there.
"""

from .launch import launch
from .parfor import ParforSource
from .pointers import data_pointer, pack_words
from .results import new_result, pool_stats, trim
from .threads import get_num_threads, set_loader, set_num_threads, threads

__all__ = [
    "ParforSource",
    "data_pointer",
    "get_num_threads",
    "launch",
    "new_result",
    "pack_words",
    "pool_stats",
    "set_loader",
    "set_num_threads",
    "threads",
    "trim",
]
