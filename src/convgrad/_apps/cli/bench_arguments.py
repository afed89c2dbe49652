"""The arguments of `bench`: what to measure, how, and what to do with it; and what is wrong with them."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..._base.dtypes import FLOATING
from . import problem_lines
from .operation import CALLS
from .verb import Refusal

RACES = ("depthwise", "dense", "all")
QUESTIONS = ("winograd", "busy", "step")
TRAIN = "train"
"""A verb of its own behind `bench`; listed here for help and completion."""
OPS = ("fwd", "dx", "dw")
LAYOUTS = ("NHWC", "NCHW")
DTYPES = tuple(row.name for row in sorted(FLOATING, key=lambda row: row.itemsize < 4))
PEERS = ("torch-cl", "torch-nchw", "tf-eager", "tf-onednn", "tf-xla", "jax-jit")
PICTURES = (".png", ".svg", ".html")
PANELS = ("totals", "layers", "roofline")


def add_arguments(parser: ArgumentParser) -> None:
    """Add what to measure, how, and what to do with it."""
    add = parser.add_argument
    suites = _Suites((*RACES, *QUESTIONS, TRAIN))
    add(
        "suite",
        nargs="*",
        choices=suites,
        metavar="SUITE",
        help=f"one of {', '.join(suites)}; or problems, as --shape takes them, lines also without quotes",
    )
    parser.set_defaults(takes=("suite", problem_lines.is_setting))
    _add_problems(parser)
    _add_measuring(parser)
    results = parser.add_argument_group("results")
    add = results.add_argument
    add("--save", type=Path, metavar="FILE", help="write everything there as JSON")
    add(
        "--from", dest="source", type=Path, metavar="FILE", help="show a saved run, measure nothing"
    )
    add(
        "--compare",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="OLD: measure now and compare with it; OLD NEW: compare two saved runs",
    )
    add(
        "--plot",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="draw bars per layer and a roofline, as .png, .svg or .html; may repeat",
    )
    add(
        "--panels",
        default=",".join(PANELS),
        metavar="P",
        help=f"what --plot draws, among {', '.join(PANELS)}; default all",
    )
    add("--below", type=float, default=1.0, metavar="RATIO", help="list all rows below; default 1")


class _Suites(tuple[str, ...]):
    """The suites, for errors and completion; problems, and the words of their lines, may stand in their place."""

    def __contains__(self, word: object) -> bool:
        # Some versions of argparse ask about the empty list too.
        if word == [] or super().__contains__(word):
            return True
        text = str(word)
        line = text in CALLS or problem_lines.is_line(text) or problem_lines.is_setting(text)
        return line or text[:1].isdigit()


def _add_problems(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("problems").add_argument
    add(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="the distinct layers of a network, in order; may repeat; `list` prints the names",
    )
    add(
        "--shape",
        action="append",
        default=[],
        metavar="PROBLEM",
        help=f"a layer of your own; or {problem_lines.FORMS}, which say what --ops, --dtype and --layout say for "
        "layers; may repeat",
    )
    add(
        "--batch",
        type=_batches,
        default=(8,),
        metavar="N,...",
        help="of --model and step; several of --model; default 8",
    )
    add(
        "--ops",
        help="fwd, dx (input gradient), dw (filter gradient); default all three",
    )
    add("--dtype", choices=DTYPES, help="default float32")
    add(
        "--layout",
        choices=(*LAYOUTS, "both"),
        help="of our arrays; both: one beside the other; PyTorch always runs both of its own; default NHWC",
    )
    add("--quick", action="store_true", help="about ten problems of a suite instead of all")
    add("--filter", default="", metavar="REGEX", help="only problems whose name or network matches")
    add("--list", action="store_true", help="print the problems and stop")


def _add_measuring(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("measuring").add_argument
    add(
        "--peers",
        default="all",
        help=f"comma-separated rows ({', '.join(PEERS)}) or families (torch, tf, jax), or none; "
        "default all that are installed",
    )
    add("--threads", type=int, default=_cpus(), help="for everybody; default: all %(default)s CPUs")
    add("--rounds", type=int, default=5, help="turns of each process per case; default %(default)s")
    add(
        "--seconds",
        type=float,
        default=0.25,
        help="per contestant, process and case, all rounds; default %(default)s",
    )
    add("--keep", type=int, default=0, metavar="K", help="keep the last K results alive; default 0")
    add("--warm-malloc", action="store_true", help="let peers' malloc keep big blocks")
    add(
        "--memory",
        action=BooleanOptionalAction,
        default=False,
        help="measure extra memory too, in a process per case; default not",
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
        choices=("off", "auto", "fast"),
        help="convgrad's switch; default auto",
    )


def check_arguments(given: Namespace) -> None:
    """Refuse before measuring what would fail after it; problems in the place of a suite become shapes."""
    if TRAIN in given.suite:
        raise Refusal(f"{TRAIN} stands right behind bench: convgrad bench {TRAIN} ...")
    named = [word for word in given.suite if word in (*RACES, *QUESTIONS)]
    if named and len(given.suite) > 1:
        raise Refusal(f"{named[0]} stands alone, got {len(given.suite)} words")
    given.shape = [*_grouped([word for word in given.suite if word not in named]), *given.shape]
    given.suite = named[0] if named else None
    _check_lines(given)
    positive = ("threads", "rounds", "seconds", "timeout")
    for name in positive:
        if getattr(given, name) <= 0:
            raise Refusal(f"--{name} must be positive, got {getattr(given, name):g}")
    if given.keep < 0:
        raise Refusal(f"--keep must not be negative, got {given.keep}")
    try:
        re.compile(given.filter)
    except re.error as error:
        raise Refusal(f"--filter {given.filter!r} is not a regular expression: {error}") from None
    words("ops", given.ops, OPS)
    words("panels", given.panels, PANELS)
    if given.compare and len(given.compare) > 2:
        raise Refusal(f"--compare takes one or two files, got {len(given.compare)}")
    if given.model and (given.shape or given.suite in RACES):
        raise Refusal(f"--model stands alone, got {given.suite or '--shape'} too")
    if given.suite in QUESTIONS and (given.plot or given.compare or given.source):
        raise Refusal(f"--plot, --compare and --from are for races, not for {given.suite}")
    if given.suite in QUESTIONS and given.layout not in LAYOUTS:
        raise Refusal(f"--layout {given.layout} is for races, {given.suite} takes one layout")
    if given.suite in QUESTIONS and len(given.batch) > 1:
        raise Refusal(f"{given.suite} takes one --batch, got {len(given.batch)}")
    for path in filter(None, (given.save, *given.plot)):
        if not path.absolute().parent.is_dir():
            raise Refusal(f"no such folder: {path.parent}")
    for path in given.plot:
        if path.suffix not in PICTURES:
            raise Refusal(f"--plot writes {', '.join(PICTURES)}, got {path.name!r}")
    if given.plot and find_spec("matplotlib") is None:
        raise Refusal("--plot needs matplotlib: pip install matplotlib")


def _grouped(words: Sequence[str]) -> list[str]:
    """Return problems whose words stood alone: a name or a whole problem begins one, all else belongs to it.

    >>> _grouped(["conv2d", "1x4x4x1", "1x1x1x1", "strides=2", "1x4x4x1k3"])
    ['conv2d 1x4x4x1 1x1x1x1 strides=2', '1x4x4x1k3']
    """
    found: list[str] = []
    inside = False
    for word in words:
        inside = inside or problem_lines.is_setting(word)
        if inside and found and word not in CALLS and not problem_lines.is_line(word):
            found[-1] += f" {word}"
        else:
            found.append(word)
            inside = word in CALLS
    return found


def is_line(text: str) -> bool:
    """Whether a problem says its operation, dtype and layout itself; a layer alone takes those of the options."""
    return text.startswith("@") or len(text.split()) > 1 or text in CALLS


def _check_lines(given: Namespace) -> None:
    """Refuse options that lines leave nothing to say; set the defaults of the others."""
    lines = [text for text in given.shape if is_line(text)]
    for option in ("ops", "dtype", "layout"):
        if lines and getattr(given, option) is not None:
            raise Refusal(f"--{option} is for layers, and a line says its own: {lines[0]!r}")
    if lines and given.suite:
        raise Refusal(f"{given.suite} takes layers such as 8x56x56x64k3s1o64, got {lines[0]!r}")
    given.ops = ",".join(OPS) if given.ops is None else given.ops
    given.dtype = given.dtype or "float32"
    given.layout = given.layout or "NHWC"


def _batches(text: str) -> tuple[int, ...]:
    """Read one or several batches.

    >>> _batches("1,8,32")
    (1, 8, 32)
    """
    try:
        found = tuple(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        raise ArgumentTypeError(f"must be whole numbers like 8 or 1,8,32, got {text!r}") from None
    if min(found) < 1:
        raise ArgumentTypeError(f"must be positive, got {text}")
    return found


def words(option: str, text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list of words, in the order of `allowed`."""
    words = {word.strip() for word in text.split(",")}
    if not words <= set(allowed):
        raise Refusal(f"--{option} must be among {', '.join(allowed)}, got {text}")
    return tuple(word for word in allowed if word in words)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
