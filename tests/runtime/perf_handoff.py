"""Latency of a call: alone, shared, back to back and with gaps, on a quiet and on a busy machine.

Not a test. Run ``PYTHONPATH=tests python -m runtime.perf_handoff``; figures are microseconds, the
median and best of 40 rounds of 15 calls.
"""

from __future__ import annotations

import subprocess
import sys
import time

from convgrad._runtime import code
from runtime.kernels import Counting, launch, loader

ROUNDS, CALLS = 40, 15


def measure(call, gap: float) -> str:
    rounds = []
    for _ in range(ROUNDS):
        times = []
        for _ in range(CALLS):
            if gap:
                time.sleep(gap)
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        rounds.append(sorted(times)[CALLS // 2] * 1e6)
        time.sleep(0.0005)
    rounds.sort()
    return f"{rounds[ROUNDS // 2]:7.1f} ({rounds[0]:.1f})"


def main() -> None:
    code.ensure(loader)
    counting = Counting(64)
    address = counting.counters.ctypes.data
    long = counting.program(1, pauses=10**6)
    launch(long, address)
    per_us = 0.0
    for _ in range(20):
        begin = time.perf_counter()
        launch(long, address)
        per_us = max(per_us, 1.0 / (time.perf_counter() - begin))

    for busy in (False, True):
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
        time.sleep(0.3)
        print("another process holds a core" if busy else "as the machine is")
        print(f"  {'items':>8} {'gap ms':>7} {'one thread':>18} {'two threads':>18} {'four':>18}")
        for items, microseconds in ((2, 0), (2, 20), (2, 100), (8, 25), (8, 100)):
            program = counting.program(items, pauses=int(microseconds * per_us))
            for gap in (0.0, 0.0005):
                cells = [
                    measure(lambda n=n: launch(program, address, n), gap)  # noqa: B023
                    for n in (1, 2, 4)
                ]
                print(
                    f"  {items}x{microseconds:>4}us {gap * 1e3:7.1f} "
                    + " ".join(map("{:>18}".format, cells))
                )
        if hog:
            hog.kill()
            hog.wait()


if __name__ == "__main__":
    main()
