"""What a result's memory costs: one pass of writes into results of several sizes and histories.

Not a test. Run ``PYTHONPATH=tests python -m runtime.perf_results``; figures are milliseconds,
minimum / median of allocating (where the column says so) and filling with one thread, and
microseconds for small ones.
"""

from __future__ import annotations

import time
import timeit

import numpy as np

from convgrad._base import config
from convgrad._runtime.results import new_result, trim

FLOAT = np.dtype(np.float32)


def timed(call, seconds: float = 0.3) -> str:
    call()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return f"{min(times):.3f}/{sorted(times)[len(times) // 2]:.3f}"


def main() -> None:
    for shape in ((8, 8), (1, 14, 14, 64), (8, 56, 56, 20)):
        row = []
        for name, make in (("np.empty", np.empty), ("new_result", new_result)):
            seconds = min(timeit.repeat(lambda: make(shape, FLOAT), number=20_000, repeat=7))  # noqa: B023
            row.append(f"{name} {seconds / 20_000 * 1e6:.2f} us")
        print(shape, *row)
    names = ("reused", "freed", "3 kept", "fresh", "np freed", "np 3 kept", "off 3 kept")
    print(f"{'MB':>6} " + " ".join(f"{name:>14}" for name in names))
    for megabytes in (2.4, 4.8, 12.8, 25.7, 38.5):
        shape = (int(megabytes * 1e6) // 4,)
        kept: list[object] = []

        def keep(make, shape=shape, kept=kept) -> None:
            array = make(shape, FLOAT)
            array.fill(1.0)
            kept.append(array)
            if len(kept) > 3:
                kept.pop(0)

        def fresh(shape=shape) -> None:
            trim()
            new_result(shape, FLOAT).fill(1.0)

        old = new_result(shape, FLOAT)
        cells = [
            timed(lambda: old.fill(1.0)),  # noqa: B023
            timed(lambda: new_result(shape, FLOAT).fill(1.0)),  # noqa: B023
            timed(lambda: keep(new_result)),
        ]
        kept.clear()
        cells += [
            timed(fresh),
            timed(lambda: np.empty(shape, FLOAT).fill(1.0)),  # noqa: B023
            timed(lambda: keep(np.empty)),
        ]
        kept.clear()
        with config.scope(pool_bytes=0):
            cells.append(timed(lambda: keep(new_result)))
        kept.clear()
        print(f"{megabytes:>6} " + " ".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
