"""The same problems computed by a pack from C++ and by the compiler from Python, in turns in one process.

Usage: python tools/pack_speed.py [PROBLEMS ...] [--threads N] [--seconds S] [--tensorflow] [--json FILE]

A pack of the problems is exported for this machine and compiled into a library with the C++ headers around it. Four
contestants then take turns on each problem, and the best time of each counts:

  jit      the engine from Python, on memory that is there
  c++      the pack's entry through the headers' threads, on the same memory
  call     the public function of Python, which makes its result
  session  ClientSession::Run of a graph of this one node, which makes its result

and with --tensorflow its kernel, called eagerly from Python. Printed are milliseconds and ratios; jit / c++ is what
exporting costs, and 1.00 if it costs nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import convgrad
from convgrad import _engine
from convgrad._apps.bench import networks
from convgrad._problem import text as _problem_text
from convgrad._problem.convolution import Kind, Problem

HERE = Path(__file__).resolve().parent
DEFAULT = ("mobilenet_v2",)
Call = Callable[[], Any]


def library(folder: Path, problems: list[Problem]) -> ctypes.CDLL:
    """Export a pack for this machine and compile it with the headers."""
    lines = [_problem_text.write(problem) for problem in problems]
    convgrad.export(lines, folder, name="timed", target="host", with_test=False)
    include = Path(convgrad.__file__).parent / "include"
    built = folder / "libspeed.so"
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", f"-I{include}", f"-I{folder}"]
    sources = [HERE / "pack_speed.cc", folder / "timed.c", folder / "libtimed.a"]
    subprocess.run(["g++", *flags, *sources, "-o", built], check=True)
    found = ctypes.CDLL(str(built))
    found.speed_graph.restype = ctypes.c_void_p
    found.speed_line.restype = ctypes.c_char_p
    found.speed_on_packs.restype = ctypes.c_int64
    return found


def operands(problem: Problem) -> list[np.ndarray[Any, Any]]:
    """Return two random operands and memory for the result."""
    random = np.random.default_rng(0)
    shapes = {
        Kind.FORWARD: (problem.input_shape, problem.filter_shape),
        Kind.INPUT_GRADIENT: (problem.filter_shape, problem.output_shape),
        Kind.FILTER_GRADIENT: (problem.input_shape, problem.output_shape),
    }[problem.kind]
    made = [random.standard_normal(shape, np.float32) for shape in shapes]
    return [*made, np.empty(problem.result_shape, np.float32)]


def contestants(
    speed: ctypes.CDLL, entry: int, problem: Problem, threads: int, tensorflow: Any
) -> dict[str, Call]:
    """Return what takes turns; each computes the problem once."""
    first, second, result = operands(problem)
    a, b, c = (array.ctypes.data for array in (first, second, result))
    pointers = [ctypes.c_void_p(each) for each in (a, b, c)]
    graph = _graph(speed, problem, first, second, threads)
    keep = (first, second, result)

    def jit() -> None:
        _engine.run(problem, a, b, c)

    def cpp() -> None:
        assert speed.speed_run(ctypes.c_int64(entry), *pointers, threads) == 0, keep

    def session() -> None:
        assert speed.speed_session(graph) == 0

    found: dict[str, Call] = {"jit": jit, "c++": cpp}
    found["call"] = _public(convgrad.raw_ops, problem, first, second)
    found["session"] = session
    if tensorflow is not None:
        found["tensorflow"] = _public(
            tensorflow.raw_ops, problem, *map(tensorflow.constant, (first, second))
        )
    return found


def _settings(problem: Problem) -> dict[str, Any]:
    nchw = problem.data_format == "NCHW"

    def four(rows: int, cols: int) -> list[int]:
        return [1, 1, rows, cols] if nchw else [1, rows, cols, 1]

    rows, cols = problem.rows, problem.cols
    pads = [rows.before, rows.after, cols.before, cols.after]
    return {
        "strides": four(rows.stride, cols.stride),
        "dilations": four(rows.dilation, cols.dilation),
        "padding": "EXPLICIT",
        "explicit_paddings": [0] * 4 + pads if nchw else [0, 0, *pads, 0, 0],
        "data_format": problem.data_format,
    }


def _name(problem: Problem) -> str:
    base = "DepthwiseConv2dNative" if problem.depthwise else "Conv2D"
    suffix = {Kind.FORWARD: "", Kind.INPUT_GRADIENT: "BackpropInput"}
    return base + suffix.get(problem.kind, "BackpropFilter")


def _public(module: Any, problem: Problem, first: Any, second: Any) -> Call:
    """Return an eager call; TensorFlow's depthwise kernels take no numbers for SAME, which ours are given."""
    function, how = getattr(module, _name(problem)), _settings(problem)
    if module is not convgrad.raw_ops:
        how["padding"] = "SAME" if any(how.pop("explicit_paddings")) else "VALID"
    if problem.kind is Kind.FORWARD:
        return lambda: function(input=first, filter=second, **how)
    sizes = list(problem.result_shape)
    if problem.kind is Kind.INPUT_GRADIENT:
        return lambda: function(input_sizes=sizes, filter=first, out_backprop=second, **how)
    return lambda: function(input=first, filter_sizes=sizes, out_backprop=second, **how)


