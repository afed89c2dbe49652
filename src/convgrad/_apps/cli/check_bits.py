"""Compute a fixed campaign of small problems and print one SHA-256 of all results: the same on every machine.

All operations, dtypes and layouts, groups, strides, dilations, biases, some layers of networks, and batch norm with
activation. What is expected comes with the package, so parts that differ are named. Numbers come from an integer hash.
Status 1 means that some bits differ. A CPU without a fused multiply-add is outside the contract of sums.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..._compiler import jit
from ..._problem.sums import VERSION, told
from ..bits import campaign
from ..bits.expected import EXPECTED
from .screen import Cell, Screen
from .verb import DONE, NO

NAME = "check bits"
SUMMARY = "compute a fixed campaign, and print the digest that is the same on every machine"
EXAMPLES = """
convgrad check bits
convgrad check bits --json
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Take none: the campaign is always the same."""


def run(given: Namespace, screen: Screen) -> int:
    """Compute, compare, print."""
    target = jit.host_target()
    found = []
    with screen.progress("computing", len(EXPECTED)) as advance:
        for receipt in campaign.receipts():
            found.append(receipt)
            advance(1, receipt.name)
    differ = [each.name for each in found if EXPECTED.get(each.name) != each.digest]
    whole = campaign.whole(found)
    outside = None if target.has_fma else f"{told.OUTSIDE} on {target.label}"
    screen.table(
        ("part", "bits", "problems", "SHA-256"),
        [
            [
                Cell(each.name),
                Cell("differ", "bad") if each.name in differ else Cell("ok", "good"),
                Cell(str(each.problems)),
                Cell(each.digest[:16], "dim"),
            ]
            for each in found
        ],
        left=2,
    )
    screen.line()
    screen.line(f"contract of sums, version {VERSION}, on {target.label}")
    screen.line(f"SHA-256 {whole}", "strong")
    if differ:
        screen.line(f"{len(differ)} of {len(found)} parts differ: {', '.join(differ)}", "bad")
    if outside:
        screen.line(outside)
    screen.document(
        {
            "version": VERSION,
            "target": target.label,
            "outside": outside,
            "sha256": whole,
            "ok": not differ,
            "differ": differ,
            "parts": {each.name: each.digest for each in found},
        }
    )
    return NO if differ else DONE
