"""Gradients of TensorFlow's dilated depthwise convolutions before and after `install()`, against finite differences.

Usage: python tools/tensorflow_dilations.py [--json]

A row is a call of `tf.nn.depthwise_conv2d` or `tf.compat.v1.nn.depthwise_conv2d_native` under a `tf.GradientTape`. The
number is the largest error of both gradients against central differences of the same function's values, relative to
the largest of those: about 1e-12 in float64 and 1e-3 in float32 is right, 1 is wrong in every digit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAYS = tuple((installed, onednn) for onednn in (False, True) for installed in (False, True))


def ask(installed: bool, onednn: bool) -> Any:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tensorflow_bridge.dilations"),
            *(["install"] if installed else []),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests"))),
            "TF_ENABLE_ONEDNN_OPTS": str(int(onednn)),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        },
    )
    return json.loads(done.stdout.splitlines()[-1])


def shown(row: dict[str, Any]) -> str:
    if row["error"] is None:
        return f"refused ({row['why'].partition(':')[0]})"
    return f"{row['error']:.1e}"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(words)
    found = {way: ask(*way) for way in WAYS}
    heads = [
        f"{'after' if installed else 'before'}, oneDNN {'on' if onednn else 'off'}"
        for installed, onednn in WAYS
    ]
    if options.json:
        print(json.dumps(dict(zip(heads, found.values(), strict=True))))
        return
    print(f"| dtype | call | {' | '.join(heads)} |")
    print(f"|---|---|{'---|' * len(heads)}")
    for dtype in ("float64", "float32"):
        for at, row in enumerate(found[WAYS[0]][dtype]):
            call = f"`{row['function']}`, {row['padding']}, stride {row['stride']}, dilations {row['dilations']}"
            cells = (shown(found[way][dtype][at]) for way in WAYS)
            print(f"| {dtype} | {call} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
