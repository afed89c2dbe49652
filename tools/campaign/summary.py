"""What a campaign has shown, as JSON and as the tables of docs/campaign.md."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import ROOT
from .state import State
from .trial import OPS

PAGE = ROOT / "docs" / "campaign.md"
RECORD = ROOT / "docs" / "campaign.json"
BEGIN, END = "<!-- summary: begin -->\n", "<!-- summary: end -->\n"

CHECKS = {
    "whole": "small whole numbers: equal to the exact sum, rounded once",
    "wrapping": "any int32: equal modulo `2**32`",
    "normal": "floats: every number within its error bound",
    "special": "Inf and NaN planted: they reach their windows and nothing else",
    "guarded": "operands, results and workspace against forbidden pages",
    "layouts": "strided, reversed, unaligned, byte-swapped, broadcast or read-only operands",
    "threads": "same bits on 1, 2, 3 and 8 threads and when repeated",
    "pairs": "same bits in a second process",
}


def summary(state: State) -> dict[str, Any]:
    """Return everything worth keeping about a campaign."""
    import llvmlite
    import numpy as np

    import convgrad

    return {
        "seed": state.seed,
        "trials": state.done,
        "problems": len(state.problems),
        "minutes": round(state.seconds / 60, 1),
        "failures": state.failures,
        "largest_part_of_an_error_bound": round(state.used, 4),
        "checks": {**state.checks, "pairs": state.pairs},
        "cells": dict(sorted(state.cells.items())),
        "algorithms": dict(sorted(state.algorithms.items())),
        "versions": {
            "convgrad": convgrad.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "llvmlite": llvmlite.__version__,
        },
        "machine": f"{platform.machine()} {platform.system()}",
    }


def write(state: State) -> list[Path]:
    """Replace the tables of the page and the record beside it."""
    found = summary(state)
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{text(found)}{END}{after}", encoding="utf-8")
    return [RECORD, PAGE]


def text(found: dict[str, Any]) -> str:
    """Return the tables, in Markdown."""
    cells = [(*key.split(" "), count) for key, count in found["cells"].items()]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    failures = len(found["failures"])
    lines = [
        f"{found['trials']:,} trials of {found['problems']:,} distinct problems in "
        f"{found['minutes']:,} minutes, seed {found['seed']}: {failures or 'no'} failures.",
        f"{versions}; {found['machine']}. The largest part of an error bound that a float32 or float64 result used up: "
        f"{found['largest_part_of_an_error_bound']:.0%}.",
        "",
        *_cross(cells, "operation", "dtype and layout", 0, lambda row: f"{row[1]} {row[2]}"),
        "",
        *_cross(cells, "operation", "target", 0, lambda row: row[3]),
        "",
        *_table(("checked", "trials"), _checks(found["checks"])),
        "",
        *_cross(
            [(*key.split(" "), count) for key, count in found["algorithms"].items()],
            "computed by",
            "target",
            0,
            lambda row: row[1],
        ),
    ]
    return "\n".join(lines) + "\n"


PEERS = {"jax": "JAX", "tensorflow": "TensorFlow's compiler", "torch": "PyTorch"}


def _checks(counts: dict[str, int]) -> Iterable[tuple[str, str]]:
    for name, meaning in CHECKS.items():
        yield meaning, f"{counts.get(name, 0):,}"
    for name in sorted(counts.keys() - CHECKS.keys()):
        peer = name.removeprefix("peer ")
        words = f"compared with {PEERS[peer]}" if peer in PEERS else "refused by the peer asked"
        yield words, f"{counts[name]:,}"


def _cross(rows: list[Any], down: str, across: str, first: int, second: Any) -> list[str]:
    """Return a table of counts by two keys, with totals."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row[first], second(row)] += row[-1]
    order = {name: number for number, name in enumerate(OPS)}
    downs = sorted({key[0] for key in counts}, key=lambda each: (order.get(each, 99), each))
    acrosses = sorted({key[1] for key in counts})
    head = (f"{down}, by {across}", *acrosses, "all")
    body = [
        (name, *(f"{counts[name, each]:,}" for each in acrosses), f"{_total(counts, name):,}")
        for name in downs
    ]
    return _table(head, body)


def _total(counts: Counter[tuple[str, str]], name: str) -> int:
    return sum(count for key, count in counts.items() if key[0] == name)


def _table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> list[str]:
    rows = [head, tuple("---" for _ in head), *body]
    return ["| " + " | ".join(row) + " |" for row in rows]
