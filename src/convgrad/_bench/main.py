"""``python -m benchmarks``: arguments in, report out."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import busy, peers, report, step, tables, winograd
from .problems import ITEMSIZE, LAYOUTS, OPS, Problem, parse
from .runner import Settings, run

EXAMPLES = """examples:
  python -m benchmarks depthwise --quick
  python -m benchmarks depthwise --ops dx,dw --filter 'mb2|ef0' --json depthwise.json
  python -m benchmarks dense --threads 1 --peers torch,tf-onednn
  python -m benchmarks depthwise --shape 8x56x56x144k3s2 --shape 1x28x28x96k5m2 --peers none
  python -m benchmarks dense --shape 8x14x14x256k3o256 --layout NCHW --dtype bfloat16
  python -m benchmarks all --peers torch,tf-onednn --no-memory --json all.json
  python -m benchmarks winograd --filter 'rn50|vgg|unet'
  python -m benchmarks busy --peers torch-cl,torch-nchw
  python -m benchmarks step --batch 8

problems are written [batch x]height x width x channels, then letters: k window (k3 or k1x7), s stride, d dilation,
m multiplier (depthwise), o output channels and g groups (dense), v for VALID padding, b batch. --list shows the tables.
"""


OTHERS = ("winograd", "busy", "step")
"""Questions other than a race against peers."""


def _parser() -> argparse.ArgumentParser:
    named = "\n".join(f"  {peer.name:12}{peer.meaning}" for peer in peers.PEERS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time convgrad's convolutions and gradients against other frameworks, side by side.",
        epilog=f"peers:\n{named}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "suite",
        choices=[*tables.SUITES, "all", *OTHERS],
        help="a table of problems; all of them on one page; or a question of its own: winograd (against our direct "
        "kernels, with errors), busy (beside a process that spins on a core), step (kernels and time of the first "
        "training step of a network)",
    )
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
    add(
        "--winograd",
        default="auto",
        choices=["off", "auto", "fast"],
        help="convgrad's switch of that name",
    )
    add(
        "--below",
        type=float,
        default=1.0,
        metavar="RATIO",
        help="list all rows below; default %(default)s",
    )
    add("--batch", type=int, default=8, help="of `step`; default %(default)s")
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
        _set_winograd(given.winograd, given.suite)
        if (
            min(given.threads, given.rounds, given.batch) < 1
            or given.seconds <= 0
            or given.keep < 0
        ):
            raise ValueError(
                "--threads, --rounds, --batch and --seconds must be positive, --keep must not be negative"
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
        winograd=given.winograd,
        below=given.below,
    )
    if given.suite in OTHERS:
        return _other(given, problems, chosen, settings)
    results = run(problems, chosen, settings, _progress)
    _progress("")
    results["summary"] = report.summarise(results["rows"])
    print(report.page(results) if given.suite == "all" else report.render(results), end="")
    if given.json:
        report.save(results, given.json)
    wrong = any(row["ours"]["status"] != "ok" for row in results["rows"])
    return int(wrong or bool(results["errors"]))


def _other(
    given: argparse.Namespace, problems: list[Problem], chosen: list[peers.Peer], how: Settings
) -> int:
    """Answer one of `OTHERS`."""
    if given.suite == "step":
        results = step.run(given.batch, given.threads, given.dtype, given.layout)
        text = step.render(results)
    elif given.suite == "busy":
        results = busy.run(problems, chosen, how, _progress)
        text = busy.render(results)
    else:
        results = winograd.run(problems, how, _progress)
        text = winograd.render(results)
    _progress("")
    about = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    print(
        f"{text}\n\n{about['cpu']}, {given.threads} threads, {given.dtype} {given.layout}; {versions}"
    )
    if given.json:
        report.save({"settings": vars(how), **results}, given.json)
    return 0


def _set_winograd(value: str, suite: str) -> None:
    """Hand the switch to this process and its children."""
    from .. import _config

    if "winograd" not in _config.SWITCHES:
        if value != "auto" or suite == "winograd":
            raise ValueError("this convgrad has no switch named winograd")
        return
    if value != "auto":
        os.environ[_config.SWITCHES["winograd"].variable] = value
        _config.set_default("winograd", value)


def _problems(given: argparse.Namespace) -> list[Problem]:
    if given.shape:
        return [parse(text) for text in given.shape]
    if given.suite == "busy":
        problems = tables.select("all", quick=True, pattern=given.filter)
    elif given.suite == "winograd":
        plain = [
            p for p in tables.select("dense", pattern=given.filter) if winograd.is_candidate(p)
        ]
        problems = plain[:10] if given.quick else plain
    elif given.suite == "step":
        return []
    else:
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
