"""31 malformed calls of TensorFlow, before and after `convgrad.tensorflow.install()`, oneDNN on and off, as a table.

Usage: python tools/tensorflow_malformed.py [--json] [--only NUMBER ...]

Each call has a process of its own, two at a time: 5 s and more for each of 124. A: the process was aborted; E: an
exception; V: a value, the right one; W: a value that is wrong, or where nothing but an error would be right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAYS = tuple((installed, onednn) for installed in (False, True) for onednn in (True, False))


def ask(number: int, installed: bool, onednn: bool) -> dict[str, Any]:
    """Make one call in a process of its own."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tensorflow_bridge.malformed"),
            *(["install"] if installed else []),
            str(number),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests"))),
            "TF_ENABLE_ONEDNN_OPTS": str(int(onednn)),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        },
    )
    if done.returncode < 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"number": number, "kind": "A", "error": f"signal {-done.returncode}", "text": last}
    if done.returncode > 0:
        sys.exit(f"tensorflow_malformed.py: call {number} could not be made:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def head(way: tuple[bool, bool]) -> str:
    return f"{'after' if way[0] else 'before'}, oneDNN {'on' if way[1] else 'off'}"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="of the calls")
    options = parser.parse_args(words)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    from tensorflow_bridge.malformed import MALFORMED

    numbers = options.only or range(len(MALFORMED))
    with ThreadPoolExecutor(max_workers=2) as pool:
        waiting = {
            (number, way): pool.submit(ask, number, *way) for number in numbers for way in WAYS
        }
        found = {key: each.result() for key, each in waiting.items()}
    if options.json:
        print(json.dumps([{"way": head(way), **found[n, way]} for n in numbers for way in WAYS]))
        return
    print(f"| call | {' | '.join(map(head, WAYS))} |")
    print(f"|---|{'---|' * len(WAYS)}")
    for number in numbers:
        kinds = " | ".join(found[number, way]["kind"] for way in WAYS)
        print(f"| {MALFORMED[number].title} | {kinds} |")
    counts = [Counter(found[number, way]["kind"] for number in numbers) for way in WAYS]
    totals = (
        ", ".join(f"{count[kind]} {kind}" for kind in "AEVW" if count[kind]) for count in counts
    )
    print(f"| all | {' | '.join(totals)} |")


if __name__ == "__main__":
    main()
