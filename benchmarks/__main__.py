"""``python -m benchmarks``: arguments in, report out."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import peers, report, tables
from .problems import ITEMSIZE, LAYOUTS, OPS, Problem, parse
from .runner import Settings, run

EXAMPLES = """examples:
  python -m benchmarks depthwise --quick
  python -m benchmarks depthwise --ops dx,dw --filter 'mb2|ef0' --json depthwise.json
  python -m benchmarks dense --threads 1 --peers torch,tf-onednn
  python -m benchmarks depthwise --shape 8x56x56x144k3s2 --shape 1x28x28x96k5m2 --peers none
  python -m benchmarks dense --shape 8x14x14x256k3o256 --layout NCHW --dtype bfloat16

problems are written [batch x]height x width x channels, then letters: k window (k3 or k1x7), s stride, d dilation,
m multiplier (depthwise), o output channels and g groups (dense), v for VALID padding, b batch. --list shows the tables.
"""


def _parser() -> argparse.ArgumentParser:
    named = "\n".join(f"  {peer.name:12}{peer.meaning}" for peer in peers.PEERS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time convgrad's convolutions and gradients against other frameworks, side by side.",
        epilog=f"peers:\n{named}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("suite", choices=[*tables.SUITES, "all"], help="which table of problems")
    add(
        "--ops",
        default=",".join(OPS),
        help="fwd, dx (input gradient), dw (filter gradient); default all",
    )
    add("--dtype", default="float32", choices=list(ITEMSIZE))
    add(
        "--layout",
        default="NHWC",
        choices=LAYOUTS,
        help="of our arrays; PyTorch always runs both of its own",
    )
    add("--threads", type=int, default=_cpus(), help="for everybody; default: all %(default)s CPUs")
    add(
        "--peers",
        default="all",
        help="comma-separated rows or families, or none; default all installed",
    )
    add(
        "--rounds",
        type=int,
        default=5,
        help="turns each contestant gets per case; default %(default)s",
    )
    add(
        "--seconds",
        type=float,
        default=0.25,
        help="per contestant and case, all rounds; default %(default)s",
    )
    add("--quick", action="store_true", help="about ten problems instead of all")
    add(
        "--shape",
        action="append",
        default=[],
        metavar="PROBLEM",
        help="your own problem instead of the table; may repeat",
    )
    add("--filter", default="", metavar="REGEX", help="only problems whose name or network matches")
    add(
        "--keep",
        type=int,
        default=0,
        metavar="K",
        help="keep the last K results alive, ours and theirs",
    )
    add(
        "--warm-malloc",
        action="store_true",
        help="let peers' malloc keep big blocks, so they do not page-fault",
    )
    add(
        "--no-memory",
        action="store_true",
        help="skip the extra memory column (one process per case)",
    )
    add(
        "--timeout",
        type=float,
        default=120,
        help="seconds until a silent peer is given up; default %(default)s",
    )
    add("--json", type=Path, metavar="FILE", help="also write everything there")
    add("--list", action="store_true", help="print the problems and stop")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 1 if any result of ours is wrong or missing."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        problems = _problems(given)
        ops = tuple(word.strip() for word in given.ops.split(","))
        if not set(ops) <= set(OPS):
            raise ValueError(f"--ops must be among {', '.join(OPS)}, got {given.ops}")
        chosen = peers.select(given.peers)
        if min(given.threads, given.rounds) < 1 or given.seconds <= 0 or given.keep < 0:
            raise ValueError(
                "--threads, --rounds and --seconds must be positive, --keep must not be negative"
            )
    except ValueError as error:
        parser.error(str(error))
    if given.list:
        print("\n".join(f"{p.name:36} {' '.join(p.labels)}" for p in problems))
        return 0
    settings = Settings(
        ops=ops,
        dtype=given.dtype,
        layout=given.layout,
        threads=given.threads,
        rounds=given.rounds,
        seconds=given.seconds,
        keep=given.keep,
        warm_malloc=given.warm_malloc,
        memory=not given.no_memory,
        timeout=given.timeout,
    )
    results = run(problems, chosen, settings, _progress)
    _progress("")
    print(report.render(results), end="")
    if given.json:
        report.save(results, given.json)
    wrong = any(row["ours"]["status"] != "ok" for row in results["rows"])
    return int(wrong or bool(results["errors"]))


def _problems(given: argparse.Namespace) -> list[Problem]:
    if given.shape:
        return [parse(text) for text in given.shape]
    problems = tables.select(given.suite, quick=given.quick, pattern=given.filter)
    if not problems:
        raise ValueError(f"no problem matches --filter {given.filter!r}; --list shows them")
    return problems


def _progress(text: str) -> None:
    """One line that is overwritten on a terminal, one line each in a log."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
