"""The same bits on other instruction sets: kernels of NEON, RISC-V and Cortex-M in emulators beside this machine's.

Usage: python tools/emulated_bits.py [--target ROW,...] [--problems N] [--seed S]

Draws N small problems (`tests/same_bits.py` and `norm_bits.py`: convolutions, gradients, biases, batch norm), computes
each here and by the best plan of every algorithm on each row: under qemu-aarch64, qemu-riscv64 (with vectors of 128 and
of 256 bits), qemu-system-arm (Cortex-M4 and M7), in node (wasm). Every byte must agree, and with the specification of
sums where that is quick. Says what differs, by algorithm; exit status 1 if anything does, 2 if a program is missing.

Rows without a fused multiply-add, such as sse2 and wasm, are outside the contract, and so is the Cortex-M4 in float64,
also where batch norm merges statistics: it prints how many problems agree anyway, and the others are not failures. What
never fuses must have the bits of sse2 on this machine.

apt-get install qemu-user qemu-system-arm gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu gcc-arm-none-eabi
libnewlib-arm-none-eabi lld clang nodejs
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("src", "tests"):
    sys.path.insert(0, str(ROOT / folder))

import device_bits  # noqa: E402
from convgrad._compiler import jit  # noqa: E402
from device_trials import RUNNERS  # noqa: E402

ROWS = ("neon", "riscv64v", "cortex_m7", "cortex_m4")
MOST_SHOWN = 20
EVERY = 100
"""Problems between two lines of progress, about."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default=",".join(ROWS), help=f"of {', '.join(RUNNERS)}")
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    names = given.target.split(",")
    if unknown := [name for name in names if name not in RUNNERS]:
        parser.error(f"no emulator for {', '.join(unknown)}; there are {', '.join(RUNNERS)}")
    missing = {runner.missing() for name in names for runner in RUNNERS[name]} - {None}
    if missing:
        print(f"not installed: {', '.join(sorted(filter(None, missing)))}", file=sys.stderr)
        return 2
    if not jit.host_target().has_fma:
        print("this machine has no fused multiply-add to compare with", file=sys.stderr)
        return 2
    return _compared(names, given.problems, given.seed)


def _compared(names: list[str], count: int, seed: int) -> int:
    chosen = device_bits.devices(names)
    began, done, specified, wrong = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for some in device_bits.campaign(chosen, count, Path(folder), seed):
            for one in some:
                checked, differing = one.beside_specification()
                specified += checked
                wrong += len(differing)
                for name in differing:
                    print(f"this machine's {name} are not the specification's: {one.label}")
            done += len(some)
            if done % EVERY < len(some):
                totals = ", ".join(f"{each.label} {len(each.found.differing)}" for each in chosen)
                took = time.monotonic() - began
                print(f"{done} problems, differing: {totals}, {took:.0f} s", flush=True)
    print(f"{done} problems on this machine, {specified} beside the specification, {wrong} differ")
    for each in chosen:
        for line in each.told():
            print(line)
        for line in (*each.found.differing, *each.found.differing_unfused)[:MOST_SHOWN]:
            print(f"  {line}")
    differ = (each.found.differing or each.found.differing_unfused for each in chosen)
    return int(wrong > 0 or any(differ))


if __name__ == "__main__":
    sys.exit(main())
