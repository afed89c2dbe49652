"""The command line of the soak; `make soak` calls it."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

import convgrad

from .calls import Soak
from .readings import Bounds, Reading, line, read, summary, verdict

PERIOD = 10.0
"""Seconds between readings."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="python -m tools.soak",
        description="Mixed calls from several threads for a long time. Memory, mappings, file descriptors and threads "
        "are read every ten seconds; after a warm-up of a tenth of the time they must stay below a bound. "
        "Exit status 1 says that something grew, changed or failed.",
    )
    arguments.add_argument("--minutes", type=float, default=60.0)
    arguments.add_argument("--threads", type=int, default=4, help="Python threads that call")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", type=Path, help="write all readings there")
    chosen = arguments.parse_args()
    if not Path("/proc/self/maps").exists():
        arguments.error("the readings come from /proc, which this system has not")
    with tempfile.TemporaryDirectory() as folder:
        # A cache of its own: it is emptied now and then.
        os.environ["CONVGRAD_CACHE_DIR"] = folder
        readings, soak = run(chosen.minutes * 60, chosen.threads, chosen.seed)
    bounds = Bounds()
    wrong = verdict(readings, bounds, soak.failures)
    print(summary(readings, soak.counts))
    for reason in wrong:
        print(f"FAILED: {reason}")
    print("verdict: " + ("failed" if wrong else "ok"))
    if chosen.json:
        found = {
            "readings": [asdict(each) for each in readings],
            "counts": soak.counts,
            "wrong": wrong,
        }
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if wrong else 0


def run(seconds: float, threads: int, seed: int) -> tuple[list[Reading], Soak]:
    """Run the threads and read every ten seconds, or more often in a short run."""
    convgrad.set_num_threads(4)
    large = np.ones((4, 64, 64, 32), np.float32)
    convgrad.conv2d(large, np.ones((3, 3, 32, 32), np.float32), 1, "SAME")  # starts the workers
    soak, begin = Soak(seed), time.monotonic()
    members = [
        threading.Thread(target=soak.work, args=(number, begin + seconds), name=f"soak-{number}")
        for number in range(threads)
    ]
    for member in members:
        member.start()
    readings = []
    period = min(PERIOD, seconds / 20)
    while any(member.is_alive() for member in members):
        members[0].join(period)
        time.sleep(0 if members[0].is_alive() else 0.05)
        if readings and time.monotonic() - begin - readings[-1].seconds < period * 0.9:
            continue
        if time.monotonic() - begin > seconds:
            continue  # threads that have ended would show as fewer
        gc.collect()
        calls = soak.counts["calls new"] + soak.counts["calls again"]
        readings.append(read(begin, calls))
        print(line(readings[-1], len(soak.failures)), flush=True)
    return readings, soak


if __name__ == "__main__":
    sys.exit(main())