def _graph(
    speed: ctypes.CDLL, problem: Problem, first: Any, second: Any, threads: int
) -> ctypes.c_void_p:
    def longs(values: Any) -> Any:
        return (ctypes.c_int64 * len(values))(*values)

    def ints(*values: int) -> Any:
        return (ctypes.c_int * len(values))(*values)

    rows, cols = problem.rows, problem.cols
    made = speed.speed_graph(
        _name(problem).encode(),
        ctypes.c_void_p(first.ctypes.data),
        longs(first.shape),
        ctypes.c_void_p(second.ctypes.data),
        longs(second.shape),
        None if problem.kind is Kind.FORWARD else longs(problem.result_shape),
        ints(rows.stride, cols.stride),
        ints(rows.dilation, cols.dilation),
        ints(rows.before, rows.after, cols.before, cols.after),
        int(problem.data_format == "NCHW"),
        threads,
    )
    assert made, "the graph was refused"
    return ctypes.c_void_p(made)


def race(calls: dict[str, Call], seconds: float) -> dict[str, list[float]]:
    """Let all call in turn until the time is up; returns milliseconds."""
    for call in calls.values():
        call()
    took: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took["jit"]) < 5:
        for name, call in calls.items():
            call()  # the one that is timed finds the processors as its like leaves them
            start = time.perf_counter()
            call()
            took[name].append((time.perf_counter() - start) * 1e3)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("problems", nargs="*", default=DEFAULT, help="lines or names of networks")
    parser.add_argument("--batch", type=int, default=1, help="of networks (1)")
    parser.add_argument("--threads", type=int, default=1, help="of every contestant (1)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each problem (0.3)")
    parser.add_argument("--tensorflow", action="store_true", help="its kernels take part")
    parser.add_argument("--json", type=Path, help="write every row to this file")
    given = parser.parse_args()
    lines = []
    for text in given.problems:
        if " " in text:
            lines.append(text)
        else:
            layers = dict.fromkeys(networks.NETWORKS[networks.find(text)].layers(given.batch))
            lines += [layer.text for layer in layers]
    problems = list(dict.fromkeys(_problem_text.read_lines("\n".join(lines), "problems")))
    tensorflow = None
    if given.tensorflow:
        import tensorflow

        tensorflow.config.threading.set_intra_op_parallelism_threads(given.threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder, convgrad.threads(given.threads):
        speed = library(Path(folder), problems)
        entries = {}
        while (line := speed.speed_line(ctypes.c_int64(len(entries)))) is not None:
            entries[_problem_text.read(line.decode())] = len(entries)
        for problem in problems:
            calls = contestants(speed, entries[problem], problem, given.threads, tensorflow)
            took = race(calls, given.seconds)
            row: dict[str, Any] = {"problem": _problem_text.write(problem)}
            row |= {name: min(times) for name, times in took.items()}
            row["median_ratio"] = median(took["jit"]) / median(took["c++"])
            rows.append(row)
            print(_shown(row), flush=True)
        assert speed.speed_on_packs() > 0
    _totals(rows)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))
    return 0


def _shown(row: dict[str, Any]) -> str:
    names = [name for name in ("jit", "c++", "call", "session", "tensorflow") if name in row]
    times = "  ".join(f"{name} {row[name]:8.4f}" for name in names)
    return f"{times}  jit/c++ {row['jit'] / row['c++']:.2f}  {row['problem']}"


def _totals(rows: list[dict[str, Any]]) -> None:
    def mean(above: str, below: str) -> float:
        return exp(sum(log(row[above] / row[below]) for row in rows) / len(rows))

    def total(name: str) -> float:
        return sum(row[name] for row in rows)

    medians = exp(sum(log(row["median_ratio"]) for row in rows) / len(rows))
    print(
        f"{len(rows)} problems: jit / c++ geometric mean {mean('jit', 'c++'):.3f} (medians {medians:.3f}), "
        f"of sums {total('jit') / total('c++'):.3f}; call / session {mean('call', 'session'):.3f}"
    )
    if "tensorflow" in rows[0]:
        print(
            f"tensorflow / session geometric mean {mean('tensorflow', 'session'):.2f}, "
            f"of sums {total('tensorflow') / total('session'):.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
