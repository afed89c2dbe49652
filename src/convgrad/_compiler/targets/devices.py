"""Rows of CPUs that kernels are only ever compiled for, never on: browsers, microcontrollers, RISC-V.

Code without vectors is written in vectors of 128 bits all the same: LLVM takes them apart into four numbers, and a
tile of eight such vectors fills 32 registers. Cache sizes decide how large workspaces and blocks become. A
microcontroller of the M4 kind has no data cache; its row states what a plan may take of 64 to 256 KB of memory.
"""

from __future__ import annotations

from ._row import Target

ROWS = (
    Target(
        name="wasm",
        architecture="wasm32",
        needs=frozenset(),
        # The first version of the standard, and `features` on top of it: what every engine runs.
        cpu="mvp",
        features="",
        vector_bits=128,
        vector_registers=16,
        # The standard's fused product may or may not be fused, so no row has it.
        has_fma=False,
        has_half=False,
        # The standard has one mode: round to nearest even, keep subnormals.
        mode_register=None,
        l2_bytes=256 << 10,
        l3_bytes=4 << 20,
    ),
    Target(
        name="wasm_simd",
        architecture="wasm32",
        needs=frozenset(),
        cpu="mvp",
        features="+simd128",
        vector_bits=128,
        vector_registers=16,
        has_fma=False,
        has_half=False,
        # The standard has one mode: round to nearest even, keep subnormals.
        mode_register=None,
        l2_bytes=256 << 10,
        l3_bytes=4 << 20,
    ),
    Target(
        name="cortex_m4",
        architecture="thumbv7em",
        needs=frozenset(),
        cpu="cortex-m4",
        features="",
        vector_bits=128,
        vector_registers=8,
        has_fma=True,
        has_half=True,
        mode_register="fpscr",
        has_double=False,
        l1_bytes=8 << 10,
        l2_bytes=32 << 10,
        l3_bytes=64 << 10,
    ),
    Target(
        name="cortex_m7",
        architecture="thumbv7em",
        needs=frozenset(),
        cpu="cortex-m7",
        features="+fp-armv8d16",
        vector_bits=128,
        vector_registers=8,
        has_fma=True,
        has_half=True,
        mode_register="fpscr",
        l1_bytes=16 << 10,
        l2_bytes=64 << 10,
        l3_bytes=128 << 10,
    ),
    Target(
        name="riscv64",
        architecture="riscv64",
        needs=frozenset(),
        cpu="generic-rv64",
        features="+m,+a,+f,+d,+c",
        vector_bits=128,
        vector_registers=8,
        has_fma=True,
        has_half=False,
        mode_register="frm",
        l3_bytes=2 << 20,
    ),
    Target(
        name="riscv64v",
        architecture="riscv64",
        needs=frozenset(),
        cpu="generic-rv64",
        # Vectors of 128 bits also on machines with longer ones: the code states how many lanes it means.
        features="+m,+a,+f,+d,+c,+v,+zvl128b",
        vector_bits=128,
        vector_registers=32,
        has_fma=True,
        has_half=False,
        mode_register="frm",
        l3_bytes=2 << 20,
    ),
)
