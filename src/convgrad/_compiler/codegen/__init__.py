"""How kernels are written down: a small language that prints LLVM IR. It knows no convolution and
no llvmlite.

A kernel is a Python function that writes loops, loads and arithmetic through a `KernelBuilder`,
conventionally `k`. Python runs when the kernel is written (unrolling, tiles, taps); what it
writes runs later. An ``int`` is a constant of the kernel, an `Int` is known only at run time, and
constants fold as they are written, because no LLVM pass will do it: what you write is what the
code generator gets.

>>> from convgrad._compiler.codegen import F32, KernelBuilder, symbol
>>> from convgrad._compiler.targets import find
>>> def saxpy(target):
...     '''y += alpha * x on items of 1024 elements: words are alpha, x, y and their length.'''
...     k = KernelBuilder(symbol("saxpy", "f32", "1024", target), target)
...     x, y, n = k.arg_pointer(1, F32), k.arg_pointer(2, F32), k.arg_i64(3)
...     lanes = k.lanes(F32)
...     alpha = k.arg_pointer(0, F32).broadcast(lanes)
...     with k.loop(k.begin, k.end) as item:
...         start = item * 1024
...         stop = k.min(start + 1024, n)
...         whole = stop - (stop - start) % lanes
...         with k.loop(start, whole, lanes) as i:
...             y.offset(i).store(k.fma(alpha, x.offset(i).load(lanes), y.offset(i).load(lanes)))
...         with k.when(whole < stop):
...             tail = k.first_lanes(lanes, stop - whole)
...             a = x.offset(whole).load(lanes, mask=tail)
...             b = y.offset(whole).load(lanes, mask=tail)
...             y.offset(whole).store(k.fma(alpha, a, b), mask=tail)
...     return k.finish()
>>> source = saxpy(find("avx2"))
>>> source.ir.splitlines()[0].split("(")[0]
'define void @cg_saxpy_f32_1024_avx2v256_6b500cbb'

`jit.load` turns the source into an address; `tests/codegen/test_example.py` runs this very kernel.

Loads give the compute type and stores round: a kernel written with `F16` or `BF16` pointers is
otherwise the float32 kernel. ``count=`` and ``mask=`` keep accesses inside the array. Sums over
lanes (`Vector.sum`) and `KernelBuilder.fma` have one fixed order and one fixed rounding per
target. `KernelBuilder.scratch` takes workspace; there is no alloca.

Functions that are not kernels, such as those that frameworks call, are written with `functions`.
"""

from .builder import KernelBuilder
from .flow import Branch, Variable
from .ints import Bool, Int, IntLike
from .memory import Pointer
from .names import symbol
from .transpose import transpose
from .types import BF16, F16, F32, F64, I16, I32, I64, Element, arithmetic, element
from .vectors import Mask, Vector

__all__ = [
    "BF16",
    "F16",
    "F32",
    "F64",
    "I16",
    "I32",
    "I64",
    "Bool",
    "Branch",
    "Element",
    "Int",
    "IntLike",
    "KernelBuilder",
    "Mask",
    "Pointer",
    "Variable",
    "Vector",
    "arithmetic",
    "element",
    "symbol",
    "transpose",
]
