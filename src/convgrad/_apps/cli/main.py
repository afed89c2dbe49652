"""``convgrad VERB ...``: read the arguments, run the verb, turn every ending into an exit status.

Status 0: done. 1: done, and the answer is no. 2: refused, with the reason in one line. 130: interrupted.
143: terminated.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn, cast

from ..._base.errors import ConvgradError, nearest
from ..._base.version import __version__
from .screen import Screen
from .verb import DONE, INTERRUPTED, REFUSED, Refusal, Verb

VERBS = (
    "run",
    "explain",
    "export",
    "bench",
    "check",
    "graph",
    "studio",
    "info",
    "cache",
    "completion",
)
"""One module each, in the order of --help."""
TWO_WORDS = {"bench train": "train.verb", "check bits": ""}
"""Verbs whose second word has arguments of its own, and the module in a clone's `benchmarks` of one that runs there
only; where there is no clone, a module here says so. They are read by a parser of their own: the first word alone is a
verb too, whose arguments `--help` and the shells list."""

_EPILOG = """exit status:
  0 done   1 done, and the answer is no   2 refused, with the reason in one line   130 interrupted   143 terminated

`convgrad VERB --help` has examples; every verb takes --json."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_missing_streams()
    screen = Screen(as_json="--json" in words)
    where = "convgrad"
    try:
        with _one_line_warnings(screen), _termination():
            given = _parsed(words)
            where = f"convgrad {given.verb}"
            verb: Verb = given.module
            return _flushed(verb.run(given, screen))
    except SystemExit as ending:  # --help and --version
        return _closing(DONE if ending.code is None else int(ending.code))
    except UsageError as error:
        screen.error(error.program, error)
        return _closing(REFUSED)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        return _closing(INTERRUPTED)
    except (Refusal, ConvgradError, OSError, MemoryError) as error:
        screen.error(where, error)
        return _closing(REFUSED)
    except KeyboardInterrupt as error:
        word, status = (
            ("terminated", 143) if isinstance(error, _Terminated) else ("interrupted", INTERRUPTED)
        )
        screen.error(where, Refusal(word))
        return status


def parser(names: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of some verbs."""
    top = _Parser(
        prog="convgrad",
        description="TensorFlow's 2-D convolutions and their gradients on CPUs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"convgrad {__version__}")
    top.set_defaults(verb=None, json=False)
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    for name in names:
        module = _module(name)
        one = verbs.add_parser(
            module.NAME,
            help=module.SUMMARY,
            description=(module.__doc__ or module.SUMMARY).strip(),
            epilog=f"examples:\n{_indented(module.EXAMPLES)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        one.set_defaults(verb=module.NAME, module=module)
        module.add_arguments(one)
        one.add_argument("--json", action="store_true", help="print one JSON document instead")
    return top


def _module(name: str) -> Verb:
    if TWO_WORDS.get(name):
        from ..bench import clone

        if clone.is_here():
            return cast(Verb, clone.load_module(TWO_WORDS[name]))
    return cast(Verb, import_module(f".{name.replace(' ', '_')}", __package__))


class UsageError(Refusal):
    """A command line that cannot be read."""

    def __init__(self, program: str, message: str) -> None:
        super().__init__(f"{message} (see {program} --help)")
        self.program = program


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(self.prog, message)


def _parsed(words: list[str]) -> argparse.Namespace:
    """Read the words; the verb first, so that a wrong one is answered with the nearest right one."""
    two = " ".join(words[:2])
    if two in TWO_WORDS:
        whole, words = parser([two]), [two, *words[2:]]
    else:
        verb = next((word for word in words if not word.startswith("-")), None)
        if verb is not None and verb not in VERBS:
            raise UsageError("convgrad", f"there is no verb {verb!r}{nearest(verb, VERBS)}")
        whole = parser()
    if not words:
        whole.print_help()
        raise SystemExit(REFUSED)
    given, unknown = whole.parse_known_args(words)
    if given.verb is None:
        raise UsageError("convgrad", f"unknown: {unknown[0]}" if unknown else "a verb is missing")
    if hasattr(given, "takes"):  # positional words behind options, which argparse leaves over
        name, takes = given.takes
        setattr(given, name, [*getattr(given, name), *filter(takes, unknown)])
        unknown = [word for word in unknown if not takes(word)]
    if unknown:
        raise UsageError(f"convgrad {given.verb}", f"unknown: {' '.join(unknown)}")
    return given


class _Terminated(KeyboardInterrupt):
    """The system asked the program to end; files under way are removed as after Ctrl-C."""


@contextmanager
def _termination() -> Iterator[None]:
    """Turn SIGTERM into an exception while a verb runs; only the main thread may."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _one_line_warnings(screen: Screen) -> Iterator[None]:
    """Print a warning as its sentence, without the line of source it came from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        screen.note(str(message))

    with warnings.catch_warnings():
        # Not an assignment in so many words: mypy knows the attribute as a function.
        setattr(warnings, "showwarning", show)  # noqa: B010  # see above
        yield


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def _flushed(status: int) -> int:
    """Meet a closed pipe here, where it is expected, and not at the interpreter's end."""
    sys.stdout.flush()
    return status


def _closing(status: int) -> int:
    """Flush; what nobody takes, as on a full disk, is sent nowhere, or Python complains at its end."""
    try:
        return _flushed(status)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED if isinstance(error, BrokenPipeError) else REFUSED


def _open_missing_streams() -> None:
    """Stand in for standard streams that were closed when the program started.

    Python has None there, and `print(file=None)` prints errors into the JSON document; and the first files opened
    get the streams' numbers, so that whatever a library prints would end up in them.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
