"""What a verb of the command line is, and how it ends."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Protocol

from .screen import Screen

DONE = 0
NO = 1
"""The job ran and its answer is no: a check failed, a result was wrong."""
REFUSED = 2
"""The job could not run: wrong arguments, unreadable or existing files, something missing."""
INTERRUPTED = 130


class Verb(Protocol):
    """A module with these names. `run` returns an exit status and raises `Refusal` or any error of the package."""

    NAME: str
    SUMMARY: str
    """One line for the list of verbs."""
    EXAMPLES: str
    """Command lines, one each, shown at the end of --help."""

    def add_arguments(self, parser: ArgumentParser) -> None: ...
    def run(self, given: Namespace, screen: Screen) -> int: ...


class Refusal(Exception):
    """Why a job cannot be done, in one sentence a person can act on; ends the program with status 2."""
