"""What was found out about a kernel, for people, for machines, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["pass", "FAIL", "died", "refused", "partly refused", "not tested"]


@dataclass
class Row:
    """The account of one property."""

    name: str
    meaning: str
    passed: int = 0
    failed: int = 0
    died: int = 0
    refused: int = 0
    reason: str = ""
    """The first refusal, in the kernel's words."""

    @property
    def status(self) -> Status:
        if self.failed:
            return "FAIL"
        if self.died:
            return "died"
        if self.refused:
            return "partly refused" if self.passed else "refused"
        return "pass" if self.passed else "not tested"

    @property
    def problems(self) -> int:
        return self.passed + self.failed + self.died + self.refused


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with the smallest problem that shows it."""

    what: str
    """What happened, in one line."""
    guess: str | None
    """The likely cause."""
    evidence: str
    properties: tuple[str, ...]
    program: str
    """A runnable program."""
    got: str
    expected: str

    def lines(self) -> list[str]:
        """Describe it without the program."""
        likely = [f"likely cause: {self.guess}"] if self.guess else []
        return [
            self.what,
            *likely,
            f"shows in: {', '.join(self.properties)}; {self.evidence} there",
        ]


@dataclass(frozen=True)
class Report:
    """The result of `check_op`; true-or-false in `ok`, readable as text.

    Attributes
    ----------
    implementation, version, op : str
        What was tested.
    rows : tuple of Row
        One per property: name, status, and how many problems passed, failed, killed the process, were refused.
    worst : dict
        The worst error among right results per dtype, in u, relative to the sum of absolute products.
    findings : tuple of Finding
        What is wrong: likely cause, smallest failing program, what came out and what should have.
    stopped : str
        Why not all problems were tried, or nothing.
    """

    implementation: str
    version: str
    op: str
    seed: int
    dtype: str
    layout: str
    rows: tuple[Row, ...]
    worst: Mapping[str, float]
    findings: tuple[Finding, ...]
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    measure: str = "u"
    """What `worst` is counted in: u, or what was allowed, where each number has a limit of its own."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; refused problems are not wrong."""
        return not any(row.failed or row.died for row in self.rows)

    @property
    def refusals(self) -> tuple[Row, ...]:
        """The properties of which some problems were refused."""
        return tuple(row for row in self.rows if row.refused)

    @property
    def problems(self) -> int:
        """How many problems were tried; properties looked at in every call do not count again."""
        return sum(
            row.problems for row in self.rows if row.name not in ("operands-kept", "fresh-result")
        )

    def row(self, name: str) -> Row:
        """Return the account of one property."""
        return next(row for row in self.rows if row.name == name)

    def raise_if_failed(self) -> None:
        """Raise `AssertionError` with the whole report if something is wrong."""
        if not self.ok:
            raise AssertionError("\n" + str(self))

    @property
    def title(self) -> str:
        """The kernel and the operation."""
        version = f" {self.version}" if self.version else ""
        return f"{self.implementation}{version}: {self.op}"

    def summary(self) -> str:
        """Return the outcome in one line."""
        counts = {status: sum(row.status == status for row in self.rows) for status in _ORDER}
        parts = [f"{count} {status}" for status, count in counts.items() if count]
        early = f"; {self.stopped}" if self.stopped else ""
        return f"{self.problems} problems, properties: {', '.join(parts)}{early}"

    def __str__(self) -> str:
        lines = [self.title, self.summary(), ""]
        lines += _columns([COLUMNS, *self.cells()])
        lines += ["", self.errors_line()]
        for number, finding in enumerate(self.findings, 1):
            lines += [
                "",
                *(f"{number}. {finding.what}", *(f"   {each}" for each in finding.lines()[1:])),
            ]
            lines += [f"   got      {finding.got}", f"   expected {finding.expected}", ""]
            lines += [f"    {each}".rstrip() for each in finding.program.splitlines()]
        return "\n".join(lines)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table of properties as text, under `COLUMNS`."""
        return [
            (
                row.name,
                row.status,
                *(str(n or "") for n in (row.passed, row.failed, row.died, row.refused)),
                row.meaning,
            )
            for row in self.rows
        ]

    def errors_line(self) -> str:
        """Return the worst errors of right results in one line."""
        if not self.worst:
            return "no right result to measure"
        each = ", ".join(f"{name} {value:.3g}" for name, value in self.worst.items())
        if self.measure == "limits":
            return f"worst error of right results, as a share of what is allowed: {each}"
        return f"worst error of right results in u: {each}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return {
            "implementation": self.implementation,
            "version": self.version,
            "op": self.op,
            "ok": self.ok,
            "seed": self.seed,
            "problems": self.problems,
            "stopped": self.stopped or None,
            "dtype": self.dtype,
            "layout": self.layout,
            "settings": dict(self.settings),
            "properties": [
                {
                    "name": row.name,
                    "meaning": row.meaning,
                    "status": row.status,
                    "passed": row.passed,
                    "failed": row.failed,
                    "died": row.died,
                    "refused": row.refused,
                    "reason": row.reason,
                }
                for row in self.rows
            ],
            ("worst_error_in_u" if self.measure == "u" else "worst_error_in_limits"): dict(
                self.worst
            ),
            "findings": [
                {
                    "what": each.what,
                    "guess": each.guess,
                    "evidence": each.evidence,
                    "properties": list(each.properties),
                    "program": each.program,
                    "got": each.got,
                    "expected": each.expected,
                }
                for each in self.findings
            ],
        }

    def markdown(self, level: int = 1) -> str:
        """Return the report as a page, or as a part of one that starts at a heading of this level."""
        mark = "#" * level
        lines = [
            f"{mark} {self.op}" if level > 1 else f"{mark} {self.title}",
            "",
            f"{self.summary()}.",
            "",
        ]
        lines += [
            "| property | | passed | failed | died | refused | |",
            "|---|---|--:|--:|--:|--:|---|",
        ]
        for cells in self.cells():
            status = f"**{cells[1]}**" if cells[1] in ("FAIL", "died") else cells[1]
            lines.append(f"| {' | '.join((cells[0], status, *cells[2:]))} |")
        lines += ["", self.errors_line().capitalize() + "."]
        refused = {row.reason: row.name for row in reversed(self.refusals) if row.reason}
        if refused:
            lines += ["", "Refused, in its own words:", ""]
            lines += [
                f"- {name}: `{_inline(reason)}`" for reason, name in reversed(refused.items())
            ]
        for number, finding in enumerate(self.findings, 1):
            first, *rest = finding.lines()
            lines += [
                "",
                f"{mark}# {self.op}, finding {number}: {finding.guess or finding.what}",
                "",
                f"{first}.",
            ]
            lines += ["", *(f"- {each}" for each in rest)]
            lines += ["", "```text", *finding.program.splitlines(), "```"]
            lines += ["", f"got `{finding.got}`, expected `{finding.expected}`"]
        return "\n".join(lines) + "\n"


_ORDER: tuple[Status, ...] = ("pass", "FAIL", "died", "partly refused", "refused", "not tested")
COLUMNS = ("property", "", "passed", "failed", "died", "refused", "what it means")


def _inline(text: str) -> str:
    return text.replace("`", "'").replace("|", "/")


def _columns(lines: Sequence[Sequence[str]]) -> list[str]:
    """Pad cells into columns: numbers to the right, words to the left."""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return [
        "  ".join(
            cell.rjust(width) if 2 <= at < 6 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
