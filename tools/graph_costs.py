"""What graphs cost: memory of a deep network, microseconds per node, milliseconds to read a page again after an edit.

Usage: python tools/graph_costs.py [--json FILE]

Memory: a chain of 50 depthwise convolutions with ReLU, [8, 56, 56, 32] in float32, forward and with all gradients;
`session.explain` beside how far a process grows (Linux), once fetching what is wanted and once every tensor.
Overhead: 50 small depthwise convolutions in a session against the same calls one by one, best of 300, in turns.
Reading: a page of 500 blocks built again after one of its texts was changed, at the beginning, middle and end.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import convgrad  # noqa: E402
from convgrad.graph import (  # noqa: E402
    Block,
    ClientSession,
    Page,
    Scope,
    Value,
    Wire,
    add_symbolic_gradients,
    build,
    ops,
)

LAYERS = 50
SHAPE = (8, 56, 56, 32)


def best(calls: dict[str, Callable[[], Any]], count: int) -> dict[str, float]:
    """Return the least seconds of each call, measured in turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(count):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def network() -> tuple[ClientSession, dict[Any, Any], dict[str, tuple[list[Any], list[Any]]]]:
    """Return a session, its feeds, and what to fetch: the wanted results, or every tensor there is."""
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", SHAPE)
    random = np.random.default_rng(0)
    filters, h = [], x.output
    for _ in range(LAYERS):
        filters.append(ops.Const(scope, random.normal(0, 0.3, (3, 3, 32, 1)).astype(np.float32)))
        h = ops.DepthwiseConv2dNative(scope, h, filters[-1], [1, 1, 1, 1], "SAME").output
        h = ops.Relu(scope, h).activations
    loss = ops.L2Loss(scope, h)
    forward = [node.outputs[0] for node in scope.graph.nodes if node.inputs]
    gradients = add_symbolic_gradients(scope, [loss], filters)
    everything = [output for node in scope.graph.nodes if node.inputs for output in node.outputs]
    feeds = {x: random.normal(size=SHAPE).astype(np.float32)}
    wanted = {
        "forward": ([loss], forward),
        "forward and gradients": ([loss, *gradients], everything),
    }
    return ClientSession(scope), feeds, wanted


def measured(name: str, freeing: bool) -> int:
    """Return how far a run raises the most memory a process of its own ever had."""
    code = f"import graph_costs; graph_costs.grown({name!r}, {freeing})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    return int(done.stdout)


def grown(name: str, freeing: bool) -> None:
    """Print by how many bytes this process grows in a run; its kernels are compiled before."""
    session, feeds, wanted = network()
    session.run(wanted["forward"][1][:2], feeds)
    fetches = wanted[name][0 if freeing else 1]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session.run(fetches, feeds)
    print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


def memory() -> dict[str, Any]:
    """Run a deep network with and without freeing: fetching everything keeps everything."""
    session, _, wanted = network()
    rows: dict[str, Any] = {}
    for name, (fetches, _) in wanted.items():
        plan = session.explain(fetches)
        rows[name] = {
            "nodes": len(plan.steps),
            "explained_peak": plan.peak_bytes,
            "explained_without_freeing": plan.kept_bytes,
            "measured_peak": measured(name, True),
            "measured_without_freeing": measured(name, False),
        }
    return rows


def overhead() -> dict[str, float]:
    """Return microseconds per node, of a session and of eager calls."""
    random = np.random.default_rng(0)
    x, f = (random.normal(size=s).astype(np.float32) for s in ((1, 8, 8, 8), (3, 3, 8, 1)))
    scope = Scope.new_root_scope()
    image = ops.Placeholder(scope, "float32", [1, 8, 8, 8])
    h = image.output
    for _ in range(LAYERS):
        h = ops.DepthwiseConv2dNative(scope, h, f, [1, 1, 1, 1], "SAME").output
    session = ClientSession(scope)

    def eager() -> Any:
        y = x
        for _ in range(LAYERS):
            y = convgrad.depthwise_conv2d(y, f, 1, "SAME")
        return y

    def raw() -> Any:
        y = x
        for _ in range(LAYERS):
            y = convgrad.raw_ops.DepthwiseConv2dNative(
                input=y, filter=f, strides=[1, 1, 1, 1], padding="SAME"
            )
        return y

    def graph() -> Any:
        return session.run([h], {image: x})[0]

    assert graph().tobytes() == eager().tobytes() == raw().tobytes()
    times = best({"session": graph, "convgrad": eager, "raw_ops": raw}, 300)
    return {name: 1e6 * seconds / LAYERS for name, seconds in times.items()}


def page(blocks: int) -> Page:
    """Return a chain of convolutions and ReLUs."""
    made = [
        Block("x", "RandomNormal", {"shape": Value("{1,8,8,2}"), "dtype": Value("DT_FLOAT")}),
        Block(
            "f",
            "Const",
            {"val": Value("", "float", (3, 3, 2, 1), np.ones((3, 3, 2, 1), np.float32))},
        ),
    ]
    wires, last = [], ("x", "output")
    for number in range((blocks - 2) // 2):
        conv, relu = f"conv{number}", f"relu{number}"
        pins = {"strides": Value("1,1,1,1"), "padding": Value("SAME")}
        made += [Block(conv, "DepthwiseConv2dNative", pins), Block(relu, "Relu", {})]
        wires.append(Wire(*last, None, conv, "input"))
        wires.append(Wire("f", "output", None, conv, "filter"))
        wires.append(Wire(conv, "output", None, relu, "features"))
        last = (relu, "activations")
    return Page("chain", made, wires)


def reading() -> dict[str, float]:
    """Return milliseconds to build a page of 500 blocks after an edit."""
    big = page(500)
    build(big)
    found = {}
    middle = big.by_id()["conv124"]
    last = big.by_id()["conv248"]
    for name, block, pin, texts in (
        ("first block", big.blocks[0], "shape", [f"{{1,{8 + k},8,2}}" for k in range(30)]),
        ("middle block", middle, "strides", [f"1,{1 + k % 2},{1 + k % 2},1" for k in range(30)]),
        ("last block", last, "strides", [f"1,{1 + k % 3},1,1" for k in range(30)]),
    ):
        times = []
        for text in texts:
            block.pins[pin] = Value(text)
            start = time.perf_counter()
            built = build(big)
            times.append(time.perf_counter() - start)
            # A dilated edit in the middle may not suit what follows; the time is that of finding out.
            assert len(built.outputs) + len(built.problems) == 500
        found[name] = 1e3 * min(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    given = parser.parse_args()
    figures = {"memory": memory(), "overhead_us": overhead(), "reading_ms": reading()}
    for name, row in figures["memory"].items():
        mega = {key: value / 1e6 for key, value in row.items() if key != "nodes"}
        print(f"{name}, {row['nodes']} nodes: peak {mega['explained_peak']:.1f} MB (measured "
              f"{mega['measured_peak']:.1f}), without freeing {mega['explained_without_freeing']:.1f} MB (measured "
              f"{mega['measured_without_freeing']:.1f})")  # fmt: skip
    us = figures["overhead_us"]
    print(f"per node: session {us['session']:.2f} us, convgrad.depthwise_conv2d {us['convgrad']:.2f}, "
          f"raw_ops {us['raw_ops']:.2f}")  # fmt: skip
    for name, ms in figures["reading_ms"].items():
        print(f"500 blocks read again after an edit of the {name}: {ms:.1f} ms")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
