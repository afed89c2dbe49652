"""Names of C: what a pack may be called, and what the function of a problem is called."""

from __future__ import annotations

import re

from .. import _geometry
from .._errors import ArgumentError, shown
from .._geometry import Axis
from .._problem import Kind, Problem

LONGEST = 40
_SHORT = {Kind.FORWARD: "forward", Kind.INPUT_GRADIENT: "dx", Kind.FILTER_GRADIENT: "dw"}

_RESERVED = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
xor xor_eq
"""
_TAKEN = """
NULL SIZE_MAX EOF INFINITY NAN abort abs calloc convgrad convgrad_pack errno exit free i386 int32_t int64_t linux
main malloc memcmp memcpy memmove memset printf ptrdiff_t puts realloc size_t stderr stdin stdout unix uint16_t
uint32_t uint64_t uint8_t uintptr_t
"""
RESERVED = frozenset(_RESERVED.split())
"""Words of C and C++."""
TAKEN = frozenset(_TAKEN.split())
"""Names that compilers, C libraries and our own files have in places where a pack's name stands."""


def check(name: object) -> str:
    """Return the name of a pack, or raise: it becomes a variable of C, and part of file names.

    >>> check("mobilenet")
    'mobilenet'
    """
    where = "export: `name`"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII):
        raise ArgumentError(
            f"{where} must be a C identifier: a letter, then letters, digits and underscores; got {shown(name)}."
        )
    if len(name) > LONGEST:
        raise ArgumentError(f"{where} must have at most {LONGEST} letters, got {len(name)}.")
    if name in RESERVED or name in TAKEN or name.lower().startswith(("cg_", "cgk_")):
        reason = "a word of C or C++" if name in RESERVED else "taken"
        raise ArgumentError(f"{where} must not be {reason}, got {name!r}; try {name}_pack.")
    return name


def function(pack: str, problem: Problem) -> str:
    """Name the function of a problem; problems with different descriptors have different names.

    >>> from .._problem_text import read
    >>> function("net", read("depthwise_conv2d_backprop_filter 8x56x56x144 3x3x144x1 strides=2"))
    'net_depthwise_dw_f32_8x56x56x144_k3x3_o144_s2x2_same'
    """
    rows, cols = problem.rows, problem.cols
    words = [pack, "depthwise" if problem.depthwise else "conv", _SHORT[problem.kind]]
    words.append(problem.dtype.short)
    words.append(f"{problem.batch}x{rows.size}x{cols.size}x{problem.in_c}")
    words += [f"k{rows.window}x{cols.window}", f"o{problem.out_c}"]
    if not problem.depthwise and problem.groups != 1:
        words.append(f"g{problem.groups}")
    for letter, pair in (
        ("s", (rows.stride, cols.stride)),
        ("d", (rows.dilation, cols.dilation)),
    ):
        if pair != (1, 1):
            words.append(f"{letter}{pair[0]}x{pair[1]}")
    words.append(_padding(rows, cols))
    if problem.data_format != "NHWC":
        words.append(problem.data_format.lower())
    return "_".join(words)


def _padding(rows: Axis, cols: Axis) -> str:
    pads = [axis[4:6] for axis in (rows, cols)]
    if pads == [_geometry.solve(*axis[:4], "SAME")[4:6] for axis in (rows, cols)]:
        return "same"
    if pads == [(0, 0), (0, 0)]:
        return "valid"
    numbers = (str(cells).replace("-", "m") for pair in pads for cells in pair)
    return "p" + "_".join(numbers)


def operands(problem: Problem) -> tuple[str, str, str]:
    """Name the arguments of a problem's function: two operands and the result."""
    return {
        Kind.FORWARD: ("input", "filter", "output"),
        Kind.INPUT_GRADIENT: ("filter", "out_backprop", "input_backprop"),
        Kind.FILTER_GRADIENT: ("input", "out_backprop", "filter_backprop"),
    }[problem.kind]
