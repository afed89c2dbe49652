"""What a small call costs: this tree, and another one beside it if asked, with and without PyTorch in the process.

Usage: python tools/small_calls.py [--before DIR] [--rounds N] [--torch PYTHON]

Each tree is measured in child processes that take turns, N rounds of them; the best batch of 50 calls counts, so that
a busy machine shows little. `--before` is the folder that holds another version of the package. `--torch` is a Python
that has PyTorch: there one PyTorch call is made between two batches, so that its threads are about.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BATCH, BATCHES = 50, 200


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls by name."""
    import numpy as np

    import convgrad

    def array(*shape: int) -> Any:
        return np.random.default_rng(0).standard_normal(shape).astype(np.float32)

    x, depthwise, dense = array(1, 8, 8, 8), array(3, 3, 8, 1), array(3, 3, 8, 8)
    x7, point = array(1, 7, 7, 32), array(1, 1, 32, 32)
    found: dict[str, Callable[[], Any]] = {}
    for name, family, image, f in (
        ("1x8x8x8 k3 depthwise", "depthwise_conv2d", x, depthwise),
        ("1x8x8x8 k3 dense 8->8", "conv2d", x, dense),
        ("1x7x7x32 1x1 32->32", "conv2d", x7, point),
    ):
        forward, to_input, to_filter = (
            getattr(convgrad, family + end) for end in ("", "_backprop_input", "_backprop_filter")
        )
        found[f"{name} forward"] = lambda go=forward, a=image, b=f: go(a, b, 1, "SAME")
        found[f"{name} dX"] = lambda go=to_input, a=image, b=f: go(a.shape, b, a, 1, "SAME")
        found[f"{name} dW"] = lambda go=to_filter, a=image, b=f: go(a, b.shape, a, 1, "SAME")
    return found


def child(with_torch: bool) -> dict[str, float]:
    """Measure in this process; microseconds per call."""
    between: Callable[[], Any] = lambda: None  # noqa: E731 - one of two, chosen below
    if with_torch:
        from importlib import import_module

        torch: Any = import_module("torch")
        torch.set_grad_enabled(False)
        a, b = torch.randn(1, 8, 8, 8), torch.randn(8, 8, 3, 3)
        between = lambda: torch.nn.functional.conv2d(a, b, padding=1)  # noqa: E731
    found = {}
    for name, call in calls().items():
        for _ in range(3 * BATCH):
            call()
        best = float("inf")
        for _ in range(BATCHES):
            between()
            begin = time.perf_counter()
            for _ in range(BATCH):
                call()
            best = min(best, time.perf_counter() - begin)
        found[name] = best / BATCH * 1e6
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder with another version of the package")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--child", choices=("plain", "torch"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(child(asked.child == "torch")))
        return 0
    trees = {"before": asked.before, "now": ROOT / "src"} if asked.before else {"now": ROOT / "src"}
    settings = {"plain": sys.executable} | ({"torch": asked.torch} if asked.torch else {})
    best: dict[tuple[str, str], dict[str, float]] = {}
    for _ in range(asked.rounds):
        for kind, python in settings.items():
            for tree, folder in trees.items():
                environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
                command = [python, __file__, "--child", kind]
                answer = subprocess.run(
                    command, env=environment, check=True, stdout=subprocess.PIPE
                )
                one, old = json.loads(answer.stdout), best.setdefault((kind, tree), {})
                for name, spent in one.items():
                    old[name] = min(spent, old.get(name, spent))
    print(f"{'microseconds per call, best':30}" + "".join(f"{k + ' ' + t:>16}" for k, t in best))
    for name in next(iter(best.values())):
        print(f"{name:30}" + "".join(f"{column[name]:16.2f}" for column in best.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
