"""Time whole training steps of a network in a framework, with convgrad and without. It runs in a clone.

The networks, in four frameworks, and what trains them are not part of the wheel: they are in the folder `benchmarks` of
the repository. After `pip install -e .` in a clone this verb has its arguments, and --help lists them.
"""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace

from .screen import Screen
from .verb import Refusal

NAME = "bench train"
SUMMARY = "time training steps of whole networks in a framework, with convgrad and without"
EXAMPLES = """
convgrad bench train
convgrad bench train --help
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Take whatever the verb of a clone takes: all of it is answered alike."""
    parser.add_argument("words", nargs="*", help=SUPPRESS)
    parser.set_defaults(takes=("words", lambda word: True))


def run(given: Namespace, screen: Screen) -> int:
    """Say what is missing, and where it is."""
    raise Refusal(
        "the networks that it trains are not in the wheel but in the folder `benchmarks` of a clone: run it there "
        "after `pip install -e .`"
    )
