"""Can the campaign fail? It is run against copies of the package with one known bug each (`tools/plant_bugs.py`).

Usage: python -m tools.campaign.planted [--seconds 60] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tools.plant_bugs import BUGS, Bug

from . import ROOT
from .worker import Worker

ELSEWHERE = ("_problem/oracle.py", "_kernels/reference.py", "_base/dtypes.py")
"""Files the campaign does not put to the test: kernels run in place of the reference, which it reads itself."""

STALE = "the source no longer has the line; mend tools/plant_bugs.py"


def noticed(bug: Bug, seconds: float, seed: int) -> tuple[int, float, str]:
    """Run trials against a copy with the bug; return how many until the first failure, the time, and the failure."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "convgrad"
        shutil.copytree(ROOT / "src" / "convgrad", copy)
        target = copy / bug.file
        text = target.read_text(encoding="utf-8")
        if text.count(bug.right) != 1:
            return 0, 0.0, STALE
        target.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        changes = {"PYTHONPATH": path, "CONVGRAD_CACHE_DIR": f"{folder}/cache"}
        with mock.patch.dict(os.environ, changes):
            worker = Worker(Path(folder) / "log")
            started = time.monotonic()
            try:
                for index in range(10**6):
                    spent = time.monotonic() - started
                    if spent > seconds:
                        return index, spent, ""
                    worker.send({"seed": seed, "index": index, "peers": 0.0})
                    if not select.select([worker], [], [], 60.0)[0]:
                        return index + 1, time.monotonic() - started, "hang"
                    failure = worker.answer()["failure"]
                    if failure:
                        return index + 1, time.monotonic() - started, failure
            finally:
                worker.stop()
    return 0, 0.0, ""


def main() -> int:
    """Try the bugs named, or all that the campaign can see."""
    parser = argparse.ArgumentParser(prog="python -m tools.campaign.planted")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    bugs = [bug for bug in BUGS if bug.name in asked.names or not asked.names]
    if not asked.names:
        bugs = [bug for bug in bugs if bug.file not in ELSEWHERE]
    found = 0
    for bug in bugs:
        trials, spent, failure = noticed(bug, asked.seconds, asked.seed)
        seen = failure not in ("", STALE)
        found += seen
        word = f"noticed after {trials} trials, {spent:.0f} s" if seen else "MISSED"
        print(f"{bug.name}: {word}  {json.dumps(failure[:110])}", flush=True)
    print(f"{found} of {len(bugs)} planted bugs noticed")
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
