"""Copies between the layouts of arrays and the order a dense kernel wants: conversion and transposition on the way.

Kernels of this family compute on channels-last rows of the compute type. Whatever is stored otherwise (NCHW, the 16-bit
types) passes through these functions, a block at a time, in a thread's own workspace: 0.3 to 0.7 cycles per element,
where an element is used for tens to thousands of multiplications.
"""

from __future__ import annotations

from ..._compiler.codegen import IntLike, KernelBuilder, Pointer, transpose


def copy(k: KernelBuilder, source: Pointer, target: Pointer, count: IntLike) -> None:
    """Copy neighbouring elements, converted."""
    lanes = k.lanes(_wide(source, target).element)
    count = k.i64(count)
    whole = count - count % lanes
    with k.loop(0, whole, lanes) as i:
        target.offset(i).store(source.offset(i).load(lanes))
    with k.loop(whole, count) as i:
        target.offset(i).store(source.offset(i).load())


def fill_zeros(k: KernelBuilder, target: Pointer, count: IntLike) -> None:
    """Fill neighbouring elements with zeros."""
    lanes = k.lanes(target.element)
    count = k.i64(count)
    whole = count - count % lanes
    with k.loop(0, whole, lanes) as i:
        target.offset(i).store(k.zeros(target.element, lanes))
    with k.loop(whole, count) as i:
        target.offset(i).store(k.zeros(target.element, 1))


def transposed_copy(
    k: KernelBuilder,
    source: Pointer,
    target: Pointer,
    rows: IntLike,
    cols: IntLike,
    source_pitch: IntLike,
    target_pitch: IntLike,
) -> None:
    """Copy ``target[c][r] = source[r][c]``, converted.

    Squares of one vector a side are turned in registers; the last ones of a row or column overlap their neighbours,
    which writes some elements twice and needs no masks. What is smaller than a vector goes element by element.
    """
    lanes = k.lanes(_wide(source, target).element)
    rows, cols = k.i64(rows), k.i64(cols)
    with k.branch((rows >= lanes) & (cols >= lanes)) as both:
        with both.then(), k.loop(0, cols, lanes, nonempty=True) as col:
            c = k.min(col, cols - lanes)
            with k.loop(0, rows, lanes, nonempty=True) as row:
                r = k.min(row, rows - lanes)
                here = source.offset(r * source_pitch + c)
                there = target.offset(c * target_pitch + r)
                square = [here.offset(source_pitch * i).load(lanes) for i in range(lanes)]
                for i, turned in enumerate(transpose(square)):
                    there.offset(target_pitch * i).store(turned)
        with both.otherwise(), k.loop(0, rows) as r, k.loop(0, cols) as c:
            value = source.offset(r * source_pitch + c).load()
            target.offset(c * target_pitch + r).store(value)


def _wide(source: Pointer, target: Pointer) -> Pointer:
    """Return the pointer to the compute type: one of the two is."""
    return source if source.element.size > target.element.size else target
