"""What floating-point modes of callers change: subnormal numbers lost and different results, through every door.

Usage: python tools/mode_table.py [--before DIR] [--frameworks PYTHON] [--calls N] [--threads N]

Each door is tried in a process of its own: NumPy, PyTorch on our own threads and on OpenMP's, JAX, TensorFlow, and a
pack that a C compiler linked. One depthwise convolution of 1,048,576 results, all of them subnormal, is called N times
as the framework runs it, and N times by a caller who flushes subnormals to zero; another one, of normal numbers, N
times in each of the four rounding modes. `--before` is a folder with another version of the package, tried beside this
one. Without `--frameworks` only NumPy and the pack are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHAPE, FILTER = (4, 64, 64, 64), (3, 3, 64, 1)
DOORS = {
    "NumPy": ("numpy", "own"),
    "PyTorch, own pool": ("torch", "own"),
    "PyTorch, OpenMP": ("torch", "openmp"),
    "JAX": ("jax", "own"),
    "TensorFlow": ("tensorflow", "own"),
    "C pack": ("pack", "own"),
}


def by_numpy(threads: int) -> Callable[[Any, Any], Any]:
    import convgrad

    return lambda x, f: convgrad.depthwise_conv2d(x, f, 1, "SAME")


def by_torch(threads: int) -> Callable[[Any, Any], Any]:
    import torch

    import convgrad.torch

    torch.set_num_threads(threads)

    def call(x: Any, f: Any) -> Any:
        image = torch.from_numpy(x).permute(0, 3, 1, 2)
        weight = torch.from_numpy(f).permute(2, 3, 0, 1)
        made = convgrad.torch.conv2d(image, weight, padding=1, groups=x.shape[3])
        return made.permute(0, 2, 3, 1).numpy()

    return call


def by_jax(threads: int) -> Callable[[Any, Any], Any]:
    import jax
    import numpy as np

    import convgrad.jax

    made = jax.jit(lambda x, f: convgrad.jax.depthwise_conv2d(x, f, 1, "SAME"))
    return lambda x, f: np.asarray(made(x, f))


def by_tensorflow(threads: int) -> Callable[[Any, Any], Any]:
    import tensorflow as tf

    import convgrad.tensorflow

    convgrad.tensorflow.install()
    made = tf.function(lambda x, f: tf.nn.depthwise_conv2d(x, f, [1] * 4, "SAME"))
    return lambda x, f: made(tf.constant(x), tf.constant(f)).numpy()


def by_pack(threads: int) -> Callable[[Any, Any], Any]:
    import convgrad
    from convgrad._problem import text as _problem_text
    from packs import Library

    words = "x".join(map(str, SHAPE)), "x".join(map(str, FILTER))
    line = f"depthwise_conv2d {words[0]} {words[1]}"
    folder = tempfile.mkdtemp()  # the library stays loaded
    convgrad.export(line, folder, name="modes", target="host", with_test=False)
    library, problem = Library(Path(folder), "modes"), _problem_text.read(line)
    return lambda x, f: library.call(problem, x, f, threads)


def child(door: str, threads: int, count: int) -> dict[str, Any]:
    """Try one door in this process."""
    import numpy as np

    import convgrad
    import fp_modes

    convgrad.set_num_threads(threads)
    call: Callable[[Any, Any], Any] = globals()[f"by_{door}"](threads)
    rng = np.random.default_rng(1)
    f = rng.uniform(1, 2, FILTER).astype(np.float32)
    tiny = (rng.uniform(1, 2, SHAPE) * 2.0**-140).astype(np.float32)
    usual = rng.standard_normal(SHAPE).astype(np.float32)

    def results(x: Any, mode: str) -> list[Any]:
        found = []
        for _ in range(count):
            with fp_modes.set_to(mode):
                found.append(call(x, f))
        return found

    def lost(found: list[Any]) -> list[int]:
        return [int((each.view(np.uint32) << 1 == 0).sum()) for each in found]

    def digests(found: list[Any]) -> int:
        return len({hashlib.sha256(each.tobytes()).hexdigest() for each in found})

    plain, flushed = results(tiny, "default"), results(tiny, "flush")
    rounded = {mode: results(usual, mode) for mode in ("default", *fp_modes.ROUNDINGS)}
    every = [each for group in rounded.values() for each in group]
    return {
        "zeros": lost(plain),
        "zeros, flushing": lost(flushed),
        "digests": digests([*plain, *flushed]),
        "rounding": {mode: digests(group) for mode, group in rounded.items()},
        "rounding, all": digests(every),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder with another version of the package")
    parser.add_argument("--frameworks", help="a Python that has PyTorch, JAX and TensorFlow")
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(child(asked.child, asked.threads, asked.calls)))
        return 0
    trees = {"before": asked.before} if asked.before else {}
    trees["now"] = ROOT / "src"
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for door, (module, pool) in DOORS.items():
        python = sys.executable if module in ("numpy", "pack") else asked.frameworks
        for tree, folder in trees.items() if python else ():
            path = os.pathsep.join([str(Path(folder).resolve()), str(ROOT / "tests")])
            numbers = ("--calls", str(asked.calls), "--threads", str(asked.threads))
            done = subprocess.run(
                [python, __file__, "--child", module, *numbers],
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "CONVGRAD_POOL": pool,
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                },
                check=True,
                stdout=subprocess.PIPE,
            )
            found[door, tree] = json.loads(done.stdout.splitlines()[-1])
    print(f"subnormals: zeros lost in each of {asked.calls} calls on {asked.threads} threads")
    for (door, tree), row in found.items():
        print(f"{door:20}{tree:8}as it is: {' '.join(f'{n:,}' for n in row['zeros'])}")
        print(f"{'':28}caller flushes: {' '.join(f'{n:,}' for n in row['zeros, flushing'])}")
        print(f"{'':28}different results: {row['digests']}")
    print(f"rounding modes: different results of {asked.calls} calls each")
    for (door, tree), row in found.items():
        each = ", ".join(f"{mode} {number}" for mode, number in row["rounding"].items())
        print(f"{door:20}{tree:8}{each}; all modes together {row['rounding, all']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
