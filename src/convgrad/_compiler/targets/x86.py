"""x86-64 rows.

The CPU name is always the baseline and the features are spelt out: a name such as `x86-64-v3`
would also demand features (movbe, lzcnt) that hypervisors hide and kernels do not use. The
baseline also has no preference for 256-bit vectors, which Intel's named CPUs have and which would
split the 512-bit ones.
"""

from __future__ import annotations

from ._row import Target

_AVX2 = frozenset({"avx", "avx2", "fma", "f16c"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}

ROWS = (
    Target(
        name="avx512",
        architecture="x86_64",
        needs=_AVX512,
        cpu="x86-64",
        features="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c",
        vector_bits=512,
        vector_registers=32,
        has_fma=True,
        has_half=True,
        mode_register="mxcsr",
        l2_bytes=1 << 20,
        l3_bytes=16 << 20,
    ),
    Target(
        name="avx2",
        architecture="x86_64",
        needs=_AVX2,
        cpu="x86-64",
        features="+avx2,+fma,+f16c",
        vector_bits=256,
        vector_registers=16,
        has_fma=True,
        has_half=True,
        mode_register="mxcsr",
    ),
    Target(
        name="sse2",
        architecture="x86_64",
        needs=frozenset(),
        cpu="x86-64",
        features="",
        vector_bits=128,
        vector_registers=16,
        has_fma=False,
        has_half=False,
        mode_register="mxcsr",
        l2_bytes=256 << 10,
        l3_bytes=4 << 20,
    ),
)
