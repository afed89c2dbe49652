"""What a call costs beside its arithmetic: tiny problems through TensorFlow's own kernels and through ours, in turns.

Usage: python tools/tensorflow_calls.py [--repeats N] [--onednn 0|1] [--json]

Prints microseconds per operation, the best of many repeats on one thread: eager calls, forward and backward on a tape,
and operations of a `tf.function` that chains 20 of them. "native" is TensorFlow's op, "ours" our function on tensors,
both in one process; "installed" is TensorFlow's op in another process after `install()`. The two processes take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = {
    "1x1, 8 to 8": ("conv2d", (1, 1, 8, 8)),
    "3x3, 8 to 8": ("conv2d", (3, 3, 8, 8)),
    "depthwise 3x3": ("depthwise_conv2d", (3, 3, 8, 1)),
}
IMAGE = (1, 6, 6, 8)
CALLS = ("eager", "on a tape", "in a function")
CHAIN = 20
_NUMBER = 100


def calls(function: Callable[[Any, Any], Any], filter_shape: tuple[int, ...]) -> list[Any]:
    """Return what is timed, with the number of operations in it, in the order of `CALLS`."""
    import tensorflow as tf

    x, f = (
        tf.random.stateless_normal(IMAGE, (1, 2)),
        tf.random.stateless_normal(filter_shape, (3, 4)),
    )

    def tape() -> Any:
        with tf.GradientTape() as recording:
            recording.watch([x, f])
            y = function(x, f)
        return recording.gradient(y, [x, f], x)

    def chain(x: Any, f: Any) -> Any:
        for _ in range(CHAIN):
            x = function(x, f)
        return x

    compiled = tf.function(chain, autograph=False).get_concrete_function(x, f)
    return [(lambda: function(x, f), 1), (tape, 1), (lambda: compiled(x, f), CHAIN)]


def contestants(installed: bool) -> dict[str, Any]:
    """Return by name how each problem is computed in this process."""
    import convgrad.tensorflow
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    convgrad.set_num_threads(1)
    ones = [1, 1, 1, 1]
    theirs = {
        "conv2d": lambda x, f: tf.raw_ops.Conv2D(input=x, filter=f, strides=ones, padding="SAME"),
        "depthwise_conv2d": lambda x, f: tf.raw_ops.DepthwiseConv2dNative(
            input=x, filter=f, strides=ones, padding="SAME"
        ),
    }
    if installed:
        convgrad.tensorflow.install()
        return {"installed": theirs}
    raw = convgrad.raw_ops
    ours = {
        "conv2d": lambda x, f: raw.Conv2D(input=x, filter=f, strides=ones, padding="SAME"),
        "depthwise_conv2d": lambda x, f: raw.DepthwiseConv2dNative(
            input=x, filter=f, strides=ones, padding="SAME"
        ),
    }
    return {"native": theirs, "ours": ours}


def work(installed: bool) -> None:
    """Measure everything once for each line that comes in."""
    rows = [
        (problem, who, call, *timed)
        for who, functions in contestants(installed).items()
        for problem, (name, shape) in PROBLEMS.items()
        for call, timed in zip(CALLS, calls(functions[name], shape), strict=True)
    ]
    for *_, run, _ in rows:
        run()
    # One problem after the other, its contestants side by side.
    rows.sort(key=lambda row: (list(PROBLEMS).index(row[0]), CALLS.index(row[2])))
    for _ in sys.stdin:
        found = [
            (problem, who, call, timeit.timeit(run, number=_NUMBER) / _NUMBER / many * 1e6)
            for problem, who, call, run, many in rows
        ]
        print(json.dumps(found), flush=True)


def measure(repeats: int, onednn: str) -> dict[tuple[str, str, str], float]:
    """Return the best of all turns by problem, contestant and kind of call."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_ENABLE_ONEDNN_OPTS": onednn,
    }
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", which],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for which in ("plain", "installed")
    ]
    best: dict[tuple[str, str, str], float] = {}
    for _ in range(repeats):
        for worker in workers:
            for problem, who, call, time in _ask(worker.stdin, worker.stdout):
                key = problem, who, call
                best[key] = min(best.get(key, float("inf")), time)
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
        worker.wait()
    return best


def _ask(there: IO[str] | None, back: IO[str] | None) -> Any:
    assert there is not None and back is not None
    there.write("go\n")
    there.flush()
    answer = back.readline()
    if not answer:
        sys.exit("tensorflow_calls.py: a process that measures has ended, see above")
    return json.loads(answer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20, metavar="N")
    parser.add_argument("--onednn", choices=("0", "1"), default="0", help="TF_ENABLE_ONEDNN_OPTS")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--work", choices=("plain", "installed"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work == "installed")
        return
    best = measure(options.repeats, options.onednn)
    if options.json:
        print(json.dumps([[*key, time] for key, time in best.items()]))
        return
    print("| us: native / ours / installed | " + " | ".join(CALLS) + " |")
    print("|---|" + "---|" * len(CALLS))
    for problem in PROBLEMS:
        cells = (
            " / ".join(f"{best[problem, who, call]:.1f}" for who in ("native", "ours", "installed"))
            for call in CALLS
        )
        print(f"| {problem} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
