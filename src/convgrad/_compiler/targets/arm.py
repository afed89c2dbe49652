"""AArch64 rows. NEON, fused multiply-add and the float16 conversions are part of the baseline."""

from __future__ import annotations

from ._row import Target

ROWS = (
    Target(
        name="neon",
        architecture="aarch64",
        needs=frozenset(),
        cpu="generic",
        features="+neon",
        vector_bits=128,
        vector_registers=32,
        has_fma=True,
        has_half=True,
        mode_register="fpcr",
        l1_bytes=64 << 10,
        l2_bytes=1 << 20,
    ),
)
