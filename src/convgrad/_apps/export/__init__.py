"""Packs: kernels for a list of problems as a static library with C around it, for programs that have no Python.

    door        `convgrad.export`: checks what was asked for, makes the pack, writes the folder
    problems    what a caller names (lines, files, layers, networks, pages) as problems
    recipe      what can be exported: convolutions with bias, batch norm, blocks of both, as places and parts
    pack        a pack as data: problems, plans, kernels, sizes; no text of C
    names       names of C: of packs, and of the function of a problem
    object_size what of an object file ends up in a program
    archive     the static library, byte by byte
    c_source    NAME.c and NAME.h
    self_test   NAME_test.c: a program that knows what the pack must compute; `expected` finds that out
    packaging   files for CMake and pkg-config
    listing     the table of sizes, for people and as JSON
    folder      all files or none

Equal packs have equal bytes: nothing here depends on the process, the order of the problems or the folder.
"""
