"""``convgrad VERB ...``: read the arguments, run the verb, turn every ending into an exit status.

Status 0: done. 1: done, and the answer is no. 2: refused, with the reason in one line. 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from .._errors import ConvgradError
from .._version import __version__
from .screen import Screen
from .verb import INTERRUPTED, REFUSED, Refusal, Verb

VERBS = ("info",)
"""One module each, in the order of --help."""

_EPILOG = """exit status:
  0 done   1 done, and the answer is no   2 refused, with the reason in one line   130 interrupted

`convgrad VERB --help` has examples; every verb takes --json."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    given = parser().parse_args(arguments)
    if given.verb is None:
        parser().print_help()
        return REFUSED
    verb: Verb = given.module
    screen = Screen(as_json=given.json)
    try:
        return _flushed(verb.run(given, screen))
    except (Refusal, ConvgradError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return INTERRUPTED
        screen.error(f"convgrad {verb.NAME}", error)
        return REFUSED
    except KeyboardInterrupt:
        screen.error(f"convgrad {verb.NAME}", Refusal("interrupted"))
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="convgrad",
        description="TensorFlow's 2-D convolutions and their gradients on CPUs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"convgrad {__version__}")
    top.set_defaults(verb=None, json=False)
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    for name in VERBS:
        module = cast(Verb, import_module(f".{name}", __package__))
        one = verbs.add_parser(
            module.NAME,
            help=module.SUMMARY,
            description=(module.__doc__ or module.SUMMARY).strip(),
            epilog=f"examples:\n{_indented(module.EXAMPLES)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.set_defaults(verb=module.NAME, module=module)
        module.add_arguments(one)
        one.add_argument("--json", action="store_true", help="print one JSON document instead")
    return top


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def _flushed(status: int) -> int:
    """Meet a closed pipe here, where it is expected, and not at the interpreter's end."""
    sys.stdout.flush()
    return status
