"""Running a program: the entry, its threads, its memory, and the memory of results.

    bound, run       a program as one block of memory; running it on addresses
    entry, slots, handover, parfor, parking    the compiled half, as IR text
    code, state      that half once it is loaded, and what it must know of this process
    threads, pool, openmp, cpus    how many threads, and whose
    results, blocks, pointers      arrays for results, and addresses of arrays

A kernel is ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)`` at an address. What it computes is unknown here,
and how a thread comes to call it is unknown there.
"""
