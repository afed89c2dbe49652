"""Running a kernel: its arguments, its threads, its workspace, and the memory of its result.

A kernel is ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)`` at an address. What it
computes is unknown here, and how a thread comes to call it is unknown there.
"""
