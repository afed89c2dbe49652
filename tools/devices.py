"""Kernels of every row on its device: compiled for all systems, run under emulators, compared bit by bit.

Usage: python tools/devices.py [--each N] [--seed S] [--every] [--compile] [ROW ...]

Draws N problems of every operation, dtype and layout for each row, plans each as the planner does and as every
algorithm that takes it would (`--every`: in all ways they offer), compiles the kernels as a pack has them, links them
with a small runner and runs it: natively, under qemu-aarch64, qemu-riscv64 (with vectors of 128 and of 256 bits) and
qemu-system-arm (Cortex-M4 and M7), and in node (wasm). Whole numbers must agree exactly with the oracle, random ones
with what the same kernels compute on this machine. `--compile` compiles for all systems of a row and runs nothing.
What objects ask of the compiler's library is listed. Exit status 1 if anything failed.

apt-get install qemu-user qemu-system-arm gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu gcc-arm-none-eabi
libnewlib-arm-none-eabi lld clang llvm nodejs
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

import device_trials as trials  # noqa: E402
from convgrad._base.errors import CompileError  # noqa: E402
from convgrad._compiler.targets import ALL, find  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", default=[row.name for row in ALL])
    parser.add_argument("--each", type=int, default=1, help="problems of every kind (1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="all plans of every algorithm")
    parser.add_argument("--compile", action="store_true", help="for all systems, and run nothing")
    given = parser.parse_args(arguments)
    size = trials.Size(given.seed, given.each, every=given.every)
    failures = 0
    for name in given.rows:
        systems = [system.name for system in find(name).systems] if given.compile else [None]
        for system in systems:
            failures += _tried(name, system, size)
    return int(failures > 0)


def _tried(name: str, system: str | None, size: trials.Size) -> int:
    """Try one row and say what came of it; returns how many failed."""
    for runner in trials.RUNNERS.get(name, ()) if system is None else ():
        if runner.missing():
            print(f"{name}: not run, {runner.missing()} is not installed", flush=True)
            return 0
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = trials.campaign(find(name), size, Path(folder), system)
    except (AssertionError, CompileError) as error:
        print(f"{name} {system or ''}: {error}", flush=True)
        return 1
    took = time.monotonic() - began
    print(
        f"{name} {system or 'run'}: {found['trials']} plans, {found['kernels']} kernels, {found['bytes']} bytes of "
        f"objects, {found['runs']} runs, {len(found['failures'])} failures, {took:.0f} s; "
        f"helpers: {' '.join(found['helpers']) or 'none'}",
        flush=True,
    )
    for failure in found["failures"][:20]:
        print(f"  {failure}")
    return len(found["failures"])


if __name__ == "__main__":
    sys.exit(main())
